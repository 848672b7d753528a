#!/bin/bash
# paceline tune: what it refuses, a search that finds something better than the defaults, runs that fail, one that is stopped and
# goes on, and what is left of it.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 6000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.2
words=(--data data --model logreg)

# lines FILE: how many results it has; the first line says which search it is.
lines()
{
    echo $(($(wc -l <"$1") - 1))
}

# ---- bad input: nothing is started, nothing is left ----
usage_error "--try NAME=VALUES is missing" -- tune "${words[@]}" -o none
usage_error "--data DIR is missing" -- tune --try lr=1 -o none
usage_error "--try lrr: train has no such option (did you mean lr?)" -- tune "${words[@]}" -o none --try lrr=1
usage_error "--try cell: is for --model rnn" -- tune "${words[@]}" -o none --try cell=gru
usage_error "--try workers: it is the same for all runs" -- tune "${words[@]}" -o none --try workers=1,2
usage_error "--try lr: 'x': not a number" -- tune "${words[@]}" -o none --try lr=1,x
usage_error "options of train follow behind --" -- tune "${words[@]}" -o none --try lr=1 lr=2
usage_error "unknown option --epoch (did you mean --epochs?)" -- tune "${words[@]}" -o none --try lr=1 -- --epoch 2
usage_error "--search grid: 25 points and the defaults are more than the 3 candidates" "--budget 26 or --search random" -- \
    tune "${words[@]}" -o none --try lr=0.01..0.3 --try l2=0..1 --search grid --budget 3
usage_error "train would take none of the candidates; early-stop=3: --early-stop needs --eval-every" -- \
    tune "${words[@]}" -o none --try early-stop=3
expect_exit 66 "$paceline" tune --data missing --try lr=1 -o none
expect_error "missing: no such data set"
mkdir theirs && echo mine >theirs/thesis
usage_error "holds no search" -- tune "${words[@]}" --try lr=1 -o theirs
expect_equal "somebody's file" "$(ls theirs)" thesis
[ ! -e none ] || fail "something is left"

# ---- a dry run ----
run tune "${words[@]}" --try lr=0.01,0.1 --try early-stop=0,3 -o none --dry-run
expect_text "3 candidates, all of a grid; 3 runs of full length" "lr=0.1 early-stop=0: 9 steps" \
    "impossible: lr=0.01 early-stop=3: --early-stop needs --eval-every" "has run nothing"
run tune "${words[@]}" --try lr=0.01..0.1 -o none --dry-run --budget 20 --json -- --batch 8
expect_object
expect_equal "candidates for a ninth of their length" "$(grep -o '"candidates":62' out)" '"candidates":62'
[ ! -e none ] || fail "a dry run has left something"

# ---- a search: rates that are much too small, and with them the default, lose to a better one ----
search=(tune "${words[@]}" --try lr=0.0001..0.2 --try "l2=0,1e-6" --budget 4 -o tuned)
default=(--batch 8 --lr 0.0005 --seed 3)
run "${search[@]}" -- "${default[@]}"
expect_error "data: has no validation rows: candidates train without the last 10 % of its training rows"
! grep -q ' $' out || fail "lines end with blanks"
expect_text "9 candidates, drawn at random; 9 runs for 1/9 of their length, 3 for 1/3, 2 for all of it" "(defaults: " \
    "run directory" "paceline train --data=data --run=best --seed=3 --batch=8 --lr="
expect_equal "runs" "$(lines tuned/results.jsonl)" 14
expect_equal "rungs that went on" "$(grep -c '"went_on":true' tuned/results.jsonl)" 5
grep -qF '| defaults |' tuned/table.md || fail "no defaults in table.md"
expect_equal "lines of table.csv" "$(wc -l <tuned/table.csv)" 10
expect_equal "kept runs" "$(find tuned/runs -name summary.json | wc -l)" 1
cp out text
before=$(cksum <tuned/results.jsonl)
# Again: nothing is left to do, and the same is told.
run "${search[@]}" --json -- "${default[@]}"
expect_object
expect_equal "unchanged" "$(cksum <tuned/results.jsonl)" "$before"
best=$(sed 's/.*"best":{[^}]*}[^}]*"logloss":\([0-9.]*\).*/\1/' out)
defaults=$(sed 's/.*"defaults":{[^}]*}[^}]*"logloss":\([0-9.]*\).*/\1/' out)
is_true "$best < $defaults - 0.005" || fail "the best has $best, the defaults have $defaults"

