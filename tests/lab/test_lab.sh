#!/bin/bash
# The lab keeps its promises: hosts with names, links and CPU shares of their own, and nothing left of them afterwards.
# Needs root; skips with 77 and the reason where the machine cannot do it. Bounds are wide: the machine may be busy.
set -u

self=$(realpath "$0")
lab=${self%/*}/lab
seconds_max=20 # for anything that is waited for

# ---- on host1, in labs that the second half of this file makes; $work comes from there ----

fail()
{
    echo "FAILED: $*" >&2
    exit 1
}

wait_for()
{
    local deadline=$((SECONDS + seconds_max))

    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "not within $seconds_max s: $*"
        sleep 0.05
    done
}

# between WHAT VALUE LEAST MOST
between()
{
    awk -v value="$2" -v least="$3" -v most="$4" 'BEGIN { exit !(value != "" && least <= value && value <= most) }' ||
        fail "$1: $2 is not between $3 and $4"
    echo "$1: $2"
}

# reachable HOST: nothing listens there, so a host that can be reached refuses at once.
reachable()
{
    timeout 2 bash -c "exec 3<>/dev/tcp/$1/9" 2>&1 | grep -q 'Connection refused'
}

megabits()
{
    mpirun --host host1,host2 "$work/probe" transfer "$1" </dev/null
}

test_names()
{
    [ "$(hostname)" = host1 ] || fail "the command runs on $(hostname), not on host1"
    [ "$LAB_HOSTS" = "host1 host2 host3" ] || fail "LAB_HOSTS is $LAB_HOSTS"
    [ "$(cat)" = "standard input" ] || fail "standard input got lost"
    mpirun --hostfile "$LAB_HOSTFILE" "$work/probe" </dev/null | sort >"$work/ranks" || fail "mpirun"
    printf 'rank %d of 3 on host%d\n' 0 1 1 2 2 3 | cmp - "$work/ranks" || fail "mpirun found other hosts"
    for host in $LAB_HOSTS; do
        [ "$("$LAB_AGENT" "$host" 'hostname; ls /sys/class/net' | tr '\n' ' ')" = "$host eth0 lo " ] ||
            fail "$host does not look as it should"
        reachable "$host" || fail "$host cannot be reached by its name"
    done
}

test_links()
{
    between "Mbit/s at 20mbit" "$(megabits 1000000)" 8 21
    "$lab" slow "$LAB_NAME" host2 --rate 5mbit
    between "Mbit/s at 5mbit, slowed" "$(megabits 300000)" 2 5.5
    "$lab" slow "$LAB_NAME" host2 --rate none
    "$lab" slow "$LAB_NAME" host1 --rate none
    between "Mbit/s without limit" "$(megabits 20000000)" 60 1e6
    "$lab" heal "$LAB_NAME" host1
    between "Mbit/s, healed" "$(megabits 1000000)" 8 21
}

test_cpu()
{
    between "cores of host2 at 0.15" "$("$LAB_AGENT" host2 "$work/probe" spin 1)" 0.05 0.2
    between "cores of host3 at 0.05" "$("$LAB_AGENT" host3 "$work/probe" spin 1)" 0.01 0.08
    "$lab" slow "$LAB_NAME" host2 --cpu none
    between "cores of host2, unlimited" "$("$LAB_AGENT" host2 "$work/probe" spin 1)" 0.3 1.01
    "$lab" heal "$LAB_NAME" host2
    between "cores of host2, healed" "$("$LAB_AGENT" host2 "$work/probe" spin 1)" 0.05 0.2
}

test_cut()
{
    "$lab" cut "$LAB_NAME" host3
    reachable host2 || fail "host2 went with host3"
    ! reachable host3 || fail "host3 can be reached without a cable"
    "$lab" heal "$LAB_NAME" host3
    wait_for reachable host3 # the kernel takes its time to notice a carrier
}

# Whatever tries to outlive the lab: in the background, orphaned, deaf to signals; and leaves something in Open MPI's place.
test_leftovers()
{
    touch "/dev/shm/$LAB_NAME" "${OMPI_MCA_orte_tmpdir_base?}/left"
    "$LAB_AGENT" host2 'trap "" HUP INT TERM; setsid sleep 1000 >/dev/null 2>&1 &'
    readlink /proc/self/ns/pid /proc/self/ns/net >"$work/namespaces"
    "$LAB_AGENT" host2 'readlink /proc/self/ns/net' >>"$work/namespaces"
    : >"$work/started"
    [ $# -eq 0 ] || "$@"
}

if [ "${1-}" = inside ]; then
    shift
    "$@"
    exit
fi

# ---- outside ----

"$lab" check || exit
command -v mpicc >/dev/null && command -v mpirun >/dev/null || {
    echo "skipped: mpicc and mpirun are not installed"
    exit 77
}
export work
export TMPDIR=/tmp # hosts share no /dev/shm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
name=selftest$$

# run_lab OPTIONS... -- TEST WORDS...: one of the tests above on host1 of a lab.
run_lab()
{
    local options=()

    while [ "$1" != -- ]; do
        options+=("$1")
        shift
    done
    "$lab" run --name "$name" "${options[@]}" -- bash "$self" inside "${@:2}"
}

# Nobody is in one of the namespaces that the lab had.
no_process()
{
    [ -s "$work/namespaces" ] &&
        ! find /proc -maxdepth 3 -path '/proc/[0-9]*/ns/*' -printf '%l\n' 2>/dev/null | grep -qxF -f "$work/namespaces"
}

no_files()
{
    [ -z "$(find /run -maxdepth 1 -name "paceline-lab.$name*")" ] &&
        [ -z "$(find /sys/fs/cgroup -maxdepth 2 -name "paceline-lab.$name*")" ] &&
        [ ! -e "/dev/shm/$name" ] && ! grep -q "paceline-lab.$name" /proc/mounts
}

# What a lab must not touch.
machine()
{
    hostname
    ip -oneline link
    ip -oneline address | sed 's/valid_lft.*//'
    ip route
    cat /etc/hosts
    ls /sys/class/net
}

