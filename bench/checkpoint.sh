#!/bin/bash
# What checkpoints and deaths cost: bench/checkpoint.sh [ROWS [SECONDS]]
#
# ROWS (865707) rows of 39 ids each, in which every id occurs once: 33,762,578 parameters with the default, AdaGrad. A
# checkpoint every SECONDS (30); each run takes 2.6 times as long, so there are at least two. Runs with and without checkpoints take
# turns, BENCH_REPEAT (3) of each. Then processes are killed, BENCH_KILLS (5) times each. Environment: see
# bench/README.md. It is a report: the exit code says whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-865707}
seconds=${2:-30}
kills=${BENCH_KILLS:-5}
batch=10000
loss_max=5 # per cent
open_work checkpoint
[ -x "$build/bench/bench_copy" ] || fail "$build/bench/bench_copy is missing; run make first"
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1

setups=(local sync async)
declare -A title=(
    [local]="local, 2 threads"
    [sync]="ps-sync, 2 workers + 1 ps"
    [async]="ps-async, 2 workers + 1 ps"
)
declare -A words=(
    [local]="--mode local --threads 2 --exact"
    [sync]="--mode ps-sync --workers 2 --ps 1"
    [async]="--mode ps-async --workers 2 --ps 1"
)

# --- data ---

make_data()
{
    awk -v rows="$rows" -v ids=33762578 'BEGIN {
        for (row = 0; row < rows; row++) {
            line = row * 7919 % 4 == 0 ? "1" : "0"
            for (i = row * 39; i < row * 39 + 39 && i < ids; i++)
                line = line " " i ":1"
            print line
        }
    }' >"$work/all.svm"
    "$program" prep clicks "$work/all.svm" --format svmlight -o "$work/all" --force --quiet >"$results/all.out"
    rm "$work/all.svm"
    "$program" gen clicks -o "$work/few.tsv" --rows 100000 --force --quiet >"$results/few.out"
    "$program" prep clicks "$work/few.tsv" -o "$work/few" --force --quiet >>"$results/few.out"
}

# --- what a checkpoint costs ---

# train_as SETUP DATA WORDS...
train_as()
{
    rm -rf "$work/run"
    # shellcheck disable=SC2086 # words are words
    "$program" train --data "$work/$2" --model logreg --run "$work/run" --quiet ${words[$1]} --batch $batch "${@:3}" \
        >"$results/train.out" 2>"$results/train.err" || {
        tail -n 5 "$results/train.err" >&2
        fail "this job failed: $*"
    }
}

# pace_of RUN: rows/s between its first step record and its last.
pace_of()
{
    awk '/"kind":"step"/ {
        match($0, /"t":[0-9.e+-]*/); t = substr($0, RSTART + 4, RLENGTH - 4) + 0
        match($0, /"rows":[0-9]*/); rows = substr($0, RSTART + 7, RLENGTH - 7) + 0
        if (!first) { first = 1; t0 = t; rows0 = rows }
    }
    END { if (t <= t0) exit 1; printf "%.1f\n", (rows - rows0) / (t - t0) }' "$1/metrics.jsonl" || fail "$1: too few step records"
}

# field RUN KEY: that number of each of its checkpoint records.
field()
{
    sed -n "s/.*\"kind\":\"checkpoint\".*\"$2\":\([0-9.e+-]*\).*/\1/p" "$1/metrics.jsonl"
}

# epochs_for SETUP: as many as fill 2.6 times SECONDS.
epochs_for()
{
    train_as "$1" all --epochs 5 --log-every 1 --checkpoint-seconds 0
    calculate "int(2.6 * $seconds * $(pace_of "$work/run") / $rows) + 1" %d
}

