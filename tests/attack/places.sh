# Places: where a file or directory is expected there is a FIFO, a socket, a directory, a link; or it is where the program
# would put something that it is about to make.
#
# Five sorts of cases. None may hang, or write to, replace or remove anything behind a link; the end is an error that names
# the place, or that of a link to the very thing (`same`).
#     input NAME THING           a path that is given, to be read
#     output ACT FORCE THING     a path that is given, to be written
#     staging ACT NAME THING     a name beside what is written, under which it may be written first
#     inside OBJECT FILE THING   in place of a file of a data set, run or checkpoint
#     making ACT FILE THING      in place of a file that a run that goes on is going to make
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

places_family="Things in place of files"
places_default=1000

inputs=(prep-clicks prep-test prep-reviews prep-vocabulary prep-stopwords prep-images prep-picture prep-like-set prep-like-run
    prep-config merge-data train-data train-config train-hosts train-embeddings train-pretrained train-name-map train-init eval-run
    eval-data eval-config predict-run predict-model predict-clicks predict-texts predict-pictures inspect-set inspect-run
    inspect-model inspect-checkpoint resume-run)
makers=(gen-clicks gen-texts gen-pictures prep-clicks prep-texts prep-pictures merge-clicks train-logreg train-cnn
    predict-logreg predict-cnn errors-cnn)

places_list()
{
    local name thing force file object

    for thing in same "${things[@]}"; do
        for name in "${inputs[@]}"; do
            case $name-$thing in
            *-vocabulary-to-file | *-stopwords-to-file | predict-texts-to-file) ;; # any text is one
            *) echo "input $name $thing" ;;
            esac
        done
    done
    for thing in "${things[@]}"; do
        for name in "${makers[@]}"; do
            for force in plain force; do
                [[ $force-$name = force-[gmpe]*-* && $name != prep-* ]] || echo "output $name $force $thing"
            done
            for file in @.tmp .@.tmp .@.partial @.partial; do
                echo "staging $name $file $thing"
            done
        done
    done
    for thing in same "${things[@]}"; do
        for object in set-clicks set-texts set-pictures finished-logreg finished-top killed-logreg killed-fm killed-top checkpoint-cnn; do
            for file in $(cd "$base/first/$(object_path "$object")" && find . -type f -printf '%P\n' | sort); do
                echo "inside $object $file $thing"
            done
        done
    done
    for thing in "${things[@]}"; do
        for name in resume-logreg resume-top; do
            for file in model.safetensors{,.tmp} summary.json{,.tmp} state.json.tmp config.yaml.tmp cluster.json{,.tmp} report.html events \
                profile checkpoints/step-000000000060.0002 checkpoints/step-000000000060.0002.tmp \
                .model.safetensors.partial .summary.json.partial .state.json.partial .config.yaml.partial; do
                echo "making $name $file $thing"
            done
        done
    done
}

places_row()
{
    case $1 in
    input) echo "where something is read" ;;
    output) echo "where something is to be written" ;;
    staging | making) echo "where something is made on the way" ;;
    inside) echo "in place of a file of a data set, run or checkpoint" ;;
    esac
}

places_prepare()
{
    local name thing

    want_answers
    want_acts
    printf 'the\nand\n' >"$base/words"
    printf 'seed: 1\n' >"$base/options.yaml"
    printf 'quiet: true\n' >"$base/quiet.yaml"
    echo "localhost slots=8" >"$base/hosts"
    awk 'BEGIN { for (i = 0; i < 40; i++) print "word" i, i / 40, -i / 40 }' >"$base/vectors"
    : >"$base/names"
    material=$(snapshot "$base")
    for name in "${inputs[@]}"; do
        mkdir "$work/input"
        cd "$work/input" || exit
        input "$name"
        cp -a "$origin" here
        [ ! -e more ] || command+=(more)
        attempt "${command[@]}"
        # An empty map of names fits no file: that is said of it, and of none other.
        [ $code -eq 0 ] || [ "$name" = train-name-map ] || bad wrong "$name fails undisturbed: $(tail -n 1 "$work/err")"
        answer_of_input
        wanted[input-$name]=$code-$answer
        cd "$work" || exit
        rm -rf "$work/input"
    done
}

