#!/bin/bash
# Recurrent networks: a step beside PyTorch, two workers beside one, and what they learn: bench/rnn.sh [ROWS]
#
# ROWS is a number of generated reviews (200000). PyTorch is that of BENCH_TORCH (/usr/bin/python3 with Debian's python3-torch and
# libopenblas0-pthread); without it that part is skipped. BENCH_TEXTS is a directory with rt-polarity.pos, rt-polarity.neg, sst2-train.tsv and sst2-test.tsv;
# without it they are left out. It is a report: the exit code says whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-200000}
torch=${BENCH_TORCH:-/usr/bin/python3}
texts=${BENCH_TEXTS:-}
open_work rnn

# of NAME SHAPE ROWS THREADS: milliseconds of that line of a table.
of()
{
    awk -v shape="$2" -v rows="$3" -v threads="$4" '$1 == shape && $2 == rows && $3 == threads { print $5 }' "$results/$1.out"
}

# words_of SHAPE ROWS: words in a batch.
words_of()
{
    awk -v shape="$1" -v rows="$2" '$1 == shape && $2 == rows { print $7; exit }' "$results/own.out"
}

steps()
{
    local shape kind own theirs wanted

    heading "One training step (forward and backward, f32), milliseconds"
    timed own "$build/bench/bench_rnn"
    if "$torch" -c 'import torch' 2>/dev/null; then
        timed torch "$torch" "$root/bench/rnn_torch.py" 6
        echo
        fact PyTorch "$("$torch" -c 'import torch; print(torch.__version__)'), $(cat "$results/torch.err")"
    else
        echo "PyTorch: skipped: $torch has no module torch."
        : >"$results/torch.out"
    fi
    echo
    echo "A: embedding 100, 2 layers of 32, dense 32, 128 rows. The others: embedding 128, one layer. 100 words a row, or lengths as in reviews (real)."
    echo
    echo "| shape | words | paceline, 1 thread | 2 threads | PyTorch, 1 thread | 2 threads | PyTorch / paceline, 1 thread |"
    echo "|---|---|---|---|---|---|---|"
    for shape in A B64-H128 B256-H128 B64-H256 B256-H256 A-gru A-drop A-both; do
        for kind in full real; do
            own=$(of own $shape $kind 1) theirs=$(of torch $shape $kind 1)
            echo "| $shape | $kind | $own | $(of own $shape $kind 2) | ${theirs:--} | $(of torch $shape $kind 2) | $([ -z "$theirs" ] || ratio "$theirs" "$own") |"
        done
    done
    echo
    echo "Padding costs nothing if rows of real lengths take as much less time as they have fewer words (distinct words fall less, and their part of the work with them):"
    echo
    echo "| shape | words, full / real | time, full / real |"
    echo "|---|---|---|"
    for shape in A B64-H128 B256-H128 B64-H256 B256-H256; do
        own=$(of own $shape full 1) theirs=$(of own $shape real 1)
        echo "| $shape | $(ratio "$(words_of $shape full)" "$(words_of $shape real)") | $(ratio "$own" "$theirs") |"
    done
    for shape in A B64-H128 B256-H128 B64-H256 B256-H256 A-gru A-drop A-both; do
        case $shape in
        A) wanted=$(bar ">= 3x" ">= 5x") ;;
        B*-H128) wanted=$(bar ">= 1.8x" ">= 2x") ;;
        B*-H256) wanted=$(bar ">= 1.5x" ">= 1.7x") ;;
        *) wanted=- ;;
        esac
        result "step $shape, full rows, one thread" "$(of own $shape full 1)" ms "PyTorch" "$(of torch $shape full 1)" less "$wanted"
        result "step $shape, rows of real lengths, one thread" "$(of own $shape real 1)" ms "PyTorch" "$(of torch $shape real 1)" less
    done
    for shape in A B64-H128 B256-H128 B64-H256 B256-H256; do
        result "step $shape, full rows, two threads" "$(of own $shape full 2)" ms "one thread" "$(of own $shape full 1)" less ">= 1.6x"
    done
}

