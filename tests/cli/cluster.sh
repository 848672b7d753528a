# What the tests of training on several processes share. Use, behind lib.sh: source "$(dirname "$0")/cluster.sh"
#
# Makes $work/data of clicks, with $train_rows and $test_rows rows; works there.
# shellcheck disable=SC2154 # $work and $paceline are set in lib.sh

cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
rows=12055                         # the last step of an epoch is short

# train DATA RUN WORDS...: what it prints as JSON stays in RUN.json, the model in RUN/model.safetensors.
train()
{
    run train --data "$work/$1" --model logreg --run "$work/$2" --batch 100 --json "${@:3}"
    cp out "$2.json"
}

# start DATA RUN WORDS...: the same in the background, until it trains.
start()
{
    start_job "$paceline" train --data "$work/$1" --run "$work/$2" --batch 100 --log-every 10 "${@:3}"
    wait_for trains "$2"
}

sha()
{
    json_text model_sha256 "$1.json"
}

# expect_same_bytes RUN RUN
expect_same_bytes()
{
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ: $(distance "$1" "$2")"
    expect_equal "model_sha256 of $1" "$(sha "$1")" "$(sha "$2")"
}

run gen clicks -o clicks.tsv --rows $rows --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1 --json
train_rows=$(json_number train_rows)
# shellcheck disable=SC2034 # for those who source this
test_rows=$(json_number test_rows)

# rows_of STEPS: so many rows of data.
rows_of()
{
    awk -v steps="$1" -v rows="$train_rows" 'BEGIN {
        per = int((rows + 99) / 100)
        printf "%d", int(steps / per) * rows + steps % per * 100
    }'
}
