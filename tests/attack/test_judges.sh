#!/bin/bash
# Attacks are judged: a program that hides what it was told is found out. tests/attack/test_judges.sh PROGRAM
# shellcheck disable=SC2034 # variables of the other files
here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=../fault/lib.sh
source "$here/../fault/lib.sh"
for part in lib material damages; do
    # shellcheck source=/dev/null
    source "$here/$part.sh"
done

# liar LIE: a program that is the real one, but where that ends with 65 or 66.
liar()
{
    cat >"$work/liar" <<END
#!/bin/bash
"$paceline" "\$@" 2>"$work/heard"
code=\$?
case $1-\$code in
silent-6[56]) exit 0 ;;
nameless-6[56]) echo "paceline: error: something is wrong" >&2 && exit \$code ;;
crash-6[56]) kill -SEGV \$\$ ;;
hang-6[56]) exec sleep 60 ;;
code-6[56]) code=64 ;;
esac
cat "$work/heard" >&2
exit \$code
END
    chmod +x "$work/liar"
}

# judged OUTCOME PROGRAM SECONDS: of a data set without one of its files.
judged()
{
    rm -rf attack
    mkdir attack
    (
        paceline=$2 work=$work/attack attacking=yes seconds_of_verb=$3
        cd attack && damages_attack set-clicks part-00001.h5 remove 1
    )
    [[ $(cat attack/outcome) == "$1"* ]] || {
        echo "FAILED: judged $(cat attack/outcome), not $1" >&2
        cat attack/said >&2
        exit 1
    }
}

sets=(clicks) kinds=(logreg)
make_material
want_answers
judged refused "$paceline" 20
for lie in silent nameless crash code; do
    liar $lie
    judged "failed $lie" "$work/liar" 20
done
liar hang
judged "failed hang" "$work/liar" 2
