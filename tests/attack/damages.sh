# Damages: bytes of files that the program has written are changed behind its back.
#
# OBJECT FILE DAMAGE TURN: every file of a data set, of a run that has ended or was killed, of a checkpoint. Each verb that
# reads the object must then either do as if nothing had happened, or end with a code of damage and name the file.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

damages_family="Damaged files"
damages_default=2500

damages_objects()
{
    printf 'set-%s\n' "${sets[@]}"
    printf 'finished-%s\n' "${kinds[@]}"
    printf 'killed-%s\n' "${kinds[@]}"
    printf 'checkpoint-%s\n' "${kinds[@]}"
}

# object_path OBJECT: below a family.
object_path()
{
    case $1 in
    set-*) echo "${1#*-}" ;;
    checkpoint-*) echo "killed/${1#*-}/checkpoints/step-000000000040.0001" ;;
    *) echo "${1/-//}" ;;
    esac
}

damages_list()
{
    local object file damage

    for object in $(damages_objects); do
        for file in $(cd "$base/first/$(object_path "$object")" && find . -type f -printf '%P\n' | sort); do
            for damage in "flip "{1..4} "zero "{1..2} "cut "{1..3} grow\ 1 remove\ 1 swap\ 1; do
                echo "$object $file $damage"
            done
            [[ $object != set-* ]] || printf "$object $file %s\n" "flip "{5..12} "zero "{3..6}
        done
    done
}

damages_row()
{
    case $1 in
    set-*) echo "data set of ${1#*-}" ;;
    finished-*) echo "run that has ended" ;;
    killed-*) echo "run that was killed" ;;
    checkpoint-*) echo "checkpoint" ;;
    esac
}

# ---- the damage ----

# flip FILE PLACE: one bit.
flip()
{
    local byte

    byte=$(od -An -tu1 -j "$2" -N 1 "$1")
    draw 8
    printf '%b' "\\x$(printf %02x $((byte ^ 1 << drawn)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# damage FILE DAMAGE TURN TWIN: false if no byte is another.
damage()
{
    local size turn

    size=$(stat -c %s "$1")
    case $2 in
    flip | zero) [ "$size" -gt 0 ] || return 1 ;;
    esac
    case $2-$3 in
    flip-*)
        draw "$size"
        [ "$3" -gt 1 ] || draw $((size < 64 ? size : 64)) # where a format has its first words
        echo "byte $drawn of $size" >>"$work/said"
        flip "$1" "$drawn"
        ;;
    zero-*)
        for turn in 1 2 3 4 5 6 7 8; do
            draw $(((size + 4095) / 4096))
            dd if=/dev/zero of="$1" bs=4096 seek="$drawn" count=1 conv=notrunc status=none
            truncate -s "$size" "$1"
            ! cmp -s "$1" "$5" || continue
            echo "block $drawn of $size bytes" >>"$work/said"
            return 0
        done
        return 1
        ;;
    cut-1) truncate -s 0 "$1" ;;
    cut-2) truncate -s $((size / 2)) "$1" ;;
    cut-3) truncate -s $((size > 0 ? size - 1 : 0)) "$1" ;;
    grow-*) head -c 100 /dev/urandom >>"$1" ;;
    remove-*) rm "$1" ;;
    swap-*) [ -f "$4" ] && cp "$4" "$1" ;;
    esac
    ! cmp -s "$1" "$5"
}

# ---- what is asked of a damaged object ----

# each_question OBJECT: what it can be asked, those that change it last.
each_question()
{
    case $1 in
    set-*) echo describe train score like merge ;;
    finished-*) echo describe predict score like resume longer ;;
    killed-*) echo describe resume ;;
    checkpoint-*) echo describe ;;
    esac
}

