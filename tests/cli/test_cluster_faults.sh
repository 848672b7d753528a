#!/bin/bash
# Jobs of several processes that go wrong, and are not started again: all of it ends, soon, with a code other than 0,
# and the last words name who, where and why.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# MPI leaks at exit. A process that dies in the middle of MPI is what is tested here, not a report of it.
export ASAN_OPTIONS=detect_leaks=0
host=$(hostname)
soon=8 # seconds that an end may take beyond a deadline: fewer than the supervisor gives to those that hang
bounded=(timeout -k 5 "$seconds_max") # a hang is a failure too: exit code 124

# last_words PATTERN...: the last line of paceline's on standard error is an error and matches each extended pattern.
last_words()
{
    grep '^paceline: ' err | tail -n 1 >last
    grep -q '^paceline: error: ' last || fail "the last words are no error: $(cat last)"
    for pattern in "$@"; do
        grep -qE -- "$pattern" last || fail "not in the last words: $pattern: $(cat last)"
    done
}

# ended RUN: nothing of it is left running, and it does not look finished.
ended()
{
    wait_for nothing_runs "$work/$1"
    [ ! -e "$1/summary.json" ] && [ ! -e "$1/model.safetensors" ] || fail "a failed run has a summary"
}

# refused CODE PATTERN... -- WORDS...: train ends with that code and those words, without a run directory.
refused()
{
    local texts words

    split_texts "${@:2}"
    expect_exit "$1" "${bounded[@]}" "$paceline" train --data "$work/data" --run "$work/refused" "${words[@]}"
    expect_no_output
    last_words "${texts[@]}"
    ended refused
    [ ! -e refused ] || fail "a run directory is left"
}

# start RUN WORDS...: a job that would go on for days, until it trains.
start()
{
    rm -rf "$1"
    start_job "$paceline" train --data "$work/data" --run "$work/$1" --batch 100 --log-every 10 --epochs 1000000 \
        --quiet "${@:2}"
    wait_for trains "$1"
    started=$SECONDS
}

# expect_soon RUN [SECONDS]: nothing of it is left so many seconds after something has happened to it.
expect_soon()
{
    ended "$1"
    is_true "$((SECONDS - started)) <= ${2:-0} + $soon" || fail "it took $((SECONDS - started)) s to end"
}

# fill FILE FIRST COUNT: overwrites bytes with 0xff.
fill()
{
    head -c "$3" /dev/zero | tr '\0' '\377' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

run gen clicks -o clicks.tsv --rows 6000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1

# ---- what cannot be ----
refused 64 'mode local' '--ps' -- --mode local --ps 1
refused 64 'mode local' '--workers' -- --mode local --workers 2
refused 64 'allreduce' '--ps' -- --mode allreduce --workers 2 --ps 1
refused 64 'ps-ssp' '--staleness' -- --mode ps-ssp --workers 2
refused 64 '--staleness' 'ps-ssp' -- --mode ps-async --workers 2 --staleness 1
refused 64 '--early-stop' '--evaluator' -- --workers 2 --evaluator --eval-every 10 --early-stop 2
refused 64 '--threads' '--workers 4' -- --workers 2 --threads 2
refused 64 '--force' '--resume' -- --workers 2 --force --resume
refused 64 '--workers' -- --workers 0
refused 66 "missing: no such data set" -- --workers 2 --data "$work/missing"
refused 66 "refused" -- --workers 2 --resume
refused 1 'nothing-there' -- --workers 2 --mpirun nothing-there

# Hosts.
# bad_hosts CODE TEXT PATTERN...
bad_hosts()
{
    printf '%b' "$2" >hosts
    refused "$1" "${@:3}" -- --workers 2 --ps 1 --hosts hosts
}
bad_hosts 64 '# nothing\n' 'hosts'
bad_hosts 64 'localhost slots=3\nlocalhost slots=1\n' 'hosts:2' 'localhost'
bad_hosts 64 'localhost slots=none\n' 'hosts:1' 'slots' 'none'
bad_hosts 64 '\nlocalhost slots=3 cores=2\n' 'hosts:2' 'cores'
bad_hosts 64 'localhost slots=3 roles=worker,boss\n' 'hosts:1' 'boss'
bad_hosts 64 'localhost slots=2\n' '1'
bad_hosts 64 'localhost slots=4 roles=worker\n' 'ps'
rm hosts
refused 66 'hosts' 'No such file' -- --workers 2 --hosts hosts
echo 'host-without-address.invalid slots=2' >hosts
refused 1 'chief on host-without-address.invalid' -- --workers 2 --hosts hosts --deadline 1

# A run that is there.
run train --data data --run "$work/there" --workers 2 --steps 10
before=$(cd there && sha256sum ./*.*)
expect_exit 64 "$paceline" train --data data --run "$work/there" --workers 2 --ps 1
last_words 'there: already holds a run' '--resume' '--force'
[ "$(cd there && sha256sum ./*.*)" = "$before" ] || fail "the run that was there has changed"

# More or fewer processes than roles.
for ranks in 1 4; do
    expect_exit 64 "${bounded[@]}" "$mpirun" -n $ranks "$paceline" train --data data --run "$work/refused" \
        --workers 2 --ps 1
    expect_equal "errors of $ranks ranks" "$(grep -c '^paceline: error: ' err)" 1
    last_words "^paceline: error: $ranks process" '2 workers, 1 ps' 'are 3'
    ended refused
    [ ! -e refused ] || fail "a run directory is left"
done

# ---- a data set that is damaged in the middle ----
# Someone meets it at some step: by the seed the chief or worker1.
mkdir damaged
cp data/* damaged
fill damaged/part-00003.h5 $(($(stat -c %s data/part-00003.h5) / 2)) 64
damaged=("${bounded[@]}" "$paceline" train --data damaged --run "$work/damaged_run" --batch 1000 --force)
met=
for seed in 1 2 3 4 5 6 7 8; do
    expect_exit 65 "${damaged[@]}" --workers 2 --ps 1 --seed $seed
    last_words "(chief \(rank 0|worker1 \(rank 1), host $host\), step [0-9]+: .*damaged/part-00003.h5: damaged"
    ended damaged_run
    met="$met$(sed -n 's/^paceline: error: \([a-z0-9]*\) .*/\1/p' last)@$(sed -n 's/.* step \([0-9]*\): .*/\1/p' last) "
    case $met in *chief*worker1* | *worker1*chief*) break ;; esac
done
case $met in *chief*worker1* | *worker1*chief*) ;; *) fail "not both workers met the damage: $met" ;; esac
echo "$met" | grep -q '@[1-9]' || fail "the damage was met at step 0: $met"
for mode in allreduce "ps-async --ps 1"; do
    read -ra words <<<"$mode"
    expect_exit 65 "${damaged[@]}" --workers 2 --mode "${words[@]}"
    last_words "(chief|worker1) \(rank [01], host $host\), step [0-9]+: .*damaged/part-00003.h5: damaged"
    ended damaged_run
