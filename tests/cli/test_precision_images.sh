#!/bin/bash
# --precision bf16 on pictures, imitated in plain C, so that it runs on every CPU; and by its instructions where there are some.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

make_pictures pictures
run prep images pictures -o data --size 12 --holdout 0.2
words=(--threads 1 --kernels plain)

# near KEY RUN RUN FAR: what two runs say is no farther apart.
near()
{
    is_true "($(json_number "$1" "$2.json") - $(json_number "$1" "$3.json")) ^ 2 < $4 ^ 2" ||
        fail "$1 of $2: $(json_number "$1" "$2.json"), of $3: $(json_number "$1" "$3.json")"
}

# ---- it learns what floats learn, and scores are those of floats ----
train floats "${words[@]}" --epochs 15
expect_equal "precision" "$(json_text precision)" f32
train plain "${words[@]}" --epochs 15 --precision bf16
expect_equal "precision" "$(json_text precision)" bf16
expect_equal "by" "$(json_text bf16_by)" emulated
expect_learned plain
expect_scored plain
near accuracy plain floats 0.15
[ "$(sha plain)" != "$(sha floats)" ] || fail "nothing was rounded"

# ---- any number of threads gives the same bytes; workers the same but for the order of sums ----
train one "${words[@]}" --epochs 2 --precision bf16
train two "${words[@]}" --epochs 2 --precision bf16 --threads 2
expect_same two one
train workers "${words[@]}" --epochs 2 --precision bf16 --workers 2 --mode allreduce
near logloss workers one 0.05

# ---- from a layer on: what is frozen stays as it is ----
train from "${words[@]}" --epochs 1 --precision bf16 --pretrained plain/model.safetensors --train from:conv3
expect_equal "conv2 of a run that begins above it" "$(tensor_of from conv2.weight)" "$(tensor_of plain conv2.weight)"
[ "$(tensor_of from conv3.weight)" != "$(tensor_of plain conv3.weight)" ] || fail "conv3 was not trained"

# ---- a run goes on with the precision that it began with ----
expect_exit 64 "$paceline" train --data data --run one --batch 50 "${model[@]}" "${words[@]}" --epochs 3 --resume
expect_error "precision"

# ---- by instructions, if this CPU has them; else it says what is missing ----
if "$paceline" train --data data --run fast --batch 50 --json "${model[@]}" --epochs 15 --precision bf16 >fast.json 2>err; then
    expect_learned fast
else
    expect_error "--precision bf16 needs" "--kernels plain"
fi