measure_cost()
{
    local setup turn value
    declare -A epochs

    for setup in "${setups[@]}"; do
        epochs[$setup]=$(epochs_for "$setup")
    done
    for ((turn = 0; turn < repeat; turn++)); do
        for setup in "${setups[@]}"; do
            train_as "$setup" all --epochs "${epochs[$setup]}" --checkpoint-seconds 0
            note "$setup-without.rate" "$(pace_of "$work/run")"
            train_as "$setup" all --epochs "${epochs[$setup]}" --checkpoint-seconds "$seconds" --keep 1
            note "$setup-with.rate" "$(pace_of "$work/run")"
            note "$setup.count" "$(field "$work/run" step | wc -l)"
            for value in stall_s write_s bytes; do
                field "$work/run" $value >>"$results/$setup.$value"
            done
        done
        "$build/bench/bench_copy" "$(lowest local.bytes)" >"$results/copy.out"
        note copy.fresh "$(number "$results/copy.out" fresh_s)"
        note copy.again "$(number "$results/copy.out" again_s)"
        value=$EPOCHREALTIME
        head -c "$(lowest local.bytes)" /dev/zero | dd of="$work/written" bs=1M iflag=fullblock conv=fsync status=none
        note copy.write "$(calculate "$EPOCHREALTIME - $value" %.3f)"
        rm "$work/written"
    done
}

report_cost()
{
    local setup lost

    heading "A checkpoint every $seconds s against none: rows/s, median of $repeat, in turns"
    echo "| | none | with | loss | at most $loss_max % | checkpoints in a run |"
    echo "|---|---|---|---|---|---|"
    for setup in "${setups[@]}"; do
        lost=$(calculate "100 * (1 - $(median "$setup-with.rate") / $(median "$setup-without.rate"))" %.1f)
        echo "| ${title[$setup]} | $(all "$setup-without.rate" %.0f) | $(all "$setup-with.rate" %.0f) | $lost % |" \
            "$(awk -v a="$lost" -v b=$loss_max 'BEGIN { print a <= b ? "PASS" : "MISS" }') | $(all "$setup.count" %d) |"
    done
    cost_results
    heading "One checkpoint"
    echo "| | MB | training stands still, s: median (longest) | written in, s: median (longest) |"
    echo "|---|---|---|---|"
    for setup in "${setups[@]}"; do
        echo "| ${title[$setup]} | $(calculate "$(median "$setup.bytes") / 1e6" %.1f) |" \
            "$(calculate "$(median "$setup.stall_s")" %.3f) ($(calculate "$(highest "$setup.stall_s")" %.3f)) |" \
            "$(calculate "$(median "$setup.write_s")" %.2f) ($(calculate "$(highest "$setup.write_s")" %.2f)) |"
    done
    echo
    echo "Yardsticks, as many bytes: memcpy into fresh memory $(calculate "$(median copy.fresh)" %.3f) s, into memory that was used" \
        "before $(calculate "$(median copy.again)" %.3f) s; dd of zeros with fsync $(calculate "$(median copy.write)" %.2f) s."
}

cost_results()
{
    local setup

    for setup in "${setups[@]}"; do
        result "${title[$setup]}: a checkpoint every $seconds s" "$(calculate "$(median "$setup-with.rate")" %.0f)" rows/s \
            "none" "$(calculate "$(median "$setup-without.rate")" %.0f)" above ">= -$loss_max %"
    done
    for setup in "${setups[@]}"; do
        result "${title[$setup]}: training stands still for a checkpoint" "$(calculate "$(median "$setup.stall_s")" %.3f)" s \
            "memcpy of as many bytes into fresh memory" "$(calculate "$(median copy.fresh)" %.3f)" less
        result "${title[$setup]}: a checkpoint is written" "$(calculate "$(median "$setup.write_s")" %.2f)" s \
            "dd of as many zeros with fsync" "$(calculate "$(median copy.write)" %.2f)" less
    done
}

# --- what a death costs ---

# Prints the time of the first step record of the second incarnation as soon as it is there; ends with the job.
watch_for_step()
{
    while kill -0 "$1" 2>/dev/null; do
        if awk '/"kind":"start"/ { now = /"incarnation":2/ } /"kind":"step"/ && now { found = 1; exit } END { exit !found }' \
            "$work/run/metrics.jsonl" 2>/dev/null; then
            echo "$EPOCHREALTIME"
            return
        fi
        sleep 0.005
    done
}