done
expect_exit 65 "${bounded[@]}" "$mpirun" -n 3 "$paceline" train --data damaged --run "$work/damaged_run" \
    --batch 100 --workers 2 --ps 1 --force
last_words 'damaged/part-00003.h5: damaged'
ended damaged_run

# ---- killed ----
# expect_killed RANK ROLE WORDS...
expect_killed()
{
    start killed --max-restarts 0 "${@:3}"
    kill -KILL "$(rank_of "$work/killed" "$1")"
    end_job 1
    expect_soon killed
    last_words 'killed' '--resume goes on from (the beginning|step [0-9]+)$'
    expect_equal "restarts" "$(grep -c 'starting again' err)" 0
    if is_open_mpi; then
        last_words "error: $2 \(rank $1, host $host\) was killed by signal 9"
    elif ! grep -q 'one that it ended itself' last; then # MPICH does not always know who was the first
        last_words "\b$2\b.*killed by signal 9|killed by signal 9.*\b$2\b"
    fi
}
words=(--workers 2 --ps 1 --evaluator --eval-every 20)
expect_killed 0 chief "${words[@]}"
expect_killed 1 worker1 "${words[@]}"
expect_killed 2 ps0 "${words[@]}"
expect_killed 3 evaluator "${words[@]}"
expect_killed 1 worker1 --workers 2

# The launcher, which mpirun is to us; and ourselves.
start killed --max-restarts 0 --workers 2 --ps 1
kill -KILL "$(pgrep -P $job)"
end_job 1
expect_soon killed
last_words 'launcher' 'signal 9'
start killed --workers 2 --ps 1
kill -KILL $job
end_job 137
expect_soon killed

# ---- stopped: no sign of life ----
# expect_silence RANK ROLE WORDS...
expect_silence()
{
    local stopped

    start silent --max-restarts 0 --deadline 2 "${@:3}"
    stopped=$(rank_of "$work/silent" "$1")
    kill -STOP "$stopped"
    end_job 1
    kill -KILL "$stopped" 2>/dev/null
    expect_soon silent 2
    last_words "step [0-9]+: $2 \(rank $1, host $host\) has given no sign of life for [2-9]"
}
expect_silence 1 worker1 --workers 2 --ps 1
expect_silence 2 ps0 --workers 2 --ps 1
expect_silence 0 chief --workers 2
expect_silence 1 worker1 --workers 3 --batch 3000 # messages that MPI does not keep: they wait for the receiver
expect_silence 1 worker1 --workers 2 --mode ps-async --checkpoint-every 50

# ---- again and again ----
# A launcher that dies before anything has begun; and somebody who wants to stop meanwhile.
cat >dies <<END
#!/bin/bash
[ "\$1" = --version ] && exec $mpirun --version
echo . >>"$work/tries"
kill -KILL \$\$
END
chmod +x dies
expect_exit 1 "${bounded[@]}" "$paceline" train --data data --run "$work/refused" --workers 2 --mpirun "$work/dies" \
    --max-restarts 2
expect_equal "tries" "$(wc -l <tries)" 3
last_words 'launcher' 'signal 9|exit code 137' 'gave up after 2 restarts without a new checkpoint'
ended refused
start_job "${bounded[@]}" "$paceline" train --data data --run "$work/refused" --workers 2 --mpirun "$work/dies" \
    --max-restarts 1000
wait_for grep -q 'restart 3,' err
kill -TERM "$(pgrep -P $job)"
end_job 1 75
grep -q 'restart 9,' err && fail "it was not stopped"
ended refused
