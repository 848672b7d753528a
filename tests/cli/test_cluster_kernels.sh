#!/bin/bash
# --kernels in jobs of several processes: every rank computes with those that were asked for. $TRAPPED as in test_kernels.sh.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 3000 --seed 4
run prep clicks clicks.tsv -o data --holdout 0.2
run gen reviews -o reviews.jsonl --rows 600 --seed 4

# ---- a rank that was not told would be trapped, where the CPU has something to trap ----
expect_exit 0 timeout -k 5 "$seconds_max" "$TRAPPED" prep reviews reviews.jsonl -o texts -n 2 --vocab 500 --length 30 \
    --kernels plain
run prep reviews reviews.jsonl -o texts-auto --vocab 500 --length 30
[ "$(prints texts)" = "$(prints texts-auto)" ] || fail "a data set of plain kernels differs"
for words in "--data data --workers 2 --ps 1" "--data data --mode allreduce --workers 2" \
    "--data texts --model rnn --embed 8 --hidden 8 --epochs 1 --workers 2"; do
    # shellcheck disable=SC2086 # words
    expect_exit 0 timeout -k 5 "$seconds_max" "$TRAPPED" train $words --run "$work/run" --force --json --kernels plain
    expect_equal "kernels" "$(json_text kernels)" plain
done

# ---- the environment of one process is the option of all ----
PACELINE_KERNELS=plain expect_exit 0 timeout -k 5 "$seconds_max" "$TRAPPED" train --data data --workers 2 --ps 1 \
    --run "$work/run" --force --json
expect_equal "kernels" "$(json_text kernels)" plain

# ---- ranks that were asked for different ones do not begin ----
rank="$paceline train --data $work/data --run $work/mixed --workers 2"
# shellcheck disable=SC2086 # words
timeout -k 5 "$seconds_max" "$mpirun" -n 1 $rank : -n 1 $rank --kernels plain >out 2>err && fail "they have begun"
expect_error "has another job: kernels=plain there, kernels=auto on the chief"
