#!/bin/bash
# Does the verdict of a run name the cause, where the cause is known because it was made? bench/verdicts.sh [ROWS]
#
# Each job is held up on purpose: by a narrow link, a throttled server, a slow worker, a slow disk, tiny steps and so on, on
# hosts of a lab (tests/lab/lab) or on this machine. The cause that summary.json names is compared with the one that was
# made, then the job runs again with the change that the verdict advises, or, where that is "another machine", without the
# hindrance. ROWS (100000) are rows of clicks. Needs root. Environment: see bench/README.md. It is a report: the exit code
# says whether everything ran.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-100000}
lab=$root/tests/lab/lab
shim=$(dirname "$program")/tests/libshim_files.so
kinds=0 right=0 helped=0
open_work verdicts
"$lab" check || fail "no lab can be made here"

make_data()
{
    {
        "$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/clicks" --holdout 0.2 --force --quiet
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 4000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/texts" --length 40 --holdout 0.1 --force --quiet
    } >"$results/gen.out"
    printf '%s\n' host2 host3 >"$work/hosts-2"
    printf '%s\n' "host2 roles=chief" "host3 roles=worker" "host4 roles=ps" >"$work/hosts-3"
}

# in_lab HOSTS [OPTIONS of lab run] -- [OPTIONS of train]: host1 has the command, the others a role each.
in_lab()
{
    local hosts=$1 options=()

    shift
    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    "$lab" run --hosts $((hosts + 1)) "${options[@]}" -- "$program" train --run "$work/run" --hosts "$work/hosts-$hosts" "${@:2}"
}

here()
{
    "$program" train --run "$work/run" "$@"
}

# on_slow_disk SECONDS [OPTIONS of train]: every read of rows takes so long.
on_slow_disk()
{
    LD_PRELOAD=$shim SHIM_FILES=read@4096:/part-:$1 "$program" train --run "$work/run" "${@:2}"
}

# job NAME COMMAND...: one run; its summary stays as NAME.json.
job()
{
    rm -rf "$work/run"
    "${@:2}" --quiet >"$results/$1.out" 2>"$results/$1.err" || {
        tail -n 5 "$results/$1.err" >&2
        fail "this command failed: ${*:2}"
    }
    cp "$work/run/summary.json" "$results/$1.json"
}

# told NAME KEY: of the verdict in that summary.
told()
{
    sed -n 's/^  "verdict": \({.*}\),$/\1/p' "$results/$1.json" | sed -n "s/.*[{,] *\"$2\": *\"\{0,1\}\([^\",}]*\).*/\1/p"
}

# seconds_of NAME: the training and the scores behind it; of one that is too short for a verdict, the training.
seconds_of()
{
    local all

    all=$(told "$1" seconds)
    echo "${all:-$(sed -n 's/^  "seconds": \([^,]*\),$/\1/p' "$results/$1.json")}"
}

