#!/bin/bash
# --profile of jobs of several processes: all ranks in one trace, waits by name, the same models.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=traces.sh
source "$(dirname "$0")/traces.sh"
# shellcheck source=cluster.sh
source "$(dirname "$0")/cluster.sh"

# profiled RUN WORDS...: the run's table is on standard output.
profiled()
{
    run train --data "$work/data" --model logreg --run "$work/$1" --batch 100 --steps 100 --profile 30 "${@:2}"
}

# ---- every mode ----

train data bare --steps 100 --workers 2 --ps 1
profiled sync --workers 2 --ps 1 --evaluator --eval-every 20
expect_equal "model with a profile" "$(json_text model_sha256 sync/summary.json)" "$(sha bare)"
check_trace sync 4
expect_spans sync 0 "wait for ps0" gradient X.W error "X\^T.error" "find keys" "read rows" "pack and send gradients"
expect_spans sync 1 "wait for ps0" gradient
expect_spans sync 2 "wait for (chief|worker1)" "add a worker's part" "apply a step, answer all" "receive a push"
expect_spans sync 3 "wait for ps0" score logits
expect_text "profile of steps 10 to 39" "workers: 2 threads" "parameter servers: 1 thread" "evaluator: 1 thread" \
    "clocks were set beside the chief's to within "
expect_ops X.W "wait for ps0" "add a worker's part"
grep -q '"labels":"clock [-+][0-9.]* us beside the chief' trace.json || fail "the trace does not say how clocks go"

# Clocks of one machine are the same: what is found of them is no further off than it says, but for a little.
tr '{' '\n' <sync/profile/ops.json | sed -n 's/.*"offset_s": *\([-0-9.e]*\), *"error_s": *\([0-9.e-]*\).*/\1 \2/p' >clocks
expect_equal "clocks" "$(wc -l <clocks)" 4
awk '{ o = $1 < 0 ? -$1 : $1; if (o > $2 + 1e-6) exit 1 }' clocks || fail "a clock is off by more than it says"

train data bare2 --steps 100 --workers 2
profiled allreduce --workers 2
expect_equal "model with a profile" "$(json_text model_sha256 allreduce/summary.json)" "$(sha bare2)"
check_trace allreduce 2
expect_spans allreduce 0 "apply a step" "read weights" gradient
# Whoever is faster waits: which of them that is, nobody can say.
grep -qE '^(0 [0-9]+ wait for worker1|1 [0-9]+ wait for chief)$' allreduce.spans || fail "nobody has waited for the other"

# Asynchronous workers take what they can: slow ones, of many steps, all get some.
profiled_slowly()
{
    run train --data "$work/data" --model logreg --run "$work/$1" --batch 100 --steps 400 --profile 350 \
        --inject slow:chief=20x,slow:worker1=20x "${@:2}"
}
profiled_slowly async --mode ps-async --workers 2 --ps 2
check_trace async 4
expect_spans async 2 "serve a push"
profiled_slowly ssp --mode ps-ssp --staleness 2 --workers 2 --ps 1
check_trace ssp 3

# ---- interrupted ----

start data stopped --model logreg --workers 2 --ps 1 --epochs 100000 --profile 1000000
kill -INT "$job"
end_job 75
check_trace stopped 3
expect_spans stopped 2 "add a worker's part"

# ---- a worker that dies: the others are in it ----

if is_open_mpi; then # else the job starts again, all of it
    run train --data "$work/data" --model logreg --run "$work/lost" --batch 100 --steps 100 --mode ps-async --workers 3 --ps 1 \
        --profile 50 --inject kill:worker1@step=30
    expect_error "the others go on without it"
    gzip -dc lost/profile/trace.json.gz | grep -c '"process_name"' >named
    expect_equal "ranks in the trace" "$(cat named)" 3
fi

# ---- ranks that were started otherwise ----

timeout -k 5 "$seconds_max" "$mpirun" -n 1 "$paceline" train --data data --model logreg --run "$work/other" --workers 2 --profile 5 : \
    -n 1 "$paceline" train --data data --model logreg --run "$work/other" --workers 2 >out 2>err && fail "ranks differ"
expect_error "profile=0 there, profile=5 on the chief"
