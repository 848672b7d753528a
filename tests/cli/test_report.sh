#!/bin/bash
# paceline report, and the report that train leaves: of runs that have ended, were killed, are empty or damaged, and of several.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
run gen clicks -o clicks.tsv --rows 4000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.2
words=(--data data --batch 100 --quiet)

# has FILE TEXT...: each occurs literally in it.
has()
{
    local file=$1 text

    shift
    for text in "$@"; do
        grep -qF -- "$text" "$file" || fail "$file has no: $text"
    done
}

# whole FILE: it is a page from its first to its last line, loads nothing, and allows no code but its own.
whole()
{
    [ "$(head -n 1 "$1")" = "<!doctype html>" ] && [ "$(tail -n 1 "$1")" = "</html>" ] || fail "$1 is not a whole page"
    has "$1" "Content-Security-Policy" "default-src 'none'" "script-src 'sha256-" "style-src 'sha256-" "Chart.js"
    ! grep -qE '<(script|link|img|iframe)[^>]* (src|href)="?(http|//|file)' "$1" || fail "$1 loads something"
    ! grep -qE '<[a-z]+[^>]* on[a-z]+=' <(grep -v 'Chart.js' "$1" | grep '^<') || fail "$1 has code in attributes"
    ! grep -qE 'unsafe-(inline|eval)' "$1" || fail "$1 allows any code"
}

# ---- train leaves one ----
run train "${words[@]}" --run one --eval-every 20 --epochs 3 --json
cp out one.json
whole one/report.html
has one/report.html "<h1>one</h1>" ">done<" "What takes the time" "How it went" "How good it is" "What weighs most" \
    "All options" "<td>batch</td><td>100</td>" '"roc":[[0,0],' '"bins":[[0.'
for score in auc logloss accuracy; do
    has one/report.html "<dd>$(printf '%.5g' "$(json_number $score one.json)")</dd>"
done
has one/config.yaml 'report: "on"'
run train "${words[@]}" --run without --steps 5 --report off
[ ! -e without/report.html ] || fail "a report that nobody wanted"
usage_error "--report" "on" "off" -- train "${words[@]}" --run none --report maybe

# ---- the verb writes the same ----
run report one -o one.html
expect_text "one.html"
cmp -s one.html one/report.html || fail "the report that train has left is another one"
expect_exit 64 "$paceline" report one -o one.html
expect_error "one.html: exists; use --force to replace it"
run report one -o one.html --force --json
expect_object
expect_equal "bytes" "$(json_number bytes)" "$(wc -c <one.html)"
run report one -o -
cmp -s out one.html || fail "standard output has another report"
expect_no_error
usage_error "--json and the report cannot both go to standard output" -- report one -o - --json
usage_error "no run" -- report -o none.html
usage_error "option --output FILE is missing" -- report one
mapfile -t too_many < <(yes one | head -n 33)
usage_error "a report has room for 32" -- report "${too_many[@]}" -o none.html
expect_exit 66 "$paceline" report nowhere -o none.html
expect_error "nowhere: "
expect_exit 66 "$paceline" report data -o none.html
expect_error "data: is no run directory"
[ ! -e none.html ] || fail "what was refused has left a file"
run help report
expect_text "RUN... -o FILE.html"

# ---- going on: the old one tells of another end ----
run train "${words[@]}" --run one --epochs 4 --resume --schedule constant
cmp -s one.html one/report.html && fail "the report is that of before"
whole one/report.html

# ---- several: what differs first ----
run train "${words[@]}" --run two --steps 30 --lr 0.01 --report off
run report one two -o both.html
whole both.html
has both.html "<h1>2 runs</h1>" "Options that differ" "<tr><td>lr</td><td>" "Options that are the same"
[ "$(grep -n '<td>lr</td>' both.html | head -n 1 | cut -d : -f 1)" -lt "$(grep -n '<td>seed</td>' both.html | head -n 1 | cut -d : -f 1)" ] ||
    fail "options that differ do not come first"

