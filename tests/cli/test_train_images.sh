#!/bin/bash
# Training on pictures as a user runs it, in one process: from a folder of pictures to a scored model. Several:
# test_cluster_train_images.sh.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

make_pictures pictures
run prep images pictures -o data --size 16 --holdout 0.2 --json
train_rows=$(json_number train_rows) test_rows=$(json_number test_rows)
expect_equal "rows" $((train_rows + test_rows)) "$(find pictures -name '*.jpg' | wc -l)"
steps=$(((train_rows + 49) / 50))

# ---- it learns, and any number of threads gives the same bytes ----
train one --threads 1 --epochs 15 --log-every 1
expect_object
cmp -s out one/summary.json || fail "train --json differs from summary.json"
expect_equal "model" "$(json_text model)" cnn
expect_equal "mode" "$(json_text mode)" local
expect_equal "samples" "$(json_number samples)" $((15 * train_rows))
expect_equal "steps told" "$(grep -c '"kind":"step"' one/metrics.jsonl)" $((15 * steps))
expect_learned one
for threads in 2 3; do
    train threads --threads $threads --epochs 15 --force
    expect_same threads one
done
run train --config one/config.yaml --run "$work/again" --json
expect_equal "model by its configuration" "$(json_text model_sha256)" "$(sha one)"

# ---- what it says about the test rows, and about files ----
expect_scored one
cp out eval.json
run eval --run one --data data --json --set train
mistakes=$(($(json_number mistakes) + $(json_number mistakes eval.json)))
run predict --run one pictures
expect_equal "pictures predicted" "$(wc -l <out)" $((train_rows + test_rows))
awk -F '\t' '{ split($3, part, "/"); wrong += $1 != part[2] } END { print wrong + 0 }' out >wrong
expect_equal "pictures taken for another class" "$(cat wrong)" $mistakes
run inspect one --json
expect_text '"cnn"'

# ---- killed, stopped and resumed: the same bytes ----
words=(--epochs 5 --checkpoint-every 10 --augment "flip,crop,colour" --dropout 0.2)
train whole "${words[@]}"
expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data --run "$work/killed" --batch 50 "${model[@]}" \
    "${words[@]}" --inject kill:chief@step=25
train killed "${words[@]}" --resume
expect_same killed whole
expect_equal "restarts" "$(json_number restarts)" 1
start_job "$paceline" train --data data --run "$work/stopped" --batch 50 "${model[@]}" --schedule constant --log-every 5 \
    --epochs 100000
wait_for trains stopped
kill -INT "$job"
end_job 75
expect_error "interrupted after step" "--resume"
step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
train stopped --schedule constant --steps $((step + 20)) --resume
train onward --schedule constant --steps $((step + 20))
expect_same stopped onward
train early --epochs 500 --schedule constant --eval-every 5 --early-stop 1 --lr 0.3
expect_error "stopping early"

# ---- weights of another run: everything, some layers, or the head alone ----
weights=$work/one/model.safetensors
train tuned --pretrained "$weights" --train from:conv3 --epochs 2
expect_error "22 tensors taken" "the head is its own"
for tensor in conv1 conv2; do
    [ -n "$(tensor_of one $tensor.weight)" ] || fail "no $tensor"
    expect_equal "$tensor" "$(tensor_of tuned $tensor.weight)" "$(tensor_of one $tensor.weight)"
    expect_equal "mean of $tensor" "$(tensor_of tuned $tensor.mean)" "$(tensor_of one $tensor.mean)"
done
[ "$(tensor_of tuned conv3.weight)" != "$(tensor_of one conv3.weight)" ] || fail "conv3 has not been trained"
train top --pretrained "$weights" --train top --epochs 10 --feature-cache cache
expect_error "features: $((train_rows + test_rows)) pictures through 4 layers"
expect_equal "caches" "$(ls cache | wc -l)" 1
expect_scored top # by the whole network, on the pictures
train top2 --pretrained "$weights" --train top --epochs 10 --feature-cache cache
expect_error "features: taken from cache/"
expect_same top2 top
expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data --run "$work/top-killed" --batch 50 "${model[@]}" \
    --pretrained "$weights" --train top --epochs 10 --checkpoint-every 10 --inject kill:chief@step=35
train top-killed --pretrained "$weights" --train top --epochs 10 --checkpoint-every 10 --resume
expect_error "features: taken from " "resuming from"
expect_same top-killed top

# ---- what is refused ----
train_refused 64 "--train" "sideways" -- --model cnn --train sideways
train_refused 64 "--pretrained" -- --model cnn --train top
train_refused 64 "no such layer" "conv1" -- --model cnn --width 0.25 --pretrained "$weights" --train from:conv9
train_refused 64 "--augment" -- --model cnn --augment turn
train_refused 64 "--augment" -- --model cnn --width 0.25 --pretrained "$weights" --train top --augment flip
train_refused 64 "--head logit" -- --model cnn --head logit
train_refused 64 "too small" "32" -- --model cnn --arch mobilenet-v2
train_refused 64 "--l1" -- --model cnn --l1 0.1
train_refused 64 "--hidden" -- --model cnn --hidden 4
train_refused 66 "missing" -- --model cnn --pretrained missing
echo "these are no weights" >nothing
train_refused 65 "nothing" -- --model cnn --pretrained nothing
train_refused 65 "model.safetensors" -- --model cnn --width 0.5 --pretrained "$weights"
train_refused 64 "no texts" -- --model rnn
train_refused 64 "feature cache" -- --model cnn --data "cache/$(ls cache)"
