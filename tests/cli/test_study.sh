#!/bin/bash
# paceline study: what it refuses, a small study that is stopped and goes on, a cell that fails, and what is left of it.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.2
words=(--data data --repeat 1 --no-predict)

# lines FILE: how many runs it has; the first line says which study it is.
lines()
{
    echo $(($(wc -l <"$1") - 1))
}

# ---- bad input: nothing is started, nothing is left ----
usage_error "study must be followed by what it asks; there is: scaling, weak, " "criteo-2017" -- study -o none
usage_error "study must be followed by what it asks" -- study
usage_error "study must be followed by what it asks" -- study "${words[@]}"
usage_error "option --output DIR is missing" -- study scaling "${words[@]}"
usage_error "study scalling is not known (did you mean scaling?)" "criteo-2017" -- study scalling "${words[@]}" -o none
usage_error "--data is missing" -- study scaling -o none
usage_error "a study asks one question" -- study scaling weak "${words[@]}" -o none
usage_error "unknown mode 'ps-snyc' (did you mean ps-sync?)" -- study modes "${words[@]}" --mode ps-snyc -o none
usage_error '--workers: "0"' -- study scaling "${words[@]}" --workers 1,0 -o none
usage_error "unknown option --epoch" -- study scaling "${words[@]}" -o none -- --epoch 2
usage_error "--cell is for --model rnn" -- study scaling "${words[@]}" -o none -- --cell gru
usage_error "--prices is missing" -- study cost "${words[@]}" -o none
usage_error "makes its own data" -- study criteo-2017 --workers 2 -o none
echo "localhost slots=2" >hosts
usage_error "2 workers, 1 ps: 3 processes, and hosts has 2 slots" -- \
    study servers "${words[@]}" --hosts hosts --ps 1 -o none
usage_error "--balance auto behind --" -- study balance "${words[@]}" -o none -- --balance auto
usage_error "unknown balance 'replay:x'" -- study scaling "${words[@]}" -o none -- --balance replay:x
printf 'a 1 EUR\nb 2 USD\n' >mixed
usage_error "mixed:2: the price of b is in USD, that of a in EUR" -- study cost "${words[@]}" --prices mixed -o none
usage_error "unknown option --holdouts" -- study prep --data clicks.tsv -o none -- --holdouts 0.1
[ ! -e none ] || fail "something is left"
expect_exit 66 "$paceline" study prep --data missing -o none
expect_exit 66 "$paceline" study scaling --data missing -o none2 --workers 1
expect_error "missing"
mkdir theirs && echo mine >theirs/thesis
usage_error "holds no study" -- study scaling "${words[@]}" --workers 1 -o theirs
expect_equal "somebody's file" "$(ls theirs)" thesis
# What train would refuse is refused before the first cell runs, and says which it is.
expect_exit 64 "$paceline" study modes "${words[@]}" --mode local,local-sgd -o adam -- --optimizer adam
expect_error "local-sgd, 2 workers: "
expect_equal "runs" "$(lines adam/results.jsonl)" 0

# ---- a dry run ----
run study batch "${words[@]}" --batch 100,200 --rows 1000 -o none --dry-run
expect_text "ps-sync, 2 workers, 0 ps, batch 100" "batch 200" "2 cells, 1 run of each: 2 runs" "has run nothing"
[ ! -e none ] || fail "a dry run has left something"

# ---- a study, and what it leaves ----
run study modes "${words[@]}" --mode local,ps-sync --batch 100 -o modes --quiet
expect_text "mode     workers  servers  batch  runs" "report" "modes/report.html"
expect_no_error
expect_equal "runs" "$(lines modes/results.jsonl)" 2
[ "$(head -n 1 modes/report.html)" = "<!doctype html>" ] && [ "$(tail -n 1 modes/report.html)" = "</html>" ] ||
    fail "no whole page"
grep -qF '| ps-sync | 2 | 0 | 100 | 1 |' modes/table.md || fail "no row in table.md"
grep -q '^modes,"local",1,,100,"1",[0-9.e-]*,' modes/table.csv || fail "no row in table.csv"
[ -z "$(ls modes/runs)" ] || fail "run directories are left"
# Again: nothing is left to do. More cells and repetitions: what is missing. Another study: no.
before=$(cksum <modes/results.jsonl)
run study modes "${words[@]}" --mode local,ps-sync --batch 100 -o modes --json
expect_object
expect_equal "unchanged" "$(cksum <modes/results.jsonl)" "$before"
run study modes --data data --repeat 2 --no-predict --mode local --batch 100 -o modes --quiet
expect_equal "runs" "$(lines modes/results.jsonl)" 3
usage_error "holds another study" "--force" -- study modes "${words[@]}" --mode local -o modes -- --seed 7
run study modes "${words[@]}" --mode local --batch 100 -o modes --quiet --force -- --seed 7
expect_equal "runs" "$(lines modes/results.jsonl)" 1

# ---- balance that all cells have is known of those that can; "off" is off, whatever is said ----
run study modes "${words[@]}" --mode ps-sync,ps-async --batch 100 -o balanced --keep-runs --quiet -- --balance auto --steps 4
grep -q '"mode":"ps-sync".*"balance":"auto"' balanced/results.jsonl || fail "results know nothing of --balance auto"
grep -q '"mode":"ps-async".*"balance":"off"' balanced/results.jsonl || fail "a mode that has no shares has a balance"
grep -q '^balance: "\?auto' balanced/runs/modes-1-1/config.yaml || fail "the run was not told"
expect_text "balance" "auto"

# ---- a cell that fails is recorded with its cause, and the others go on ----
expect_exit 1 "$paceline" study batch "${words[@]}" --batch 100,2000 -o failing -- \
    --inject kill:worker1@step=20 --max-restarts 0 # the second has fewer steps
expect_text "0, 1 failed" "failed: ps-sync, 2 workers, 0 ps, batch 100: exit code"
expect_error "1 of 2 runs have failed"
grep -q '"status":0' failing/results.jsonl || fail "no cell has gone well"
grep -q '"status":[1-9].*"error":".*worker1' failing/results.jsonl || fail "no cause is recorded"
[ -d failing/runs/batch-1-1 ] || fail "the run that failed is gone"

# ---- stopped by SIGTERM, it keeps what is done, ends what runs, and goes on ----
slow=(study modes --data data --repeat 1 --no-predict --mode "local,allreduce" --batch 10 -o "$work/stopped" -- --epochs 2 --inject slow:chief=20x)

one_is_done()
{
    [ -e stopped/results.jsonl ] && [ "$(lines stopped/results.jsonl)" -ge 1 ] && [ -e stopped/runs/modes-2-1/metrics.jsonl ]
}

"$paceline" "${slow[@]}" >"$work/out" 2>"$work/err" &
job=$!
wait_for one_is_done
kill -TERM "$job"
end_job 75
expect_error "stopping: the run under way is ended" "1 of 2 runs are kept; the same command goes on"
expect_equal "runs" "$(lines stopped/results.jsonl)" 1
wait_for nothing_trains "$work/stopped/runs"
printf '{"half' >>stopped/results.jsonl # as a crash would leave it
first=$(sed -n 2p stopped/results.jsonl)
run "${slow[@]}"
expect_equal "runs" "$(lines stopped/results.jsonl)" 2
expect_equal "what was done" "$(sed -n 2p stopped/results.jsonl)" "$first"
expect_text "allreduce"

# ---- prep ----
run study prep --data clicks.tsv --workers 1,2 --repeat 1 -o prep --quiet -- --holdout 0.1
expect_text "processes  runs" "efficiency"

echo "test_study: passed"
