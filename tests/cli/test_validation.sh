#!/bin/bash
# Validation rows: set apart by prep or train; they stop and choose, the test rows are scored at the end. The best state is
# kept through kills, and what is resumed goes on from the last.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen clicks -o clicks.tsv --rows 4000 --seed 5
run gen reviews -o reviews.jsonl --rows 500 --seed 5
run gen images -o pictures --rows 60 --variant quality

# bytes DIRECTORY: of all its files
bytes()
{
    cat "$1"/* | sha256sum
}

# expect_member TEXT: it is in the JSON on standard output, but for blanks.
expect_member()
{
    tr -d ' \t\n' <out | grep -qF -- "$1" || fail "not on standard output: $1"
}

# ---- prep: the same bytes for any number of processes and threads ----

# expect_divided KIND INPUT ROWS WORDS...: a tenth and a fifth of them are set apart.
expect_divided()
{
    local kind=$1 input=$2 rows=$3

    shift 3
    run prep "$kind" "$input" -o "$kind" --holdout 0.1 --validation 0.2 --threads 1 --json "$@"
    expect_equal "$kind: validation" "$(json_number validation_rows)" $((rows / 5))
    expect_equal "$kind: test" "$(json_number test_rows)" $((rows / 10))
    expect_equal "$kind: training" "$(json_number train_rows)" $((rows - rows / 5 - rows / 10))
    run prep "$kind" "$input" -o again --holdout 0.1 --validation 0.2 -n 2 "$@"
    expect_equal "$kind: bytes" "$(bytes again)" "$(bytes "$kind")"
    run inspect "$kind" --json
    expect_member '"validation":{"rows":'"$((rows / 5))"
    expect_text "--validation 0.2"
    run merge "$kind" -o "$kind.h5"
    expect_text "validation rows      $((rows / 5))"
    # The test rows are those of the set without validation rows, which says nothing of any.
    run prep "$kind" "$input" -o without --holdout 0.1 "$@"
    run inspect without --json
    ! grep -q validation out || fail "$kind: validation rows of a set that has none"
    rm -r again without
}
expect_divided clicks clicks.tsv 4000
expect_divided reviews reviews.jsonl 500 --vocab 50 --length 6
expect_divided images pictures 60 --size 16
run prep clicks clicks.tsv -o like --like clicks --validation 0.5
expect_text "validation rows      2,000"
usage_error "--holdout 0.5 and --validation 0.5 of 4000 rows leave none to train on" "both are fractions of all rows" -- \
    prep clicks clicks.tsv -o none --holdout 0.5 --validation 0.5 --quiet
run prep clicks clicks.tsv -o plain --holdout 0.1

# ---- train: what is scored on the way, and at the end ----

# train RUN WORDS...
train()
{
    run train --model logreg --batch 50 --run "$work/$1" "${@:2}"
}

# score SET RUN: its log-loss in the summary
score()
{
    tr -d ' \n' <"$2/summary.json" | sed -n "s/.*\"$1\":{[^}]*\"logloss\":\([-0-9.e]*\).*/\1/p"
}

sha()
{
    json_text model_sha256 "$1/summary.json"
}

train scored --data clicks --epochs 2 --eval-every 20
expect_error "2800 rows to train on, 800 to validate, 400 to test" "step 20: validation log-loss"
expect_text "validation           log-loss" "rows scored          400"
expect_equal "scores on the way" "$(grep -c '"kind":"eval".*"set":"validation","n":800' scored/metrics.jsonl)" 6
expect_equal "scores of test rows" "$(grep -c '"kind":"eval".*"set":"test","n":400' scored/metrics.jsonl)" 1
run top scored --json --once
expect_member '"validation":{"step":112,"n":800'
expect_member '"test":{"step":112,"n":400'
run top scored
expect_text "validation at step 112: log-loss"
run report scored -o report.html
grep -q "and of the validation rows" report.html || fail "the report does not say whose scores it has"
grep -q '"best": null' scored/summary.json || fail "a best that nobody asked for"
train own --data plain --validation 0.25 --epochs 1
expect_error "2700 rows to train on, 900 to validate, 400 to test"
run train --data plain --run none --epochs 1 --dry-run --validation 0.25
expect_error "2700 rows to train on, 900 to validate"
run eval --run scored --data clicks --set validation --json
expect_equal "eval" "$(json_number logloss)" "$(score validation scored)"

