#!/bin/bash
# Restarts: a job that is lost again and again ends, although it writes a checkpoint each time, one that was damaged and is no
# progress; one that MPI refuses is not started again; and one whose program was replaced goes on with what took its place.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1

# Each start goes to step 25, where worker1 is killed; the pause before lets the checkpoint of step 20 be whole, and it is
# damaged. So each but the first begins at step 10.
faults=
for ((i = 0; i < 4; i++)); do
    faults+=corrupt-checkpoint@step=20,stall:worker1=0.4s@step=22,kill:worker1@step=25,
done
expect_exit 1 timeout -k 5 "$seconds_max" "$paceline" train --data data --run "$work/lost" --workers 2 --batch 100 --steps 50 \
    --checkpoint-every 10 --max-restarts 1 --inject "${faults%,}" --quiet
expect_error "gave up after 1 restart without a new checkpoint" "trying the one before"
expect_equal "starts" "$(json_number incarnation lost/state.json)" 2

# ---- what MPI refuses from the beginning is not tried again ----
if [[ $("$MPIRUN" --version) == *"Open MPI"* ]]; then
    expect_exit 1 env OMPI_MCA_btl=nonsense timeout -k 5 "$seconds_max" "$paceline" train --data data --run "$work/refused" --workers 2
    expect_error "before training began"
    ! grep -q "starting again" err || fail "it was started again"
fi

# ---- the program was replaced by another build while the job ran: restarts use that ----
mkdir bin
cp "$paceline" bin/copy
start_job bin/copy train --data data --run "$work/rebuilt" --workers 2 --batch 100 --steps 50 --checkpoint-every 10 \
    --inject stall:worker1=0.5s@step=22,kill:worker1@step=25 --quiet
wait_for grep -qs stall rebuilt/faults
cp "$paceline" bin/new
mv bin/new bin/copy
end_job 0
expect_error "starting again from"
expect_equal "starts" "$(json_number incarnation rebuilt/state.json)" 2
