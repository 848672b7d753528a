#!/bin/bash
# Training across the hosts of a lab: tests/lab/test_train.sh PROGRAM
#
# The same model as on one machine; what a job says when a host is cut off, does not answer, has no data set or no program; and
# that it recovers when the host comes back, or goes on without a worker that has died there.
# Skips with exit code 77, and the reason, where no lab can be made.
set -euo pipefail
export LC_ALL=C

here=$(dirname "$(realpath "$0")")
seconds_max=40 # for anything that is waited for

fail()
{
    printf 'FAILED: %s\n' "$*" >&2
    [ ! -s "$work/log" ] || sed 's/^/    | /' "$work/log" >&2
    exit 1
}

# ---- on host1 of the lab ----

# train OPTIONS...: a job on the lab's hosts, with its messages in $work/log. Returns its exit code.
train()
{
    local status=0

    timeout -s KILL "$seconds_max" "$program" train --data "$work/data" --model logreg --run "$work/run" --force \
        --mode ps-sync --workers 2 --ps 1 --batch 100 --hosts "$LAB_HOSTFILE" --deadline 3 "$@" >"$work/log" 2>&1 || status=$?
    return $status
}

# ends STATUS TEXT...: the last train failed with that status, and its last line holds the texts.
ends()
{
    local expected=$1 status=$2 text last

    shift 2
    last=$(tail -n 1 "$work/log")
    [ "$status" -eq "$expected" ] || fail "the job ended with $status, not $expected"
    for text; do
        [[ $last == *"$text"* ]] || fail "the last line does not say \"$text\""
    done
    [ ! -e "$work/run/summary.json" ] || fail "a failed job has a summary"
}

until_true()
{
    local deadline=$((SECONDS + seconds_max))

    until "$@"; do
        [ $SECONDS -lt $deadline ] || fail "waited too long for: $*"
        sleep 0.05
    done
}

steps_have_begun()
{
    grep -qs '"kind":"step"' "$work/run/metrics.jsonl"
}

sha256_of()
{
    sed -n 's/.*"model_sha256": "\(.*\)".*/\1/p' "$1/summary.json"
}

run_inside()
{
    local status=0 job version

    # Room for another worker.
    sed 's/slots=[0-9]*/slots=2/' "$LAB_HOSTFILE" >"$work/hosts"
    train || fail "a plain job failed"
    grep -q '"host": "host2"' "$work/run/cluster.json" || fail "nobody was on host2"
    [ "$(sha256_of "$work/run")" = "$(sha256_of "$work/alone")" ] || fail "the model is not that of the same job on one machine"
    echo "ok: the same model on three hosts as on one machine"

    # /dev/shm is not shared between the hosts.
    cp -r "$work/data" /dev/shm/data
    status=0
    train --data /dev/shm/data || status=$?
    ends 66 $status "worker1 (rank 1, host host2)" "/dev/shm/data"
    echo "ok: a host without the data set is named"

    cp "$program" /dev/shm/paceline
    status=0
    program=/dev/shm/paceline train || status=$?
    [ $status -ne 0 ] || fail "a host without the program went unnoticed"
    tail -n 1 "$work/log" | grep -q "/dev/shm/paceline" || fail "the missing program is not named"
    tail -n 1 "$work/log" | grep -Eq "host[23]" || fail "the host without the program is not named"
    echo "ok: a host without the program is named"

    version=$("$program" --version | head -n 1 | cut -d ' ' -f 2)
    sed "s/${version//./\\.}/${version%?}x/g" "$program" >"$work/other"
    "$LAB_AGENT" host2 "cp $work/other /dev/shm/paceline && chmod +x /dev/shm/paceline"
    "$LAB_AGENT" host3 "cp $program /dev/shm/paceline"
    status=0
    program=/dev/shm/paceline train || status=$?
    ends 1 $status "worker1 (rank 1, host host2)" "${version%?}x" "$version"
    echo "ok: a host with another version is named"

    rm -rf "$work/run"
    status=0
    train --epochs 100000 --log-every 10 --max-restarts 0 &
    job=$!
    until_true steps_have_begun
    "$here/lab" cut "$LAB_NAME" host2
    wait $job || status=$?
    ends 1 $status "worker1 (rank 1, host host2)" "no sign of life" "step "
    "$here/lab" heal "$LAB_NAME" host2
    echo "ok: a pulled cable is named"

    rm -rf "$work/run"
    status=0
    train --checkpoint-every 20 --log-every 10 --inject stall:chief=2s@step=60 &
    job=$!
    until_true steps_have_begun
    "$here/lab" cut "$LAB_NAME" host2
    until_true grep -q "worker1 (rank 1, host host2).*starting again from" "$work/log"
    "$here/lab" heal "$LAB_NAME" host2
    wait $job || status=$?
    [ $status -eq 0 ] || fail "the job did not recover: exit code $status"
    [ "$(sha256_of "$work/run")" = "$(sha256_of "$work/alone")" ] || fail "the model is another after the cable was pulled"
    echo "ok: a job recovers from a pulled cable, with the same model"

    status=0
    train --mode ps-async --workers 3 --epochs 3 --hosts "$work/hosts" --inject kill:worker1@step=50 || status=$?
    [ $status -eq 0 ] || fail "the job did not go on without worker1: exit code $status"
    grep -q "worker1 (rank 1, host host2) was killed by a signal; the others go on without it" "$work/log" ||
        fail "it does not say that it goes on without worker1"
    grep -q '"workers_lost": 1' "$work/run/summary.json" || fail "the summary knows nothing of the lost worker"
    grep -q '"restarts": 0' "$work/run/summary.json" || fail "the job was restarted"
    echo "ok: an asynchronous job goes on without a worker that dies on another host"

    rm -rf "$work/run"
    "$here/lab" cut "$LAB_NAME" host3
    status=0
    train --max-restarts 0 || status=$?
    ends 1 $status "ps0" "host3"
    "$here/lab" heal "$LAB_NAME" host3
    echo "ok: a host that does not answer is named"
}

# ---- outside ----

if [ "${1:-}" = --inside ]; then
    program=$2 work=$3
    run_inside
    exit 0
fi
program=$(realpath "${1:?"usage: test_train.sh PROGRAM"}")
"$here/lab" check || exit $?
export TMPDIR=/tmp # hosts share no /dev/shm
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$program" gen clicks -o "$work/clicks.tsv" --rows 20000 --quiet >/dev/null
"$program" prep clicks "$work/clicks.tsv" -o "$work/data" --holdout 0.1 --features 100000 --quiet >/dev/null
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
"$program" train --data "$work/data" --model logreg --run "$work/alone" --mode ps-sync --workers 2 --ps 1 --batch 100 \
    --quiet >/dev/null
"$here/lab" run --hosts 3 -- "$here/test_train.sh" --inside "$program" "$work"