# ---- the better model, not the last ----
overfits=(--epochs 12 --eval-every 25)
train last --data clicks "${overfits[@]}"
train best --data clicks "${overfits[@]}" --keep-best
expect_text "model of step"
train early --data clicks "${overfits[@]}" --early-stop 5
expect_error "stopping early"
for kept in best early; do
    is_true "$(score test $kept) < $(score test last)" || fail "$kept: no better on the test rows than the last"
    is_true "$(score validation $kept) < $(score validation last)" || fail "$kept: no better on the validation rows"
done
expect_equal "the best of those that stop early" "$(sha early)" "$(sha best)"
step=$(tr -d ' \n' <best/summary.json | sed -n 's/.*"best":{"step":\([0-9]*\).*/\1/p')
train there --data clicks --steps "$step"
expect_equal "the model of step $step" "$(sha best)" "$(sha there)"
expect_equal "checkpoints" "$(find best/checkpoints -name manifest.json | wc -l)" 2 # the best, and the last

# ---- kills: the same bytes, and on from the last state ----
expect_exit 137 timeout -k 5 "$seconds_max" "$paceline" train --data clicks --batch 50 --run "$work/killed" "${overfits[@]}" \
    --keep-best --checkpoint-every 60 --keep 1 --inject kill:chief@step=300
train killed --data clicks "${overfits[@]}" --keep-best --checkpoint-every 60 --keep 1 --resume
from=$(sed -n 's|.*resuming from .*/step-0*\([0-9]*\)\..*|\1|p' err)
[ "$from" -gt "$step" ] || fail "it goes on from step $from, not from its last checkpoint"
expect_equal "model of a killed run" "$(sha killed)" "$(sha best)"
expect_equal "its steps" "$(json_number steps killed/summary.json)" 672
for name in validation test; do
    expect_equal "$name of a killed run" "$(score $name killed)" "$(score $name best)"
done
train ranks --data clicks "${overfits[@]}" --keep-best --workers 2 --ps 1
train ranks2 --data clicks "${overfits[@]}" --keep-best --workers 2 --ps 1 --checkpoint-every 60 \
    --inject kill:ps0@step=200,kill:worker1@step=500
expect_error "starting again from step"
expect_equal "model of killed ranks" "$(sha ranks2)" "$(sha ranks)"

# A finished run may become longer, or have the model of its last state after all.
train best --data clicks --epochs 13 --eval-every 25 --keep-best --resume
expect_equal "model of a longer run" "$(sha best)" "$(sha there)"
train best --data clicks --epochs 13 --eval-every 25 --resume
is_true "$(score validation best) > $(score validation there)" || fail "not the last state"

# ---- what does not go together ----
usage_error "--validation 0.1: clicks has 800 validation rows of its own" -- \
    train --data clicks --run none --validation 0.1 --quiet
usage_error "--keep-best needs --eval-every" -- train --data clicks --run none --keep-best --quiet
usage_error "--early-stop needs --eval-every" -- train --data clicks --run none --early-stop 2 --quiet
usage_error "--keep-best decides at fixed steps" -- \
    train --data clicks --run none --keep-best --eval-every 10 --workers 2 --evaluator --quiet
usage_error "leaves none to validate on" -- train --data plain --run none --validation 0.00001 --quiet
usage_error "--validation" "out of range" -- train --data plain --run none --validation 1.5 --quiet
usage_error "--validation" -- train --data plain --run "$work/own" --validation 0.5 --epochs 1 --batch 50 --resume --quiet
expect_exit 65 "$paceline" eval --run own --data plain --set validation
expect_error "has no validation rows of its own"

# By the test rows, if there are no others: that is said, once.
train tested --data plain --epochs 2 --eval-every 20 --early-stop 2
expect_equal "warnings" "$(grep -c "goes by the test rows" err)" 1
