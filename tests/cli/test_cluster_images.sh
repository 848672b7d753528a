#!/bin/bash
# prep images on several processes: the same bytes as on one, and nothing left of a job that has failed.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen images -o photos --rows 150 --classes 3 --size 48 --seed 2 --quiet
run gen images -o tests --rows 20 --classes 3 --size 48 --seed 3 --quiet

# ---- the same bytes ----
run prep images photos -o one --test tests --size 32 --threads 1 --json --quiet
cp out one.json
for n in 2 3; do
    run prep images photos -o "set$n" --test tests --size 32 -n $n --json
    expect_object
    expect_equal "the set of $n processes" "$(prints "set$n")" "$(prints one)"
    expect_equal "processes" "$(json_number processes)" $n
    for name in train_rows test_rows bad_rows classes height bytes_read bytes_written; do
        expect_equal "$name of $n processes" "$(json_number $name)" "$(json_number $name one.json)"
    done
done
run prep images photos -o threads --test tests --size 32 -n 2 --threads 2 --json --quiet
expect_equal "the set of 2 x 2 threads" "$(prints threads)" "$(prints one)"
expect_equal "threads" "$(json_number ranks)" 4

# Bad pictures, more parts than rows of a process, a compressed container.
class=$(ls photos | head -n 1)
for i in 1 2 3 4 5; do
    echo "no picture" >"photos/$class/bad$i.jpg"
done
run prep images photos -o bad1 --size 32 --parts 20 --holdout 0.3 --threads 1 --quiet
run prep images photos -o bad3 --size 32 --parts 20 --holdout 0.3 -n 3 --json --quiet
expect_equal "a set with bad pictures" "$(prints bad3)" "$(prints bad1)"
expect_equal "bad pictures" "$(json_number bad_rows)" 5
mkdir cifar
for label in 3 1 3 0 2 2 3; do
    printf "\\x0$label"
    head -c 3072 /dev/urandom
done | gzip >cifar/data_batch_1.bin.gz
run prep images cifar -o zip1 --threads 1 --quiet
run prep images cifar -o zip2 -n 2 --quiet
expect_equal "a set of a compressed file" "$(prints zip2)" "$(prints zip1)"
run prep images tests -o like1 --like one --quiet
run prep images tests -o like2 --like one -n 2 --quiet
expect_equal "a set like another" "$(prints like2)" "$(prints like1)"

# ---- under somebody else's mpirun ----
expect_exit 0 timeout -k 5 $seconds_max "$mpirun" -n 2 "$paceline" prep images photos -o bare --size 32 --parts 20 \
    --holdout 0.3 --json
expect_object
expect_equal "the set of a bare mpirun" "$(prints bare)" "$(prints bad1)"
two_jobs_are_refused images photos

# ---- failures ----
usage_error "already holds a data set" -- prep images photos -o one -n 2
expect_exit 66 "$paceline" prep images nowhere -o none -n 2
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep images photos -o none -n 2 --max-bad-rows 4
expect_error "bad" "--max-bad-rows" "nothing was kept"
[ "$(grep -c 'error:' err)" -eq 1 ] || fail "not exactly one error"
expect_nothing none
expect_exit 1 timeout -k 5 $seconds_max "$paceline" prep images photos -o none -n 2 --on-part 'exit 7'
expect_error "exit code 7"
expect_nothing none

# ---- stopped and killed ----
# start NAME: a prep of two processes, both of which have finished a part and wait.
start()
{
    rm -f started-*
    : >hold
    start_job "$paceline" prep images photos -o "$work/$1" --size 32 --parts 20 --holdout 0.3 -n 2 \
        --on-part 'echo >"started-${PACELINE_PART##*/}"; while [ -e hold ]; do sleep 0.02; done'
    wait_for test -e started-part-00000.h5
    wait_for test -e started-part-00010.h5
}

stop_and_kill_prep start
rm hold
run prep images photos -o killed --size 32 --parts 20 --holdout 0.3 -n 2 --quiet
expect_equal "the set after a kill" "$(prints killed)" "$(prints bad1)"
expect_equal "what is left" "$(find . -maxdepth 1 -name '.*partial' -o -maxdepth 1 -name '.*old')" ""
