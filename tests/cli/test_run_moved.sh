#!/bin/bash
# A run directory that is moved, removed or replaced while a job runs in it: the job ends, and whatever has the name now is
# not touched.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1
words=(--data data --batch 100 --quiet)
endless=(--epochs 100000 --checkpoint-every 20)

# begin RUN [WORDS...]: a job that does nothing for a moment, before it saves anything.
begin()
{
    start_job "$paceline" train "${words[@]}" "${endless[@]}" --inject stall:chief=2s@step=10 --run "$work/$1" "${@:2}"
    wait_for grep -qs stall "$1/faults"
}

# another RUN: a whole job of another seed, in whatever has that name now; its files are in $whole.
another()
{
    "$paceline" train "${words[@]}" --seed 9 --steps 30 --checkpoint-every 10 --run "$work/$1" >another.out 2>&1 ||
        fail "the second job: $(cat another.out)"
    whole=$(prints "$1")
}

expect_untouched()
{
    expect_equal "files of the second job" "$(prints "$1")" "$whole"
    [ "$(find "$1" | grep -c tmp-)" -eq 0 ] || fail "something is left in $1"
}

# ---- moved: nothing appears where it was, and it goes on where it is ----
begin moved
mv moved elsewhere
end_job 74
expect_error "$work/moved: is not the directory of this run any more: it was moved, removed or replaced while the job ran" \
    "the run is in $work/elsewhere now, and --resume goes on with it there"
[ ! -e moved ] || fail "something was written to where the run was"
[ ! -e elsewhere/summary.json ] || fail "it has a summary"
start_job "$paceline" train "${words[@]}" "${endless[@]}" --run "$work/elsewhere" --resume
wait_for grep -qs "\"incarnation\":2" elsewhere/metrics.jsonl
kill -INT "$job"
end_job 75

# ---- a second job has the name, however that came; the first stands still meanwhile ----
for way in moved removed emptied; do
    begin "$way"
    kill -STOP "$job"
    case $way in
    moved) mv moved away ;;
    removed) rm -r removed ;;
    emptied) rm -r emptied/* ;;
    esac
    another "$way"
    kill -CONT "$job"
    end_job 74
    expect_error "$work/$way: is not the directory of this run any more"
    expect_untouched "$way"
done

# ---- a log that is removed is no reason to end ----
start_job "$paceline" train "${words[@]}" --steps 60 --checkpoint-every 10 --inject stall:chief=0.5s@step=20 --run "$work/logless"
wait_for grep -qs stall logless/faults
rm logless/logs/paceline.log
end_job 0
[ -e logless/summary.json ] || fail "it has no summary"

# ---- a job of several processes is neither started again in another run, nor ended by its summary ----
begin several --workers 2
kill -STOP "$job"
kill -KILL "$(rank_of "$work/several" 0)"
wait_for flock -n several/logs/paceline.log true
mv several away-too
another several
kill -CONT "$job"
end_job 74
expect_error "$work/several: holds another run now"
expect_no_output
expect_untouched several