# The same by products of bf16, where the CPU has them.
narrow_steps()
{
    local shape narrow='' wide=- other=-

    # The bars are those of AMX.
    ! grep -qw amx_bf16 /proc/cpuinfo || wide=">= 2x" other=">= 1.3x"
    heading "One training step with --precision bf16, milliseconds"
    timed own16 "$build/bench/bench_rnn" 20 all bf16
    if grep -q failed "$results/own16.out"; then
        echo "Skipped: this CPU has no instructions for bf16."
        return 0
    fi
    : >"$results/torch16.out"
    ! "$torch" -c 'import torch' 2>/dev/null || narrow=$(torch_narrows "$torch")
    [ -z "$narrow" ] || timed torch16 env "$narrow" "$torch" "$root/bench/rnn_torch.py" 6 all bf16
    echo
    fact "PyTorch, bf16" "${narrow:-none that runs here}"
    echo
    echo "| shape | f32 | bf16 | f32 / bf16 | PyTorch bf16 (autocast) |"
    echo "|---|---|---|---|---|"
    for shape in A B64-H128 B256-H128 B64-H256 B256-H256 A-gru A-drop A-both; do
        echo "| $shape | $(of own $shape full 1) | $(of own16 $shape full 1) | $(ratio "$(of own $shape full 1)" "$(of own16 $shape full 1)") | $(of torch16 $shape full 1) |"
        result "step $shape, bf16, full rows, one thread" "$(of own16 $shape full 1)" ms "f32" "$(of own $shape full 1)" less "$wide"
        result "step $shape, bf16, full rows, one thread" "$(of own16 $shape full 1)" ms "PyTorch, the better of bf16 and f32" \
            "$({ of torch $shape full 1; of torch16 $shape full 1; } | sort -g | head -n 1)" less "$other"
    done
}

# trained NAME WORDS...: a measured run; adds its rows per second.
trained()
{
    rm -rf "$work/run-$1"
    timed "$1" "$program" train --data "$work/data" --model rnn --run "$work/run-$1" --json "${@:2}"
    note "$1.rate" "$(number "$results/$1.out" samples_per_second)"
}

# scale_result WHAT NAME BESIDE OTHER [BAR]: rows/s of a run and of another.
scale_result()
{
    result "$1" "$(calculate "$(highest "$2.rate")" %.0f)" rows/s "$3" "$(calculate "$(highest "$4.rate")" %.0f)" more "${5:--}"
}

scale()
{
    local turn words=(--embed 128 --hidden 128 --batch 256 --steps 150 --eval-rows 1)
    local wide=(--embed 128 --hidden 256 --batch 256 --steps 60 --eval-rows 1)

    heading "Two workers, one thread each, against one (the same batches of 256 rows, hidden 128 and 256)"
    timed gen "$program" gen reviews -o "$work/reviews.jsonl" --rows "$rows" --force --json
    rm -rf "$work/data"
    timed prep "$program" prep reviews "$work/reviews.jsonl" -o "$work/data" --holdout 0.1 --json
    for ((turn = 0; turn < repeat; turn++)); do
        trained one --threads 1 "${words[@]}"
        trained threads --threads 2 "${words[@]}"
        trained two --workers 2 "${words[@]}"
        trained wide-one --threads 1 "${wide[@]}"
        trained wide-two --workers 2 "${wide[@]}"
        trained preset-one --threads 1 --preset reviews-2019 --batch 128 --steps 300
        trained preset-two --workers 2 --preset reviews-2019 --batch 128 --steps 300
    done
    echo
    echo "| | rows/s |"
    echo "|---|---|"
    echo "| one process, one thread | $(all one.rate %.0f) |"
    echo "| one process, two threads | $(all threads.rate %.0f) |"
    echo "| allreduce, two workers | $(all two.rate %.0f) |"
    echo "| hidden 256, one process, one thread | $(all wide-one.rate %.0f) |"
    echo "| hidden 256, allreduce, two workers | $(all wide-two.rate %.0f) |"
    echo "| preset reviews-2019, one thread | $(all preset-one.rate %.0f) |"
    echo "| preset reviews-2019, two workers | $(all preset-two.rate %.0f) |"
    scale_result "hidden 128, two threads" threads "one thread" one ">= 1.6x"
    scale_result "hidden 128, all-reduce of two workers" two "one thread" one ">= 1.85x"
    scale_result "hidden 256, all-reduce of two workers" wide-two "one thread" wide-one ">= 1.85x"
    scale_result "preset reviews-2019, all-reduce of two workers" preset-two "one thread" preset-one
    result "hidden 128, training loss: two workers less one" \
        "$(calculate "sqrt(($(number "$results/one.out" train_loss) - $(number "$results/two.out" train_loss)) ^ 2)" %.1e)" - - - - "<= 0.001"
}

# learned NAME DATA MODEL WORDS...: trains and prints accuracy and seconds.
learned()
{
    rm -rf "$work/run"
    timed "$1" "$program" train --data "$2" --model "$3" --run "$work/run" --json "${@:4}"
    echo "| ${2##*/} | $3 ${*:4} | $(number "$results/$1.out" accuracy) | $(number "$results/$1.out" logloss) | $(all "$1.wall" %.1f) |" >>"$results/learned"
}

