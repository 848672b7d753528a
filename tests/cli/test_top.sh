#!/bin/bash
# paceline top: once in a pipe, live on a terminal, on runs that go on, end, are killed, or are somebody else's.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
export LC_ALL=C.UTF-8 TERM=xterm COLUMNS=

run gen clicks -o clicks.tsv --rows 20k
run prep clicks clicks.tsv -o data --holdout 0.1
words=(train --data data --model logreg)

# screen KEYS WORDS...: on a terminal of its own; what it showed is in $work/screen. Keys are typed when "chief" is
# on the screen.
screen()
{
    local keys=$1

    shift
    : >"$work/screen"
    mkfifo "$work/keys" 2>/dev/null
    # shellcheck disable=SC2094 # one is read, the other is written
    env --default-signal=INT,QUIT script -qefc "trap : INT; stty rows 30 cols 100; $(printf '%q ' "$@"); echo code \$?; stty -a" "$work/screen" \
        <"$work/keys" >"$work/shown" 2>&1 &
    job=$!
    exec 7>"$work/keys"
    wait_for grep -qa chief "$work/screen"
    if [ "$keys" = TERM ]; then
        kill -TERM "$(pgrep -f "^$1 $2 $3\$")"
    else
        printf '%b' "$keys" >&7
    fi
    wait_for grep -qa "code [0-9]" "$work/screen"
    exec 7>&-
    wait "$job" 2>/dev/null
}

# shown TEXT...: each was on the screen.
shown()
{
    for text in "$@"; do
        grep -qaF -- "$text" "$work/screen" || fail "was not on the screen: $text"
    done
}

# ---- a run that has ended ----
run "${words[@]}" --run "$work/ended" --eval-every 20
run top ended
expect_text "done, " chief "log-loss" "step 36 of 36 (100 %)"
expect_no_error
[ "$(wc -L <"$work/out")" -le 80 ] || fail "more than 80 columns in a pipe"
COLUMNS=60 run top ended
[ "$(wc -L <"$work/out")" -le 60 ] || fail "more than 60 columns"
grep -q '▁' "$work/out" || fail "no sparkline"
LC_ALL=C run top ended --once
! grep -q '[^ -~]' "$work/out" || fail "no ASCII in a locale that has nothing else"
run top ended --json
expect_object
expect_equal standing "$(json_text standing)" "done"
expect_exit 66 "$paceline" top nowhere
expect_error "nowhere: "
expect_exit 66 "$paceline" top data
expect_error "is no run directory"
usage_error "0 paths" -- top
usage_error "2 paths" -- top ended ended
usage_error "unknown verb watch (did you mean top?)" -- watch ended
"$paceline" top ended | head -n 1 >"$work/out" || fail "a reader that leaves early"

# figures: those of metrics.jsonl
run top ended --json
last_sample=$(grep '"kind":"sample"' ended/metrics.jsonl | tail -n 1)
expect_equal rows "$(tr -d ' ' <"$work/out" | sed -n 's/.*"roles":\[{[^}]*"rows":\([0-9]*\).*/\1/p')" \
    "$(sed -n 's/.*"rows":\([0-9]*\).*/\1/p' <<<"$last_sample")"
last_step=$(grep '"kind":"step"' ended/metrics.jsonl | tail -n 1)
expect_equal loss "$(sed -n 's/.*"loss":\([-.0-9e]*\),"lr".*/\1/p' "$work/out")" \
    "$(sed -n 's/.*"loss":\([-.0-9e]*\).*/\1/p' <<<"$last_step")"

# ---- on a terminal ----
if command -v script >/dev/null; then
    screen q "$paceline" top "$work/ended"
    shown chief "code 0"
    grep -qa ' echo ' "$work/screen" || fail "the terminal does not echo any more"
    screen '\003' "$paceline" top "$work/ended"
    shown "code 130"
    grep -qa ' echo ' "$work/screen" || fail "the terminal does not echo any more"
    grep -qa ' icanon' "$work/screen" || fail "the terminal has no lines any more"
    screen TERM "$paceline" top "$work/ended"
    shown "code 143"
    grep -qa ' icanon' "$work/screen" || fail "the terminal has no lines any more"
    TERM=nothing-like-this run top ended
    expect_text chief
fi

# ---- one that goes on, is somebody else's, and is killed ----
start_job "$paceline" "${words[@]}" --run "$work/goes" --epochs 100000 --log-every 1000
wait_for trains "$work/goes"
run top goes
expect_text running "rows/s"
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 755 "$work"
    expect_exit 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$paceline" top "$work/goes"
    expect_text running
fi
kill -KILL "$job"
end_job 137
run top goes
expect_text killed

# ---- half-written, of a newer version, gone ----
truncate -s -5 goes/metrics.jsonl
printf '{"kind":"sample","t":99,"role":"chief","new_s":1}\n{"kind":"hologram","t":100}\n' >>goes/metrics.jsonl
printf 'no JSON' >goes/state.json
run top goes
expect_text unknown "Missing:" chief
rm goes/metrics.jsonl
run top goes
expect_text "no steps yet" "metrics.jsonl"
echo passed
