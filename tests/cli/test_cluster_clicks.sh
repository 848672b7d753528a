#!/bin/bash
# prep clicks on several processes: the same bytes as on one, and nothing left of a job that has failed.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

for format in criteo svmlight tfrecord; do
    run gen clicks -o "$format.a" --rows 6000 --seed 3 --format $format --quiet
    run gen clicks -o "$format.b" --rows 900 --seed 4 --format $format --quiet
done
gzip -k criteo.b
# Rows of any length, some without features, with ids that no array holds, some of them twice.
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 3000; i++) {
        printf "%d", rand() < 0.3
        for (n = int(rand() * 12); n > 0; n--)
            printf " %.0f:%d", 10 ^ (rand() * 12), 1 + int(rand() * 3)
        print ""
    }
}' >far.svm

# ---- the same bytes ----
run prep clicks criteo.a -o one --test criteo.b --threads 1 --json
cp out one.json
for n in 1 2 3; do
    run prep clicks criteo.a -o "set$n" --test criteo.b -n $n --memory 128M --json
    expect_object
    expect_equal "the set of $n processes" "$(prints "set$n")" "$(prints one)"
    expect_equal "processes" "$(json_number processes)" $n
    for name in train_rows test_rows bad_rows bytes_read bytes_written features features_seen unseen_entries \
        positive_rate; do
        expect_equal "$name of $n processes" "$(json_number $name)" "$(json_number $name one.json)"
    done
    is_true "$(json_number skew) < 1.2" || fail "the work of $n processes is uneven: skew $(json_number skew)"
    is_true "$(json_number bytes_spilled) > 0 || $n == 1" || fail "processes exchange no rows"
done
run prep clicks criteo.a -o threads --test criteo.b -n 2 --threads 2 --json --quiet
expect_equal "the set of 2 x 2 threads" "$(prints threads)" "$(prints one)"
expect_equal "threads" "$(json_number ranks)" 4

# So many that one of them numbers the ids of all.
run prep clicks criteo.a -o nine --test criteo.b -n 9 --quiet
expect_equal "the set of 9 processes" "$(prints nine)" "$(prints one)"

# same_set NAME WORDS...: made by one process and by three.
same_set()
{
    run prep clicks "${@:2}" -o "$1.1" --threads 1 --quiet
    run prep clicks "${@:2}" -o "$1.3" -n 3 --quiet
    expect_equal "the set $1" "$(prints "$1.3")" "$(prints "$1.1")"
}

same_set valued criteo.a criteo.b --numeric values --holdout 0.2 --parts 3
# A compressed file is read by one process, its rows are shuffled among all of them.
same_set zipped criteo.b.gz criteo.a --holdout 0.1
same_set svmlight svmlight.a svmlight.b --holdout 0.1 --parts 5
same_set tfrecord tfrecord.a --test tfrecord.b
same_set far far.svm --format svmlight --holdout 0.3 --parts 7 --memory 128M
run train --data one --model logreg --run "$work/run" --quiet
same_set model criteo.b --like run

# ---- under somebody else's mpirun ----
# bare WORDS...: prep clicks in two processes.
bare()
{
    timeout -k 5 $seconds_max "$mpirun" -n 2 "$paceline" prep clicks "$@"
}

expect_exit 0 bare criteo.a -o bare --test criteo.b --json
expect_object
expect_equal "the set of a bare mpirun" "$(prints bare)" "$(prints one)"
got=0
bare criteo.a -o none -n 3 >out 2>err || got=$?
[ $got -ne 0 ] || fail "2 processes for -n 3"
expect_error "2 processes were started, but --processes is 3"
expect_nothing none
two_jobs_are_refused clicks criteo.a

# ---- failures ----
usage_error "already holds a data set" -- prep clicks criteo.a -o one -n 2
usage_error "standard input" "--processes" -- prep clicks - --format criteo -o none -n 2
expect_exit 66 "$paceline" prep clicks nowhere --format criteo -o none -n 2
head -n 5990 criteo.a >broken.tsv
printf '7\tno\tnumbers\n' >>broken.tsv
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep clicks broken.tsv --format criteo -o none -n 2
expect_error "worker1 (rank 1, host" "broken.tsv:5991:" "nothing was kept"
[ "$(grep -c 'error:' err)" -eq 1 ] || fail "not exactly one error"
expect_nothing none
expect_exit 1 timeout -k 5 $seconds_max "$paceline" prep clicks criteo.a -o none -n 2 --on-part 'exit 7'
expect_error "exit code 7"
expect_nothing none
: >empty
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep clicks empty --format criteo -o none -n 2
expect_error "empty: no rows" "nothing was kept"
expect_nothing none

# Each process has bad rows, and only together they are too many.
{ echo bad && cat criteo.a && echo bad; } >two.tsv
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep clicks two.tsv --format criteo -o none -n 2 --max-bad-rows 1
expect_error "2 bad rows, but --max-bad-rows is 1"
expect_nothing none
run prep clicks two.tsv --format criteo -o bad -n 2 --max-bad-rows 2 --json
expect_equal "bad rows" "$(json_number bad_rows)" 2

# ---- every part, once ----
run prep clicks criteo.a -o told --test criteo.b -n 3 --quiet --on-part 'echo "${PACELINE_PART##*/}" >>parts'
expect_equal "parts that the command has seen" "$(sort parts | tr '\n' ' ')" "$(cd told && echo part-* '')"

# ---- stopped and killed ----
start()
{
    start_held_prep clicks criteo.a "$1"
}

stop_and_kill_prep start
rm hold
run prep clicks criteo.a -o killed --test criteo.b -n 2 --quiet
expect_equal "the set after a kill" "$(prints killed)" "$(prints one)"
expect_equal "what is left" "$(find . -maxdepth 1 -name '.*partial' -o -maxdepth 1 -name '.*old')" ""

# ---- what each process would see otherwise ----
mkdir here there
head -n 200 criteo.a >here/in
head -n 100 criteo.a >there/in
ranks_see_others()
{
    timeout -k 5 $seconds_max "$mpirun" -wdir "$work/here" -n 1 "$paceline" prep clicks in -o "$work/mixed" \
        : -wdir "$work/there" -n 1 "$paceline" prep clicks in -o "$work/mixed"
}
expect_exit 64 ranks_see_others
expect_error "other inputs"
[ ! -e mixed ] || fail "a data set of two inputs was made"
usage_error "pipes of the shell" -- prep clicks criteo.a /dev/fd/63 -o mixed -n 2
