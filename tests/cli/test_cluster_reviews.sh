#!/bin/bash
# prep reviews on several processes: the same bytes as on one, and nothing left of a job that has failed.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen reviews -o reviews.jsonl --rows 5000 --seed 3
head -n 800 reviews.jsonl >more.jsonl # texts that come twice
run gen reviews -o test.jsonl --rows 700 --seed 4
gzip -k test.jsonl
inputs=(reviews.jsonl more.jsonl)

# ---- the same bytes ----
run prep reviews "${inputs[@]}" -o one --test test.jsonl --threads 1 --json
cp out one.json
for n in 2 3; do
    run prep reviews "${inputs[@]}" -o "set$n" --test test.jsonl -n $n --memory 128M --json
    expect_object
    expect_equal "the set of $n processes" "$(prints "set$n")" "$(prints one)"
    expect_equal "processes" "$(json_number processes)" $n
    for name in train_rows test_rows train_positives words stop_words distinct_words vocabulary stored_words unknown_words \
        cut_texts bytes_read bytes_written; do
        expect_equal "$name of $n processes" "$(json_number $name)" "$(json_number $name one.json)"
    done
    is_true "$(json_number skew) < 1.3" || fail "the work of $n processes is uneven: skew $(json_number skew)"
    is_true "$(json_number bytes_spilled) > 0" || fail "processes exchange no rows"
done
run prep reviews "${inputs[@]}" -o twins --dedup --drop 3 --holdout 0.2 --truncate both --pad front --threads 2 --json
expect_equal "duplicates" "$(json_number duplicates)" "$(head -n 800 reviews.jsonl | grep -vc '"overall": 3.0')"
run prep reviews "${inputs[@]}" -o twins2 --dedup --drop 3 --holdout 0.2 --truncate both --pad front -n 3 --quiet
expect_equal "a set without duplicates" "$(prints twins2)" "$(prints twins)"
# A compressed file is read by one process, its rows are shuffled among all of them.
run prep reviews test.jsonl.gz reviews.jsonl -o zip1 --threads 1 --quiet
run prep reviews test.jsonl.gz reviews.jsonl -o zip2 -n 2 --quiet
expect_equal "a set of compressed files" "$(prints zip2)" "$(prints zip1)"
run prep reviews test.jsonl -o like1 --like one --threads 1 --quiet
run prep reviews test.jsonl -o like2 --like one -n 2 --quiet
expect_equal "a set like another" "$(prints like2)" "$(prints like1)"

# ---- under somebody else's mpirun ----
expect_exit 0 timeout -k 5 $seconds_max "$mpirun" -n 2 "$paceline" prep reviews "${inputs[@]}" -o bare --test test.jsonl --json
expect_object
expect_equal "the set of a bare mpirun" "$(prints bare)" "$(prints one)"
got=0
timeout -k 5 $seconds_max "$mpirun" -n 2 "$paceline" prep reviews reviews.jsonl -o none -n 3 >out 2>err || got=$?
[ $got -ne 0 ] || fail "2 processes for -n 3"
expect_error "2 processes were started, but --processes is 3"
expect_nothing none
two_jobs_are_refused reviews reviews.jsonl

# ---- failures ----
usage_error "already holds a data set" -- prep reviews reviews.jsonl -o one -n 2
head -n 4990 reviews.jsonl >broken.jsonl
echo '{"reviewText": "no rating"}' >>broken.jsonl
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep reviews broken.jsonl -o none -n 2
expect_error "worker1 (rank 1, host" "broken.jsonl:4991:" "nothing was kept"
[ "$(grep -c 'error:' err)" -eq 1 ] || fail "not exactly one error"
expect_nothing none
expect_exit 1 timeout -k 5 $seconds_max "$paceline" prep reviews reviews.jsonl -o none -n 2 --on-part 'exit 7'
expect_error "exit code 7"
expect_nothing none

# Each process has bad rows, and only together they are too many.
{ echo '{}' && cat reviews.jsonl && echo '{}'; } >two.jsonl
expect_exit 65 timeout -k 5 $seconds_max "$paceline" prep reviews two.jsonl -o none -n 2 --max-bad-rows 1
expect_error "2 bad rows, but --max-bad-rows is 1"
expect_nothing none
run prep reviews two.jsonl -o bad -n 2 --max-bad-rows 2 --json
expect_equal "bad rows" "$(json_number bad_rows)" 2

# ---- stopped and killed ----
start()
{
    start_held_prep reviews reviews.jsonl "$1"
}

stop_and_kill_prep start
start orphaned
kill -KILL "$job"
end_job 137
wait_for nothing_prepares "$work/orphaned"
[ ! -e orphaned ] || fail "a killed prep has left a data set"
rm hold
run prep reviews "${inputs[@]}" -o orphaned --test test.jsonl -n 2
expect_equal "the set after a kill" "$(prints orphaned)" "$(prints one)"
expect_equal "what is left" "$(find . -maxdepth 1 -name '.*partial' -o -maxdepth 1 -name '.*old')" ""
