# Helpers for the tests in which processes die. Use: source "$(dirname "$0")/lib.sh"
#
# The job that is killed has 2 or 3 workers and, but for some, an evaluator. It trains 40 passes over a few thousand
# rows: about a second without faults, so that most of the time goes into starting again. In the modes rnn, rnn-ps and
# rnn-merging the rows are as many texts, and the model is a tiny network, in ngrams-merging logreg; in cnn and cnn-ps they are a tenth as many pictures, and
# everything is a tenth as long; in fm and fm-ps it is a factorization machine, in the others logreg, on clicks.
# shellcheck source=../cli/lib.sh
source "$(dirname "${BASH_SOURCE[0]}")/../cli/lib.sh"
cd "$work" || exit 1

export LC_ALL=C ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
mkdir tmp
export TMPDIR=$work/tmp # Open MPI keeps its session directories there: what is left in it is ours

modes=(allreduce sync sync-ps async async-ps ssp-ps merging fm fm-ps rnn rnn-ps rnn-merging ngrams-merging cnn cnn-ps)
network="--model rnn --embed 2 --hidden 2 --clip 0"
eyes="--model cnn --width 0.1"
pairs="--model fm --factors 2"
declare -A mode_words=(
    [allreduce]="--mode allreduce --workers 2"
    [sync]="--mode ps-sync --workers 2 --ps 0"
    [sync-ps]="--mode ps-sync --workers 2 --ps 1"
    [async]="--mode ps-async --workers 2 --ps 0"
    [async-ps]="--mode ps-async --workers 3 --ps 1"
    [ssp-ps]="--mode ps-ssp --staleness 2 --workers 3 --ps 1"
    [merging]="--mode local-sgd --workers 2 --exchange 5000" # four flushes in a pass: where it scores and saves
    [fm]="--mode allreduce --workers 2 $pairs"
    [fm-ps]="--mode ps-sync --workers 2 --ps 1 $pairs"
    [rnn]="--mode allreduce --workers 2 $network"
    [rnn-ps]="--mode ps-sync --workers 2 --ps 1 $network"
    [rnn-merging]="--mode local-sgd --workers 2 --exchange 2500 --outer-momentum 0.3 $network"
    [ngrams-merging]="--mode local-sgd --workers 2 --exchange 5000 --model logreg --ngram 1"
    [cnn]="--mode allreduce --workers 2 $eyes"
    [cnn-ps]="--mode ps-sync --workers 2 --ps 1 $eyes"
)
batch=100 epochs=40
outlives=no # does Open MPI start it? Only then a job goes on without a worker
! is_open_mpi || outlives=yes

# rank_in MODE ROLE
rank_in()
{
    local workers=2 servers=0

    case $1 in
    async-ps | ssp-ps) workers=3 servers=1 ;;
    sync-ps | fm-ps | rnn-ps | cnn-ps) servers=1 ;;
    esac
    case $2 in
    chief) echo 0 ;;
    worker1) echo 1 ;;
    ps0) echo $workers ;;
    evaluator) echo $((workers + servers)) ;;
    esac
}

# make_data [ROWS]: $work/data, $work/texts of as many rows, and $work/pictures of a tenth of them.
make_data()
{
    run gen images -o drawn --rows $((${1:-20000} / 10)) --size 24 --seed 5 --quiet
    run prep images drawn -o pictures --size 8 --channels grey --holdout 0.1 --json
    picture_rows=$(json_number train_rows)
    run gen reviews -o reviews.jsonl --rows "${1:-20000}" --seed 5
    run prep reviews reviews.jsonl -o texts --holdout 0.1 --vocab 100 --length 4 --json
    all_rows=$(json_number train_rows)
    run gen clicks -o clicks.tsv --rows "${1:-20000}" --seed 5
    run prep clicks clicks.tsv -o data --holdout 0.1 --json
    expect_equal "training rows" "$(json_number train_rows)" "$all_rows"
    lengths_of "${modes[0]}"
}

