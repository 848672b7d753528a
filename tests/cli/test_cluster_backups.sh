#!/bin/bash
# Backup workers under mpirun: steps go on while one hangs, and the model is that of W - K workers to the byte, whatever is
# slow, stalls or dies.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
# shellcheck source=cluster.sh
source "$(dirname "$0")/cluster.sh"

steps=240
backed=(--ps 1 --steps "$steps" --workers 4 --backup-workers 1)

train data plain --workers 3 --ps 1 --steps $steps
# same RUN WORDS...: that many steps of it end with the bytes of the plain run.
same()
{
    train data "$@"
    expect_same_bytes "$1" plain
    expect_equal "samples of $1" "$(json_number samples "$1.json")" "$(json_number samples plain.json)"
}

same quiet "${backed[@]}"
expect_equal "backup workers" "$(json_number backup_workers quiet.json)" 1

# A spare worker may have no part in many steps; while all others are slow it has.
busy=slow:chief=200x@step=60..100,slow:worker2=200x@step=60..100,slow:worker3=200x@step=60..100

# Worker 1 hangs for so long that all steps are done before it would come back. Nobody waits for it: it is let go, which is said,
# and nothing of it is left. The last record is of the end, the one before it of a step.
same stalled "${backed[@]}" --log-every 10 --inject "$busy,stall:worker1=60s@step=60"
expect_error "worker1 (rank 1, host" "is let go: nothing is left to compute, and it has not asked for work for 1 s"
expect_equal "workers that were let go" "$(json_number workers_lost stalled.json)" 1
wait_for nothing_runs "$work/stalled"
# seconds_between RUN STEP STEP: as its records of these steps say.
seconds_between()
{
    sed -n 's/^{"kind":"step","t":\([0-9.]*\),"step":\([0-9]*\),.*/\2 \1/p' "$1/metrics.jsonl" |
        awk -v first="$2" -v last="$3" '$1 == first { from = $2 } $1 == last { to = $2 }
            END { print from && to ? to - from : 1e9 }'
}
took=$(seconds_between stalled 60 230)
is_true "$took < 20" || fail "170 steps took $took s while a worker was away"

# Silent for longer than the deadline, in the middle of a job that goes on, or to its end: no restart.
same silent "${backed[@]}" --ps 2 --deadline 2 \
    --inject "$busy,stall:worker1=60s@step=60,stall:worker2=1.2@step=100,stall:worker3=1.2@step=160"
expect_error "worker1 (rank 1, host" "has given no sign of life for 2 s; it is not missed" "is let go"
expect_equal "restarts of silent" "$(json_number restarts silent.json)" 0

# Stopped, and without one that hangs, under an mpirun of one's own: its exit code is that of a stop, not of a job that is done. Those of
# others would take the end of the rest for a failure; there nobody is let go.
if "$mpirun" --version 2>&1 | grep -q 'Open MPI'; then
    start_job "$mpirun" -n 5 "$paceline" train --data "$work/data" --run "$work/own" --batch 100 --log-every 10 "${backed[@]}" \
        --steps 1000000 --inject stall:worker1=60s@step=10
    wait_for trains own
    kill -USR1 "$job"
    end_job 75
    train data own --resume "${backed[@]}" --steps $steps
    wait_for nothing_runs "$work/own"
fi

# Slow ones, the chief among them; several servers; scores and checkpoints on the way.
same slow "${backed[@]}" --ps 2 --eval-every 50 --checkpoint-every 70 \
    --inject slow:chief=20x@step=20..60,slow:worker2=50x@step=100..,stall:worker1=0.5@step=150
is_true "$(json_number slices_computed_twice slow.json) >= 1" || fail "nothing was computed twice"
# Deaths: a synchronous job starts again.
same killed "${backed[@]}" --checkpoint-every 50 --inject kill:worker1@step=80,kill:ps0@step=130,kill:chief@step=180
is_true "$(json_number restarts killed.json) >= 2" || fail "who was to die has not" # a spare worker may have no step 80

# A stop, and a resume with other numbers of workers and backups, whose difference is the same.
start data stopped --model logreg "${backed[@]}" --steps 100000 --inject slow:worker1=20x
kill -USR1 "$job"
end_job 75
grep -q 'backup-workers: 1' stopped/config.yaml || fail "the option is not written"
train data resumed "${backed[@]}" --checkpoint-every 100 --steps 120
train data resumed --resume --workers 5 --backup-workers 2 --ps 2 --steps $steps
expect_same_bytes resumed plain

# A chief that is spare most of the time, since it is slow, hears of a stop, too.
is_spare()
{
    trains spare && grep -qs '"kind":"sample".*"role":"chief","seconds":[1-9]' spare/metrics.jsonl
}
start data spare --model logreg "${backed[@]}" --steps 1000000 --inject slow:chief=50x
wait_for is_spare
kill -TERM "$job"
end_job 75
stopped_at=$(sed -n 's/.*"checkpoint": \([0-9]*\).*/\1/p' spare/state.json)
is_true "$stopped_at > 0" || fail "a stop of a spare chief saved nothing"
train data spare --resume "${backed[@]}" --steps $((stopped_at + 20))
train data unstopped --workers 3 --ps 1 --steps $((stopped_at + 20))
expect_same_bytes spare unstopped

# Said beforehand; refused with a reason.
run train --data data --model logreg --run "$work/dry" --batch 100 --dry-run "${backed[@]}"
expect_error "steps are cut as for 3 workers; up to 1 that are slow or hang hold up no step"
usage_error "--backup-workers needs --mode ps-sync with servers" "with --ps 0 a worker that hangs" -- \
    train --data data --model logreg --run "$work/refused" --mode ps-sync --workers 3 --backup-workers 1
usage_error "in ps-async nobody waits" -- \
    train --data data --model logreg --run "$work/refused" --mode ps-async --ps 1 --workers 3 --backup-workers 1
usage_error "leaves nobody to back up" -- \
    train --data data --model logreg --run "$work/refused" --ps 1 --workers 3 --backup-workers 3