# kill_lab SIGNAL: while COMMAND runs; sets status.
kill_lab()
{
    local pid

    rm -f "$work/started"
    # bash would have started it deaf to SIGINT
    env --default-signal "$lab" run --name "$name" --hosts 2 -- bash "$self" inside test_leftovers sleep 1000 &
    pid=$!
    wait_for test -e "$work/started"
    kill "-$1" "$pid"
    status=0
    wait "$pid" || status=$?
}

mpicc -O2 "${self%/*}/probe.c" -o "$work/probe" || fail "mpicc"
machine >"$work/before"

run_lab --hosts 3 -- test_names <<<"standard input" || fail "names"
run_lab --hosts 2 --rate 20mbit -- test_links || fail "links"
run_lab --hosts 3 --cpu 0.15 --cpu-of host3=0.05 -- test_cpu || fail "CPU shares"
run_lab --hosts 3 -- test_cut || fail "cut"
run_lab --hosts 2 -- test_leftovers || fail "leftovers"
no_process || fail "processes outlive the lab"
no_files || fail "files outlive the lab"
run_lab --hosts 1 -- exit 7
[ $? -eq 7 ] || fail "the exit code is not the command's"

kill_lab TERM 2>/dev/null
[ "$status" -eq 143 ] || fail "exit code $status after SIGTERM"
no_process && no_files || fail "something outlives SIGTERM"
kill_lab INT 2>/dev/null
[ "$status" -eq 130 ] || fail "exit code $status after SIGINT"
no_process && no_files || fail "something outlives SIGINT"
kill_lab KILL 2>/dev/null
wait_for no_process
run_lab --hosts 1 -- true || fail "a lab after one that was killed"
no_files || fail "the files of a killed lab are still there"

# Acting from outside on a lab that runs, and a second one of the same name.
mkfifo "$work/go"
rm -f "$work/started"
run_lab --hosts 2 -- test_leftovers cat "$work/go" &
running=$!
wait_for test -e "$work/started"
[ "$("$lab" on "$name" host2 hostname)" = host2 ] || fail "on, from outside"
"$lab" cut "$name" host2 || fail "cut, from outside"
"$lab" on "$name" host1 bash "$self" inside reachable host2 && fail "host2 can be reached without a cable"
"$lab" run --name "$name" --hosts 1 -- true 2>"$work/err" && fail "two labs of one name"
grep -q 'running already' "$work/err" || fail "another reason: $(cat "$work/err")"
echo >"$work/go"
wait "$running" || fail "the running lab was disturbed"

for words in "--hosts 0" "--hosts 2 --rate 10" "--hosts 2 --cpu 0" "--hosts 2 --cpu-of host3=0.1" "--hosts 2 --name a/b" \
    "--host 2"; do
    # shellcheck disable=SC2086
    "$lab" run $words -- true 2>/dev/null
    [ $? -eq 64 ] || fail "accepted: $words"
done
no_process && no_files || fail "something is left"
machine | cmp - "$work/before" || fail "the machine is not as it was before"
echo "lab: hosts, links, CPU shares and cuts are as asked for, and nothing is left"
