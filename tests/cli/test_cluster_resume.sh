#!/bin/bash
# Training on several processes that is stopped and goes on, with as many processes or others; its checkpoints.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/cluster.sh"

# ---- interrupted and resumed ----
# expect_interrupted RUN: sets step, where it was.
expect_interrupted()
{
    expect_error "interrupted after step" "--resume"
    [ ! -e "$1/summary.json" ] && [ ! -e "$1/model.safetensors" ] || fail "an interrupted run has a summary"
    step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
    [ -s "$(printf '%s/checkpoints/step-%012d.0001/manifest.json' "$1" "$step")" ] || fail "no checkpoint of step $step"
    wait_for nothing_runs "$work/$1"
}
start data stopped --workers 2 --ps 1 --epochs 1000000
kill -TERM $job
end_job 75
expect_interrupted stopped
cp -r stopped stopped_too
more=$((step + 60))
train data stopped --workers 2 --ps 1 --resume --steps $more
train data whole --workers 2 --ps 1 --steps $more
expect_same_bytes stopped whole
expect_equal "train_loss" "$(json_number train_loss stopped.json)" "$(json_number train_loss whole.json)"
train data stopped_too --workers 3 --ps 2 --resume --steps $more
expect_near stopped_too whole
# Nothing comes again but what worker1 had begun when the chief ended the job: its half of a step.
is_true "$(json_number rows_computed_twice stopped.json) <= 50" ||
    fail "$(json_number rows_computed_twice stopped.json) rows were computed twice"
expect_equal "restarts" "$(json_number restarts stopped.json)" 0
grep '"kind":"step"' stopped/metrics.jsonl | sed 's/.*"t":\([^,]*\),"step":\([0-9]*\).*/\1 \2/' >records
awk '$1 < time || $2 <= step { exit 1 } { time = $1; step = $2 }' records || fail "records do not go on: $(cat records)"
# A finished run has nothing left to do; it may go on from there to a later end.
before=$(cd stopped && find . -type f -exec sha256sum {} + | sort)
train data stopped --workers 2 --ps 1 --resume --steps $more
expect_error "stopped: the run has finished"
expect_equal "files of a finished run" "$(cd stopped && find . -type f -exec sha256sum {} + | sort)" "$before"
expect_same_bytes stopped whole
train data stopped --workers 2 --ps 1 --resume --steps $((more + 30))
train data longer --workers 2 --ps 1 --steps $((more + 30))
expect_same_bytes stopped longer

# By mpirun directly: SIGUSR1 reaches the ranks; in allreduce.
start_job "$mpirun" -n 2 "$paceline" train --data "$work/data" --run "$work/signalled" --batch 100 \
    --log-every 10 --workers 2 --epochs 1000000
wait_for trains signalled
kill -USR1 $job
codes=(75)
is_open_mpi || codes=(75 0) # after a signal MPICH's mpiexec forgets the ranks' exit code now and then
end_job "${codes[@]}"
expect_interrupted signalled
more=$((step + 60))
train data signalled --workers 2 --resume --steps $more
train data whole2 --workers 2 --steps $more
expect_same_bytes signalled whole2
# Asynchronous, and a shard on every worker.
start data async_stopped --mode ps-async --workers 2 --epochs 1000000
kill -INT $job
end_job 75
expect_interrupted async_stopped
more=$((step + 60))
train data async_stopped --mode ps-async --workers 2 --resume --steps $more
expect_equal "samples" "$(json_number samples)" "$(rows_of $more)"

# ---- checkpoints and early stops, at the same steps as one process ----
words=(--epochs 4 --eval-every 15 --early-stop 2 --lr 0.5 --checkpoint-every 25 --keep 3)
train data early_one --exact "${words[@]}"
train data early_two "${words[@]}" --workers 2 --ps 1
train data early_all "${words[@]}" --workers 3
expect_near early_two early_one
expect_near early_all early_one
[ "$(json_number steps early_one.json)" -lt $((train_rows / 100 * 4)) ] || fail "early_one did not stop early"
for name in early_two early_all; do
    expect_equal "steps of $name" "$(json_number steps $name.json)" "$(json_number steps early_one.json)"
    expect_equal "checkpoints of $name" "$(cd $name/checkpoints && echo *)" "$(cd early_one/checkpoints && echo *)"
done

# Every holder of parameters writes its part; who goes on may have other ones.
parts()
{
    (cd "$1/checkpoints/step-$2.0001" && echo *)
}
train data parts --workers 2 --ps 3 --checkpoint-every 40 --steps 110
expect_equal "checkpoints" "$(json_number checkpoints parts.json)" 3
expect_equal "parts of 3 ps" "$(parts parts 000000000080)" \
    "$(echo manifest.json part-0000{0,1,2}-of-00003.safetensors)"
expect_equal "parts of allreduce" "$(ls early_all/checkpoints | tail -n 1 | sed 's/step-\(.*\)\..*/\1/' |
    while read -r step; do parts early_all "$step"; done)" "manifest.json part-00000-of-00001.safetensors"
train data whole3 --workers 2 --ps 3 --steps 140
for words in "--workers 2 --ps 1" "--workers 2" "--workers 3 --ps 2"; do
    read -ra words <<<"$words"
    rm -rf onward && cp -r parts onward
    train data onward "${words[@]}" --resume --steps 140
    case "${words[*]}" in
    "--workers 2"*) expect_same_bytes onward whole3 ;;
    *) expect_near onward whole3 ;;
    esac
    expect_equal "rows of ${words[*]} computed twice" "$(json_number rows_computed_twice onward.json)" 0
done
