#!/bin/bash
# Runs a job that fails and checks how it ends: expect.sh STATUS SECONDS TEXT COMMAND...
#
# It must end with that status within that time, say the text, and leave no process behind. Every rank prints "pid N".
set -uo pipefail
export LC_ALL=C

status=$1 seconds=$2 text=$3
shift 3
output=$(mktemp)
trap 'rm -f "$output"' EXIT

complain()
{
    printf '%s; the output is:\n' "$1"
    cat "$output"
    exit 1
}

timeout --kill-after=5 "$seconds" "$@" >"$output" 2>&1 </dev/null
got=$?
[ "$got" -ne 124 ] || complain "the job did not end within $seconds seconds"
[ "$got" -eq "$status" ] || complain "the job ended with $got, not $status"
grep -qF -- "$text" "$output" || complain "nothing says \"$text\""
mapfile -t pids < <(sed -nE 's/.*\bpid ([0-9]+)$/\1/p' "$output")
[ "${#pids[@]}" -gt 0 ] || complain "no rank said its pid"
for pid in "${pids[@]}"; do
    for ((i = 0; i < 500; i++)); do
        # A dead process may still be waited for by nobody: that is no harm.
        state=$(sed -nE 's/^State:\s+(.).*/\1/p' "/proc/$pid/status" 2>/dev/null)
        [ -n "$state" ] && [ "$state" != Z ] || continue 2
        sleep 0.01
    done
    complain "process $pid was left behind"
done
