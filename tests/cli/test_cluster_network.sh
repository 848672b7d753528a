#!/bin/bash
# paceline plan --hosts: the network between hosts is measured, and they are what there is room on; plan --ping says it alone.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
run gen clicks -o clicks.tsv --rows 20k
run prep clicks clicks.tsv -o data --holdout 0.1
run train --data data --model logreg --run steps --mode ps-sync --workers 1 --ps 0 --batch 100 --epochs 3
printf 'localhost slots=2\n127.0.0.1 slots=1\n' >two # two names of one machine
echo "localhost slots=3" >one

# ---- a plan ----
run plan --run steps --workers 2,3,4 --ps 0 --mode ps-sync --hosts two
expect_error "between machines (measured)" "3 slots for 4 processes: 1 are missing"
expect_text "--hosts=two"
expect_equal "predictions" "$(grep -c '^[> ] *ps-sync ' out)" 2
run plan --run steps --workers 2 --net 100mbit --hosts two --json
expect_object
grep -qE '"bytes_per_second":12500000,"bytes_by":"given","latency_seconds":[0-9.e-]+,"latency_by":"measured"' out ||
    fail "the network is not that which was given, and measured"

# ---- nobody is asked for what is given, or where there is one host; who cannot be asked is a warning ----
run plan --run steps --workers 2 --net 100mbit --latency 1ms --hosts two --mpirun "$work/nowhere"
expect_error "0.1 Gbit/s and 1e+03 us between machines (given)"
[[ $(<err) != *"is not measured"* ]] || fail "mpirun was looked for"
run plan --run steps --workers 2 --hosts one --mpirun "$work/nowhere"
expect_error "between machines (assumed)"
run plan --run steps --workers 2 --hosts two --mpirun "$work/nowhere"
expect_error "warning: the network between the hosts of two is not measured" "nowhere" "between machines (assumed)"
# A launcher that ends without a word is no network.
run plan --run steps --workers 2 --hosts two --mpirun true
expect_error "warning: the network between the hosts of two is not measured" "between machines (assumed)"
expect_exit 64 "$paceline" plan --run steps --hosts two --machines 2
expect_error "--hosts and --machines"
expect_exit 66 "$paceline" plan --run steps --hosts nowhere

# ---- who is told to stop ends what was started, and leaves nothing ----
# A launcher that says which it is, and then starts nothing until it is asked to end.
cat >waiting <<END
#!/bin/sh
case "\$*" in *--version*) exec "$mpirun" "\$@" ;; esac
echo >"$work/started"
exec sleep 1000
END
chmod +x waiting
for words in "plan --run steps --workers 2 --hosts two" "plan --ping --hosts two"; do
    rm -f started
    # shellcheck disable=SC2086 # words are words
    "$paceline" $words --mpirun "$work/waiting" >out 2>err </dev/null &
    job=$!
    wait_for test -e started
    kill -TERM $job
    code=0
    wait $job || code=$?
    expect_equal "exit code of $words" $code 75
    expect_error "interrupted while the network was measured"
done

# ---- a job that asks for workers ----
run train --data data --model logreg --workers auto --hosts two --run "$work/auto" --dry-run
expect_error "--workers auto: --mode"
[[ $(<err) != *"is not measured"* ]] || fail "the network is assumed"

# ---- by itself ----
run plan --ping --hosts two
expect_text "speed of a link" "Gbit/s" "latency" "us"
run plan --ping --hosts two --json
expect_object
grep -q '"bytes_by":"measured"' out || fail "no network"
expect_exit 0 "$mpirun" -n 3 "$paceline" plan --ping --json
expect_object
usage_error "--hosts is missing" -- plan --ping
usage_error "--ping measures what --net and --latency give" -- plan --ping --hosts two --latency 50us
usage_error "one: one host has no network to others" -- plan --ping --hosts one
expect_exit 64 "$mpirun" -n 1 "$paceline" plan --ping
expect_error "1 process was started"
expect_exit 1 "$paceline" plan --ping --hosts two --mpirun "$work/nowhere"
expect_error "nowhere"

echo "test_cluster_network: passed"