# lengths_of MODE: sets train_rows, steps, and the steps between records, scores and checkpoints.
lengths_of()
{
    train_rows=$all_rows log_every=100 eval_every=500 save_every=1000
    [[ $1 != cnn* ]] || train_rows=$picture_rows log_every=10 eval_every=50 save_every=100
    steps=$(((train_rows + batch - 1) / batch * epochs))
}

# job_words MODE RUN: sets words, the job's command.
job_words()
{
    local data=data

    lengths_of "$1"
    [[ $1 != rnn* && $1 != ngrams* ]] || data=texts
    [[ $1 != cnn* ]] || data=pictures
    # shellcheck disable=SC2206 # words are words
    words=(timeout -s KILL 150 "$paceline" train --data "$work/$data" --run "$2" --batch $batch --epochs $epochs --quiet
        --log-every $log_every --eval-every $eval_every --checkpoint-every $save_every --deadline 20 ${mode_words[$1]})
}

# reference MODE: the model of an undisturbed run is in $reference.
declare -A references
reference()
{
    if [ -z "${references[$1]:-}" ]; then
        job_words "$1" "$work/plain"
        expect_exit 0 "${words[@]}"
        references[$1]=$(json_text model_sha256 plain/summary.json)
        references[$1-loss]=$(json_number logloss plain/summary.json)
        rm -rf plain
    fi
    reference=${references[$1]} reference_loss=${references[$1-loss]}
}

# seconds_between BEGIN END
seconds_between()
{
    awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", b - a }'
}

# ---- where a job is ----

# last_step RUN: of the newest step record; 0 without one.
last_step()
{
    local found

    found=$(grep -s '"kind":"step"' "$1/metrics.jsonl" | tail -n 1 | sed -n 's/.*"step":\([0-9]*\),.*/\1/p')
    echo "${found:-0}"
}

has_reached()
{
    [ "$(last_step "$1")" -ge "$2" ]
}

has_begun()
{
    grep -qs '"kind":"start"' "$1/metrics.jsonl"
}

# is_saving RUN: there is a checkpoint that is not whole yet.
is_saving()
{
    local directory

    for directory in "$1"/checkpoints/step-*; do
        [ ! -d "$directory" ] || [ -e "$directory/manifest.json" ] || return 0
    done
    return 1
}

# incarnation_of RUN: of the newest start record; 0 without one.
incarnation_of()
{
    local found

    found=$(grep -s '"kind":"start"' "$1/metrics.jsonl" | tail -n 1 | sed -n 's/.*"incarnation":\([0-9]*\).*/\1/p')
    echo "${found:-0}"
}

# trains_again RUN INCARNATION: a later incarnation than that one has done steps.
trains_again()
{
    awk -v than="$2" '
        /"kind":"start"/ && match($0, /"incarnation":[0-9]+/) { now = substr($0, RSTART + 14, RLENGTH - 14) + 0 }
        /"kind":"step"/ && now > than { found = 1; exit }
        END { exit !found }' "$1/metrics.jsonl" 2>/dev/null
}

# until_job COMMAND...: as wait_for, but in short turns, and false if the job ends before.
until_job()
{
    local deadline=$((SECONDS + seconds_max))

    until "$@"; do
        ! has_ended "$job" || return 1
        [ $SECONDS -lt $deadline ] || fail "waited $seconds_max s for: $*"
        sleep 0.005
    done
}

# ---- what must not be left ----

# note_segments RUN: adds the shared memory of the job's ranks to $work/segments.
note_segments()
{
    local process

    for process in $(pgrep -f -- "--run[= ]$1( |\$)"); do
        grep -o '/dev/shm/vader_segment[^ ]*' "/proc/$process/maps" 2>/dev/null
    done | sort -u >>"$work/segments"
}

# is_whole DIRECTORY: a checkpoint in which inspect finds nothing wrong.
is_whole()
{
    "$paceline" inspect --json "$1" >"$work/out.inspect" 2>&1 && grep -q '"whole":[[:space:]]*true' "$work/out.inspect"
}

# expect_whole DIRECTORY...
expect_whole()
{
    local directory

    for directory; do
        is_whole "$directory" || fail "not whole: $directory: $(cat "$work/out.inspect")"
    done
}