# What it says comes true: the command makes the same model.
command=$(sed -n 's/^command  *paceline //p' text)
directory=$(sed -n 's/^run directory  *//p' text)
# shellcheck disable=SC2086 # words of options without blanks
run $command --quiet --validation 0.1
expect_equal "the model" "$(json_text model_sha256 best/summary.json)" "$(json_text model_sha256 "$directory/summary.json")"

# A command that stops by rows keeps those that it has stopped by.
run prep clicks clicks.tsv -o plain
run tune --data plain --try early-stop=30,40 --budget 3 -o chosen -- --eval-every 20 --batch 16 --lr 0.5 --epochs 2
command=$(sed -n 's/^command  *paceline //p' out)
directory=$(sed -n 's/^run directory  *//p' out)
[[ $command == *--early-stop=* ]] || fail "the defaults have won: $command"
# shellcheck disable=SC2086 # words of options without blanks
run $command --quiet --force
expect_equal "the stopped model" "$(json_text model_sha256 best/summary.json)" "$(json_text model_sha256 "$directory/summary.json")"

# Validation rows of the data set's own are taken, and the command has the same job.
run prep clicks clicks.tsv -o whole --holdout 0.2 --validation 0.1
run tune --data whole --try lr=0.05 -o own
[[ $(<err) != *"has no validation rows"* ]] || fail "rows are set apart, though there are some"
expect_text "600 rows" "1,200 rows"

# More budget: what was run counts. Another search: no.
usage_error "holds another search" "--force" -- "${search[@]}" -- --batch 8
run tune "${words[@]}" --try lr=0.0001..0.2 --try l2=0,1e-6 --budget 5 -o tuned --quiet -- "${default[@]}"
first=$(head -n 15 tuned/results.jsonl | cksum)
expect_equal "what was there" "$first" "$before"
run tune "${words[@]}" --try lr=0.05 -o tuned --quiet --force -- --batch 64
expect_equal "runs" "$(lines tuned/results.jsonl)" 2

# ---- runs that fail are recorded with their cause, and lose ----
run tune "${words[@]}" --try lr=0.05,100000 --try optimizer=momentum -o failing -- --exact --batch 100
expect_text "failed: lr=100000 optimizer=momentum: exit code 1: diverged"
expect_error "runs have failed, and count as worse than all others"
grep -q '"status":1,.*"error":"diverged' failing/results.jsonl || fail "no cause is recorded"
usage_error "--metric" -- tune "${words[@]}" --try lr=0.05 -o odd --metric loss

# ---- a rate that falls over the whole run: what is short begins anew ----
run tune "${words[@]}" --try lr=0.01..0.2 --budget 3 -o falling --quiet -- --batch 8 --schedule linear
expect_equal "rungs that went on" "$(grep -c '"went_on":true' falling/results.jsonl)" 0

# ---- stopped by SIGTERM, it keeps what is done, and what it was at, and goes on ----
slow=(tune "${words[@]}" --try "lr=0.05,0.1" -o "$work/stopped" -- --batch 10 --inject "slow:chief=20x")

one_is_done()
{
    [ -e stopped/results.jsonl ] && [ "$(lines stopped/results.jsonl)" -ge 1 ] &&
        [ "$(find stopped/runs -name metrics.jsonl | wc -l)" -ge 2 ] # the second has begun
}

"$paceline" "${slow[@]}" >"$work/out" 2>"$work/err" &
job=$!
wait_for one_is_done
kill -TERM "$job"
end_job 75
expect_error "stopping: the run under way is ended" "the same command goes on with the rest"
done_before=$(lines stopped/results.jsonl)
is_true "$done_before < 3" || fail "nothing was left to do"
wait_for nothing_trains "$work/stopped/runs"
printf '{"half' >>stopped/results.jsonl # as a crash would leave it
first=$(sed -n 2p stopped/results.jsonl)
run "${slow[@]}"
expect_equal "runs" "$(lines stopped/results.jsonl)" 3
expect_equal "what was done" "$(sed -n 2p stopped/results.jsonl)" "$first"
expect_text "best"

echo "test_tune: passed"
