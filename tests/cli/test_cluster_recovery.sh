#!/bin/bash
# Jobs of several processes that lose one of them, or more: they recover, and end with the model that they would have
# had, or at least with every row applied.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
host=$(hostname)
steps=20000 # of a second or two: something can happen to it

run gen clicks -o clicks.tsv --rows 6000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1

# start RUN WORDS...: a job that ends by itself, until it has a checkpoint.
start()
{
    rm -rf "$1"
    start_job "$paceline" train --data "$work/data" --run "$work/$1" --batch 100 --log-every 500 --steps $steps \
        --checkpoint-every 1000 --json "${@:2}"
    wait_for has_checkpoint "$1"
    has_ended "$job" && fail "the job has ended by itself"
}

has_checkpoint()
{
    compgen -G "$1/checkpoints/step-*/manifest.json" >/dev/null
}

# recovered RUN LOST RESTARTS: the job ends well, after so many losses and restarts (a pattern); it has computed more
# than it had to, but not more than twice, and tells every step once.
recovered()
{
    end_job 0
    wait_for nothing_runs "$work/$1"
    expect_object
    expect_equal "workers lost" "$(json_number workers_lost)" "$2"
    [[ $(json_number restarts) =~ ^$3$ ]] || fail "$(json_number restarts) restarts instead of $3"
    expect_equal "samples" "$(json_number samples)" "$all_rows"
    expect_equal "more rows" "$(json_number rows_computed_twice)" $(($(json_number rows_computed) - all_rows))
    is_true "$(json_number rows_computed) < 2 * $all_rows" || fail "$(json_number rows_computed) rows were computed"
    ! grep -q '^paceline: error: ' err || fail "a job that recovered tells an error"
    sed -n 's/.*"kind":"step","t":\([^,]*\),"step":\([0-9]*\).*/\1 \2/p' "$1/metrics.jsonl" >records
    awk '$1 < time || $2 <= step { exit 1 } { time = $1; step = $2 }' records || fail "steps are told twice"
    expect_equal "last step" "$(tail -n 1 records | cut -d ' ' -f 2)" $steps
}

# expect_recovery SIGNAL RANK ROLE WORDS...: the job is started again, and ends with the model of `calm`.
expect_recovery()
{
    local hurt

    start hurt "${@:4}"
    hurt=$(rank_of "$work/hurt" "$2")
    kill "-$1" "$hurt"
    recovered hurt 0 1
    kill -KILL "$hurt" 2>/dev/null # it may be stopped still
    expect_error "paceline: warning: " "; starting again from step " "(restart 1, at most 3 in a row"
    is_open_mpi && expect_error "$3 (rank $2, host $host)"
    grep -q "warning .*starting again\|warning .*$3" hurt/logs/paceline.log || fail "the log does not tell who died"
    [[ " ${*:4} " = *async* ]] || cmp -s calm/model.safetensors hurt/model.safetensors || fail "another model"
}
run train --data "$work/data" --run "$work/calm" --batch 100 --steps $steps --workers 2 --json
all_rows=$(json_number samples)
words=(--workers 2 --ps 1 --evaluator --eval-every 2500)
expect_recovery KILL 0 chief "${words[@]}"
expect_recovery KILL 1 worker1 "${words[@]}"
expect_recovery KILL 2 ps0 "${words[@]}"
expect_recovery KILL 3 evaluator "${words[@]}"
expect_recovery KILL 1 worker1 --workers 2
expect_recovery KILL 3 ps0 --workers 3 --ps 1 --mode ps-async
expect_recovery STOP 2 ps0 --workers 2 --ps 1 --deadline 2

# A worker of an asynchronous job: the others go on, where the launcher lets them.
for mode in ps-async "ps-ssp --staleness 2"; do
    read -ra words <<<"$mode"
    start hurt --workers 3 --ps 2 --mode "${words[@]}"
    kill -KILL "$(rank_of "$work/hurt" 1)"
    if is_open_mpi; then
        recovered hurt 1 0
        expect_error "paceline: warning: worker1 (rank 1, host $host) was killed" "the others go on without it"
        expect_text '"lost": true'
    else
        recovered hurt 0 1
    fi
done

# The launcher; and ourselves, which only a new command can mend.
start hurt --workers 2 --ps 1
kill -KILL "$(pgrep -P $job)"
recovered hurt 0 1
expect_error "launcher" "; starting again from step "
cmp -s calm/model.safetensors hurt/model.safetensors || fail "another model after the launcher was killed"
start hurt --workers 2 --ps 1
kill -KILL $job
end_job 137
wait_for nothing_runs "$work/hurt"
start_job "$paceline" train --data "$work/data" --run "$work/hurt" --batch 100 --log-every 500 --steps $steps \
    --workers 2 --ps 1 --json --resume
recovered hurt 0 '[01]' # mpirun may have asked the ranks to stop, which is no loss
cmp -s calm/model.safetensors hurt/model.safetensors || fail "another model after --resume"
