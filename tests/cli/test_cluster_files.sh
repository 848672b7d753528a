#!/bin/bash
# Files of jobs of several processes: pipes as inputs, copies of data sets, preps that are killed: tests/cli/test_cluster_files.sh PROGRAM
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 500 --seed 5
mkfifo pipe

# A pipe is opened by the one that reads it, and by nobody else before.
start_job "$paceline" prep clicks --format criteo pipe -o "$work/piped" -n 2
cat clicks.tsv >pipe
end_job 0
run prep clicks --format criteo clicks.tsv -o plain
expect_equal "rows" "$("$paceline" inspect piped | grep rows)" "$("$paceline" inspect plain | grep rows)"

# ---- copies of the data set ----
# Each host may have its own; but one of another day is another data set, though of the same size.
mkdir -p here there
awk -F '\t' 'NR == 2 { $1 = 1 - $1 } 1' OFS='\t' clicks.tsv >corrected.tsv
run prep clicks clicks.tsv -o here/set --quiet
run prep clicks corrected.tsv -o there/set --quiet
words=(train --data set --run "$work/copies" --workers 2 --steps 3 --quiet)
expect_exit 64 timeout -k 5 "$seconds_max" "$mpirun" -n 1 -wdir "$work/here" "$paceline" "${words[@]}" : \
    -n 1 -wdir "$work/there" "$paceline" "${words[@]}"
expect_error "worker1 (rank 1, host $(hostname)) has another job: data-content=" "and the same data set"

# ---- an orphan ----

# has_opened: rank 0 has the pipe, so that everything else is there.
has_opened()
{
    [ -n "$(find "/proc/$(rank_with "--output=$work/orphan" 0)/fd" -lname "$work/pipe" 2>/dev/null)" ]
}

# is_complete: rank 0 has done its part, and the ranks wait to be ended.
is_complete()
{
    [ -e .orphan.partial/checksums.json ] && [ ! -e .orphan.partial/ranks ]
}

# MPICH's ranks do not get to their end without their launcher.
is_open_mpi || exit 0

# The command that was typed is killed while its launcher cannot do anything about it: what the ranks complete after that does not appear.
start_job "$paceline" prep clicks --format criteo pipe -o "$work/orphan" -n 2
exec 5>pipe
wait_for has_opened
launcher=$(pgrep -P "$job")
kill -STOP "$launcher"
kill -KILL "$job"
wait "$job" 2>/dev/null
cat clicks.tsv >&5
exec 5>&-
wait_for is_complete
[ ! -e orphan ] || fail "an orphan has published"
kill -CONT "$launcher"
wait_for nothing_prepares "$work/orphan"
[ ! -e orphan ] || fail "an orphan has published"
run prep clicks --format criteo clicks.tsv -o orphan -n 2
expect_error "removing what an interrupted prep left behind"
expect_equal "what is left" "$(find . -maxdepth 1 -name '.orphan*')" ""
