# Limits: too few open files, too small files, too little memory or disk, too few processes, directories that may not be
# written, standard streams that are closed or full.
#
# LIMIT ACT: an act of material.sh under it; how tight, is drawn. It ends right; or with a message and a code that is
# neither a signal's nor that of damaged data, and then there is nothing that looks whole and is not, and the same command
# without the limit ends right.
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

limits_family="Limits"
limits_default=450
user=61000 # and above: one for each attack, whose processes are counted by user

limits=(files size memory processes disk names read-only unreadable closed full)

limits_list()
{
    local limit name turn

    for turn in 1 2 3; do
        for limit in "${limits[@]}"; do
            for name in "${acts[@]}"; do
                case $turn-$limit-$name in
                [23]-closed-* | [23]-full-* | [23]-read-only-*) ;; # there is one way only
                *-full-train-* | *-full-resume-* | *-unreadable-gen-*) ;;
                *-unreadable-inspect-*) ;; # it would say where it has looked
                *-disk-eval-* | *-disk-inspect-* | *-disk-print-* | *-names-eval-* | *-names-inspect-* | *-names-print-*) ;;
                *-processes-prep-* | *-processes-train-* | *-processes-resume-*) echo "$limit $name $turn" ;;
                *-processes-*) ;; # of one thread
                *) echo "$limit $name $turn" ;;
                esac
            done
        done
    done
}

limits_row()
{
    case $1 in
    files) echo "few open files" ;;
    size) echo "small files only" ;;
    memory) echo "little memory" ;;
    processes) echo "few processes and threads" ;;
    disk | names) echo "a full disk" ;;
    read-only) echo "a directory that may not be written" ;;
    unreadable) echo "a file that may not be read" ;;
    closed | full) echo "standard streams that are closed or full" ;;
    esac
}

limits_prepare()
{
    want_acts
    cp "$paceline" "$work/program"
    chmod 755 "$work" "$work/program"
    limits_program=$work/program
    limits_top=$work
}

# as_user USER WORDS...: sets preface.
as_user()
{
    [ "$(id -u)" -eq 0 ] || outcome skipped
    user=$((user + number))
    chown -R "$user" "$work"
    preface=(setpriv "--reuid=$user" "--regid=$user" --clear-groups "$@")
}

# mount_small OPTION: $work/disk, in which the act works.
mount_small()
{
    [ "$(id -u)" -eq 0 ] && mkdir disk && mount -t tmpfs -o "$1" none disk 2>/dev/null || outcome skipped
    trap 'cd /; umount -l "$work/disk"' EXIT
}

# limited WORDS...: the command, with standard output in out of the current directory.
limited()
{
    code=0
    echo "${preface[*]} paceline $*" >>"$work/said"
    # Errors go through a pipe, which no limit of files concerns.
    { timeout -k 1 60 "${preface[@]}" "$paceline" "$@" 2>&1 >"$stdout" </dev/null | cat >"$work/err"; code=${PIPESTATUS[0]}; }
    echo "code $code" >>"$work/said"
    head -c 2000 "$work/err" >>"$work/said"
}

# tighten LIMIT TURN: sets preface, and what else there is to it; how, what was drawn.
tighten()
{
    case $1 in
    files)
        draw $(($2 * 8))
        preface=(bash -c "ulimit -n $((4 + drawn)); exec \"\$@\"" limit)
        ;;
    size)
        pick 0 1 4 8 16 32 64 100
        preface=(bash -c "ulimit -f $picked; exec \"\$@\"" limit)
        ;;
    memory)
        draw $(($2 * 60))
        preface=(bash -c "ulimit -v $((1024 * (75 + drawn))); exec \"\$@\"" limit)
        ;;
    processes)
        as_user bash -c "ulimit -u $2; exec \"\$@\"" limit
        command+=(--threads 4)
        ;;
    read-only)
        as_user
        chown root .
        chmod 555 .
        stdout=$work/out
        [ "$output" != out ] || output=$work/out
        ;;
    unreadable) hide_input ;;
    full) stdout=/dev/full ;;
    closed)
        pick '<&-' '>&-' '2>&-' '<&- >&-' '<&- >&- 2>&-'
        how=$picked
        preface=(bash -c "exec \"\$@\" $how" limit)
        ;;
    esac
}

