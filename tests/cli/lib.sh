# Helpers for the command-line tests. Use: source "$(dirname "$0")/lib.sh"
#
# The program is $1. Each test works in $work, which is removed at the end. The first failure ends the test.
set -u

paceline=$(realpath "$1")
work=$(mktemp -d) || exit 1
seconds_max=60 # for anything that is waited for

# Whatever a failed test has left running goes first: only its command lines hold that path.
clean_up()
{
    local left

    for left in $(pgrep -f -- "--run[= ]$work/"); do
        kill -KILL "$left" 2>/dev/null
    done
    rm -rf "$work"
}
trap clean_up EXIT
for name in ${!PACELINE_*}; do
    unset "$name"
done

fail()
{
    echo "FAILED: $*" >&2
    echo "--- standard output" >&2
    head -n 40 "$work/out" >&2
    echo "--- standard error" >&2
    head -n 40 "$work/err" >&2
    exit 1
}

# expect_exit CODE COMMAND...: runs it; its output is in $work/out and $work/err afterwards.
expect_exit()
{
    local wanted=$1 got=0

    shift
    "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" -eq "$wanted" ] || fail "exit code $got instead of $wanted: $*"
}

# expect_text TEXT...: each occurs literally in what the last command wrote to standard output.
expect_text()
{
    for text in "$@"; do
        grep -qF -- "$text" "$work/out" || fail "not on standard output: $text"
    done
}

# expect_error TEXT...: each occurs literally in what the last command wrote to standard error.
expect_error()
{
    local text said # without a process for each: there are thousands

    IFS= read -r -d '' said <"$work/err"
    for text in "$@"; do
        [[ $said = *"$text"* ]] || fail "not on standard error: $text"
    done
}

# The last command wrote nothing to standard output / standard error.
expect_no_output()
{
    [ ! -s "$work/out" ] || fail "unexpected text on standard output"
}

expect_no_error()
{
    [ ! -s "$work/err" ] || fail "unexpected text on standard error"
}

# split_texts TEXT... -- WORDS...: they are in the arrays texts and words afterwards, which are the caller's.
split_texts()
{
    texts=()
    while [ "$1" != "--" ]; do
        texts+=("$1")
        shift
    done
    words=("${@:2}")
}

# usage_error TEXT... -- ARGUMENTS...: the program refuses with code 64, one line, nothing on standard output.
usage_error()
{
    local texts words

    split_texts "$@"
    expect_exit 64 "$paceline" "${words[@]}"
    expect_no_output
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not exactly one message"
    expect_error "paceline: error: " "${texts[@]}"
}

# run WORDS...: the program succeeds. A hang is a failure too: exit code 124.
run()
{
    expect_exit 0 timeout -k 5 "$seconds_max" "$paceline" "$@"
}

# expect_equal WHAT FOUND WANTED
expect_equal()
{
    [ "$2" = "$3" ] || fail "$1: $2 instead of $3"
}

# is_true EXPRESSION: in awk, of numbers.
is_true()
{
    awk "BEGIN { exit !($1) }"
}

# ---- JSON ----

# json_number NAME [FILE]: the last number of that name in a JSON text. json_text: the same for a text.
json_number()
{
    tr -d ' \n' <"${2:-$work/out}" | sed -n "s/.*[{,]\"$1\":\([-+.0-9eE]*\).*/\1/p"
}

json_text()
{
    tr -d ' \n' <"${2:-$work/out}" | sed -n "s/.*[{,]\"$1\":\"\([^\"]*\)\".*/\1/p"
}

# Standard output holds one JSON object and nothing else.
expect_object()
{
    awk '
        { text = text $0 "\n" }
        END {
            for (i = 1; i <= length(text); i++) {
                c = substr(text, i, 1)
                if (depth == 0 && started && c !~ /[ \n]/) exit 1
                if (depth == 0 && !started && c != "{") exit 1
                if (c == "{") { depth++; started = 1 }
                if (c == "}") depth--
            }
            exit !(started && depth == 0)
        }' "$work/out" || fail "standard output is not exactly one JSON object"
}

# ---- data sets ----

# prints DIRECTORY: of all its files.
prints()
{
    (cd "$1" && find . -type f -exec sha256sum {} + | sort -k 2)
}

# start_held_prep KIND INPUT NAME: a prep of two processes, both of which have written a part and wait until "hold" is gone.
start_held_prep()
{
    rm -f started-*
    : >hold
    start_job "$paceline" prep "$1" "$2" -o "$work/$3" -n 2 \
        --on-part 'echo >"started-${PACELINE_PART##*/}"; while [ -e hold ]; do sleep 0.02; done'
    wait_for test -e started-part-00000.h5
    wait_for test -e started-part-00004.h5
}

# stop_and_kill_prep START: START NAME begins a prep of two processes that waits; stopped, or with either of them killed, it
# keeps nothing.
stop_and_kill_prep()
{
    local rank process

    "$1" stopped
    kill -INT "$job"
    end_job 75
    expect_error "interrupted: nothing was kept"
    expect_nothing stopped
    for rank in 0 1; do
        "$1" killed
        process=$(rank_with "--output=$work/killed" $rank)
        [ -n "$process" ] || fail "no process is rank $rank"
        kill -KILL "$process"
        end_job 1
        expect_error "was killed by signal 9" "nothing was kept"
        expect_nothing killed
        wait_for nothing_prepares "$work/killed"
    done
}

