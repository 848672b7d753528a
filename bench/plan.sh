#!/bin/bash
# Predicted beside measured: bench/plan.sh [CELLS [SEED [QUESTIONS]]]
#
# CELLS (12) jobs are drawn by SEED (1) from those that a lab can hold: clicks at 100, 1,000 and 10,000 rows a step, rnn and
# cnn at 128 and 512; 2, 4, 8 workers; 1, 2 servers or none; 1 Gbit/s and 100 Mbit/s; every mode. `paceline plan` learns from runs
# of some seconds on one host alone, and predicts them; then they run, each for as many steps as are predicted to take some
# seconds. Needs root: hosts of 0.15 core are made by tests/lab/lab. What is compared is the speed once a job is under way, without
# its start. Cells that are off by more than a quarter run once more, which tells what is noise; the first run counts.
#
# QUESTIONS ("clicks-1000 clicks-10000 rnn-128 cnn-128", or none): data and rows in a step, for which plan recommends a job on 8
# hosts with 1 Gbit/s, among those whose model is that of any other number of workers. Of these all run that could be the fastest if
# predictions were off by no more than a quarter: how fast is what was recommended, beside the fastest?
#
# 60 cells and four questions take about half an hour. With BENCH_DIR what was measured is kept, and only what is missing runs: more
# cells of the same seed go on with it. It is a report: the exit code says whether everything ran. Environment: see bench/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

cells=${1:-12}
seed=${2:-1}
questions=${3-clicks-1000 clicks-10000 rnn-128 cnn-128}
lab=$root/tests/lab/lab
share=0.15
period=7
latency=60us      # what plan assumes; links of a lab have no more than their hosts take to answer
cell_s=4.5        # of training
steps_least=6     # of a cell, however long they take: a part of them is the start
run_s=150         # for which a run may last
again=25          # per cent that a cell is off by, above which it runs again
could_be_best=0.6 # of the fastest prediction: 0.75 / 1.25
hosts_asked=8
declare -A words=([clicks]="--model logreg" [rnn]="--model rnn --embed 128 --hidden 128" [cnn]="--model cnn --arch small")
declare -A batches=([clicks]="100,1000,10000" [rnn]="128,512" [cnn]="128,512")

make_data()
{
    [ ! -e "$work/data-is-there" ] || return 0
    {
        "$program" gen clicks -o "$work/clicks.tsv" --rows 2020000 --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/clicks" --holdout 0.01 --force --quiet
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 57000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/rnn" --holdout 0.01 --force --quiet
        rm -rf "$work/pictures" "$work/pictures-test" "$work/clicks.tsv"
        "$program" gen images -o "$work/pictures" --rows 4096 --force --quiet
        "$program" gen images -o "$work/pictures-test" --rows 64 --seed 2 --force --quiet
        "$program" prep images "$work/pictures" --test "$work/pictures-test" --size 32 -o "$work/cnn" --force --quiet
    } >"$results/data.out"
    touch "$work/data-is-there"
}

# draw: a line for each cell: DATA MODE WORKERS PS BATCH RATE
draw()
{
    awk -v cells="$cells" -v seed="$seed" '
        function pick(list, parts, count) { count = split(list, parts, " "); return parts[1 + int(rand() * count)] }
        BEGIN {
            srand(seed)
            while (drawn < cells) {
                data = pick("clicks clicks clicks rnn cnn")
                mode = pick(data == "cnn" ? "allreduce ps-sync ps-async" : "allreduce ps-sync ps-async local-sgd")
                ps = mode ~ /^ps/ ? pick("0 1 2") : "-"
                batch = mode == "local-sgd" && data == "clicks" ? 512 : data == "clicks" ? pick("100 1000 10000") : pick("128 512")
                line = data " " mode " " pick("2 4 8") " " ps " " batch " " pick("1gbit 1gbit 100mbit")
                if (!(line in seen)) { seen[line] = 1; drawn++; print line }
            }
        }'
}

# name_of DATA MODE WORKERS PS BATCH RATE: of its run directory.
name_of()
{
    local IFS=-

    echo "$*"
}

# ---- what is predicted ----

# known_of DATA: sets known, the words that say what is learned from.
known_of()
{
    known=(--run "$work/runs/$1-steps")
    [ "$1" != clicks ] || known+=(--run "$work/runs/clicks-block")
}

