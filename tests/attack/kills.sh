# Kills (SIGKILL), of every role at every moment of every mode and kind of model, and of those who started them.
#
# Jobs, moments and what has to come of a single kill are those of ../fault/lib.sh; here are also several kills.
#     job MODE ROLE MOMENT exact|outside   one rank, by --inject or from outside
#     local MODE MOMENT TURN               a job of one process, which --resume goes on with
#     many MODE ROLES MOMENT               two or three at once
#     again MODE ROLE TURN                 one, and another as soon as the job has been started again
#     launcher MODE WHO MOMENT             mpirun, or the command that was typed
#     model MODE ROLE                      while the model is written
#     prep SET WHO PHASE new|old           a prep while it reads, writes parts, or publishes; old: over another data set
# A kill that comes too late is repeated, up to five times; one that hits nobody does not count.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

kills_family="Kills"
kills_default=450
mode_words[logreg-local]="--mode local --threads 1"
mode_words[fm-local]="--mode local --threads 1 $pairs"
mode_words[rnn-local]="--mode local --threads 1 $network"
mode_words[cnn-local]="--mode local --threads 1 $eyes"
locals=(logreg-local fm-local rnn-local cnn-local)

kills_list()
{
    local mode role moment turn set who

    for mode in "${modes[@]}"; do
        for role in "${roles[@]}"; do
            for moment in "${moments[@]}"; do
                ! is_possible "$mode" "$role" "$moment" || printf "job $mode $role $moment %s\n" exact outside
            done
        done
        for turn in 1 2 3; do
            printf "again $mode %s $turn\n" chief worker1
            ! has_evaluator "$mode" || echo "again $mode evaluator $turn"
        done
        for moment in start first middle end; do
            printf "launcher $mode %s $moment\n" mpirun supervisor
            echo "many $mode chief,worker1 $moment"
            ! has_evaluator "$mode" || printf "many $mode %s $moment\n" worker1,evaluator chief,worker1,evaluator
            ! is_possible "$mode" ps0 "$moment" || printf "many $mode %s $moment\n" worker1,ps0 chief,ps0,evaluator
        done
        printf "model $mode %s\n" chief supervisor
    done
    for mode in "${locals[@]}"; do
        for turn in 1 2 3; do
            printf "local $mode %s $turn\n" "${moments[@]}" model
        done
    done
    for set in "${sets[@]}"; do
        for who in process rank0 rank1 mpirun supervisor; do
            for moment in read write publish; do
                printf "prep $set $who $moment %s\n" new old
            done
        done
    done
}

kills_row()
{
    local words

    case $1 in
    job | model)
        words=${mode_words[$2]#--mode }
        echo "one process, mode ${words%% *}"
        ;;
    local) echo "one process, mode local" ;;
    many) echo "two or three at once" ;;
    again) echo "during a restart" ;;
    launcher) echo "mpirun, or the command that was typed" ;;
    prep) echo "prep" ;;
    esac
}

kills_prepare()
{
    local mode

    cd "$work" || exit
    make_data
    for mode in "${modes[@]}" "${locals[@]}"; do
        reference "$mode"
    done
    shared=$work
    shim=${SHIM:-$(dirname "$paceline")/tests/libshim_files.so}
    for mode in prep-clicks prep-texts prep-pictures; do
        [ -n "${wanted[$mode]:-}" ] || want_act "$mode"
    done
}

# ---- who, and when ----

# process_of MODE WHO RUN: a rank, mpirun, or the command that was typed ($job is its timeout).
process_of()
{
    local first

    case $2 in
    supervisor) pgrep -P "$job" ;;
    mpirun)
        first=$(pgrep -P "$job") && pgrep -P "$first" -f mpirun
        ;;
    *) rank_of "$3" "$(rank_in "$1" "$2")" ;;
    esac
}

