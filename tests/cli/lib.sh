# Helpers for the command-line tests. Use: source "$(dirname "$0")/lib.sh"
#
# The program is $1. Each test works in $work, which is removed at the end. The first failure ends the test.
set -u

paceline=$(realpath "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in ${!PACELINE_*}; do
    unset "$name"
done

fail()
{
    echo "FAILED: $*" >&2
    echo "--- standard output" >&2
    head -n 40 "$work/out" >&2
    echo "--- standard error" >&2
    head -n 40 "$work/err" >&2
    exit 1
}

# expect_exit CODE COMMAND...: runs it; its output is in $work/out and $work/err afterwards.
expect_exit()
{
    local wanted=$1 got=0

    shift
    "$@" >"$work/out" 2>"$work/err" </dev/null || got=$?
    [ "$got" -eq "$wanted" ] || fail "exit code $got instead of $wanted: $*"
}

# expect_text TEXT...: each occurs literally in what the last command wrote to standard output.
expect_text()
{
    for text in "$@"; do
        grep -qF -- "$text" "$work/out" || fail "not on standard output: $text"
    done
}

# expect_error TEXT...: each occurs literally in what the last command wrote to standard error.
expect_error()
{
    for text in "$@"; do
        grep -qF -- "$text" "$work/err" || fail "not on standard error: $text"
    done
}

# The last command wrote nothing to standard output / standard error.
expect_no_output()
{
    [ ! -s "$work/out" ] || fail "unexpected text on standard output"
}

expect_no_error()
{
    [ ! -s "$work/err" ] || fail "unexpected text on standard error"
}

# usage_error TEXT... -- ARGUMENTS...: the program refuses with code 64, one line, nothing on standard output.
usage_error()
{
    local texts=()

    while [ "$1" != "--" ]; do
        texts+=("$1")
        shift
    done
    shift
    expect_exit 64 "$paceline" "$@"
    expect_no_output
    [ "$(wc -l <"$work/err")" -eq 1 ] || fail "not exactly one message"
    expect_error "paceline: error: " "${texts[@]}"
}
