#!/bin/bash
# Shares of a step by the speed of workers (--balance), on hosts of which some are slower: bench/balance.sh [MODEL...]
#
# Models are rnn, cnn and clicks. Four workers, each on a host of its own, made by tests/lab/lab, with 0.15 of a core (a slow one: a
# third of that; unequal ones: 0.15, 0.075, 0.0375, 0.01875) and a link of 1 Gbit/s; the command is typed on one more host, and in mode
# ps-sync a server has one that nothing slows down. In modes allreduce and ps-sync: all equal without and with --balance auto; one slow
# with off, epoch and auto; one slowed down by --inject instead, with auto; speeds of 1 : 2 : 4 : 8 with auto. In an allreduce of the first
# model, a worker that becomes three times slower in the middle, and fast again. What is ideal follows from the equal ones: rows a second add up.
#
# Rates are those of the second half of a job's steps: what balancing has come to, and what goes on. Every figure is the median of
# BENCH_REPEAT (3) runs; BENCH_MODES are the modes. Needs root. Environment: see bench/README.md. It is a report: the exit code says whether
# everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

models=("$@")
[ $# -gt 0 ] || models=(rnn cnn clicks)
read -ra modes <<<"${BENCH_MODES:-allreduce ps-sync}"
lab=$root/tests/lab/lab
share=0.15
slow=0.05
doubling=(0.15 0.075 0.0375 0.01875)
workers=4
rate=1gbit
# Steps are long beside the period over which the kernel counts shares (7 ms), and beside what they cost without rows. The
# cnn has half of its channels, so that all of its jobs take less than ten minutes.
declare -A words=([rnn]="--batch 1024" [cnn]="--arch small --width 0.5 --batch 512" [clicks]="--batch 100000")
# Epochs of some hundred steps, of those that are only there to be slow, and of those with a change.
declare -A epochs=([rnn]=7 [cnn]=10 [clicks]=5) epochs_even=([rnn]=2 [cnn]=4 [clicks]=2) epochs_changing=([rnn]=8 [cnn]=16 [clicks]=7)
# The steps between which a worker is slow, and how soon behind a change all is well again.
change_from=40 change_to=80 change_steps=20
open_work balance

# make_rows MODEL
make_rows()
{
    case $1 in
    rnn)
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 16000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/data-rnn" --holdout 0.02 --force --quiet
        ;;
    cnn)
        "$program" gen images -o "$work/pictures" --rows 4000 --force --quiet
        "$program" prep images "$work/pictures" --size 32 -o "$work/data-cnn" --holdout 0.02 --force --quiet
        ;;
    clicks)
        "$program" gen clicks -o "$work/clicks.tsv" --rows 2000000 --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/data-clicks" --holdout 0.02 --force --quiet
        ;;
    *) fail "there is no model $1: rnn, cnn, clicks" ;;
    esac >>"$results/data.out"
}

make_data()
{
    local model

    for model in "${models[@]}"; do
        make_rows "$model"
    done
    for ((number = 2; number <= workers + 2; number++)); do
        echo "host$number"
    done >"$work/hosts"
}

# between FIRST LAST: the mean of those steps of the last run, in seconds.
between()
{
    awk -v first="$1" -v last="$2" '
        function field(key)
        {
            match($0, "\"" key "\":[0-9.e+-]+")
            return substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0
        }
        /"kind":"step"/ && field("step") >= first && field("step") <= last {
            if (!n++) { from = field("step"); begin = field("t") }
            to = field("step"); end = field("t")
        }
        END { if (n < 2) exit 1; print (end - begin) / (to - from) }' "$work/run/metrics.jsonl"
}

# steady: rows a second in the second half of its steps.
steady()
{
    local summary=$work/run/summary.json

    calculate "$(number "$summary" batch) / $(between "$(calculate "$(number "$summary" steps) / 2" %.0f)" 1000000000)"
}