# find_all MODE WHO,... RUN: sets processes; false if one of them is not there.
find_all()
{
    local who process

    processes=()
    for who in ${2//,/ }; do
        process=$(process_of "$1" "$who" "$3" | head -n 1)
        [ -n "$process" ] || return 1
        processes+=("$process")
    done
}

# lives PROCESS: it is there, and is no corpse.
lives()
{
    local stat

    stat=$(cat "/proc/$1/stat" 2>/dev/null) && [[ ${stat##*) } != [ZX]* ]]
}

# kill_all: all of processes at once; false if one of them was dead already.
kill_all()
{
    local process

    for process in "${processes[@]}"; do
        lives "$process" || return 1
    done
    kill -KILL "${processes[@]}" 2>/dev/null
}

is_writing_model()
{
    [ ! -e "$1/model.safetensors" ] && [ -n "$(find "$1" -maxdepth 1 -name '*model.safetensors?*' -print -quit 2>/dev/null)" ]
}

# ---- jobs ----

# begin_job MODE RUN [FAULT]: slowly, so that there is something to hit; in `slow_disk`, if that is set.
begin_job()
{
    local slow times=60x

    [[ $1 != [rc]nn* ]] || times=10x  # a network has more to compute
    [[ $1 != *-local ]] || times=4x # and so has who does it alone
    slow=slow:chief=$times
    job_words "$1" "$2"
    case $1 in
    *-local) ;;
    async-ps | ssp-ps) slow+=,slow:worker1=$times,slow:worker2=$times ;;
    *) slow+=,slow:worker1=$times ;;
    esac
    [[ $1 = *-local ]] || ! has_evaluator "$1" || words+=(--evaluator)
    words+=(--inject "$slow${3:+,$3}")
    start_job ${slow_disk[@]+"${slow_disk[@]}"} "${words[@]}"
}

# resume_job MODE RUN: behind the death of those who would have started it again.
resume_job()
{
    wait_for has_ended "$job"
    wait "$job" 2>/dev/null
    wait_for nothing_runs "$2"
    xargs -r rm -f <segments # nobody was left to do it
    find "$TMPDIR" -mindepth 1 -delete
    : >segments
    job_words "$1" "$2"
    [[ $1 = *-local ]] || ! has_evaluator "$1" || words+=(--evaluator)
    start_job "${words[@]}" --resume
    wait_for has_ended "$job"
    wait "$job" && return
    grep -q 'nothing to resume\|no run\|No such file' err || fail "it cannot be resumed"
    start_job "${words[@]}" --force # it died before it was a run
    end_job 0
}

# hit_job MODE WHO MOMENT DELAY: a job, a kill of one or more, and the right end. False: nobody was hit.
hit_job()
{
    local run=$work/killed hit=yes

    rm -rf "$run"
    : >segments
    reference "$1"
    begin_job "$1" "$run"
    until_job find_all "$1" "$2" "$run" || hit=no
    if [ $hit = yes ]; then
        if [ "$3" = model ]; then until_job is_writing_model "$run"; else until_moment "$3" "$4" "$run"; fi || hit=no
    fi
    [ $hit = no ] || kill_all || hit=no
    note_segments "$run"
    case $hit-$2 in
    yes-*supervisor*) resume_job "$1" "$run" ;;
    *)
        end_job 0
        grep -qE 'starting again from|the others go on without' err || hit=no
        ;;
    esac
    expect_result "$1" "$run"
    expect_nothing_left "$run"
    [ $hit = yes ]
}

# hit_again MODE ROLE DELAY: the chief dies by itself in the middle, and ROLE when the job has been started again.
hit_again()
{
    local run=$work/killed hit=yes

    rm -rf "$run"
    : >segments
    reference "$1"
    lengths_of "$1"
    begin_job "$1" "$run" "kill:chief@step=$((steps / 10))"
    until_job grep -q 'starting again from' err || fail "the first kill has not hit"
    until_job find_all "$1" "$2" "$run" || hit=no
    [ $hit = no ] || sleep "0.$(printf %03d $(($3 * 9)))"
    [ $hit = no ] || kill_all || hit=no
    note_segments "$run"
    end_job 0
    [ "$(grep -cE 'starting again from|the others go on without' err)" -ge 2 ] || hit=no
    expect_result "$1" "$run"
    expect_nothing_left "$run"
    [ $hit = yes ]
}

