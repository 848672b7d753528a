#!/bin/bash
# Requests to stop, whatever the process is doing; and what is seen of a job that is slow.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 3000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --holdout 0.1 --parts 1 --quiet
declare -A jobs began

# begin NAME COMMAND...: in the background.
begin()
{
    local name=$1

    shift
    "$@" >"$name.out" 2>"$name.err" </dev/null &
    jobs[$name]=$!
}

# begin_hung NAME WORDS...: training that waits for a disk for ever, be it in the ranks.
begin_hung()
{
    local name=$1

    shift
    begin "$name" env LD_PRELOAD="$SHIM" SHIM_FILES=read:data/part-:1000s "$paceline" train --data data --model logreg \
        --run "$work/$name" "$@"
}

# stop NAME SIGNAL
stop()
{
    began[$1]=$EPOCHREALTIME
    kill "-$2" "${jobs[$1]}"
}

# expect_stopped NAME SECONDS: it has ended with code 75 within that time, and said at once that it was told.
expect_stopped()
{
    local got=0

    wait_for has_ended "${jobs[$1]}"
    is_true "$EPOCHREALTIME - ${began[$1]} < $2" || fail "$1: it took $2 s or more to stop"
    wait "${jobs[$1]}" || got=$?
    cp "$1.out" out && cp "$1.err" err
    expect_equal "exit code of $1" $got 75
    expect_equal "answers of $1" "$(grep -c '^stopping: ' err)" 1
}

mpirun_of()
{
    mpirun_process=$(pgrep -P "${jobs[$1]}")
    [ -n "$mpirun_process" ]
}

# shows_progress NAME: there is something to look at.
shows_progress()
{
    grep -q '^train  ' "$1.err"
}

# ---- scores are seen to move ----
run prep clicks clicks.tsv -o tests --holdout 0.9 --parts 1 --quiet
begin scored env LD_PRELOAD="$SHIM" SHIM_FILES=read@4096:tests/part-:1s "$paceline" train --data tests --model logreg \
    --run "$work/scored" --steps 1

# ---- nobody looks ----
begin_hung hung --deadline 1
begin_hung ranks --deadline 1 --workers 2
begin prep env LD_PRELOAD="$SHIM" SHIM_FILES=read:clicks.tsv:1000s "$paceline" prep clicks clicks.tsv -o none -n 2
begin blocked env --block-signal=TERM "$paceline" train --data data --model logreg --run "$work/blocked" --epochs 1000000
begin stopped "$paceline" train --data data --model logreg --run "$work/stopped" --workers 2 --deadline 1 --epochs 1000000
for name in hung ranks prep blocked stopped; do
    wait_for catches "${jobs[$name]}" 15
done
for name in hung prep; do
    stop $name TERM
done
wait_for mpirun_of ranks
stop ranks TERM
wait_for test -s "$work/stopped/metrics.jsonl"
wait_for mpirun_of stopped
kill -STOP "$mpirun_process"
stop stopped TERM
wait_for test -s "$work/blocked/metrics.jsonl"
stop blocked TERM
expect_stopped blocked 5
expect_error "interrupted after step"
expect_stopped hung 5
expect_error "told to stop, and not done within 1 s: ended at once"
expect_stopped ranks 7
expect_stopped stopped 7
expect_error "told to stop, and not done within the time for it: killed"
wait_for nothing_runs "$work/stopped"
expect_stopped prep 15
wait_for nothing_prepares none

# ---- behind the step under way ----
# stop_stalled NAME ROLE WORDS...: step 100 takes five seconds, and nothing is due before an epoch ends with step 270. It is
# told to stop in the middle of them: before another job is started, which on a busy machine may take longer.
stop_stalled()
{
    local name=$1 role=$2

    shift 2
    begin "$name" "$paceline" train --data data --model logreg --run "$work/$name" --batch 10 --epochs 1000000 \
        --log-every 1000000 --inject "stall:$role=5s@step=100" "$@"
    wait_for test -s "$name/faults"
    stop "$name" INT
}
stop_stalled allreduce worker1 --mode allreduce --workers 2
stop_stalled ps-sync worker1 --mode ps-sync --workers 2 --ps 1
stop_stalled ps-async worker1 --mode ps-async --workers 2
stop_stalled alone chief
for name in allreduce ps-sync ps-async alone; do
    expect_stopped $name 30
    step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
    [ $name = ps-async ] || [ "${step:-270}" -le 102 ] || fail "$name has gone on to step $step"
done
shows_progress allreduce || fail "there was nothing to look at: $(cat allreduce.err)"

wait_for has_ended "${jobs[scored]}"
grep -q '^score  .* of 2.70 k rows' scored.err || fail "scoring shows nothing: $(cat scored.err)"
