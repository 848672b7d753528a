# Helpers for the tests of warm starts. Use: source "$(dirname "$0")/warm.sh", behind lib.sh.
# shellcheck shell=bash disable=SC2154 # variables of lib.sh

# train RUN WORDS...: what it prints as JSON stays in RUN.json.
train()
{
    run train --run "$work/$1" --json "${@:2}"
    cp out "$1.json"
    cp err "$1.err"
}

# expect_same RUN RUN
expect_same()
{
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ"
}

# expect_better RUN RUN: by log-loss on the test rows.
expect_better()
{
    is_true "$(json_number logloss "$1.json") < $(json_number logloss "$2.json")" ||
        fail "log-loss of $1 $(json_number logloss "$1.json"), of $2 $(json_number logloss "$2.json")"
}

# refused CODE TEXT WORDS...: and nothing of the run is there.
refused()
{
    rm -rf refused
    expect_exit "$1" "$paceline" train --run refused "${@:3}"
    expect_error "$2"
    [ ! -e refused ] || fail "what was refused has left a run"
}
