# Resumes: a run goes on with another value of an option that decides its bits.
#
# RUN OPTION: for runs that have ended, that were killed, and one of several processes, every option by which the program
# itself says that a job is known ("job" in summary.json and the manifests), the data set, and files that a model begins
# with. By flag, environment or --config, with more steps or without. All must be refused by name, with code 64, and the
# run directory must have the same bytes afterwards. `new` is the same command without --resume and --force.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

resumes_family="Resumed as another job"
resumes_default=1000
resumable="$(echo {finished,killed}/{logreg,fm,rnn,cnn,top}) ranks/logreg"
ranks_words=(--mode ps-sync --workers 2 --ps 1)

# Two values of each option; the one that the run does not have is tried.
declare -A others=(
    [seed]="1 2" [batch]="20 30" [optimizer]="adagrad sgd" [lr]="0.05 0.04" [schedule]="constant linear" [warmup]="0 5"
    [momentum]="0.9 0.8" [l1]="0 0.001" [l2]="0 0.001" [clip]="0 1" [dropout]="0 0.3" [class-weight]="2 3" [exact]="false true"
    [ngram]="2 1" [factors]="2 3" [preset]="none reviews-2019" [cell]="lstm gru" [layers]="1 2" [hidden]="2 3" [embed]="2 3"
    [bidirectional]="false true" [pooling]="last mean" [dense]="0 4" [word-dropout]="0.2 0.1" [loss]="bce focal" [focal]="2 3"
    [arch]="small resnet20" [width]="0.1 0.2" [train]="all top" [bn]="global local" [head]="softmax logit" [smoothing]="0 0.1"
    [augment]="flip none"
)
declare -A other_model=([logreg]=fm [fm]=logreg [rnn]=logreg [cnn]=logreg [top]=logreg)

# job_of RUN: the words by which it is known.
job_of()
{
    local path=$base/first/$1

    [ -f "$path/summary.json" ] || path=$path/checkpoints/step-000000000040.0001/manifest.json
    [ -f "$path" ] || path=$path/summary.json
    sed -n 's/^ *"job": "\(.*\)",*$/\1/p' "$path"
}

# make_ranks: a run of several processes that has lost one behind its second checkpoint.
make_ranks()
{
    local path=$base/first/ranks/logreg

    [ ! -d "$path" ] || return 0
    mkdir -p "${path%/*}"
    train_command logreg first "$path"
    expect_exit 1 timeout -k 5 $seconds_max "$paceline" "${command[@]}" "${ranks_words[@]}" --max-restarts 0 \
        --inject stall:worker1=0.5s@step=42,stall:worker1=0.5s@step=44,kill:worker1@step=50
    is_whole "$path/checkpoints/step-000000000040.0001" || fail "the run of several processes has no checkpoint"
    material=$(snapshot "$base")
}

resumes_prepare()
{
    local run length

    make_ranks
    cd "$work" || exit
    for run in $resumable; do
        for length in $job_length $((job_length + 20)); do
            rm -rf it
            cp -a "$base/first/$run" it
            train_command "${run#*/}" first it
            [[ $run != ranks/* ]] || command+=("${ranks_words[@]}")
            run "${command[@]}" --resume --steps "$length"
            wanted[$run-$length]=$(digest <it/model.safetensors)
        done
    done
    rm -rf it
}

resumes_list()
{
    local run option kind

    make_ranks
    for run in $resumable; do
        kind=${run#*/}
        for option in $(job_of "$run" | sed 's/ rows=.*//' | tr ' ' '\n' | sed 's/=.*//'); do
            echo "$run $option"
        done
        echo "$run data"
        echo "$run new"
        [ "$kind" != top ] || echo "$run pretrained"
    done
}

resumes_row()
{
    case $1 in
    finished/*) echo "run that has ended, resumed" ;;
    killed/*) echo "run that was killed, resumed" ;;
    ranks/*) echo "run of several processes, resumed" ;;
    esac
}

# another RUN OPTION: sets value.
another()
{
    local was word

    was=$(job_of "$1" | tr ' ' '\n' | sed -n "s/^$2=//p")
    case $2 in
    model) value=${other_model[${1#*/}]} ;;
    data) value=$base/twin/${set_of[${1#*/}]} ;;
    pretrained) value=$base/twin/finished/cnn/model.safetensors ;;
    *)
        [ -n "${others[$2]:-}" ] || fail "no other value of $2 is known: add it to others"
        for word in ${others[$2]}; do
            [ "$word" = "$was" ] || value=$word
        done
        ;;
    esac
}

# run_of RUN: what a refusal leaves alone. The log tells of it, and who had the run before is forgotten; features are a
# cache that any job may add to.
run_of()
{
    snapshot "$1" | grep -vE '(^|\./)(logs/|features/)'
}

# resumes_attack RUN OPTION
resumes_attack()
{
    local before how environment=() names codes length=$job_length

    cp -a "$base/first/$1" it
    before=$(run_of it)
    train_command "${1#*/}" first it
    [[ $1 != ranks/* ]] || command+=("${ranks_words[@]}")
    [ "$2" = new ] || command+=(--resume)
    draw 2
    [ "$drawn" -eq 0 ] || length=$((job_length + 20))
    command+=(--steps "$length")
    if [ "$2" != new ]; then
        another "$1" "$2"
        pick flag flag environment file
        how=$picked
        # A flag of the usual command would win over environment and file.
        [[ " ${command[*]} " != *" --$2 "* ]] || how=flag
        case $how-$value in
        flag-true) command+=("--$2") ;;
        flag-false) command+=("--no-$2") ;;
        flag-*) command+=("--$2" "$value") ;;
        environment-*) environment=("PACELINE_$(tr a-z- A-Z_ <<<"$2")=$value") ;;
        file-*)
            echo "$2: $value" >options.yaml
            command+=(--config options.yaml)
            ;;
        esac
    fi
    preface=(env "${environment[@]}")
    echo "${environment[*]}" >>said
    seconds_of_verb=60
    attempt "${command[@]}"
    names=("$2") codes=64
    case $1-$2 in
    *-new) names=(it --resume) ;;
    *-preset) names+=(optimizer layers dense batch) ;; # it stands for others
    */top-arch | */top-width | */top-model | */top-head) names+=(model.safetensors) codes="64 65" ;; # --pretrained fits no more
    esac
    check_code resume "$codes"
    if [ $code -eq 0 ]; then
        case $1-$2 in
        */logreg-ngram) ;; # clicks have no words
        finished/logreg-exact | killed/logreg-exact) bad silent "code 0" ;;
        *-exact) ;; # all others have no other rule
        *) bad silent "code 0" ;;
        esac
        [ "$(digest <it/model.safetensors)" = "${wanted[$1-$length]}" ] || bad silent "code 0 and another model"
        outcome right
    fi
    check_named resume "${names[@]}"
    [ "$(run_of it)" = "$before" ] ||
        bad victim "refused, but the run has changed: $(diff <(echo "$before") <(run_of it) | grep '^[<>]' | head -n 4 | tr '\n' ' ')"
    outcome refused
}
