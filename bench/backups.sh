#!/bin/bash
# Backup workers (--backup-workers) beside as many workers as steps have slices: bench/backups.sh [MODEL...]
#
# Models are rnn and clicks. Four workers, or five of which one is a backup, each on a host of its own, made by tests/lab/lab, with 0.15
# of a core and a link of 1 Gbit/s; the server and the command have hosts of their own, with as much of a core as is left. Everyone as
# fast as the others; one worker ten times slower; four workers that stall for a second each, one after the other. Every figure is the
# median of BENCH_REPEAT (3) runs of whole jobs. Needs root. Environment: see bench/README.md. It is a report: the exit code says
# whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

models=("$@")
[ $# -gt 0 ] || models=(rnn clicks)
lab=$root/tests/lab/lab
share=0.15
slices=4
rate=1gbit
hosts=$((slices + 3))
# Some seconds of steps, which are long beside the period over which the kernel counts shares (7 ms).
declare -A words=([rnn]="--batch 512" [clicks]="--batch 20000")
declare -A steps=([rnn]=50 [clicks]=600)
open_work backups

make_data()
{
    {
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 16000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/data-rnn" --holdout 0.02 --force --quiet
        "$program" gen clicks -o "$work/clicks.tsv" --rows 500000 --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/data-clicks" --holdout 0.02 --force --quiet
    } >"$results/data.out"
    for ((number = 2; number < hosts; number++)); do
        echo "host$number roles=worker"
    done >"$work/hosts"
    echo "host$hosts roles=ps" >>"$work/hosts"
}

# trouble MODEL NAME: what is injected.
trouble()
{
    local worker at=0 list=""

    case $2 in
    slow) echo "slow:worker2=10x" ;;
    stalls)
        for worker in 1 2 3 1; do
            at=$((at + steps[$1] / 5))
            list+=${list:+,}stall:worker$worker=1@step=$at
        done
        echo "$list"
        ;;
    esac
}

# measure MODEL TROUBLE BACKUPS
measure()
{
    local kind=$1 job injected inject=()

    [ "$1" != clicks ] || kind=logreg
    read -ra job <<<"${words[$1]}"
    injected=$(trouble "$1" "$2")
    [ -z "$injected" ] || inject=(--inject "$injected")
    trained "$1-$2-$3" "$lab" run --hosts $hosts --rate $rate --cpu $share --cpu-of host1=none --cpu-of "host$hosts=none" -- \
        "$program" train --data "$work/data-$1" --model "$kind" "${job[@]}" --steps "${steps[$1]}" --run "$work/run" --mode ps-sync --ps 1 \
        --workers $((slices + $3)) --backup-workers "$3" --threads 1 --checkpoint-seconds 0 --report off --hosts "$work/hosts" \
        "${inject[@]}" --quiet
}

# figure MODEL TROUBLE BAR WHO
figure()
{
    result "$1, $4" "$(calculate "$(median "$1-$2-1.rate")" %.0f)" "rows/s" "--backup-workers 0" \
        "$(calculate "$(median "$1-$2-0.rate")" %.0f)" more "$3"
    result "$1, $4: slices computed twice" "$(number "$(median_summary "$1-$2-1")" slices_computed_twice)" - - - - -
}

put_results()
{
    local model

    for model in "${models[@]}"; do
        figure "$model" even ">= 0.95x" "nobody is slow"
        figure "$model" slow - "one is ten times slower"
        figure "$model" stalls - "four stalls of a second"
    done
}

print_machine
make_data
for ((turn = 0; turn < repeat; turn++)); do
    for model in "${models[@]}"; do
        for case in even slow stalls; do
            measure "$model" "$case" 0
            measure "$model" "$case" 1
        done
    done
done
put_results
close_work
