#!/bin/bash
# What plan measures of the network of a lab: tests/lab/test_network.sh PROGRAM
#
# A link of 100 Mbit/s is one, a slower one is named; hosts that do not answer are a warning, in a time that can be borne; a job
# that asks for workers is planned with what was measured. Skips with exit code 77, and the reason, where no lab can be made.
set -euo pipefail
export LC_ALL=C

here=$(dirname "$(realpath "$0")")
seconds_max=60 # for any command

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    [ ! -s "$work/log" ] || sed 's/^/    | /' "$work/log" >&2
    exit 1
}

# ---- on host1 of the lab ----

# paceline WORDS...: its result in $work/out, its messages in $work/log.
paceline()
{
    local status=0

    timeout -s KILL "$seconds_max" "$program" "$@" >"$work/out" 2>"$work/log" || status=$?
    [ $status -eq 0 ] || fail "exit code $status: $*"
}

says()
{
    grep -qF -- "$1" "$work/log" || fail "not said: $1"
}

# of NAME: a number of the network in $work/out.
of()
{
    sed -n "s/.*\"network\":{[^}]*\"$1\":\([0-9.e+-]*\).*/\1/p" "$work/out"
}

# between WHAT VALUE LOW HIGH
between()
{
    awk -v value="$2" -v low="$3" -v high="$4" 'BEGIN { exit !(value != "" && value >= low && value <= high) }' ||
        fail "$1: $2, not between $3 and $4"
}

run_inside()
{
    local start

    paceline plan --ping --hosts "$LAB_HOSTFILE" --json
    between "bytes/s of a link of 100 Mbit/s" "$(of bytes_per_second)" 10e6 13e6
    between "seconds of a message" "$(of latency_seconds)" 1e-6 5e-3
    ! grep -q warning "$work/log" || fail "links that are alike are not"
    echo "ok: a link of 100 Mbit/s, of three: $(of bytes_per_second) bytes/s, $(of latency_seconds) s"

    "$here/lab" slow "$LAB_NAME" host3 --rate 10mbit
    paceline plan --ping --hosts "$LAB_HOSTFILE" --json
    says "between host1 and host3: 0.0"
    between "bytes/s of the usual link" "$(of bytes_per_second)" 10e6 13e6
    "$here/lab" heal "$LAB_NAME" host3
    echo "ok: a slower link is named"

    paceline plan --run "$work/run" --hosts "$LAB_HOSTFILE" --workers 2 --latency 1ms --json
    says "Gbit/s (measured) and 1e+03 us (given) between machines"
    between "bytes/s of a plan" "$(of bytes_per_second)" 10e6 13e6
    paceline train --data "$work/data" --model logreg --run "$work/auto" --hosts "$LAB_HOSTFILE" --workers auto --mode ps-async \
        --ps 1 --steps 20
    says "--workers auto: --mode ps-async"
    ! grep -q "is not measured" "$work/log" || fail "the network is assumed"
    echo "ok: plans have what was measured"

    "$here/lab" cut "$LAB_NAME" host4
    start=$SECONDS
    paceline plan --run "$work/run" --hosts "$LAB_HOSTFILE" --workers 2
    says "warning: the network between the hosts of"
    says "host4"
    says "between machines (assumed)"
    [ $((SECONDS - start)) -le 40 ] || fail "it took $((SECONDS - start)) s to give up"
    echo "ok: a host that does not answer is a warning, after $((SECONDS - start)) s"
}

# ---- outside ----

if [ "${1:-}" = --inside ]; then
    program=$2 work=$3
    run_inside
    exit 0
fi
program=$(realpath "${1:?"usage: test_network.sh PROGRAM"}")
"$here/lab" check || exit $?
export TMPDIR=/tmp # hosts share no /dev/shm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" gen clicks -o "$work/clicks.tsv" --rows 20000 --quiet >/dev/null
"$program" prep clicks "$work/clicks.tsv" -o "$work/data" --holdout 0.1 --features 100000 --quiet >/dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$program" train --data "$work/data" --model logreg --run "$work/run" --mode ps-sync --workers 1 --ps 0 --batch 100 --epochs 5 \
    --quiet >/dev/null
"$here/lab" run --hosts 4 --rate 100mbit -- "$here/test_network.sh" --inside "$program" "$work"
