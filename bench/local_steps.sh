#!/bin/bash
# Networks whose workers take steps of their own and average (--mode local-sgd), beside all-reduce: accuracy, log-loss and bytes, by
# workers and by steps between two flushes: bench/local_steps.sh [SET...]
#
# Sets are rt, sst2 (BENCH_TEXTS, as for rnn.sh) and fashion (BENCH_PICTURES: a directory with the files of Fashion-MNIST, of which
# STEPS steps are trained). BENCH_SEEDS ("1 2 3"), BENCH_WORKERS ("2 4 8"), BENCH_ROUNDS ("8 32 128") and BENCH_OUTER (pairs of
# --outer-lr and --outer-momentum, "0,-1": the defaults) say what is tried. BENCH_TUNE=1 scores rows held out from the training rows
# instead of test rows: what is chosen is chosen by those. Nothing here is timed.
set -euo pipefail
. "$(dirname "$0")/common.sh"

sets=("$@")
[ $# -gt 0 ] || sets=(rt sst2 fashion)
seeds=${BENCH_SEEDS:-1 2 3}
workers=${BENCH_WORKERS:-2 4 8}
rounds=${BENCH_ROUNDS:-8 32 128}
outer=${BENCH_OUTER:-0,-1}
batch=64
steps=${STEPS:-512}
open_work local_steps

# prepared SET: its data set, and the words that train on it.
prepared()
{
    local part=${BENCH_TUNE:+-tune} texts=${BENCH_TEXTS:-} split=(--holdout 0.1)

    data=$work/$1$part
    words=(--model rnn)
    [ "$1" != fashion ] || words=(--model cnn --steps "$steps")
    [ ! -d "$data" ] || return 0
    case $1 in
    rt)
        "$program" prep reviews "$texts/rt-polarity.pos=1" "$texts/rt-polarity.neg=0" -o "$data" --length 60 --stopwords none --quiet \
            "${split[@]}" --seed "$([ -n "${BENCH_TUNE:-}" ] && echo 2 || echo 1)"
        ;;
    sst2)
        [ -n "${BENCH_TUNE:-}" ] || split=(--test "$texts/sst2-test.tsv")
        "$program" prep reviews "$texts/sst2-train.tsv" -o "$data" --length 60 --stopwords none --quiet --text-field sentence \
            --label-field label "${split[@]}"
        ;;
    fashion)
        "$program" prep images "${BENCH_PICTURES:-/usr/share/datasets/fashion-mnist}" -o "$data" --quiet
        ;;
    *) fail "rt, sst2 or fashion, not: $1" ;;
    esac
}

# mean_of NAME WORDS...: trains for each seed; accuracy, log-loss and bytes a row of all workers, as means, in NAME.score.
mean_of()
{
    local name=$1 seed out=$results/run.json

    shift
    [ ! -s "$results/$name.score" ] || return 0
    for seed in $seeds; do
        "$program" train --data "$data" --run "$work/run" --force --batch $batch "${words[@]}" --seed "$seed" --checkpoint-seconds 0 \
            --report off --quiet --json "$@" >"$out" 2>"$results/err" || {
            tail -n 3 "$results/err" >&2
            fail "this failed: train --data $data ${words[*]} $*"
        }
        echo "$(number "$out" accuracy) $(number "$out" logloss) $(number "$out" bytes_sent) $(number "$out" samples)"
    done >"$results/$name.scores"
    awk '{ a += $1; aa += $1 * $1; l += $2; b += $3 / $4 }
        END { d = NR > 1 ? (aa - a * a / NR) / (NR - 1) : 0; print a / NR, l / NR, b / NR, sqrt(d < 0 ? 0 : d) }' \
        "$results/$name.scores" >"$results/$name.score"
}

# row TEXT NAME REFERENCE
row()
{
    awk -v text="$1" 'NR == 1 { a = $1; l = $2; b = $3; d = $4 }
        NR == 2 { printf("| %s | %.2f +- %.2f | %.4f | %+.1f %% | %.0f | %.1f |\n", text, 100 * a, 100 * d, l, 100 * (l / $2 - 1), b, $3 / b) }' \
        "$results/$2.score" "$results/$3.score"
}

compare()
{
    local set=$1 w round pair

    prepared "$set"
    heading "$set: ${words[*]} --batch $batch, seeds $seeds"
    echo "| | accuracy, % | log-loss | against all-reduce | bytes sent for a row, by all | times less |"
    echo "|---|---|---|---|---|---|"
    for w in $workers; do
        mean_of "$set-all-$w" --mode allreduce --workers "$w"
        row "$w workers, all-reduce" "$set-all-$w" "$set-all-$w"
        for pair in $outer; do
            for round in $rounds; do
                mean_of "$set-$w-$round-$pair" --mode local-sgd --workers "$w" --exchange $((round * batch / w)) \
                    --outer-lr "${pair%,*}" --outer-momentum "${pair#*,}"
                row "$w workers, $round steps$([ "$pair" = 0,-1 ] || echo ", outer $pair")" "$set-$w-$round-$pair" "$set-all-$w"
            done
        done
    done
}

print_machine "none are measured"
for set in "${sets[@]}"; do
    compare "$set"
done
close_work