# question OBJECT QUESTION: asks it of ./it; sets code, and answer if that is 0.
question()
{
    local what=${1#*-} set kind

    set=${set_of[$what]:-$what}
    kind=$what
    case $1 in
    set-clicks) kind=logreg ;;
    set-texts) kind=rnn ;;
    set-pictures) kind=cnn ;;
    esac
    case ${1%%-*}-$2 in
    set-describe) attempt inspect it --json ;;
    *-describe) attempt inspect it ;;
    set-train)
        rm -rf trained
        train_command "$kind" first trained
        attempt "${command[@]}" --data it
        ;;
    set-score) attempt eval --run "$base/first/finished/$kind" --data it --json ;;
    *-like)
        rm -rf liked
        attempt prep "${verb_of[$set]}" "$base/first/${raw_of[$set]}" -o liked --like it --quiet
        ;;
    set-merge) attempt merge it -o merged.h5 --quiet ;;
    finished-predict) attempt predict --run it "$base/first/${raw_of[$set]}" ;;
    finished-score) attempt eval --run it --data "$base/first/$set" --json ;;
    *-resume | *-longer)
        train_command "$what" first it
        [ "$2" = resume ] || command+=(--steps $((job_length + 20)))
        attempt "${command[@]}" --resume
        ;;
    esac
    [ $code -ne 0 ] || case ${1%%-*}-$2 in
    set-train) answer=$(digest <trained/model.safetensors) ;;
    *-like) answer=$(prints liked | digest) ;;
    set-merge) answer=$(digest <merged.h5) ;;
    *-resume | *-longer) answer=$(digest <it/model.safetensors) ;;
    finished-describe | killed-describe) answer=- ;; # figures of a run are shown as they are
    *) answer=$(digest <"$work/out") ;;
    esac
}

# want_answers: those of undamaged objects.
want_answers()
{
    local object asked

    [ -z "${wanted[set-clicks-train]:-}" ] || return 0
    mkdir "$work/whole"
    cd "$work/whole" || exit
    for object in $(damages_objects); do
        rm -rf it
        cp -a "$base/first/$(object_path "$object")" it
        for asked in $(each_question "$object"); do
            rm -f merged.h5
            question "$object" "$asked"
            [ $code -eq 0 ] || bad wrong "$object: $asked fails undisturbed"
            wanted[$object-$asked]=$answer
        done
    done
    cd "$work" || exit
}

damages_prepare()
{
    want_answers
}

# ask_all OBJECT FILE CODES: each question about ./it, whose FILE is not what it was. Sets result: refused, if a verb at
# least has seen it, else right.
ask_all()
{
    local asked names file

    result=right
    names=("$(basename "$2")")
    # Of a file that belongs elsewhere the checkpoint that it lies in is a good name.
    [[ $3 != *64* || $2 != */* ]] || names+=("$(basename "$(dirname "$2")")")
    case ${names[0]} in # what tells of others may be believed, and they blamed
    *.json) for file in $(cd "$base/first/$(object_path "$1")" && find . -type f); do names+=("$(basename "$file")"); done ;;
    esac
    for asked in $(each_question "$1"); do
        question "$1" "$asked"
        check_code "$asked" "$3"
        if [ $code -ne 0 ] || { [[ $1 = checkpoint-* ]] && grep -qE '^whole +no' "$work/out"; }; then
            check_named "$asked" "${names[@]}"
            result=refused
        elif [ "$answer" != "${wanted[$1-$asked]}" ]; then
            bad silent "$asked: code 0 and another output"
        fi
        [ -z "${victims:-}" ] || check_victims "$asked"
    done
}

# damages_attack OBJECT FILE DAMAGE TURN
damages_attack()
{
    local path codes="65 66 74"

    path=$(object_path "$1")
    cp -a "$base/first/$path" it
    damage "it/$2" "$3" "$4" "$base/twin/$path/$2" "$base/first/$path/$2" || outcome missed
    [ "$3" != swap ] || codes+=" 64" # of another job, perhaps
    ask_all "$1" "$2" "$codes"
    outcome $result
}
