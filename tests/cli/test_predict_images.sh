#!/bin/bash
# A model on pictures as a user scores and uses it: eval with its mistakes, predict on files and folders.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

pictures=180

# prepare CLASSES: a folder of pictures, a data set of them and a model, $name, $name-data and $name-run.
prepare()
{
    name=of-$1
    run gen images -o "$name" --rows $pictures --classes "$1" --size 40 --seed 3
    run prep images "$name" -o "$name-data" --size 20 --holdout 0.3 --seed 1
    run train --data "$name-data" --model cnn --width 0.5 --run "$work/$name-run" --epochs 2 --batch 16 --json
    cp out "$name.json"
}

# scores SET: eval of it as JSON in $name-SET.json, its mistakes in $name-SET.tsv.
scores()
{
    run eval --run "$name-run" --data "$name-data" --set "$1" --errors "$name-$1.tsv" --json
    expect_object
    cp out "$name-$1.json"
    expect_equal "mistakes in $name-$1.tsv" "$(wc -l <"$name-$1.tsv")" "$(json_number mistakes)"
    expect_equal "columns of $name-$1.tsv" "$(awk -F '\t' '{ print NF }' "$name-$1.tsv" | sort -u)" \
        "$(awk '{ print 4 }' "$name-$1.tsv" | sort -u)"
}

for classes in 2 4; do
    prepare $classes

    # ---- eval says what train has said, and more ----
    scores test
    for score in accuracy logloss; do
        is_true "($(json_number $score) - $(json_number $score "$name.json")) ^ 2 < 1e-12" || fail "$score of $name"
    done
    scores train
    run eval --run "$name-run" --data "$name-data"
    expect_text "accuracy" "F1" "Rows: the class; columns: what it was taken for."
    for folder in "$name"/*/; do
        expect_text "$(basename "$folder")"
    done

    # ---- predict sees the pixels that prep has seen: it makes the same mistakes ----
    run predict --run "$name-run" "$name" -o "$name.tsv"
    expect_equal "lines" "$(wc -l <"$name.tsv")" $pictures
    find "$name" -type f | LC_ALL=C sort >names
    cut -f 3 "$name.tsv" | cmp -s - names || fail "not a line for each picture, in their order"
    awk -F '\t' '{ n = split($3, part, "/"); if ($1 != part[n - 1]) print $3 "\t" part[n - 1] "\t" $1 }' \
        "$name.tsv" | LC_ALL=C sort >mistakes
    cut -f 1-3 "$name-train.tsv" "$name-test.tsv" | LC_ALL=C sort | cmp -s - mistakes ||
        fail "predict and eval differ about $name"
    is_true "$(cut -f 2 "$name.tsv" | sort -g | head -n 1) * $classes > 0.999" || fail "the likeliest class is unlikely"
    run predict --run "$name-run" "$(sed -n 5p names)" "$(sed -n 2p names)" --top 9
    expect_equal "columns" "$(awk -F '\t' '{ print NF }' out | sort -u)" $((1 + 2 * classes))
    sed -n '5p;2p' "$name.tsv" | cut -f 3 | sort >wanted
    cut -f 3 out | sort | cmp -s - wanted || fail "predict of two files"
    run inspect "$name-run"
    expect_text "cnn" "small" "head"
done

# ---- what cannot be read is named and counted ----
echo "no picture" >"$name/broken.jpg"
head -c 500 "$(sed -n 1p names)" >"$name/half.jpg"
for allowed in 0 1 2; do
    expect_exit $((allowed < 2 ? 65 : 0)) "$paceline" predict --run "$name-run" "$name" -o most.tsv --max-bad-rows $allowed --force
    expect_error "broken.jpg" "half.jpg" "2 of $(($(wc -l <names) + 2)) pictures cannot be read"
    cmp -s most.tsv "$name.tsv" || fail "bad pictures change what is said of others"
done
expect_exit 65 "$paceline" predict --run "$name-run" "$name"
cmp -s out "$name.tsv" || fail "bad pictures change what is said of others on standard output"
expect_exit 65 "$paceline" predict --run "$name-run" "$name/broken.jpg" "$name/half.jpg" -o none.tsv --max-bad-rows 5
expect_error "none of the 2 pictures can be read"
expect_exit 65 "$paceline" predict --run "$name-run" "$name/broken.jpg" -o none.tsv
expect_error "broken.jpg"
[ ! -e none.tsv ] || fail "a prediction without a line leaves a file"
usage_error "paceline eval" -- predict --run "$name-run" "$name-data"
usage_error "not standard input" -- predict --run "$name-run" -
expect_exit 66 "$paceline" predict --run "$name-run" missing.jpg

# ---- other classes, other models ----
expect_exit 65 "$paceline" eval --run "$name-run" --data of-2-data
expect_error "only the model knows " "; only the data set has "
! grep -qE "[0-9a-f]{16}" err || fail "classes are told by a checksum"
