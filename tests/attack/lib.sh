# Helpers for attacks: chance, judging, what must stay as it is. Read by tests/attack/run, behind ../fault/lib.sh.
#
# An attack is a subshell in a directory of its own, $work. It ends with one word of its outcome:
#
#     right     all came out as if nothing had happened: the same bytes
#     refused   an error, with its exit code, that names what is wrong; nothing else came of it
#     missed    it has not hit: the process was gone already, the bytes were the same; it does not count
#     skipped   it needs what is not there: root, or the preload library
#
# or with `bad CLASS TEXT`, a failure. Classes: silent (code 0 and another output), crash (a signal, or the code of a
# bug), hang, nameless (an error that does not name the file), code (an error with another code than promised),
# victim (what belongs to somebody else was changed), half (what is not whole looks like it), wrong (all else).
# shellcheck shell=bash disable=SC2034,SC2154 # variables of the other files

seconds_of_verb=10 # more is a hang

outcome()
{
    echo "$*" >"$work/outcome"
    exit 0
}

bad()
{
    {
        echo "FAILED: $*"
        echo "--- standard output"
        head -c 2000 "$work/out"
        echo "--- standard error"
        head -c 4000 "$work/err"
    } >>"$work/said" 2>&1
    [ -n "${attacking:-}" ] || { tail -n 60 "$work/said" >&2 && exit 1; } # what is to be attacked could not be made
    outcome failed "$@"
}

# fail TEXT...: the helpers of other tests end with it, too.
fail()
{
    bad wrong "$@"
}

# draw N: sets drawn, below N.
draw()
{
    drawn=$(((RANDOM << 15 | RANDOM) % $1))
}

# pick WORDS...: sets picked, one of them.
pick()
{
    draw $#
    shift "$drawn"
    picked=$1
}

# attempt WORDS...: the program, with an end to all patience; sets code.
attempt()
{
    code=0
    echo "paceline $*" >>"$work/said"
    timeout -k 1 $seconds_of_verb ${preface[@]+"${preface[@]}"} "$paceline" "$@" >"$work/out" 2>"$work/err" </dev/null || code=$?
    echo "code $code" >>"$work/said"
    head -c 2000 "$work/err" >>"$work/said"
}

# check_code WHAT CODES: neither a signal nor a bug nor a hang; 0, or one of these.
check_code()
{
    case $code in
    124 | 137) bad hang "$1: no end within $seconds_of_verb s" ;;
    70 | 12[5-9] | 1[3-9]? | 2??) bad crash "$1: exit code $code" ;;
    esac
    [[ " 0 $2 " = *" $code "* ]] || bad code "$1: exit code $code, not one of $2"
}

# check_named WHAT NAME...: the error names one of them.
check_named()
{
    local what=$1 name

    shift
    for name; do
        ! grep -qF -- "$name" "$work/err" || return 0
    done
    bad nameless "$what: exit code $code, and nothing about $*"
}

# snapshot DIRECTORY: all that is in it, by type, rights, target and contents. What cannot be read is there by name.
snapshot()
{
    (
        cd "$1" || exit
        find . -printf '%P %y %m %l\n' | sort
        find . -type f -exec sha256sum {} + 2>/dev/null | sort -k 2
    )
}

digest()
{
    local sum

    sum=$(sha256sum)
    echo "${sum%% *}"
}

# ---- victims: what is not the program's ----

# make_victims: $work/outside, and what it has to look like for ever.
make_victims()
{
    mkdir -p "$work/outside/directory"
    echo "precious" >"$work/outside/file"
    echo "precious" >"$work/outside/directory/file"
    [ $# -eq 0 ] || cp -a "$1" "$work/outside/same"
    victims=$(snapshot "$work/outside")
}

check_victims()
{
    [ "$(snapshot "$work/outside")" = "$victims" ] ||
        bad victim "$1: $(diff <(echo "$victims") <(snapshot "$work/outside") | grep '^[<>]' | head -n 3 | tr '\n' ' ')"
}

# Kinds of things that are no files. `same` is a link to what should be there, whatever that is.
things=(fifo socket directory dangling loop to-file to-directory endless)

# plant THING PATH: it is there afterwards, in place of whatever was.
plant()
{
    rm -rf "$2"
    case $1 in
    fifo) mkfifo "$2" ;;
    socket) cp -a "$base/socket" "$2" ;;
    directory) mkdir "$2" ;;
    dangling) ln -s "$work/outside/nothing" "$2" ;;
    loop) ln -s "$(basename "$2")" "$2" ;;
    to-file) ln -s "$work/outside/file" "$2" ;;
    to-directory) ln -s "$work/outside/directory" "$2" ;;
    endless) ln -s /dev/zero "$2" ;;
    same) ln -s "$work/outside/same" "$2" ;;
    esac || fail "cannot plant $1 at $2"
}
