#!/bin/bash
# --precision bf16 on pictures, imitated in plain C, so that it runs on every CPU; and by its instructions where there are some.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

make_pictures pictures
run prep images pictures -o data --size 16 --holdout 0.2
words=(--threads 1 --epochs 6 --kernels plain)

# ---- it learns what floats learn, any number of threads gives the same bytes, and scores are those of floats ----
train floats "${words[@]}"
expect_equal "precision" "$(json_text precision)" f32
train plain "${words[@]}" --precision bf16
expect_equal "precision" "$(json_text precision)" bf16
expect_equal "by" "$(json_text bf16_by)" emulated
expect_learned plain
expect_scored plain
[ "$(sha plain)" != "$(sha floats)" ] || fail "nothing was rounded"
is_true "($(json_number accuracy plain.json) - $(json_number accuracy floats.json)) ^ 2 < 0.15 ^ 2" ||
    fail "accuracy $(json_number accuracy plain.json), with floats $(json_number accuracy floats.json)"
train two "${words[@]}" --precision bf16 --threads 2
expect_same two plain
expect_exit 2 "$paceline" train --data data --run floats "${model[@]}" --batch 50 "${words[@]}" --precision bf16 --resume
expect_error "precision"

# ---- by workers: batch norm over all of them ----
train workers "${words[@]}" --precision bf16 --workers 2 --mode allreduce
expect_learned workers

# ---- from a layer on: what is frozen stays as it is ----
train from "${words[@]}" --precision bf16 --pretrained plain/model.safetensors --train from:conv3
expect_equal "conv2 of a run that begins above it" "$(tensor_of from conv2.weight)" "$(tensor_of plain conv2.weight)"
[ "$(tensor_of from conv3.weight)" != "$(tensor_of plain conv3.weight)" ] || fail "conv3 was not trained"
expect_learned from

# ---- by instructions, if this CPU has them; else it says what is missing ----
if "$paceline" train --data data --run fast --batch 50 --json "${model[@]}" --epochs 6 --precision bf16 >fast.json 2>err; then
    expect_learned fast
else
    expect_error "--precision bf16 needs" "--kernels plain"
fi