# predictions FILE: from plan's JSON, a line for each: MODE WORKERS PS BATCH ROWS_S; the recommended one has a mark behind.
predictions()
{
    tr '{' '\n' <"$1" | awk '
        function value(name) {
            if (!match($0, "\"" name "\":(\"[^\"]*\"|[^,}]*)"))
                return ""
            text = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
            gsub(/"/, "", text)
            return text
        }
        /"mode":/ && chosen != 2 {
            sub(/.*"mode":/, "\"mode\":") # memory of a ps is in front of it
            print value("mode"), value("workers"), value("mode") ~ /^ps/ ? value("ps") : "-", value("batch"), value("samples_per_second"), \
                chosen ? "recommended" : ""
            if (chosen)
                chosen = 2
        }
        /"recommended":$/ { chosen = 1 }'
}

# foresee DATA RATE: all that may be asked of it, once.
foresee()
{
    local file=$work/foreseen-$1-$2 known

    [ ! -s "$file" ] || return 0
    known_of "$1"
    "$program" plan "${known[@]}" --mode local,allreduce,ps-sync,ps-async,local-sgd --workers 1,2,4,8 --ps 0,1,2 --batch "${batches[$1]}" \
        --net "$2" --latency $latency --json --quiet >"$results/foreseen.json"
    predictions "$results/foreseen.json" >"$file.new"
    mv "$file.new" "$file"
}

# steps_of DATA MODE WORKERS PS BATCH RATE: as many as are predicted to take some seconds; what was once decided stays.
steps_of()
{
    local file

    file=$work/steps/$(name_of "$@")
    if [ ! -s "$file" ]; then
        foresee "$1" "$6"
        awk -v wanted="$2 $3 $4 $5" -v seconds=$cell_s -v least=$steps_least '
            $1 " " $2 " " $3 " " $4 == wanted && !found { found = 1; steps = int(seconds * $5 / $4); print steps < least ? least : steps }
            END { if (!found) exit 1 }' "$work/foreseen-$1-$6" >"$file.new" || fail "plan says nothing of $*"
        mv "$file.new" "$file"
    fi
    cat "$file"
}

# ---- what is measured ----

# train RUN DATA LAB-WORDS -- WORDS...: unless it was. What is large and says nothing of its speed is removed.
train()
{
    local run=$1 data=$2 lab_words=() own

    shift 2
    [ ! -e "$run/summary.json" ] || return 0
    while [ "$1" != -- ]; do
        lab_words+=("$1")
        shift
    done
    read -ra own <<<"${words[$data]}"
    rm -rf "$run"
    timeout $run_s "$lab" run "${lab_words[@]}" --cpu $share --period $period -- "$program" train --data "$work/$data" "${own[@]}" \
        --run "$run" --threads 1 --eval-rows 1 --checkpoint-seconds 0 --report off --quiet "${@:2}" >>"$results/train.out" 2>&1 || {
        rm -f "$run/summary.json"
        fail "$run: see $results/train.out"
    }
    rm -rf "$run/checkpoints" "$run/model.safetensors"
}

# On one host alone: a run of each family of work.
calibrate()
{
    train "$work/runs/clicks-block" clicks --hosts 1 -- --mode local --steps 20000
    train "$work/runs/clicks-steps" clicks --hosts 1 -- --mode ps-sync --workers 1 --ps 0 --batch 1000 --steps 1000
    train "$work/runs/rnn-steps" rnn --hosts 1 -- --mode local --batch 128 --steps 24
    train "$work/runs/cnn-steps" cnn --hosts 1 -- --mode local --batch 128 --steps 8
}

# hosts_file COUNT: host2, host3, ...: the command is typed on host1, which has no limit.
hosts_file()
{
    local number

    for ((number = 2; number <= $1 + 1; number++)); do
        echo "host$number"
    done >"$work/hosts-$1"
    echo "$work/hosts-$1"
}

# measure MARK DATA MODE WORKERS PS BATCH RATE: MARK is behind the name of its directory.
measure()
{
    local mark=$1 processes=$4 more=() steps run

    shift
    run=$work/runs/$(name_of "$@")$mark
    steps=$(steps_of "$@") || exit 1
    if [ "$2" = local ]; then
        train "$run" "$1" --hosts 1 -- --mode local --batch "$5" --steps "$steps"
        return
    fi
    if [ "$4" != - ]; then
        processes=$(($3 + $4))
        more=(--ps "$4")
    fi
    train "$run" "$1" --hosts $((processes + 1)) --rate "$6" --cpu-of host1=none -- --mode "$2" --workers "$3" "${more[@]}" \
        --batch "$5" --steps "$steps" --hosts "$(hosts_file "$processes")"
}

# measure_all MARK WHAT FILE: every line of the file; one that fails is said, and the others go on.
measure_all()
{
    local line cell number=0 count start

    count=$(wc -l <"$3")
    while read -r -u 3 line; do
        number=$((number + 1))
        read -ra cell <<<"$line"
        start=$SECONDS
        (measure "$1" "${cell[@]}") || echo "$line" >>"$results/failed-cells"
        echo "$2 $number/$count: $line: $((SECONDS - start)) s; $((SECONDS / 60)) min in all" >&2
    done 3<"$3"
}

# check MARK FILE: a line for each cell of the file that ran: NAME PREDICTED MEASURED ERROR BOUND-BY IT-WAS, the error in per cent.
check()
{
    local data rate line known runs

    for data in clicks rnn cnn; do
        for rate in 1gbit 100mbit; do
            runs=()
            while read -r line; do
                [ "${line%% *}-${line##* }" != "$data-$rate" ] || [ ! -e "$work/runs/${line// /-}$1/summary.json" ] ||
                    runs+=("$work/runs/${line// /-}$1")
            done <"$2"
            [ ${#runs[@]} -gt 0 ] || continue
            known_of $data
            "$program" plan "${known[@]}" --net $rate --latency $latency --check "${runs[@]}" --quiet --json >"$results/check.json" || {
                echo "plan --check of $data at $rate" >>"$results/failed"
                continue
            }
            tr '{' '\n' <"$results/check.json" | awk '
                function value(name) {
                    if (!match($0, "\"" name "\":(\"[^\"]*\"|[^,}]*)"))
                        return ""
                    text = substr($0, RSTART + length(name) + 3, RLENGTH - length(name) - 3)
                    gsub(/"/, "", text)
                    return text
                }
                /"run":/ {
                    sub(/.*"mode":/, "\"mode\":")
                    predicted = value("samples_per_second"); bound = value("bottleneck")
                    name = value("run"); sub(/.*\//, "", name); was = value("measured_bottleneck")
                    printf "%s %.0f %.0f %+.1f %s %s\n", name, predicted, value("measured_samples_per_second"), 100 * value("error"), \
                        bound == "" ? "-" : bound, was == "" ? "-" : was
                }'
        done
    done
}

# ---- cells ----

# print_cells: what was checked, and checked again.
print_cells()
{
    echo '```'
    awk 'BEGIN { printf "%-40s %10s %10s %8s  %-10s %-10s %s\n", "cell", "predicted", "measured", "error", "bound by", "it was", "run again" }
        FILENAME == ARGV[1] { name = $1; sub(/~2$/, "", name); again[name] = $3 " (" $4 " %)"; next }
        { printf "%-40s %10d %10d %+7.1f%%  %-10s %-10s %s\n", $1, $2, $3, $4, $5, $6, again[$1] }' \
        "$results/checks-again" "$results/checks" | sed 's/ *$//'
    echo '```'
}

# middle FILE: the median of its numbers.
middle()
{
    sort -n "$1" | awk '{ e[NR] = $1 } END { if (NR) printf "%.1f\n", (e[int((NR + 1) / 2)] + e[int(NR / 2) + 1]) / 2; else print "-" }'
}

# print_families: where it is regularly wrong. Costs were once fitted to clicks at 1 Gbit/s (docs/decisions/0057).
print_families()
{
    local family kind values

    echo
    echo '```'
    printf '%-12s %-10s %5s %8s %8s %10s\n' cells "" count median worst "too fast"
    for family in clicks rnn cnn -allreduce- -ps-sync- -ps-async- -local-sgd- -100- -1000- -10000- -128- -512- 1gbit 100mbit clicks.*1gbit; do
        kind=${family#-}
        kind=${kind%-}
        grep -e "^[^ ]*$family" "$results/checks" >"$results/family" || continue
        awk '{ print ($4 < 0 ? -$4 : +$4) }' "$results/family" | sort -n >"$results/family-errors"
        values=$(awk '{ sum += $4 } END { printf "%+.1f", sum / NR }' "$results/family")
        printf '%-23s %5d %6.1f %% %6.1f %% %8s %%\n' "${kind/.\*/, }" "$(wc -l <"$results/family")" "$(middle "$results/family-errors")" \
            "$(tail -n 1 "$results/family-errors")" "$values"
    done
    echo '```'
}

sum_up_cells()
{
    awk '{ print ($4 < 0 ? -$4 : +$4) }' "$results/checks" >"$results/errors"
    # Of those that ran twice, the middle between both runs.
    awk 'FILENAME == ARGV[1] { name = $1; sub(/~2$/, "", name); second[name] = $3; next }
        { was = $1 in second ? ($3 + second[$1]) / 2 : $3; off = 100 * ($2 / was - 1); print off < 0 ? -off : off }' \
        "$results/checks-again" "$results/checks" >"$results/errors-of-both"
    fact "cells" "$(wc -l <"$results/checks") of seed $seed; $(wc -l <"$results/checks-again") ran again"
    result "error of predicted rows/s, median" "$(middle "$results/errors")" "%" - - - "<= 10"
    result "error of predicted rows/s, worst" "$(sort -n "$results/errors" | tail -n 1)" "%" - - - "<= 25"
    grep -v '^clicks.*1gbit ' "$results/checks" | awk '{ print ($4 < 0 ? -$4 : +$4) }' >"$results/errors-unfitted" || true
    result "of all but clicks at 1 Gbit/s, to which costs were once fitted, median" "$(middle "$results/errors-unfitted")" "%" - - - -
    result "of all but clicks at 1 Gbit/s, worst" "$(sort -n "$results/errors-unfitted" | tail -n 1)" "%" - - - -
    result "cells that are off by no more than 25 %" "$(awk '$1 <= 25 { n++ } END { printf NR ? "%.2f" : "-", n / (NR + !NR) }' "$results/errors")" - - - - -
    result "error where cells that ran again count as the mean of both runs, median" "$(middle "$results/errors-of-both")" "%" - - - -
    result "error where cells that ran again count as the mean of both runs, worst" "$(sort -n "$results/errors-of-both" | tail -n 1 | awk '{ printf "%.1f", $1 }')" "%" - - - -
    result "predicted bottleneck is the verdict" "$(awk '$5 == $6 { n++ } END { printf NR ? "%.2f" : "-", n / (NR + !NR) }' "$results/checks")" - - - - ">= 0.9"
}

# ---- questions ----

# ask QUESTION: its candidates into $work/question-QUESTION, the recommended one marked.
ask()
{
    local data=${1%-*} batch=${1#*-} file=$work/question-$1 known

    [ ! -s "$file" ] || return 0
    known_of "$data"
    "$program" plan "${known[@]}" --workers 1,2,4,8 --ps 0,1,2 --batch "$batch" --hosts "$(hosts_file $hosts_asked)" --net 1gbit \
        --latency $latency --json --quiet >"$results/question.json" 2>>"$results/plan.out"
    predictions "$results/question.json" | awk -v data="$data" -v part=$could_be_best '
        $6 == "recommended" { chosen = $1 " " $2 " " $3 " " $4; next }
        $1 ~ /^(local|allreduce|ps-sync)$/ { line[++n] = $1 " " $2 " " $3 " " $4; speed[n] = $5; if ($5 > most) most = $5 }
        END {
            for (i = 1; i <= n; i++)
                if (speed[i] >= part * most || line[i] == chosen)
                    print data, line[i], "1gbit", line[i] == chosen ? "recommended" : ""
        }' >"$file.new"
    grep -q recommended "$file.new" || fail "nothing is recommended for $1"
    mv "$file.new" "$file"
}

# answer QUESTION
answer()
{
    local file=$work/question-$1 line

    sed 's/ recommended//; s/ *$//' "$file" >"$results/candidates"
    measure_all "" "$1" "$results/candidates"
    check "" "$results/candidates" >"$results/checks-$1"
    line=$(sed -n 's/ recommended$//p' "$file")
    awk -v chosen="${line// /-}" '
        $1 == chosen { speed = $3 }
        $3 > best { best = $3; name = $1 }
        END { if (!speed || !best) exit 1; printf "%s %d %s %d %.3f\n", chosen, speed, name, best, speed / best }' \
        "$results/checks-$1" >"$results/answer-$1" || fail "what is recommended for $1 was not measured"
    result "$1: what is recommended, of the fastest" "$(awk '{ print $5 }' "$results/answer-$1")" - - - - ">= 0.9"
}

print_answers()
{
    local question

    for question in $questions; do
        [ -s "$results/answer-$question" ] || continue
        echo
        awk -v question="$question" '{ printf "%s: recommended %s (%d rows/s), the fastest was %s (%d): %.2f of it\n\n", question, $1, $2, $3, $4, $5 }' \
            "$results/answer-$question"
        echo '```'
        awk '{ printf "%-40s %10d %10d %+7.1f%%\n", $1, $2, $3, $4 }' "$results/checks-$question"
        echo '```'
    done
}

# ---- all of it ----

open_work plan
mkdir -p "$work/runs" "$work/steps"
[ "$questions" != none ] || questions=
make_data
print_machine "one run each"
draw >"$work/cells"
calibrate
measure_all "" cell "$work/cells"
check "" "$work/cells" >"$results/checks"
awk -v most=$again '{ e = $4 < 0 ? -$4 : $4; if (e > most) print $1 }' "$results/checks" >"$results/off"
while read -r -a cell; do
    ! grep -qxF -- "$(name_of "${cell[@]}")" "$results/off" || echo "${cell[*]}"
done <"$work/cells" >"$results/cells-again"
measure_all "~2" again "$results/cells-again"
check "~2" "$results/cells-again" >"$results/checks-again"
heading "Predicted beside measured, rows/s; $cells cells of seed $seed"
print_cells
print_families
sum_up_cells
if [ -n "$questions" ]; then
    for question in $questions; do
        ask "$question"
        (answer "$question") || true
    done
    heading "What is recommended, beside the fastest; $hosts_asked hosts, 1 Gbit/s"
    print_answers
fi
[ ! -e "$results/failed-cells" ] || sed 's/^/failed: /' "$results/failed-cells"
close_work