# expect_nothing_left RUN: no processes, shared memory or session directories; all checkpoints are whole.
expect_nothing_left()
{
    local segment directory

    wait_for nothing_runs "$1"
    for segment in $(sort -u "$work/segments"); do
        [ ! -e "$segment" ] || fail "left: $segment"
    done
    [ -z "$(find "$TMPDIR" -name 'pid.*' -print -quit)" ] || fail "left: $(find "$TMPDIR" -name 'pid.*')"
    for directory in "$1"/checkpoints/* "$1"/checkpoints/.[!.]*; do
        [ ! -e "$directory" ] || expect_whole "$directory"
    done
}

# ---- one kill ----

# is_survived MODE ROLE: the others go on without it.
is_survived()
{
    [ "$outlives $2" = "yes worker1" ] && case $1 in async-ps | ssp-ps) true ;; *) false ;; esac
}

# exact_moment MOMENT: as --inject names it.
exact_moment()
{
    case $1 in
    first) echo step=0 ;;
    middle) echo step=$((steps / 2 / eval_every * eval_every)) ;;
    *) echo "$1" ;;
    esac
}

# until_moment MOMENT DELAY RUN: the moment varies by DELAY, 0 to 99. False if the job ends before.
until_moment()
{
    case $1 in
    start) sleep "0.$(printf %03d "$2")" ;;
    first) until_job has_begun "$3" ;;
    middle) until_job has_reached "$3" $((steps / 10 + steps * $2 / 140)) ;;
    checkpoint) until_job is_saving "$3" ;;
    eval) until_job has_reached "$3" $((($2 % 7 + 2) * eval_every)) ;;
    end) until_job has_reached "$3" $((steps - log_every * (1 + $2 % 3))) ;;
    esac
}

# strike MODE ROLE MOMENT DELAY RUN: kills the rank from outside, DELAY ms (0 to 99) after the moment, which it varies too.
# Sets killed_in, the incarnation.
strike()
{
    local process rank run=$5

    rank=$(rank_in "$1" "$2")
    until_job is_there "$run" "$rank" || return 1
    process=$(<"$work/process")
    until_moment "$3" "$4" "$run" || return 1
    killed_in=$(incarnation_of "$run")
    kill -KILL "$process" 2>/dev/null || return 1
    note_segments "$run"
    [ "$3" != checkpoint ] || is_saving "$run" # else it was too late
}

is_there()
{
    rank_of "$1" "$2" >"$work/process"
    [ -s "$work/process" ]
}

# watch_recovery RUN: until the job has ended. The shared memory of the next incarnation is noted, too.
watch_recovery()
{
    local noted=no

    while ! has_ended "$job"; do
        if [ $noted = no ] && trains_again "$1" "$killed_in"; then
            note_segments "$1"
            noted=yes
        fi
        sleep 0.02
    done
}

# expect_result MODE RUN: the job is done; its model is that of an undisturbed run, or every row was applied exactly once.
expect_result()
{
    local summary=$2/summary.json twice sha

    [ -s "$summary" ] || fail "no summary"
    expect_equal "ending" "$(json_text ending "$2/state.json")" "done"
    expect_equal "samples" "$(json_number samples "$summary")" $((train_rows * epochs))
    twice=$(json_number rows_computed_twice "$summary")
    expect_equal "rows computed" "$(json_number rows_computed "$summary")" $((train_rows * epochs + twice))
    [ "$twice" -ge 0 ] || fail "$twice rows computed twice"
    sha=$(sha256sum <"$2/model.safetensors")
    expect_equal "model_sha256" "$(json_text model_sha256 "$summary")" "${sha%% *}"
    case $1 in
    async* | ssp*) is_true "($(json_number logloss "$summary") - $reference_loss) ^ 2 < 0.02 ^ 2" ||
        fail "log-loss $(json_number logloss "$summary"), undisturbed $reference_loss" ;;
    *) expect_equal "model" "${sha%% *}" "$reference" ;;
    esac
}

# expect_outcome MODE ROLE MOMENT KIND RUN: of a job that ended with code 0.
expect_outcome()
{
    local mode=$1 summary=$5/summary.json restarts lost

    expect_result "$1" "$5"
    restarts=$(json_number restarts "$summary") lost=$(json_number workers_lost "$summary")
    ! grep -q 'no sign of life' err || fail "somebody has waited for the dead until the deadline"
    # Who dies before the chief has taken the run directory leaves nothing to count from.
    [ "$3" = start ] || expect_equal "restarts that were said" "$(grep -c 'starting again from' err)" "$restarts"
    if [ "$3" = start ]; then # a worker may go before the supervisor has heard that training began
        [ $((restarts + lost)) -le 1 ] || fail "$restarts restarts and $lost lost workers"
        [ "$4" = outside ] || expect_equal "restarts and lost workers" $((restarts + lost)) 1
        is_survived "$mode" "$2" || expect_equal "workers lost" "$lost" 0
    elif is_survived "$mode" "$2"; then
        expect_equal "restarts, lost workers" "$restarts, $lost" "0, 1"
    else
        expect_equal "restarts, lost workers" "$restarts, $lost" "1, 0"
    fi
    # As above: who dies before that is no incarnation.
    is_true "$(json_number incarnation "$5/state.json") <= $restarts + 1" || fail "a start that nobody knows of"
    [ "$3" = start ] || expect_equal "incarnation" "$(json_number incarnation "$5/state.json")" $((restarts + 1))
}

# kill_once MODE ROLE MOMENT exact|outside DELAY: a job, a kill, and what must come of it. False: the kill came too late.
kill_once()
{
    local run=$work/killed slow struck times=60x

    reference "$1"
    rm -rf "$run"
    : >segments
    job_words "$1" "$run"
    [ "$2 $3" = "chief eval" ] || ! has_evaluator "$1" || words+=(--evaluator)
    if [ "$4" = exact ]; then
        words+=(--inject "kill:$2@$(exact_moment "$3")")
        start_job "${words[@]}"
        killed_in=1
        until_job test -s "$run/faults" && note_segments "$run"
    else
        [[ $1 != [rc]nn* ]] || times=10x # a network has more to compute
        slow="slow:chief=$times,slow:worker1=$times"
        case $1 in async-ps | ssp-ps) slow+=",slow:worker2=$times" ;; esac
        words+=(--inject "$slow")
        start_job "${words[@]}"
        strike "$1" "$2" "$3" "$5" "$run"
    fi
    struck=$?
    watch_recovery "$run"
    end_job 0
    if [ "$4" = exact ]; then
        [ $struck -eq 0 ] || fail "the fault has not fired"
    elif [ $struck -ne 0 ] || ! grep -qE 'starting again from|the others go on without' err; then
        expect_nothing_left "$run"
        return 1
    fi
    expect_outcome "$1" "$2" "$3" "$4" "$run"
    expect_nothing_left "$run"
}

# has_evaluator MODE: it can have one.
has_evaluator()
{
    [[ $1 != *merging ]]
}

# is_possible MODE ROLE MOMENT
is_possible()
{
    case $1-$2 in allreduce-ps0 | sync-ps0 | async-ps0 | *merging-ps0 | fm-ps0 | rnn-ps0 | cnn-ps0) return 1 ;; esac
    [ "$2" != evaluator ] || has_evaluator "$1" || return 1
    case $2-$3 in
    worker1-checkpoint) [ "$1" = sync ] || [ "$1" = async ] || [[ $1 = *merging ]] ;; # who keeps parameters
    worker1-eval | ps0-eval | evaluator-checkpoint) false ;;
    esac
}

roles=(chief worker1 ps0 evaluator)
moments=(start first middle checkpoint eval end)

# draw_kill: sets mode, role, moment and delay by RANDOM; not all of them are possible.
# shellcheck disable=SC2034 # for the caller
draw_kill()
{
    mode=${modes[RANDOM % ${#modes[@]}]}
    role=${roles[RANDOM % ${#roles[@]}]}
    moment=${moments[RANDOM % ${#moments[@]}]}
    delay=$((RANDOM % 100))
}