# measure MODEL MODE SHARES BALANCE: SHARES are equal, slow, doubling, injected or changing.
measure()
{
    local model=$1 kind=$1 job passes=${epochs[$1]} of=() more=() number name=$1-$2-$3-$4

    [ "$model" != clicks ] || kind=logreg
    [ "$4" != off ] || passes=${epochs_even[$model]}
    read -ra job <<<"${words[$model]}"
    case $3 in
    slow) of=(--cpu-of "host4=$slow") ;;
    doubling)
        for ((number = 0; number < workers; number++)); do
            of+=(--cpu-of "host$((number + 2))=${doubling[number]}")
        done
        ;;
    injected) more=(--inject slow:worker2=3x) ;;
    changing)
        more=(--inject "slow:worker2=3x@step=$change_from..$change_to")
        passes=${epochs_changing[$model]}
        ;;
    esac
    [ "$2" != ps-sync ] || more+=(--ps 1)
    trained "$name" "$lab" run --hosts $((workers + 2)) --rate $rate --cpu $share --cpu-of host1=none \
        --cpu-of "host$((workers + 2))=none" "${of[@]}" -- \
        "$program" train --data "$work/data-$model" --model "$kind" "${job[@]}" --epochs "$passes" --run "$work/run" --mode "$2" \
        --workers $workers --threads 1 --balance "$4" --checkpoint-seconds 0 --report off --hosts "$work/hosts" --quiet "${more[@]}"
    note "$name.steady" "$(steady)"
    [ "$3" != changing ] || {
        note "$name.slowed" "$(between $((change_from + change_steps)) $((change_to - 1)))"
        note "$name.again" "$(between $((change_to + change_steps)) 1000000000)"
    }
}

# rate_of MODEL MODE SHARES BALANCE: rows a second.
rate_of()
{
    median "$1-$2-$3-$4.steady"
}

# figure MODEL MODE SHARES BALANCE IDEAL BAR WHO [BESIDE]: beside what arithmetic allows.
figure()
{
    result "$1, $2, $7, --balance $4" "$(calculate "$(rate_of "$1" "$2" "$3" "$4")" %.0f)" "rows/s" "${8:-total work / total speed}" \
        "$(calculate "$5" %.0f)" more "$6"
}

put_results()
{
    local model mode equal ideal step_s

    for model in "${models[@]}"; do
        for mode in "${modes[@]}"; do
            equal=$(rate_of "$model" "$mode" equal off)
            ideal="$equal * (3 + 1 / 3) / 4"
            figure "$model" "$mode" equal auto "$equal" ">= 0.98x" "four equal workers" "--balance off"
            figure "$model" "$mode" slow off "$ideal" - "one a third as fast"
            figure "$model" "$mode" slow epoch "$ideal" - "one a third as fast"
            figure "$model" "$mode" slow auto "$ideal" ">= 0.909x" "one a third as fast"
            figure "$model" "$mode" injected auto "$ideal" ">= 0.909x" "one slowed down 3x"
            figure "$model" "$mode" doubling auto "$equal * 1.875 / 4" ">= 0.87x" "1 : 2 : 4 : 8"
            result "$model, $mode: training loss with auto" "$(number "$(median_summary "$model-$mode-slow-auto")" train_loss)" - \
                "of four equal ones" "$(number "$(median_summary "$model-$mode-equal-auto")" train_loss)" above -
        done
    done
    model=${models[0]} mode=${modes[0]}
    step_s="$(number "$(median_summary "$model-$mode-equal-off")" batch) / $(rate_of "$model" "$mode" equal off)"
    result "$model, $mode: a step, $change_steps steps behind one became 3x slower" \
        "$(calculate "$(median "$model-$mode-changing-auto.slowed") * 1000" %.0f)" ms "ideal" "$(calculate "$step_s * 1200" %.0f)" less ">= 0.87x"
    result "$model, $mode: a step, $change_steps steps behind it was fast again" \
        "$(calculate "$(median "$model-$mode-changing-auto.again") * 1000" %.0f)" ms "four equal ones" "$(calculate "$step_s * 1000" %.0f)" less ">= 0.87x"
}

print_machine
make_data
for ((turn = 0; turn < repeat; turn++)); do
    for model in "${models[@]}"; do
        for mode in "${modes[@]}"; do
            measure "$model" "$mode" equal off
            measure "$model" "$mode" equal auto
            measure "$model" "$mode" slow off
            measure "$model" "$mode" slow epoch
            measure "$model" "$mode" slow auto
            measure "$model" "$mode" injected auto
            measure "$model" "$mode" doubling auto
        done
    done
    measure "${models[0]}" "${modes[0]}" changing auto
done
put_results
close_work
