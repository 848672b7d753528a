#!/bin/bash
# A run that has diverged says so, ends with code 1 and leaves no model: for every kind, however short it is, and also
# where the numbers that overflowed stand still behind the weights.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# diverges TEXT WORDS...
diverges()
{
    local text=$1

    shift
    expect_exit 1 timeout -k 5 "$seconds_max" "$paceline" train --run run "$@"
    expect_no_output
    expect_error "paceline: error: " "diverged at step " "$text" "--lr"
    [ ! -e run/model.safetensors ] && [ ! -e run/summary.json ] || fail "a diverged run has a model: $*"
    [ -s run/report.html ] || fail "a diverged run has no report: $*"
    grep -q '"ending": "failed"' run/state.json || fail "the run is not called failed: $*"
    rm -r run
}

# The squares of such values are infinite: adagrad never moves their weights again, and the loss stays what it was.
awk 'BEGIN { for (i = 0; i < 400; i++) print i % 2, "1:" (i % 3 - 1) "e38", "2:" (i % 2 ? "" : "-") "1e38", "3:1" }' \
    >huge.svm
run prep clicks huge.svm --format svmlight -o huge --holdout 0.1
diverges "have overflowed" --data huge --model logreg
expect_error "scale the feature values"
diverges "have overflowed" --data huge --model logreg --l2 0.001
diverges "" --data huge --model logreg --exact
diverges "" --data huge --model logreg --eval-every 1 --batch 100
diverges "" --data huge --model fm
diverges "" --data huge --model logreg --mode ps-sync --workers 2

# Too few rows to judge a loss by, but the last there are.
run gen reviews -o texts.jsonl --rows 600
run prep reviews texts.jsonl -o texts --holdout 0.1
diverges "the loss is" --data texts --model rnn --hidden 8 --embed 8 --lr 1e6 --steps 3
diverges "the loss is" --data texts --model logreg --lr 1e6 --batch 32 --steps 4 --mode allreduce