# input NAME: sets command, which reads ./here; origin, what that is; and made_by, what comes of it.
input()
{
    local first=$base/first

    made_by=out
    case $1 in
    prep-clicks | prep-test)
        origin=$first/clicks.tsv made_by=set
        command=(prep clicks here -o set --quiet)
        [ "$1" = prep-clicks ] || command=(prep clicks "$first/clicks.tsv" --test here -o set --quiet)
        ;;
    prep-reviews) origin=$first/texts.jsonl made_by=set command=(prep reviews here -o set --quiet) ;;
    prep-vocabulary | prep-stopwords)
        origin=$base/words made_by=set command=(prep reviews "$first/texts.jsonl" -o set --quiet "--${1#prep-}" here)
        [ "$1" = prep-stopwords ] || origin=$first/texts/vocabulary.txt
        ;;
    prep-images) origin=$first/drawn made_by=set command=(prep images here -o set --size 8 --quiet) ;;
    prep-picture)
        origin=$(find "$first/drawn" -type f | sort | head -n 1) made_by=set
        command=(prep images drawn -o set --size 8 --quiet)
        cp -a "$first/drawn" .
        mv "drawn/${origin#"$first/drawn/"}" .
        ln -s ../../here "drawn/${origin#"$first/drawn/"}"
        ;;
    prep-like-set) origin=$first/clicks made_by=set command=(prep clicks "$first/clicks.tsv" -o set --like here --quiet) ;;
    prep-like-run) origin=$first/finished/rnn made_by=set command=(prep reviews "$first/texts.jsonl" -o set --like here --quiet) ;;
    prep-config) origin=$base/options.yaml made_by=set command=(prep clicks "$first/clicks.tsv" -o set --config here --quiet) ;;
    merge-data) origin=$first/clicks made_by=merged.h5 command=(merge here -o merged.h5 --quiet) ;;
    train-*)
        made_by=run
        case $1 in
        train-data) origin=$first/clicks && train_command logreg first run && command+=(--data here) ;;
        train-config) origin=$base/options.yaml && train_command logreg first run && command+=(--config here) ;;
        train-hosts) origin=$base/hosts && train_command logreg first run && command+=(--workers 2 --hosts here --dry-run) && made_by=none ;;
        train-embeddings) origin=$base/vectors && train_command rnn first run && command+=(--embeddings here) ;;
        train-pretrained) origin=$first/finished/cnn/model.safetensors && train_command top first run && command+=(--pretrained here) ;;
        train-init) origin=$first/finished/logreg/model.safetensors && train_command logreg first run && command+=(--init here) ;;
        train-name-map) origin=$base/names && train_command top first run && command+=(--name-map here) ;;
        esac
        ;;
    eval-run) origin=$first/finished/fm command=(eval --run here --data "$first/clicks" --json) ;;
    eval-data) origin=$first/texts command=(eval --run "$first/finished/rnn" --data here --json) ;;
    eval-config) origin=$base/quiet.yaml command=(eval --run "$first/finished/rnn" --data "$first/texts" --json --config here) ;;
    predict-run) origin=$first/finished/logreg command=(predict --run here "$first/clicks.tsv") ;;
    predict-model) origin=$first/finished/logreg/model.safetensors command=(predict --run here "$first/clicks.tsv") ;;
    predict-clicks) origin=$first/clicks.tsv command=(predict --run "$first/finished/logreg" here) ;;
    predict-texts) origin=$first/texts.jsonl command=(predict --run "$first/finished/rnn" here) ;;
    predict-pictures) origin=$(find "$first/drawn" -type f | sort | head -n 1) command=(predict --run "$first/finished/cnn" here) ;;
    inspect-set) origin=$first/clicks command=(inspect here --json) ;;
    inspect-run) origin=$first/finished/cnn command=(inspect here --json) ;;
    inspect-model) origin=$first/finished/cnn/model.safetensors command=(inspect here --json) ;;
    inspect-checkpoint) origin=$first/killed/fm/checkpoints/step-000000000040.0001 command=(inspect here --json) ;;
    resume-run) origin=$first/killed/logreg made_by=here && train_command logreg first here && command+=(--resume) ;;
    esac
}

