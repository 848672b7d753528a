#!/bin/bash
# Pictures from JPEG files to classifiers: bench/images.sh [PICTURES]
#
# PICTURES (8000) are drawn. BENCH_PRETRAINED names the weights of a MobileNet v1 0.25 (Keras names, safetensors), without which
# transfer is left out; BENCH_FASHION the folder of Fashion-MNIST's IDX files (Debian: dataset-fashion-mnist), without which its
# accuracies are; BENCH_RESNET_EPOCHS (10; 0: none) is how long resnet20 learns there. BENCH_RUNS (20) is how often the job of seven processes is repeated. The rest of the environment: bench/README.md.
# It is a report: the exit code says whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

pictures=${1:-8000}
pretrained=${BENCH_PRETRAINED:-}
fashion=${BENCH_FASHION:-/usr/share/datasets/fashion-mnist}
runs=${BENCH_RUNS:-20}
resnet_epochs=${BENCH_RESNET_EPOCHS:-10}
open_work images
one_core="taskset -c 0"
command -v taskset >/dev/null || fail "taskset is missing (Debian: util-linux)"

decode()
{
    heading "Decoding and resizing, one core, beside bare libjpeg-turbo"
    [ -x "$build/bench/bench_picture" ] || fail "$build/bench/bench_picture is missing"
    # shellcheck disable=SC2086
    timed decode $one_core "$build/bench/bench_picture"
    echo
    sed 's/^/    /' "$results/decode.out"
    awk '{ print $1, $3, $13, $9 }' "$results/decode.out" | while read -r width height load bare; do
        result "decode and resize $width x $height, one core" "$load" pictures/s "bare libjpeg-turbo, full size" "$bare" more ">= 0.8x"
    done
}

# pictures_rate NAME: prepared pictures/s.
pictures_rate()
{
    calculate "$pictures / $(lowest "$1.wall")" %.0f
}

prepare()
{
    local turn name one

    heading "prep: $pictures pictures of about 192 x 192 become 160 x 160"
    timed gen "$program" gen images -o "$work/pictures" --rows "$pictures" --variant quality --force --json
    for ((turn = 0; turn < repeat; turn++)); do
        rm -rf "$work/data" "$work/data-two" "$work/data-processes"
        # shellcheck disable=SC2086
        timed one $one_core "$program" prep images "$work/pictures" -o "$work/data" --holdout 0.2 --threads 1 --json
        timed two "$program" prep images "$work/pictures" -o "$work/data-two" --holdout 0.2 --threads 2 --json
        timed processes "$program" prep images "$work/pictures" -o "$work/data-processes" --holdout 0.2 -n 2 --json
    done
    diff -rq "$work/data" "$work/data-two" || echo "The sets of one and two threads differ."
    diff -rq "$work/data" "$work/data-processes" || echo "The sets of one and two processes differ."
    echo
    echo "| | seconds | pictures/s | peak MiB |"
    echo "|---|---|---|---|"
    for name in one two processes; do
        echo "| $name | $(all $name.wall) | $(pictures_rate $name) | $(highest $name.peak) |"
    done
    one=$(pictures_rate one)
    result "prep, one core" "$one" pictures/s
    result "prep, two threads" "$(pictures_rate two)" pictures/s "one core" "$one" more ">= 1.6x"
    result "prep, two processes" "$(pictures_rate processes)" pictures/s "one core" "$one" more ">= 1.8x"
}

# top NAME WORDS...: trains the head; the summary is NAME.out.
top()
{
    timed "$1" "$program" train --data "$work/data" --model cnn --arch mobilenet-v1 --width 0.25 --pretrained "$pretrained" \
        --run "$work/run" --force --json "${@:2}"
}

transfer()
{
    local first again epoch inference features
    local cache="$work/features"

    heading "Transfer: the head of a pretrained MobileNet v1 0.25 on pictures of 160 x 160, 50 epochs"
    if [ -z "$pretrained" ]; then
        echo "Left out: BENCH_PRETRAINED is not set."
        return
    fi
    rm -rf "$cache"
    top first --train top --feature-cache "$cache"
    top again --train top --feature-cache "$cache"
    top epoch --train from:head --augment none --epochs 1
    # What frozen layers do, without files: ms of 256 pictures.
    timed inference "$build/bench/bench_cnn" 5 mobilenet-v1-025-160-infer
    first=$(lowest first.wall) again=$(lowest again.wall) epoch=$(lowest epoch.wall)
    echo
    grep -a '^features' "$results/first.err" | tail -n 1 || true
    grep -a '^features' "$results/again.err" | tail -n 1 || true
    sed 's/^/    /' "$results/inference.out"
    echo
    echo "| | seconds | test accuracy |"
    echo "|---|---|---|"
    echo "| features and 50 epochs | $first | $(number "$results/first.out" accuracy) |"
    echo "| 50 epochs, features from the cache | $again | $(number "$results/again.out" accuracy) |"
    echo "| one epoch with the backbone in every step | $epoch | |"
    inference=$(awk -v t="$(nproc)" '$1 == "mobilenet-v1-025-160-infer" && $2 <= t { ms = $3 } END { print 256000 / ms }' "$results/inference.out")
    features=$(calculate "$pictures / $(number "$results/first.out" features_seconds)" %.0f)
    result "features of a pretrained MobileNet v1 0.25" "$features" pictures/s "bare inference" "$(calculate "$inference" %.0f)" more ">= 0.8x"
    result "its head: features and 50 epochs" "$(calculate "$first" %.2f)" s "50 epochs with the backbone" "$(calculate "50 * $epoch" %.1f)" less ">= 20x"
    result "its head: 50 epochs, features from the cache" "$(calculate "$again" %.2f)" s
    result "its head: test accuracy" "$(number "$results/first.out" accuracy)" - - - - ">= 0.9"
}