# accuracy NAME: of a learned run.
accuracy()
{
    calculate "$(number "$results/$1.out" accuracy)" %.4f
}

# prepare_texts SUFFIX OPTIONS...: the public sets, of sentences.
prepare_texts()
{
    rm -rf "$work/rt$1" "$work/sst2$1"
    timed "prep-rt$1" "$program" prep reviews "$texts/rt-polarity.pos=1" "$texts/rt-polarity.neg=0" -o "$work/rt$1" --holdout 0.1 --length 60 "${@:2}"
    timed "prep-sst2$1" "$program" prep reviews "$texts/sst2-train.tsv" --test "$texts/sst2-test.tsv" --text-field sentence --label-field label \
        -o "$work/sst2$1" --length 60 "${@:2}"
}

# precisions DATA: accuracy by f32 and by bf16, means and deviations over seeds.
precisions()
{
    local precision seed

    for precision in bf16 f32; do # where there is no bf16, f32 would be for nothing
        : >"$results/$precision.accuracies"
        for seed in 1 2 3 4 5; do
            rm -rf "$work/run"
            "$program" train --data "$1" --model rnn --run "$work/run" --seed "$seed" --precision $precision --json >"$results/seed.json" || return 0
            number "$results/seed.json" accuracy >>"$results/$precision.accuracies"
        done
    done
    awk -v data="${1##*/}" '
        { n[FILENAME]++; sum[FILENAME] += $1; square[FILENAME] += $1 * $1 }
        END {
            printf("| %s |", data)
            for (i = 1; i < ARGC; i++) {
                mean = sum[ARGV[i]] / n[ARGV[i]]
                printf(" %.4f +- %.4f |", mean, sqrt((square[ARGV[i]] / n[ARGV[i]] - mean * mean) * n[ARGV[i]] / (n[ARGV[i]] - 1)))
            }
            print ""
        }' "$results/f32.accuracies" "$results/bf16.accuracies"
}

# By --precision bf16, beside f32: skipped where the CPU has no instructions for it.
narrow_learn()
{
    heading "Accuracy by precision, five seeds: mean and deviation"
    echo "| data | f32 | bf16 |"
    echo "|---|---|---|"
    precisions "$work/data"
    [ -z "$texts" ] || precisions "$work/rt"
    [ -z "$texts" ] || precisions "$work/sst2"
}

learn()
{
    local best

    heading "What they learn, default options"
    best=$(number "$results/gen.out" best_accuracy)
    learned gen-logreg "$work/data" logreg
    learned gen-rnn "$work/data" rnn
    if [ -n "$texts" ]; then
        prepare_texts "" --stopwords none
        prepare_texts -stopped
        learned rt-logreg "$work/rt" logreg
        learned rt-rnn "$work/rt" rnn
        learned sst2-logreg "$work/sst2" logreg
        learned sst2-rnn "$work/sst2" rnn
        learned rt-stopped "$work/rt-stopped" rnn
        learned sst2-stopped "$work/sst2-stopped" rnn
    fi
    echo
    echo "| data | model | accuracy | log-loss | seconds |"
    echo "|---|---|---|---|---|"
    cat "$results/learned"
    result "generated reviews, rnn: accuracy" "$(accuracy gen-rnn)" - "the rules behind the data" "$(calculate "$best" %.4f)" points ">= -2 points"
    result "generated reviews, rnn: accuracy" "$(accuracy gen-rnn)" - "logreg" "$(accuracy gen-logreg)" points ">= 3 points"
    narrow_learn
    [ -n "$texts" ] || return 0
    result "rt-polarity, logreg: accuracy" "$(accuracy rt-logreg)" - - - - ">= 0.76"
    result "rt-polarity, rnn: accuracy" "$(accuracy rt-rnn)" - - - - ">= 0.75"
    result "SST-2, logreg: accuracy" "$(accuracy sst2-logreg)" - - - - ">= 0.82"
    result "SST-2, rnn: accuracy" "$(accuracy sst2-rnn)" - - - - ">= 0.81"
    result "rt-polarity, rnn: accuracy" "$(accuracy rt-rnn)" - "with the default --stopwords" "$(accuracy rt-stopped)" points
    result "SST-2, rnn: accuracy" "$(accuracy sst2-rnn)" - "with the default --stopwords" "$(accuracy sst2-stopped)" points
}

echo "# Recurrent networks"
print_machine
steps
narrow_steps
scale
learn
close_work