# answer_of_input: sets answer.
answer_of_input()
{
    case $code-$made_by in
    0-none) answer=- ;;
    0-out) answer=$(digest <"$work/out") ;;
    0-here) answer=$(digest <here/model.safetensors) ;;
    0-*) answer=$(made "$made_by") ;;
    *) answer=- ;;
    esac
}

attack_input()
{
    local name=$1 thing=$2

    mkdir input
    cd input || exit
    input "$name"
    make_victims "$origin"
    plant "$thing" here
    attempt "${command[@]}"
    answer_of_input
    # Whose run goes on through a link writes where it leads, and nowhere else.
    [ "$name $thing" = "resume-run same" ] || check_victims "$name"
    ! waits_as_told "$thing" "$name" || outcome right
    check_code "$name" "64 65 66 74"
    [ "$code-$answer" != "${wanted[input-$name]}" ] || outcome right
    [ "$thing" != same ] || bad wrong "exit code $code, and not as if it were no link"
    # One among many pictures may be left out, if that is said.
    [ $code -ne 0 ] || [ "$name" = prep-picture ] || bad silent "code 0"
    [ $code -ne 0 ] || grep -qF "$(basename "$origin")" "$work/err" || bad silent "code 0, and it was left out without a word"
    check_named "$name" here "$(basename "$origin")"
    outcome refused
}

# waits_as_told THING NAME: for the other end of a pipe, which data may come from; until it is asked to end.
waits_as_told()
{
    [ "$1" = fifo ] && [ $code -eq 124 ] || return 1
    case $2 in prep-test | predict-clicks | predict-texts) return 0 ;; esac
    return 1
}

# check_made ACT: of one that ended with code 0: what it had to make is there.
check_made()
{
    [ "$(made "$output")" = "${wanted[$1]}" ] || bad silent "code 0, and $output is not what it should be"
}

attack_output()
{
    local name=$1 force=$2 thing=$3

    act "$name"
    make_victims
    plant "$thing" "$output"
    [ "$force" = plain ] || command+=(--force)
    attempt "${command[@]}"
    check_victims "$name"
    check_code "$name" "64 65 66 74"
    if [ $code -eq 0 ]; then
        # What has no end takes everything; whoever asks for that gets it.
        [ "$thing" = endless ] && [ -L "$output" ] && outcome right
        check_made "$name"
        outcome right
    fi
    check_named "$name" "$output"
    outcome refused
}

attack_staging()
{
    local name=$1 planted

    act "$name"
    planted=${2/@/$output}
    make_victims
    plant "$3" "$planted"
    attempt "${command[@]}"
    check_victims "$name"
    check_code "$name" "64 65 66 74"
    if [ $code -eq 0 ]; then
        check_made "$name"
        outcome right
    fi
    check_named "$name" "$planted" "$output"
    [ ! -e "$output" ] || bad half "refused, but $output is there"
    outcome refused
}

attack_making()
{
    local name=$1 planted=run/$2

    act "$name"
    make_victims
    mkdir -p "$(dirname "$planted")"
    plant "$3" "$planted"
    attempt "${command[@]}"
    check_victims "$name"
    check_code "$name" "64 65 66 74"
    if [ $code -eq 0 ]; then
        check_made "$name"
        outcome right
    fi
    check_named "$name" "$2"
    outcome refused
}

attack_inside()
{
    local path

    path=$(object_path "$1")
    cp -a "$base/first/$path" it
    make_victims "$base/first/$path/$2"
    plant "$3" "it/$2"
    ask_all "$1" "$2" "64 65 66 74"
    outcome $result
}

places_attack()
{
    "attack_$1" "${@:2}"
}