# ---- preps ----

# phase_of_prep PHASE: it has come.
phase_of_prep()
{
    case $1 in
    read) [ -d .set.partial ] ;;
    write) [ -n "$(find .set.partial -name 'part-*' -print -quit 2>/dev/null)" ] ;;
    publish) [ -n "$(find .set.partial -name '*checksums.json*' -print -quit 2>/dev/null)" ] ;;
    esac
}

# prep_process WHO: sets processes.
prep_process()
{
    case $1 in
    rank*) processes=("$(rank_with "--output=$work/set" "${1#rank}")") ;;
    process) processes=("$(pgrep -P "$job" | head -n 1)") ;;
    *) processes=("$(process_of - "$1" - | head -n 1)") ;;
    esac
    [ -n "${processes[0]}" ]
}

# hit_prep SET WHO PHASE new|old DELAY
hit_prep()
{
    local disk hit=yes before=none

    case $3-$1 in
    read-pictures) disk=read:drawn:0.02s ;;
    read-*) disk=read:${raw_of[$1]}:0.2s ;;
    write-*) disk=write:part-0000:0.05s ;;
    publish-*) disk="rename:checksums:0.3s rename:/set:0.5s" ;;
    esac
    rm -rf set .set.partial
    [ "$4" = new ] || { cp -a "$base/twin/$1" set && before=$(prints set); }
    prep_command "$1" "$base/first/${raw_of[$1]}" "$work/set"
    [ "$2" = process ] || command+=(-n 2)
    [ "$4" = new ] || command+=(--force)
    start_job env "LD_PRELOAD=$shim" "SHIM_FILES=$disk" timeout -s KILL 60 "$paceline" "${command[@]}"
    until_job prep_process "$2" && until_job phase_of_prep "$3" && sleep "0.$(printf %03d "$5")" && kill_all || hit=no
    wait_for has_ended "$job"
    wait_for nothing_prepares "$work/set"
    find "$TMPDIR" -mindepth 1 -delete
    if [ -e set ]; then
        [ "$(prints set)" = "$before" ] || [ "$(prints set | digest)" = "${wanted[prep-$1]}" ] ||
            fail "neither the old set nor the new one is there"
    else
        [ "$4" = new ] || fail "the old set is gone"
        case $hit-$2 in yes-process | yes-supervisor) ;; *) expect_nothing set ;; esac
    fi
    [ ! -e set ] || [ "$4" = old ] || mv set other
    run "${command[@]}"
    [ "$(prints set | digest)" = "${wanted[prep-$1]}" ] || fail "the next prep gives other bytes"
    expect_equal "what is left beside it" "$(find . -maxdepth 1 -name '.*set*')" ""
    rm -rf other
    [ $hit = yes ]
}

# ---- an attack ----

strike_once()
{
    case $1 in
    job) kill_once "$2" "$3" "$4" "$5" "$delay" ;;
    local) hit_job "$2" supervisor "$3" "$delay" ;;
    many) hit_job "$2" "$3" "$4" "$delay" ;;
    again) hit_again "$2" "$3" "$delay" ;;
    launcher) hit_job "$2" "$3" "$4" "$delay" ;;
    model) hit_job "$2" "$3" model "$delay" ;;
    prep) hit_prep "${@:2:4}" "$delay" ;;
    esac
}

kills_attack()
{
    local turn delay set

    seconds_max=120
    slow_disk=()
    for set in data texts pictures; do
        ln -s "$shared/$set" $set
    done
    if [ "$1" = model ] || [ "$1 $3" = "local model" ]; then
        slow_disk=(env "LD_PRELOAD=$shim" SHIM_FILES=fsync:model.safetensors:0.3s)
    fi
    [ "$1" != prep ] && [ ${#slow_disk[@]} -eq 0 ] || [ -e "$shim" ] || outcome skipped
    for turn in 1 2 3 4 5; do
        draw 100
        delay=$drawn
        echo "turn $turn, delay $delay" >>said
        ! strike_once "$@" || outcome right
    done
    outcome missed
}
