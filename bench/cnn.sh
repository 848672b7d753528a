#!/bin/bash
# Convolutional networks: a training step beside PyTorch, on the same shapes: bench/cnn.sh [STEPS]
#
# STEPS is how many steps a measurement has (6); the best one counts. The two programs take turns, BENCH_REPEAT times. PyTorch is that of BENCH_TORCH
# (/usr/bin/python3 with Debian's python3-torch and libopenblas0-pthread); without it that part is skipped. It is a report: the exit code says whether
# everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

steps=${1:-6}
torch=${BENCH_TORCH:-/usr/bin/python3}
shapes="mobilenet-v2-160 mobilenet-v1-128 small-28 small-32 resnet20-32 mobilenet-v2-160-infer mobilenet-v2-160-head"
open_work cnn

# keep NAME: the lines of its table, each to a series: NAME.SHAPE.THREADS.ms and .cpu.
keep()
{
    local shape threads ms cpu

    while read -r shape threads ms cpu; do
        [ "$shape" != shape ] || continue
        note "$1.$shape.$threads.ms" "$ms"
        note "$1.$shape.$threads.cpu" "$cpu"
    done <"$results/$1.out"
}

# best NAME SHAPE THREADS KIND: the lowest value of a series; nothing without one.
best()
{
    [ ! -e "$results/$1.$2.$3.$4" ] || lowest "$1.$2.$3.$4"
}

# against SHAPE THREADS KIND: PyTorch / paceline.
against()
{
    local own theirs

    own=$(best own "$1" "$2" "$3") theirs=$(best torch "$1" "$2" "$3")
    if [ -n "$own" ] && [ -n "$theirs" ]; then
        ratio "$theirs" "$own"
    else
        echo -
    fi
}

measure()
{
    local turn wait

    for ((turn = 0; turn < repeat; turn++)); do
        timed own "$build/bench/bench_cnn" "$steps"
        keep own
        "$torch" -c 'import torch' 2>/dev/null || continue
        for wait in PASSIVE ACTIVE; do
            timed torch env OMP_WAIT_POLICY=$wait "$torch" "$root/bench/cnn_torch.py" "$steps"
            keep torch
        done
    done
}

table()
{
    local shape

    echo
    if [ -e "$results/torch.err" ]; then
        echo "PyTorch $("$torch" -c 'import torch; print(torch.__version__)'), $(cat "$results/torch.err")."
    else
        echo "PyTorch: skipped: $torch has no module torch."
    fi
    echo
    echo "| shape | paceline, 1 thread | 2 threads | PyTorch, 1 thread | 2 threads | PyTorch / paceline, 1 thread | by processor time |"
    echo "|---|---|---|---|---|---|---|"
    for shape in $shapes; do
        echo "| $shape | $(best own "$shape" 1 ms) | $(best own "$shape" 2 ms) | $(best torch "$shape" 1 ms) | $(best torch "$shape" 2 ms) | $(against "$shape" 1 ms) | $(against "$shape" 1 cpu) |"
    done
}

echo "# Convolutional networks"
print_machine "the best of $repeat times $steps steps"
heading "One training step (forward, backward, SGD with momentum; f32), milliseconds"
measure
table
verdict "mobilenet-v2, 160 x 160, 32 rows, one thread, against PyTorch" "$(against mobilenet-v2-160 1 ms)" ">=" 1.4 x
verdict "mobilenet-v2, 160 x 160, 32 rows, two threads, against PyTorch" "$(against mobilenet-v2-160 2 ms)" ">=" 1.4 x
verdict "small, 28 x 28 grey, 128 rows, one thread, against PyTorch" "$(against small-28 1 ms)" ">=" 1.2 x
verdict "small, 32 x 32 colour, 128 rows, one thread, against PyTorch" "$(against small-32 1 ms)" ">=" 1.2 x
for shape in mobilenet-v2-160 small-28; do
    verdict "$shape, two threads against one" "$(ratio "$(best own $shape 1 ms)" "$(best own $shape 2 ms)")" ">=" 1.7 x
done
verdict "head of 2 classes on 512 rows of 1280 features, ms" "$(best own mobilenet-v2-160-head 1 ms)" "<=" 1 ""
print_verdicts
close_work
