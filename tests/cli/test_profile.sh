#!/bin/bash
# --profile in one process: the same model, a trace that can be read, a table with what was done; also of a run that is
# interrupted.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=traces.sh
source "$(dirname "$0")/traces.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 6000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --holdout 0.1 --quiet

# sha RUN: of its model.
sha()
{
    json_text model_sha256 "$1/summary.json"
}

# compare NAME WORDS...: with and without a profile; the run with one is NAME, and the last.
compare()
{
    run train --data data --run "$work/bare" --force --quiet "${@:2}"
    [ ! -e bare/profile ] || fail "a profile that nobody wanted"
    run train --data data --run "$work/$1" --force --profile 20 "${@:2}"
    expect_equal "model of $1 with a profile" "$(sha "$1")" "$(sha bare)"
    check_trace "$1" 1
}

# ---- threads that split the columns ----

compare local --model logreg --threads 2 --batch 100
expect_text "profile of steps 5 to 24; one core of this machine, measured:" "workers: 2 threads" \
    "trace                $work/local/profile/trace.json.gz"
expect_ops X.W error "X^T.error, update" reduce "read rows" "(in no span)"
expect_spans local 0 X.W error "X\^T.error, update" reduce "read rows"
expect_equal "threads" "$(cut -d ' ' -f 2 local.spans | sort -u | wc -l)" 2
expect_equal "first step" "$(json_number first_step local/profile/ops.json)" 5
expect_equal "last step" "$(json_number end_step local/profile/ops.json)" 25
is_true "$(json_number peak_gflops local/profile/ops.json) > 0" || fail "no peak"
grep -q "GB/s" out || fail "no rates"
run train --data data --run "$work/local" --force --model logreg --json --profile
expect_object
compare exact --model logreg --threads 2 --batch 1000 --exact --checkpoint-every 2 --eval-every 3
expect_ops X.W "X^T.error" update "wait for threads" score logits "copy for a checkpoint"

# ---- one rank ----

compare fm --model fm --batch 200
expect_ops "rows there and back" "find keys" "read rows" gradient "apply a step"

# ---- the option ----

echo "profile: on" >profile.yaml
run train --config profile.yaml --data data --run "$work/file" --model logreg --steps 20 --quiet
check_trace file 1
PACELINE_PROFILE=3 run train --data data --run "$work/variable" --model logreg --batch 100 --steps 40 --quiet
expect_equal "first step" "$(json_number first_step variable/profile/ops.json)" 4
expect_equal "last step" "$(json_number end_step variable/profile/ops.json)" 7
grep -q '^profile: 3$' variable/config.yaml || fail "config.yaml does not say it"
run train --config profile.yaml --data data --run "$work/off" --model logreg --steps 20 --no-profile --quiet
[ ! -e off/profile ] || fail "a profile that was taken back"
usage_error "option --profile -5: out of range" -- train --data data --run "$work/none" --model logreg --profile=-5
run train --data data --run "$work/none" --model logreg --dry-run --profile
[ ! -e none ] || fail "a dry run has left something"

# ---- what goes wrong ----

# A run that is interrupted has one, too.
start_job "$paceline" train --data data --run "$work/stopped" --model logreg --batch 50 --epochs 100000 --log-every 10 \
    --profile 1000000
wait_for trains stopped
kill -INT "$job"
end_job 75
steps=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
check_trace stopped 1
[ -s stopped/profile/ops.json ] || fail "an interrupted run has no table"
cp stopped/profile/ops.json before.json
run train --config stopped/config.yaml --data data --run "$work/stopped" --resume --steps $((steps + 50)) --quiet --profile 5
cmp -s before.json stopped/profile/ops.json && fail "the profile is that of the first start"

# One that cannot be written costs no training.
run train --data data --run "$work/odd" --model logreg --steps 20 --batch 100 --exact --quiet
mkdir -p odd/profile/trace.json.gz/full
expect_exit 0 "$paceline" train --data data --run "$work/odd" --model logreg --steps 40 --batch 100 --exact --resume --profile 5
expect_error "warning: there will be no profile: "