# learned NAME WORDS...: trains on Fashion-MNIST.
learned()
{
    timed "$1" "$program" train --data "$work/fashion" --model cnn --run "$work/run" --force --json "${@:2}"
}

learn()
{
    heading "Fashion-MNIST"
    if [ ! -d "$fashion" ]; then
        echo "Left out: there is no $fashion (Debian: dataset-fashion-mnist)."
        return
    fi
    rm -rf "$work/fashion"
    "$program" prep images "$fashion" -o "$work/fashion" --quiet >"$results/fashion.out"
    learned small --arch small --epochs 5 --augment none
    [ "$resnet_epochs" -eq 0 ] || learned resnet --arch resnet20 --epochs "$resnet_epochs" --augment flip
    echo
    echo "| | seconds | test accuracy | log-loss |"
    echo "|---|---|---|---|"
    for name in small resnet; do
        [ -e "$results/$name.out" ] || continue
        echo "| $name | $(all $name.wall) | $(number "$results/$name.out" accuracy) | $(number "$results/$name.out" logloss) |"
    done
    result "Fashion-MNIST, small, 5 epochs: test accuracy" "$(number "$results/small.out" accuracy)" - - - - ">= 0.91"
    result "Fashion-MNIST, small, 5 epochs" "$(best small.wall)" s
    [ "$resnet_epochs" -ne 0 ] || return 0
    result "Fashion-MNIST, resnet20, $resnet_epochs epochs: test accuracy" "$(number "$results/resnet.out" accuracy)" - - - - ">= 0.93"
    result "Fashion-MNIST, resnet20, $resnet_epochs epochs" "$(best resnet.wall)" s
}

# mean NAME...: of the test accuracies of these runs.
mean_accuracy()
{
    local name sum=0

    for name in "$@"; do
        sum="$sum + $(number "$results/$name.out" accuracy)"
    done
    calculate "($sum) / $#" %.4f
}

# compare_precisions ARCH EPOCHS: with f32 and with bf16, three seeds each.
compare_precisions()
{
    local seed precision name

    for seed in 1 2 3; do
        for precision in f32 bf16; do
            name=$1-$precision-$seed
            learned "$name" --arch "$1" --epochs "$2" --augment none --seed $seed --precision $precision
            echo "| $1, $2 epochs, seed $seed | $precision | $(number "$results/$name.out" accuracy) |" \
                "$(number "$results/$name.out" logloss) | $(all "$name.wall") |" >>"$results/precisions"
        done
    done
    result "Fashion-MNIST, $1, $2 epochs, bf16: mean test accuracy of three seeds" "$(mean_accuracy "$1"-bf16-{1,2,3})" - f32 \
        "$(mean_accuracy "$1"-f32-{1,2,3})" points
}

precisions()
{
    heading "Fashion-MNIST by precision"
    if [ ! -d "$work/fashion" ] ||
        ! "$program" train --data "$work/fashion" --model cnn --run "$work/run" --force --dry-run --precision bf16 >/dev/null 2>&1; then
        echo "Left out: there is no $fashion, or this CPU has no instructions for bf16."
        return
    fi
    : >"$results/precisions"
    compare_precisions small 3
    [ "$resnet_epochs" -eq 0 ] || compare_precisions resnet20 2
    echo
    echo "| | precision | test accuracy | log-loss | seconds |"
    echo "|---|---|---|---|---|"
    cat "$results/precisions"
}

repeat_job()
{
    local turn sha whole=0 same=0 first="" skew

    heading "ps-sync: 4 workers, 2 parameter servers, an evaluator; the entire MobileNet v2 (width 0.35, 64 x 64), $runs times"
    rm -rf "$work/tiny"
    "$program" prep images "$work/pictures" -o "$work/tiny" --holdout 0.2 --size 64 --quiet >"$results/tiny.out"
    for ((turn = 0; turn < runs; turn++)); do
        rm -rf "$work/run"
        timed job "$program" train --data "$work/tiny" --model cnn --arch mobilenet-v2 --width 0.35 --mode ps-sync --workers 4 \
            --ps 2 --evaluator --steps 20 --batch 128 --eval-every 10 --run "$work/run" --json
        whole=$((whole + 1))
        sha=$(word "$results/job.out" model_sha256)
        first=${first:-$sha}
        [ "$sha" != "$first" ] || same=$((same + 1))
    done
    skew=$(number "$work/run/summary.json" bytes)
    echo
    echo "$whole of $runs finished, $same with the same model; seconds: $(all job.wall %.1f)"
    echo "Bytes of the busier server over the mean: $skew"
    result "ps-sync, 4 workers + 2 ps + evaluator: runs that finished, of $runs" "$whole" - - - - ">= $runs"
    result "ps-sync, 4 workers + 2 ps + evaluator: runs with the same model, of $runs" "$same" -
    result "ps-sync, 4 workers + 2 ps + evaluator: bytes of the busier server over the mean" "$skew" - - - - "<= 1.05"
}

echo "# Pictures"
print_machine "best of $repeat where values are repeated, all values shown"
decode
prepare
transfer
repeat_job
learn
precisions
close_work