# ---- of one that is interrupted, or fails ----
start_job "$paceline" train "${words[@]}" --run "$work/stopped" --epochs 1000000 --log-every 10
wait_for trains stopped
kill -INT "$job"
end_job 75
whole stopped/report.html
has stopped/report.html "<dd>interrupted</dd>"
run report stopped -o stopped.html
cmp -s stopped.html stopped/report.html || fail "the report of an interrupted run is another one"
expect_exit 1 "$paceline" train "${words[@]}" --run failed --optimizer sgd --exact --lr 1000000 --epochs 20
[ ! -e failed/summary.json ] || fail "it has not diverged"
whole failed/report.html
has failed/report.html "<dd>failed</dd>"

# ---- of one that is killed, and of half of one ----
start_job "$paceline" train "${words[@]}" --run "$work/killed" --epochs 1000000 --checkpoint-every 50 --log-every 10
wait_for trains killed
kill -KILL "$job"
wait "$job" 2>/dev/null
wait_for nothing_runs "$work/killed"
[ ! -e killed/report.html ] || fail "a run that was killed has left a report"
run report killed -o killed.html
whole killed.html
has killed.html "<dd>killed</dd>" "There are no scores of a finished model"
for file in metrics.jsonl config.yaml summary.json state.json model.safetensors; do
    for damage in gone cut zeros newer; do
        rm -rf half && cp -r one half
        case $damage in
        gone) rm half/$file ;;
        cut) truncate -s $(($(wc -c <half/$file) / 2)) half/$file ;;
        zeros) head -c "$(wc -c <one/$file)" /dev/zero >half/$file ;;
        newer) printf '{"version": 99, "kind": "step", "t": {}, "step": -1, "roles": 7, "test": []}\n' >half/$file ;;
        esac
        run report half -o half.html --force
        whole half.html
    done
done
rm -rf half && cp -r one half
rm half/metrics.jsonl && mkfifo half/metrics.jsonl
run report half -o half.html --force
whole half.html
mkdir -p empty/logs && touch empty/logs/paceline.log
run report empty -o empty.html
whole empty.html
has empty.html "No step was recorded" "There is no model yet"

# ---- a profile: what train --profile leaves, and whatever else ----
mkdir two/profile
echo '{"groups": [{"group": "workers", "ops": [{"op": "gemm", "shape": "128x64", "calls": 12345, "share": 0.25}, 3]}, 4]}' >two/profile/ops.json
run report two -o profile.html
has profile.html "gemm" "128x64" "12,345" "25.0 %" "workers"
run train --data data --model logreg --run profiled --profile 5 --quiet
has profiled/report.html "<h3>Profile</h3>" "<h4>workers</h4>" "X.W" "(in no span)"
run report profiled -o profiled.html
cmp -s profiled.html profiled/report.html || fail "the report of train is not the verb's"
echo '[1, 2' >two/profile/ops.json
run report two -o profile.html --force
whole profile.html

# ---- what is planted where the report goes is neither followed nor waited for, and costs no run ----
echo precious >precious
plant()
{
    case $1 in
    directory) mkdir "$2" ;;
    link) ln -s "$work/precious" "$2" ;;
    fifo) mkfifo "$2" ;;
    esac
}
for what in directory link fifo; do
    start_job "$paceline" train "${words[@]}" --run "$work/$what" --epochs 1000 --steps 30000 --log-every 10
    wait_for trains $what
    plant $what $what/report.html || fail "the run has ended already"
    end_job 0
    [ -e $what/summary.json ] && [ -e $what/model.safetensors ] || fail "a report has cost a run"
    [ -z "$(find $what -name 'report.html.tmp*')" ] || fail "half a report is left"
    if [ $what = directory ]; then
        expect_error "warning: no report was written: "
        continue
    fi
    [ ! -L $what/report.html ] && [ -f $what/report.html ] || fail "it is a $what still"
    whole $what/report.html
done
expect_equal "the file that a link led to" "$(cat precious)" precious

# ---- inspect does not list the points of curves ----
run inspect one
! grep -qw roc out || fail "inspect lists points of a curve"
run inspect one --json
expect_text '"roc"'
