# What is attacked, in $base: raw data, data sets, and runs of every kind of model that have ended or were killed, each with
# a twin of the same shape and other contents; and the acts of the program, with what they make of it undisturbed.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

base=$work/base
kinds=(logreg fm rnn cnn top)
sets=(clicks texts pictures)
declare -A set_of=([logreg]=clicks [fm]=clicks [rnn]=texts [cnn]=pictures [top]=pictures)
declare -A verb_of=([clicks]=clicks [texts]=reviews [pictures]=images)
declare -A raw_of=([clicks]=clicks.tsv [texts]=texts.jsonl [pictures]=drawn)
declare -A gen_words=([clicks]="--rows 600" [texts]="--rows 300" [pictures]="--rows 90 --classes 3 --size 24")
declare -A prep_words=([clicks]="" [texts]="--vocab 100 --length 8" [pictures]="--size 8 --channels grey")
declare -A kind_words=(
    [logreg]="--model logreg"
    [fm]="--model fm --factors 2"
    [rnn]="--model rnn --embed 2 --hidden 2"
    [cnn]="--model cnn --width 0.1"
    [top]="--model cnn --width 0.1 --train top --pretrained $base/first/finished/cnn/model.safetensors"
)
job_length=60

# prep_command SET RAW OUTPUT
prep_command()
{
    # shellcheck disable=SC2206 # words are words
    command=(prep "${verb_of[$1]}" "$2" -o "$3" --holdout 0.2 --parts 2 --quiet ${prep_words[$1]})
}

# train_command KIND FAMILY RUN: FAMILY is first or twin.
train_command()
{
    # shellcheck disable=SC2206
    command=(train --data "$base/$2/${set_of[$1]}" --run "$3" --batch 20 --steps $job_length --checkpoint-every 20
        --log-every 10 --eval-every 30 --schedule constant --quiet ${kind_words[$1]})
}

# make_family FAMILY SEED
make_family()
{
    local set kind

    mkdir -p "$base/$1/finished" "$base/$1/killed"
    for set in "${sets[@]}"; do
        # shellcheck disable=SC2086
        run gen "${verb_of[$set]}" -o "$base/$1/${raw_of[$set]}" --seed "$2" --quiet ${gen_words[$set]}
        prep_command "$set" "$base/$1/${raw_of[$set]}" "$base/$1/$set"
        run "${command[@]}"
    done
    for kind in "${kinds[@]}"; do
        train_command "$kind" "$1" "$base/$1/finished/$kind"
        run "${command[@]}"
        make_killed "$kind" "$1"
    done
}

# make_killed KIND FAMILY: a run that died behind its second checkpoint, which is whole. The pauses let it be written.
make_killed()
{
    local path=$base/$2/killed/$1 pause

    for pause in 0.1 0.5 2; do
        rm -rf "$path"
        train_command "$1" "$2" "$path"
        expect_exit 137 timeout -k 5 $seconds_max "$paceline" "${command[@]}" \
            --inject "$(printf "stall:chief=${pause}s@step=%d," 22 42 44)kill:chief@step=50"
        ! is_whole "$path/checkpoints/step-000000000020.0001" || ! is_whole "$path/checkpoints/step-000000000040.0001" || return 0
    done 2>/dev/null
    fail "$1: no two whole checkpoints before it was killed"
}

make_material()
{
    mkdir "$base"
    perl -MSocket -e 'socket(S, AF_UNIX, SOCK_STREAM, 0) && bind(S, pack_sockaddr_un(shift)) or die' "$base/socket"
    make_family first 5
    make_family twin 6
    chmod -R go+rX "$work"
    material=$(snapshot "$base")
}

# ---- acts: what the program is asked to do with it, and what has to come of it ----
# An act works in the current directory. OUTPUT is what it makes there: set, run, a file, or out (standard output).

acts=(gen-clicks gen-texts gen-pictures prep-clicks prep-texts prep-pictures merge-clicks merge-texts merge-pictures)
for kind in "${kinds[@]}"; do
    acts+=("train-$kind" "resume-$kind" "predict-$kind" "print-$kind" "eval-$kind" "inspect-$kind")
done
acts+=(errors-cnn)

# act NAME: sets command and output; with resume the run is there afterwards.
act()
{
    local what=${1#*-} set

    set=${set_of[$what]:-$what}
    output=out
    case $1 in
    gen-*)
        output=made
        # shellcheck disable=SC2206
        command=(gen "${verb_of[$set]}" -o made --seed 5 --quiet ${gen_words[$set]})
        ;;
    prep-*)
        output="set"
        prep_command "$set" "$base/first/${raw_of[$set]}" set
        ;;
    merge-*)
        output=merged.h5
        command=(merge "$base/first/$set" -o merged.h5 --quiet)
        ;;
    train-* | resume-*)
        output=run
        train_command "$what" first run
        [ "$1" = "train-$what" ] || { command+=(--resume) && cp -a "$base/first/killed/$what" run; }
        ;;
    predict-*)
        output=predicted
        command=(predict --run "$base/first/finished/$what" "$base/first/${raw_of[$set]}" -o predicted --quiet)
        ;;
    print-*) command=(predict --run "$base/first/finished/$what" "$base/first/${raw_of[$set]}") ;;
    eval-*) command=(eval --run "$base/first/finished/$what" --data "$base/first/$set" --json) ;;
    inspect-*) command=(inspect "$base/first/finished/$what" --json) ;;
    errors-*)
        output=errors.tsv
        command=(eval --run "$base/first/finished/$what" --data "$base/first/$set" --errors errors.tsv --json)
        ;;
    esac
}

# made OUTPUT: a digest of it. Of a run, its model is what counts.
made()
{
    if [ "$1" = run ]; then
        digest <run/model.safetensors
    elif [ -d "$1" ]; then
        prints "$1" | digest
    else
        digest <"$1"
    fi 2>/dev/null
}

declare -A wanted

# want_act NAME: what it makes undisturbed.
want_act()
{
    mkdir "$work/act"
    cd "$work/act" || exit
    act "$1"
    attempt "${command[@]}"
    [ $code -eq 0 ] || bad wrong "$1 fails undisturbed"
    [ $output != out ] || cp "$work/out" out
    wanted[$1]=$(made $output)
    cd "$work" || exit
    rm -rf "$work/act"
}

want_acts()
{
    local name

    for name in "${acts[@]}"; do
        [ -n "${wanted[$name]:-}" ] || want_act "$name"
    done
}