# measure_restart NAME ROLE DATA: seconds from the death to the first new step.
measure_restart()
{
    local pid seen

    rm -rf "$work/run"
    # shellcheck disable=SC2086 # words are words
    "$program" train --data "$work/$3" --run "$work/run" --quiet ${words[sync]} --batch $batch --log-every 1 --epochs 1000 \
        --steps 300 --checkpoint-every 40 --inject "kill:$2@step=150" >"$results/train.out" 2>"$results/train.err" &
    pid=$!
    seen=$(watch_for_step $pid)
    wait $pid || fail "the job with kill:$2 failed: $(tail -n 1 "$results/train.err")"
    [ -n "$seen" ] || fail "kill:$2: no step after the death was seen"
    note "$1" "$(calculate "$seen - $(stat -c %.6Y "$work/run/faults")" %.3f)"
}

# longest_pause RUN: s between two step records, but for the first ten.
longest_pause()
{
    sed -n 's/.*"kind":"step","t":\([0-9.e+-]*\),.*/\1/p' "$1/metrics.jsonl" |
        awk 'NR > 10 && $1 - last > most { most = $1 - last } { last = $1 } END { printf "%.4f\n", most }'
}

measure_deaths()
{
    local turn data role

    for ((turn = 0; turn < kills; turn++)); do
        for data in few all; do
            for role in ps0 chief; do
                measure_restart "restart-$data-$role" $role $data
            done
            train_as async $data --epochs 1000 --steps 300 --log-every 1 --checkpoint-seconds 0
            note "pause-$data-none" "$(longest_pause "$work/run")"
            train_as async $data --epochs 1000 --steps 300 --log-every 1 --checkpoint-seconds 0 --inject kill:worker1@step=100
            [ "$(number "$work/run/summary.json" workers_lost)" -eq 1 ] || fail "the job has not gone on without worker1"
            note "pause-$data-lost" "$(longest_pause "$work/run")"
        done
    done
}

# figures SERIES: median (longest).
figures()
{
    echo "$(calculate "$(median "$1")" %.2f) ($(calculate "$(highest "$1")" %.2f))"
}

report_deaths()
{
    local few all size

    few=$(number "$results/few.summary" weights) all=$(number "$results/all.summary" weights)
    heading "Seconds, median (longest) of $kills"
    echo "| | $few parameters | $all parameters |"
    echo "|---|---|---|"
    echo "| ps-sync, from the death of ps0 to the first new step | $(figures restart-few-ps0) | $(figures restart-all-ps0) |"
    echo "| ps-sync, from the death of the chief to the first new step | $(figures restart-few-chief) | $(figures restart-all-chief) |"
    echo "| ps-async, longest pause between two steps without worker1, who died | $(figures pause-few-lost) | $(figures pause-all-lost) |"
    echo "| ps-async, longest pause between two steps, nobody died | $(figures pause-few-none) | $(figures pause-all-none) |"
    for size in few all; do
        result "ps-sync, ${!size} parameters: from the death of ps0 to the first new step" "$(calculate "$(median "restart-$size-ps0")" %.2f)" s
        result "ps-sync, ${!size} parameters: from the death of the chief to the first new step" "$(calculate "$(median "restart-$size-chief")" %.2f)" s
        result "ps-async, ${!size} parameters: longest pause without worker1, who died" "$(calculate "$(median "pause-$size-lost")" %.2f)" s \
            "nobody died" "$(calculate "$(median "pause-$size-none")" %.2f)" less
    done
}

echo "# Checkpoints and deaths"
print_machine "medians; $repeat runs, $kills deaths"
make_data
measure_cost
report_cost
for data in few all; do
    train_as local $data --checkpoint-seconds 0
    cp "$work/run/summary.json" "$results/$data.summary"
done
measure_deaths
report_deaths
close_work
