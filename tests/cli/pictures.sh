# Pictures for the tests that train on them. Use, behind lib.sh and texts.sh: source "$(dirname "$0")/pictures.sh"
# shellcheck disable=SC2034,SC2154 # for the tests; $work is set in lib.sh

model=(--model cnn --width 0.25 --lr 0.01 --augment none)

# make_pictures DIRECTORY: some 450 of them, in three classes that a small network tells apart within seconds.
make_pictures()
{
    run gen images -o all-pictures --rows 1500 --classes 10 --size 24 --seed 3 --quiet
    mkdir "$1"
    mv all-pictures/ring all-pictures/checks all-pictures/dots "$1"
    rm -rf all-pictures
}

# tensor_of RUN NAME: a checksum of its bytes.
tensor_of()
{
    local header place start

    header=$(od -An -tu8 -N 8 "$1/model.safetensors" | tr -d ' ')
    place=$(tail -c +9 "$1/model.safetensors" | head -c "$header" |
        sed -n "s/.*\"$2\":{[^}]*\"data_offsets\":\[\([0-9]*,[0-9]*\)\].*/\1/p")
    [ -n "$place" ] || return
    start=${place%,*}
    tail -c +$((8 + header + start + 1)) "$1/model.safetensors" | head -c $((${place#*,} - start)) | sha256sum
}

# expect_scored RUN: eval says of its model what its training has said.
expect_scored()
{
    run eval --run "$work/$1" --data "$work/data" --json
    expect_equal "accuracy of $1" "$(json_number accuracy)" "$(json_number accuracy "$1.json")"
    is_true "($(json_number logloss) - $(json_number logloss "$1.json")) ^ 2 < 1e-12" ||
        fail "log-loss of $1: $(json_number logloss), in training $(json_number logloss "$1.json")"
}
