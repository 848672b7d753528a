#!/bin/bash
# paceline plan: predictions from a run, as a table and as JSON, what is recommended, comparison with runs, bad input.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 20k
run prep clicks clicks.tsv -o data --holdout 0.1
run train --data data --model logreg --run steps --mode ps-sync --workers 1 --ps 0 --batch 100 --epochs 3
run train --data data --model logreg --run block --epochs 20

# ---- a table, and a command that can be pasted ----
run plan --run steps --run block --workers 1,2,4 --ps 0,1
expect_text "mode" "rows/s" "bound by" "allreduce" "ps-async" "local-sgd" "fastest: paceline train"
! grep -q ' $' out || fail "lines end with blanks"
sed -n 's/^fastest: paceline //p' out >recommended.txt
[ -s recommended.txt ] || fail "no command"
eval "run $(cat recommended.txt) --dry-run"

# ---- what belongs to the mode of the run is left out of other modes, and of the command; names stand in quotes ----
run train --data data --model logreg --run "it's stale" --mode ps-ssp --staleness 2 --wire bf16 --workers 1 --ps 0 --batch 100 --epochs 3 \
    --inject slow:chief=1.2x
run plan --run "it's stale" --workers 1,2 --ps 0
expect_text "local" "allreduce" "ps-sync" "ps-async" "local-sgd" "fastest: paceline train"
eval "run $(sed -n 's/^fastest: paceline //p' out) --dry-run"
[ -d "it's stale-planned" ] && fail "a dry run has left a run"

# ---- JSON ----
run plan --run steps --workers 2,4 --ps 1 --batch 100,1000 --mode ps-sync,ps-async --net 10gbit --latency 20us --price 0.36EUR --json
expect_object
for name in mode workers ps batch samples_per_second seconds bottleneck cost recommended command currency; do
    grep -q "\"$name\":" out || fail "no $name"
done
expect_equal predictions "$(grep -o '"step_seconds"' out | wc -l)" 11 # eight; the recommended, the fastest and the cheapest again
run plan --run steps --mode local --json
grep -q '"cost":null' out || fail "a cost without a price"

# ---- faster links, more money, failures ----
rate()
{
    run plan --run steps --mode ps-sync --workers 8 --ps 1 --batch 1000 --json "$@"
    grep -o '"samples_per_second":[0-9.e+]*' out | head -n 1 | cut -d: -f2
}
awk -v slow="$(rate --net 10mbit)" -v fast="$(rate --net 10gbit)" 'BEGIN { exit !(slow < fast) }' || fail "links do not matter"
run plan --run steps --workers 1,8 --price 1EUR
expect_text "cheapest: paceline train" " EUR"
run plan --run steps --workers 1,8 --price 1EUR --within 1e9
expect_text "cheapest within 1e+09 s"
run plan --run steps --workers 8 --mode ps-sync --within 1e-9
expect_error "none of these ends within"
seconds_of() { grep -o "\"$1\":[0-9.e-]*" out | head -n 1 | cut -d: -f2; }
run plan --run steps --workers 8 --mtbf 1e-7 --price 1EUR
expect_text " never "
expect_error "none can be recommended" "--mtbf"
grep -q "paceline train" out && fail "what never ends is recommended"
run plan --run steps --mode ps-sync,ps-async,ps-ssp --workers 64 --ps 4 --simulate --straggle 0.2 --seed 3
expect_text "ps-ssp"

# ---- the network: assumed, or given; with several hosts it is measured, which test_cluster_network.sh has ----
run plan --run steps --workers 2
expect_error "1 Gbit/s and 60 us between machines (assumed)"
run plan --run steps --workers 2 --net 10gbit
expect_error "10 Gbit/s (given) and 60 us (assumed) between machines"

# ---- beside what was measured ----
run plan --run steps --check steps block
expect_text "predicted" "measured" "error: median"
run plan --run steps --check steps --json
expect_object
grep -q '"median_error":' out || fail "no median"

# ---- without a run ----
mkdir tmp
TMPDIR=$work/tmp run plan --data data --model logreg --workers 1,2 --mode local,allreduce --json
expect_text "paceline train --data=data --run=planned"
awk -v all="$(seconds_of seconds)" -v epoch="$(seconds_of epoch_seconds)" 'BEGIN { exit !(all < 500 * epoch) }' ||
    fail "planned as long as the short run might have been: $(seconds_of seconds) s, an epoch $(seconds_of epoch_seconds) s"
[ -z "$(ls -A tmp)" ] || fail "the short run was left behind"
run gen clicks -o few.tsv --rows 200
run prep clicks few.tsv -o few
TMPDIR=$work/tmp "$paceline" plan --data few --model logreg 2>&1 | true # nobody reads
[ -z "$(ls -A tmp)" ] || fail "a run that nobody has heard of was left behind"
has_begun() { [ -n "$(find tmp -name metrics.jsonl -size +0)" ]; }
TMPDIR=$work/tmp "$paceline" plan --data data --model logreg >out 2>err &
job=$!
wait_for has_begun
kill -TERM "$job"
end_job 75
expect_error "interrupted"
[ -z "$(ls -A tmp)" ] || fail "an interrupted run was left behind"

# ---- bad input ----
expect_exit 64 "$paceline" plan
expect_error "--run" "--data"
expect_exit 66 "$paceline" plan --run nowhere
expect_exit 64 "$paceline" plan steps
expect_error "--run"
expect_exit 64 "$paceline" plan --run steps --workers 0
expect_error "--workers" "1,2,4"
expect_exit 64 "$paceline" plan --run steps --workers 2,x
expect_exit 64 "$paceline" plan --run steps --mode fast
expect_error "allreduce"
expect_exit 64 "$paceline" plan --run steps --net 1
expect_error "gbit"
expect_exit 64 "$paceline" plan --run steps --latency -3us
expect_exit 64 "$paceline" plan --run steps --price 0.35EUR --price ps=0.2USD
expect_error "EUR" "USD" "one currency"
expect_exit 64 "$paceline" plan --run steps --price free
expect_exit 64 "$paceline" plan --run steps --mode local --workers 2
expect_error "nothing is left to predict"
expect_exit 64 "$paceline" plan --run steps --check
expect_exit 64 "$paceline" plan --data data --model perceptron
mv data moved
expect_exit 66 "$paceline" plan --run steps
expect_error "--data"
run plan --run steps --data moved --workers 2
mv moved data
run train --data data --model logreg --run short --steps 1
expect_exit 65 "$paceline" plan --run short
expect_error "too short to learn from"
exit 0