# two_jobs_are_refused KIND INPUT: a prep whose ranks were started with different options, or inputs.
two_jobs_are_refused()
{
    local words=(prep "$1" "$2" -o none --seed 1) other

    for other in "--seed 2" "--holdout 0.5" other; do
        # shellcheck disable=SC2086 # it is an option and its value
        expect_exit 64 timeout -k 5 "$seconds_max" "$mpirun" -n 1 "$paceline" "${words[@]}" : \
            -n 1 "$paceline" "${words[@]}" $other
        expect_error "worker1 (rank 1, host $(hostname)) has another job: " "start all ranks with the same options"
        expect_nothing none
    done
    expect_error "inputs=$2:other there, inputs=$2 on the chief"
    timeout -k 5 "$seconds_max" "$mpirun" -n 1 "$paceline" "${words[@]}" --threads 1 : \
        -n 1 "$paceline" "${words[@]}" --threads 2 >"$work/out" 2>"$work/err" || fail "other threads are no other job"
    rm -r none
}

# expect_nothing NAME: neither a data set nor half of one.
expect_nothing()
{
    [ ! -e "$1" ] || fail "$1 is there"
    [ ! -e ".$1.partial" ] || fail ".$1.partial is left"
}

# nothing_trains DIRECTORY: no process of a run below it is left.
nothing_trains()
{
    ! pgrep -f -- "--run=$1/" >"$work/left"
}

# nothing_prepares OUTPUT: no process of a prep is left.
nothing_prepares()
{
    ! pgrep -f -- "--output=$1( |\$)" >"$work/left"
}

# ---- waiting ----

# wait_for COMMAND...: until it succeeds.
wait_for()
{
    local deadline=$((SECONDS + seconds_max))

    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "waited $seconds_max s for: $*"
        sleep 0.02
    done
}

has_ended()
{
    ! kill -0 "$1" 2>/dev/null
}

# catches PROCESS SIGNAL: it is the program, not the shell before it, and has a handler for the signal's number.
catches()
{
    local mask

    [ "/proc/$1/exe" -ef "$paceline" ] || return
    mask=$(sed -n 's/^SigCgt:\t//p' "/proc/$1/status" 2>/dev/null)
    [ -n "$mask" ] && [ $((0x$mask >> ($2 - 1) & 1)) -eq 1 ]
}

# ---- jobs of several processes ----

# Ranks are found by the path of their run directory, which must be an absolute one in $work.
mpirun=${MPIRUN:-mpirun}
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 OMPI_MCA_rmaps_base_oversubscribe=1
export OMPI_MCA_mpi_yield_when_idle=1

# is_open_mpi: else it is MPICH.
is_open_mpi()
{
    "$mpirun" --version 2>&1 | grep -qE 'Open MPI|OpenRTE'
}

# start_job WORDS...: in the background; its process is $job.
start_job()
{
    "$@" >"$work/out" 2>"$work/err" </dev/null &
    job=$!
}

# end_job CODES: the job ends, with one of these codes.
end_job()
{
    local got=0

    wait_for has_ended "$job"
    wait "$job" 2>/dev/null || got=$?
    [[ " $* " = *" $got "* ]] || fail "exit code $got instead of $*"
}

# trains RUN: it has written the record of a step.
trains()
{
    has_ended "$job" && fail "the job has ended by itself"
    grep -qs '"kind":"step"' "$1/metrics.jsonl"
}

# rank_of RUN RANK: its process, or nothing.
rank_of()
{
    rank_with "--run[= ]$1" "$2"
}

# rank_with OPTION RANK: the same, by an option (a pattern) that the job's processes have.
rank_with()
{
    local process

    for process in $(pgrep -f -- "$1( |\$)"); do
        if tr '\0' '\n' 2>/dev/null <"/proc/$process/environ" | grep -qxE "(OMPI_COMM_WORLD|PMI)_RANK=$2"; then
            echo "$process"
            return
        fi
    done
}

# nothing_runs RUN: neither ranks nor a launcher.
nothing_runs()
{
    ! pgrep -f -- "--run[= ]$1( |\$)" >"$work/left"
}

# ---- models ----

# train_refused CODE TEXT... -- WORDS...: training on "data" ends with that code and one message; no run appears.
train_refused()
{
    local texts words

    split_texts "${@:2}"
    expect_exit "$1" timeout -k 5 "$seconds_max" "$paceline" train --data data --run "$work/refused" --quiet "${words[@]}"
    expect_no_output
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not exactly one message"
    expect_error "paceline: error: " "${texts[@]}"
    [ ! -e refused/summary.json ] && [ ! -e refused/model.safetensors ] || fail "a refused run has a model"
    rm -rf refused
}

# model_part RUN NAME: the bytes of the model's tensors from that one on.
model_part()
{
    local header start

    header=$(od -An -tu8 -N 8 "$1/model.safetensors" | tr -d ' ')
    start=$(tail -c +9 "$1/model.safetensors" | head -c "$header" |
        sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*\),.*/\1/p")
    tail -c +$((8 + header + start + 1)) "$1/model.safetensors"
}

# distance RUN RUN: the largest difference of two weights over the largest weight. The bias lies behind the weights.
distance()
{
    local ids

    ids=$(($(model_part "$1" ids | wc -c) - $(model_part "$1" weight | wc -c)))
    cmp -s <(model_part "$1" ids | head -c $ids) <(model_part "$2" ids | head -c $ids) || { echo 1e9; return; }
    paste <(model_part "$1" weight | od -An -v -w4 -tf4) <(model_part "$2" weight | od -An -v -w4 -tf4) | awk '
        NF != 2 { print 1e9; exit }
        { d = $1 - $2; d = d < 0 ? -d : d; a = $1 < 0 ? -$1 : $1 }
        d > most { most = d }
        a > largest { largest = a }
        END { printf "%.3g\n", (largest > 0 ? most / largest : 1e9) }'
}

# expect_near RUN RUN: but for the order of the sums, the same model.
expect_near()
{
    is_true "$(distance "$1" "$2") <= 1e-5" || fail "the models of $1 and $2 differ by $(distance "$1" "$2")"
}
