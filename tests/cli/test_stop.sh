#!/bin/bash
# What is said to whoever asks a process to stop: what is true of the signal, on a line of its own.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 300 --seed 5 --quiet
run prep clicks clicks.tsv -o data --parts 1 --quiet
run train --data data --model logreg --run run --quiet

# begin_hung RUN: training that waits for a disk for ever.
begin_hung()
{
    start_job env LD_PRELOAD="$SHIM" SHIM_FILES=read:data/part-:1000s "$paceline" train --data data --model logreg \
        --run "$work/$1" --deadline 1
    wait_for catches "$job" 15
}

# ---- a second Ctrl-C ends the process, and says so ----
begin_hung twice
kill -INT "$job"
wait_for grep -qF "under way; Ctrl-C again ends at once, without one" err
kill -INT "$job"
end_job 130
expect_equal "its last line" "$(tail -n 1 err)" "ended at once, without one"

# ---- other signals are not answered by a key that nobody pressed ----
for signal in TERM HUP; do
    begin_hung $signal
    kill -$signal "$job"
    wait_for grep -qF "under way; ends in 3 s at the latest" err
    kill -KILL "$job"
    end_job 137
    ! grep -qF "Ctrl-C" err || fail "SIG$signal is answered as Ctrl-C"
done

# ---- Ctrl-C where nothing is to be kept: on a terminal the progress line is ended ----
hung_eval="env --default-signal=INT LD_PRELOAD=$SHIM SHIM_FILES=read:data/part-:1000s $paceline eval --run $work/run --data $work/data"

# finds_eval: its process is $process.
finds_eval()
{
    process=$(pgrep -f -- "^$paceline eval --run $work/run --data $work/data\$") && catches "$process" 2
}
start_job env TERM=vt100 script -qec "$hung_eval" typescript
wait_for finds_eval
kill -INT "$process"
end_job 130
grep -q $'\033\\[Kinterrupted\r$' typescript || fail "an eval on a terminal ended without a word"
