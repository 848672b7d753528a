#!/bin/bash
# paceline study beside paceline plan: what was predicted of a study's cells, and what a study tells of convergence.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
run gen clicks -o clicks.tsv --rows 300 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.2

# ---- predictions beside what was measured: asked once, kept with the results ----
run study scaling --data data --workers 1,2 --batch 100 --repeat 1 -o foretold --quiet -- --epochs 20
expect_text "predicted rows/s" "off by" "in the median" "at worst"
expect_equal "predictions" "$(grep -c '"predicted":"scaling"' foretold/results.jsonl)" 1
grep -q '"style":"predicted"' foretold/report.html || fail "the report does not show what was predicted"
before=$(cksum <foretold/results.jsonl)
run study scaling --data data --workers 1,2 --batch 100 --repeat 1 -o foretold --json -- --epochs 20
expect_object
grep -q '"median_error":' out || fail "no error"
expect_equal "unchanged" "$(cksum <foretold/results.jsonl)" "$before"

# ---- time to a loss, by what a study has measured ----
run study converge --data data --mode allreduce --workers 1,2 --batch 100 --repeat 1 --no-predict -o converge --quiet -- --epochs 5
run train --data data --model logreg --mode allreduce --run learned --batch 100 --epochs 50 --log-every 5
run plan --run learned --converge converge --workers 1,2 --batch 100,200 --mode allreduce,ps-async
expect_text " to 0." "fastest: paceline train "
grep -q '^  allreduce  *2  *0  *200 .* - ' out || fail "a batch that was not measured has a time"
run plan --run learned --converge converge --workers 2 --mode allreduce --json
expect_object
grep -q '"epochs_to_loss":' out || fail "no epochs"
expect_exit 65 "$paceline" plan --run learned --converge foretold
expect_error "foretold/table.json" "study converge"
expect_exit 66 "$paceline" plan --run learned --converge nowhere

echo "test_study_predicted: passed"