# case_of NAME CAUSES COMMAND + BETTER: the cause that is to be named (or one of several, by |), the job, and
# the same job with what was advised.
case_of()
{
    local title=$1 causes=$2 command=() name=case-$((kinds + 1)) found before after

    shift 2
    while [ "$1" != + ]; do
        command+=("$1")
        shift
    done
    job "$name" "${command[@]}"
    job "$name-then" "${@:2}"
    found=$(told "$name" cause)
    before=$(seconds_of "$name") after=$(seconds_of "$name-then")
    kinds=$((kinds + 1))
    [ -n "${before:+$after}" ] || fail "$title: a summary without seconds"
    [[ "|$causes|" != *"|$found|"* ]] || right=$((right + 1))
    [ "$(calculate "$after < $before" %d)" = 0 ] || helped=$((helped + 1))
    echo "| $title | $causes | $found | $(sed -n 's/^  "bottleneck": "\(.*\)",$/\1/p' "$results/$name.json") |" \
        "$(sed -n 's/.*"advice": "\([^"]*\)".*/\1/p' "$results/$name.json") | $(calculate "$before" %.2f) s |" \
        "$(calculate "$after" %.2f) s | $(told "$name-then" cause) |"
}

make_data
print_machine "one run of each"
heading "Causes that were made, and what was said"
echo "Hosts of the lab have as much of the machine as they can get where no share is named."
echo
echo "| hindrance | cause | named | the verdict | advice | seconds | with the advice | then |"
echo "|---|---|---|---|---|---|---|---|"
clicks=(--data "$work/clicks" --model logreg) texts=(--data "$work/texts" --model rnn)
sync=(--mode ps-sync --workers 2 --ps 1)

case_of "a link of 20 Mbit/s at the server" network in_lab 3 --rate-of host4=20mbit -- "${clicks[@]}" "${sync[@]}" --batch 1000 \
    + in_lab 3 --rate-of host4=20mbit -- "${clicks[@]}" "${sync[@]}" --batch 10000
case_of "links of 50 Mbit/s, all-reduce of an rnn" network in_lab 2 --rate 50mbit -- "${texts[@]}" --workers 2 --epochs 2 \
    + in_lab 2 --rate 50mbit -- "${texts[@]}" --workers 2 --epochs 2 --batch 640
case_of "a server with 0.05 of a core" server in_lab 3 --cpu-of host4=0.05 -- "${clicks[@]}" "${sync[@]}" --batch 1000 --epochs 2 \
    + in_lab 3 --cpu-of host4=0.1 -- "${clicks[@]}" "${sync[@]}" --batch 1000 --epochs 2
case_of "a server that is 20 times slower, asynchronous" server here "${clicks[@]}" --mode ps-async --workers 2 --ps 1 --batch 1000 \
    --epochs 3 --inject slow:ps0=20x + here "${clicks[@]}" --mode ps-async --workers 2 --ps 2 --batch 1000 --epochs 3 \
    --inject slow:ps0=20x,slow:ps1=20x
case_of "a worker that is 5 times slower" straggler here "${texts[@]}" --workers 2 --epochs 2 --inject slow:worker1=5x \
    + here "${texts[@]}" --epochs 2 --threads 1
case_of "a host with a tenth of a core" straggler in_lab 2 --cpu-of host3=0.1 -- "${texts[@]}" --workers 2 --epochs 1 \
    + here "${texts[@]}" --epochs 1 --threads 1
case_of "a disk that takes 5 ms for each read" data on_slow_disk 0.005s "${clicks[@]}" --exact --batch 1000 --epochs 3 \
    + here "${clicks[@]}" --exact --batch 1000 --epochs 3
case_of "steps of 10 rows" steps in_lab 3 -- "${clicks[@]}" "${sync[@]}" --batch 10 \
    + in_lab 3 -- "${clicks[@]}" "${sync[@]}" --batch 1000
case_of "nothing: an rnn in large steps" compute here "${texts[@]}" --epochs 4 --threads 1 --batch 512 \
    + here "${texts[@]}" --epochs 4 --threads 2 --batch 512
case_of "four workers on two processors" compute here "${texts[@]}" --workers 4 --epochs 4 --batch 512 \
    + here "${texts[@]}" --workers 2 --epochs 4 --batch 512
case_of "an evaluator that is 100 times slower" scoring here "${clicks[@]}" "${sync[@]}" --evaluator --batch 1000 --epochs 3 \
    --eval-every 50 --inject slow:evaluator=100x + here "${clicks[@]}" "${sync[@]}" --batch 1000 --epochs 3 --eval-rows 1000
case_of "scores after every second step" scoring here "${clicks[@]}" --exact --batch 1000 --eval-every 2 \
    + here "${clicks[@]}" --exact --batch 1000 --eval-every 40
case_of "a checkpoint after every second step" checkpoint here "${clicks[@]}" --exact --batch 1000 --epochs 3 --checkpoint-every 2 \
    + here "${clicks[@]}" --exact --batch 1000 --epochs 3 --checkpoint-every 200

result "causes that were named" "$right" "of $kinds" - - - ">= $(((kinds * 9 + 9) / 10))"
result "jobs that the change made faster" "$helped" "of $kinds" - - - ">= $(((kinds * 9 + 9) / 10))"
close_work
