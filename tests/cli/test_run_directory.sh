#!/bin/bash
# The run directory: who has it, what is in it that should not be, what the dead have left; and launchers that are none.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
mkdir tmp
export TMPDIR=$work/tmp # of Open MPI's session directories
host=$(hostname)

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1
words=(--data data --batch 100 --quiet)
endless=(--epochs 100000 --checkpoint-every 20)

has_checkpoint()
{
    has_ended "$job" && fail "the job has ended by itself"
    compgen -G "$1/checkpoints/step-*/manifest.json" >/dev/null
}

# ---- somebody has it ----
start_job "$paceline" train "${words[@]}" "${endless[@]}" --run "$work/busy"
wait_for has_checkpoint busy
for more in --resume --force; do
    expect_exit 64 "$paceline" train "${words[@]}" --run busy $more --deadline 0.2
    expect_error "busy: process $job on $host is still running in this directory: waiting for its end, at most 0.2 s" \
        "busy: process $job on $host is running in this directory: wait for its end, or give another --run"
done
expect_exit 64 "$paceline" train "${words[@]}" --run busy
expect_error "busy: a job is running in this directory (paceline top shows it): give another --run"
# Whoever waits goes on when the other has ended, however that ends.
"$paceline" train "${words[@]}" --run busy --force --steps 3 --json >waiting.out 2>waiting.err &
waiting=$!
wait_for grep -qs "waiting for its end" waiting.err
kill -KILL $job
wait $job 2>/dev/null
wait $waiting || fail "it has not waited for the directory: $(cat waiting.err)"
expect_equal "steps" "$(json_number steps waiting.out)" 3
[ ! -e busy/logs/holder ] || fail "a run that has ended has a holder"

# ---- the command is killed, and typed again at once ----
start_job "$paceline" train "${words[@]}" "${endless[@]}" --run "$work/killed" --workers 2 --ps 1
wait_for has_checkpoint killed
kill -KILL "$job"
run train "${words[@]}" --run "$work/killed" --workers 2 --ps 1 --force --steps 30
wait "$job" 2>/dev/null
no_sessions()
{
    [ -z "$(find tmp -name 'pid.*')" ]
}
wait_for no_sessions

# ---- all processes at once: what they leave in shared memory goes with the next start of the run ----
if is_open_mpi; then
    start_job "$paceline" train "${words[@]}" "${endless[@]}" --run "$work/swept" --workers 2 --ps 1
    wait_for has_checkpoint swept
    launcher=$(pgrep -P "$job")
    mapfile -t ranks < <(pgrep -P "$launcher")
    for process in "${ranks[@]}"; do
        grep -o '/dev/shm/vader_segment[^ ]*' "/proc/$process/maps"
    done | sort -u >segments
    [ -s segments ] || fail "the ranks have no shared memory"
    kill -KILL "$job" "$launcher" "${ranks[@]}"
    wait_for nothing_runs "$work/swept"
    wait "$job" 2>/dev/null
    [ -n "$(find tmp -name "pid.$launcher")" ] || fail "mpirun has left nothing"
    while read -r segment; do
        [ -e "$segment" ] || fail "$segment is gone already"
    done <segments
    run train "${words[@]}" --run "$work/swept" --exact --force --steps 10
    while read -r segment; do
        [ ! -e "$segment" ] || fail "left: $segment"
    done <segments
    [ -z "$(find tmp -name "pid.$launcher")" ] || fail "left: $(find tmp -name "pid.$launcher")"
fi

# ---- what is none of a run's files ----
run train "${words[@]}" --run whole --steps 10
for name in state.json summary.json config.yaml metrics.jsonl model.safetensors rows faults cluster.json; do
    rm -rf odd && cp -r whole odd
    rm -f odd/$name && mkdir odd/$name
    usage_error "odd/$name: not a file" "--force" -- train "${words[@]}" --run odd --resume --steps 20
    rm -r odd/$name && mkfifo odd/$name
    expect_exit 64 timeout -k 5 10 "$paceline" train "${words[@]}" --run odd --resume --steps 20
    expect_error "odd/$name: not a file"
done
rm -rf odd && cp -r whole odd
rm -r odd/checkpoints && touch odd/checkpoints
usage_error "odd/checkpoints: not a directory" "--force" -- train "${words[@]}" --run odd --resume --steps 20
run train "${words[@]}" --run odd --force --steps 10
rm odd/logs/paceline.log && mkfifo odd/logs/paceline.log
expect_exit 74 timeout -k 5 10 "$paceline" train "${words[@]}" --run odd --resume --steps 20
expect_error "odd/logs/paceline.log: "

# ---- state.json goes while the run is under way: it is written again ----
for how in rm "truncate -s 5" "mangle"; do
    mangle()
    {
        echo '{"incarnation": 7}' >"$1"
    }
    rm -rf state
    start_job "$paceline" train "${words[@]}" "${endless[@]}" --run state
    wait_for has_checkpoint state
    $how state/state.json
    is_anew()
    {
        has_ended "$job" && fail "the job has ended by itself"
        grep -qs '"incarnation": 1, .*"ending": "running"' state/state.json
    }
    wait_for is_anew
    kill -INT "$job"
    end_job 75
    expect_equal "ending" "$(json_text ending state/state.json)" "interrupted"
    run train "${words[@]}" --run state --resume --steps 1000000 --dry-run
done

# ---- launchers ----
for launcher in /bin/false "$(command -v true)"; do
    expect_exit 1 "$paceline" train "${words[@]}" --run none --workers 2 --mpirun "$launcher"
    expect_error "$launcher ended with exit code" "has started no process"
    ! grep -q "starting again" err || fail "a launcher that starts nothing is tried again"
done
mkdir -p path/launcher
for launcher in "/nowhere/mpirun there is no such file" "nowhere-mpirun there is no such program in the PATH" \
    "launcher it is a directory" "$work/path it is a directory"; do
    PATH=$PATH:$work/path expect_exit 1 "$paceline" train "${words[@]}" --run none --workers 2 --mpirun "${launcher%% *}"
    expect_error "cannot start ${launcher%% *}: ${launcher#* }"
done

# ---- what cannot be recorded is refused before anything is removed ----
cp -r data $'other\xff'
run train --data data --model logreg --run "$work/kept" --quiet
prints kept >before
expect_exit 64 "$paceline" train --data $'other\xff' --model logreg --run "$work/kept" --force --quiet
expect_error "the value of --data cannot be written: it is not UTF-8 text"
expect_equal "what --force has left" "$(prints kept)" "$(<before)"

# ---- records without end are read to a bound, which is said ----
truncate -s 100G kept/metrics.jsonl
run top kept --once
expect_text "metrics.jsonl: only the first 128 MiB are read"
run report kept -o kept.html