# make_room LIMIT: sets place, the directory in which the act works.
make_room()
{
    place=here
    case $1 in
    disk)
        draw 120
        mount_small "size=$((4 * (1 + drawn)))k"
        place=disk
        ;;
    names)
        draw 12
        mount_small "nr_inodes=$((2 + drawn))"
        place=disk
        ;;
    *) mkdir here ;;
    esac
}

# limits_attack LIMIT ACT TURN
limits_attack()
{
    local stdout=out how="" place hidden="" copied=()

    paceline=$limits_program preface=()
    make_room "$1"
    cd $place || exit
    act "$2"
    # There may be no room for the run itself.
    [[ $2 != resume-* ]] || [ "$(snapshot run)" = "$(snapshot "$base/first/killed/${2#*-}")" ] || outcome missed
    tighten "$1" "$3"
    limited "${command[@]}"
    case $code in 126 | 127) outcome missed ;; esac # it was not even loaded
    judge_limited "$1" "$2"
}

# hide_input: what the act reads is a copy, one file of which may not be read. Sets hidden, and copied: of what.
hide_input()
{
    local word files i

    for ((i = 1; i < ${#command[@]}; i++)); do
        word=${command[i]}
        [[ $word = "$base"/* ]] || continue
        cp -a "$word" "../hidden-$i"
        command[i]=../hidden-$i
        copied[i]=$word
    done
    mapfile -t files < <(find .. -path '../hidden-*' -type f | sort)
    [ ${#files[@]} -gt 0 ] || outcome missed
    pick "${files[@]}"
    hidden=$picked
    as_user
    chmod 000 "$hidden"
    echo "hidden: $hidden" >>"$work/said"
}

# judge_limited LIMIT ACT
judge_limited()
{
    local codes="1 66 71 74"

    case $1 in unreadable | read-only) codes="64 66 74" ;; esac
    [[ $hidden != *.jpg ]] || codes+=" 65" # a picture is a bad row
    check_code "$2" "$codes"
    if [ $code -eq 0 ]; then
        say_originals
        # One among many pictures may be left out, if that is said.
        [[ $hidden != *.jpg ]] || [ "$2" != prep-pictures ] || { check_named "$2" "$(basename "$hidden")" && outcome refused; }
        case $1-$output-$how in full-out-* | closed-out-*' >'* | closed-out-'>'*) bad silent "code 0, and nothing was written" ;; esac
        [ "$(made "$output")" = "${wanted[$2]}" ] || bad silent "code 0 and another output"
        outcome right
    fi
    case $1-$how in
    closed-*2*) ;; # nobody can be told
    unreadable-*) check_named "$2" "$(basename "$hidden")" ;;
    *) grep -qE '^paceline: (error|warning): ' "$work/err" || bad nameless "exit code $code without a word" ;;
    esac
    case $1-$2 in unreadable-* | *-print-* | *-eval-* | *-inspect-*) outcome refused ;; esac
    looks_whole "$2" && bad half "$output is there, and it is not right"
    again "$2"
    outcome refused
}

# say_originals: what was written has the names of what was copied.
say_originals()
{
    local i

    for i in "${!copied[@]}"; do
        [ ! -f "$output" ] || sed -i "s,\.\./hidden-$i,${copied[i]},g" "$output"
    done
}

# looks_whole ACT: something is there that is not what it should be. A run is known by its model.
looks_whole()
{
    local seen=$output

    [ "$output" != run ] || seen=run/model.safetensors
    [ -e "$seen" ] && [ "$(made "$output")" != "${wanted[$1]}" ]
}

# again ACT: without the limit. It goes on where something was begun.
again()
{
    local refused

    [ "$place" = here ] || { mount -o remount,size=100m,nr_inodes=10000 none "$work/disk" || fail "no larger disk"; }
    chmod 755 . && chown -R root .
    preface=() stdout=out
    case $1 in
    train-*) [ ! -e run ] || command+=(--resume) ;;
    esac
    limited "${command[@]}"
    refused=$code
    [ $code -ne 66 ] || { command=("${command[@]/--resume/--force}") && limited "${command[@]}"; } # nothing was begun
    [ $code -ne 64 ] || { command+=(--force) && limited "${command[@]}"; }
    [ $code -eq 0 ] || bad half "afterwards, without the limit: exit codes $refused, $code"
    [ "$(made "$output")" = "${wanted[$1]}" ] || bad half "afterwards, without the limit: another output"
}
