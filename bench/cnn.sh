#!/bin/bash
# Convolutional networks: a training step beside PyTorch, on the same shapes: bench/cnn.sh [STEPS]
#
# STEPS is how many steps a measurement has (6); the best one counts. The two programs take turns, BENCH_REPEAT times. PyTorch is that of BENCH_TORCH
# (/usr/bin/python3 with Debian's python3-torch and libopenblas0-pthread), as it is and (once) by torch.compile, and the better one counts; without it that part is
# skipped. Steps of --precision bf16 follow where the CPU has instructions for it, beside PyTorch's autocast. It is a report: the exit code says whether everything ran, not whether the figures are good.
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

# against SHAPE THREADS KIND: PyTorch / paceline.
against()
{
    local theirs

    theirs=$(best "torch.$1.$2.$3")
    [ "$theirs" = - ] && echo - || ratio "$theirs" "$(best "own.$1.$2.$3")"
}

measure()
{
    local turn wait narrow=''

    ! "$torch" -c 'import torch' 2>/dev/null || narrow=$(torch_narrows "$torch")
    for ((turn = 0; turn < repeat; turn++)); do
        timed own "$build/bench/bench_cnn" "$steps"
        keep own
        "$torch" -c 'import torch' 2>/dev/null || continue
        for wait in PASSIVE ACTIVE; do
            timed torch env OMP_WAIT_POLICY=$wait "$torch" "$root/bench/cnn_torch.py" "$steps" all eager
            keep torch
            [ -n "$narrow" ] || continue
            timed torch env OMP_WAIT_POLICY=$wait "$narrow" "$torch" "$root/bench/cnn_torch.py" "$steps" all bf16
            keep torch
        done
        # Its compiler takes minutes, more than all steps together.
        [ $turn -eq 0 ] || continue
        timed torch "$torch" "$root/bench/cnn_torch.py" "$steps" all compile
        keep torch
    done
    fact "PyTorch, bf16" "${narrow:-none that runs here}"
}

table()
{
    local shape

    echo
    if [ -e "$results/torch.err" ]; then
        fact PyTorch "$("$torch" -c 'import torch; print(torch.__version__)'), $(cat "$results/torch.err")"
    else
        echo "PyTorch: skipped: $torch has no module torch."
    fi
    echo
    echo "| shape | paceline, 1 thread | 2 threads | PyTorch, 1 thread | 2 threads | PyTorch / paceline, 1 thread | by processor time |"
    echo "|---|---|---|---|---|---|---|"
    for shape in $shapes; do
        echo "| $shape | $(best "own.$shape.1.ms") | $(best "own.$shape.2.ms") | $(best "torch.$shape.1.ms") | $(best "torch.$shape.2.ms") |" \
            "$(against "$shape" 1 ms) | $(against "$shape" 1 cpu) |"
    done
}

# Rounded to bf16, where this CPU has instructions for it.
bf16_table()
{
    local shape

    echo
    echo "| shape | f32, 1 thread | bf16, 1 thread | f32 / bf16 | PyTorch bf16 (autocast), 1 thread | PyTorch bf16 / paceline bf16 |"
    echo "|---|---|---|---|---|---|"
    for shape in $shapes; do
        [ "$(best "own.$shape-bf16.1.ms")" != - ] || continue
        echo "| $shape | $(best "own.$shape.1.ms") | $(best "own.$shape-bf16.1.ms") |" \
            "$(ratio "$(best "own.$shape.1.ms")" "$(best "own.$shape-bf16.1.ms")") | $(best "torch.$shape-bf16.1.ms") | $(against "$shape-bf16" 1 ms) |"
        result "step of $shape, --precision bf16, one thread" "$(best "own.$shape-bf16.1.ms")" ms f32 "$(best "own.$shape.1.ms")" less
        result "step of $shape, --precision bf16, one thread" "$(best "own.$shape-bf16.1.ms")" ms "PyTorch, the better of bf16 and f32" \
            "$(printf '%s\n' "$(best "torch.$shape.1.ms")" "$(best "torch.$shape-bf16.1.ms")" | grep -v '^-$' | sort -g | head -n 1)" less
    done
}

# step_result SHAPE TEXT THREADS [BAR]: beside PyTorch.
step_result()
{
    result "$2" "$(best "own.$1.$3.ms")" ms "PyTorch" "$(best "torch.$1.$3.ms")" less "${4:--}"
}

# threads_result SHAPE TEXT: two threads beside one.
threads_result()
{
    result "$2, two threads" "$(best "own.$1.2.ms")" ms "one thread" "$(best "own.$1.1.ms")" less ">= 1.7x"
}

echo "# Convolutional networks"
print_machine "the best of $repeat times $steps steps"
heading "One training step (forward, backward, SGD with momentum), milliseconds"
measure
table
bf16_table
step_result mobilenet-v2-160 "step of mobilenet-v2, 160 x 160, 32 rows, one thread" 1 "$(bar ">= 1.2x" ">= 1.3x")"
step_result mobilenet-v2-160 "step of mobilenet-v2, 160 x 160, 32 rows, two threads" 2 "$(bar ">= 1.2x" ">= 1.3x")"
threads_result mobilenet-v2-160 "step of mobilenet-v2, 160 x 160, 32 rows"
step_result mobilenet-v1-128 "step of mobilenet-v1, 128 x 128, one thread" 1
step_result small-28 "step of small, 28 x 28 grey, 128 rows, one thread" 1 "$(bar ">= 1.2x" ">= 1.3x")"
threads_result small-28 "step of small, 28 x 28 grey, 128 rows"
step_result small-32 "step of small, 32 x 32 colour, 128 rows, one thread" 1 "$(bar ">= 1.2x" ">= 1.3x")"
step_result resnet20-32 "step of resnet20, 32 x 32, one thread" 1 "$(bar ">= 1.2x" ">= 1.3x")"
step_result mobilenet-v2-160-infer "mobilenet-v2, 160 x 160, scoring only, one thread" 1
result "step of a head of 2 classes on 512 rows of 1280 features, one thread" "$(best own.mobilenet-v2-160-head.1.ms)" ms - - - "<= 1"
close_work
