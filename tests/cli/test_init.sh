#!/bin/bash
# A warm start on clicks: yesterday's model goes on today (--init), in every mode, with what its optimiser has kept, killed and
# resumed; what is damaged or does not fit is refused.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/warm.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

# ---- clicks: three days of one population ----
run gen clicks -o yesterday.tsv --rows 30k --seed 1
run gen clicks -o today.tsv --rows 8k --seed 2
run gen clicks -o tomorrow.tsv --rows 4k --seed 3
run prep clicks yesterday.tsv -o yesterday
run prep clicks today.tsv -o today --holdout 0.25
train old --data yesterday
train cold --data today
train warm --data today --init old
expect_better warm cold
grep -q "weights: .* taken from old; .* start fresh; .* of it are not in this data set, and stay in the model" warm.err ||
    fail "the overlap is not told"
cp warm/summary.json summary
for name in taken fresh left carried; do
    grep -q "\"kind\":\"init\".*\"$name\":$(json_number init_$name summary)[,}]" warm/metrics.jsonl || fail "no record of init_$name"
done
expect_equal "init_sha256" "$(json_text init_sha256 summary)" "$(sha256sum <old/model.safetensors | cut -d ' ' -f 1)"
is_true "$(json_number init_taken summary) + $(json_number init_fresh summary) == $(json_number weights summary)" ||
    fail "weights do not add up"
is_true "$(json_number init_taken summary) > 1000" || fail "next to nothing was taken"
expect_equal "carried" "$(json_number init_carried summary)" "$(json_number init_left summary)"
grep -q init_ cold/summary.json && fail "a cold start has an overlap"

# What does not occur today is still there, as it was.
run inspect warm --json
tr -d '\t' <out >described
is_true "$(json_number weights described) == $(json_number weights summary) + $(json_number init_carried summary)" ||
    fail "the model has $(json_number weights described) weights"
run prep clicks tomorrow.tsv -o tomorrow --like warm
run eval --run warm --data tomorrow --json
cp out warm.json
run prep clicks tomorrow.tsv -o tomorrow_cold --like cold
run eval --run cold --data tomorrow_cold --json
cp out cold.json
expect_better warm cold
# All of the old model's features and none of the new ones: only what they had in common has changed.
run predict --run old yesterday.tsv
cp out before
for optimizer in adagrad ftrl; do
    train still --data today --init old --steps 1 --batch 1 --optimizer $optimizer --lr 1e-6 --force
    run predict --run still yesterday.tsv
    paste before out | awk '{ d = $1 - $2; if (d * d > 1e-8) exit 1 }' || fail "a step that changes nothing has changed the model"
done

# A file is used as it is.
cp old/model.safetensors alone.safetensors
train file --data today --init alone.safetensors
expect_same file warm

# ---- with what the optimiser has kept ----
train state --data today --init old --init-state
expect_better state warm # the steps of adagrad are not those of a first day
for optimizer in ftrl adam; do
    train first --data yesterday --optimizer $optimizer --batch 100 --force
    train go_on --data today --optimizer $optimizer --batch 100 --exact --init first --init-state --force
    train go_on2 --data today --optimizer $optimizer --batch 100 --workers 2 --ps 2 --init "$work/first" --init-state --force
    train go_on3 --data today --optimizer $optimizer --batch 100 --workers 2 --init "$work/first" --init-state --force
    expect_same go_on2 go_on3
    is_true "($(json_number logloss go_on.json) - $(json_number logloss go_on2.json)) ^ 2 < 1e-9" ||
        fail "log-loss of two workers that go on with $optimizer: $(json_number logloss go_on.json), $(json_number logloss go_on2.json)"
done
expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --run stated --data today --init old --init-state --inject kill:chief@step=5
train stated --data today --init old --init-state --resume
expect_same stated state
usage_error "init=" "+state" -- train --run stated --data today --init old --resume

# ---- every mode ----
words=(--data today --init "$work/old" --batch 100)
train exact "${words[@]}" --exact
train w1 "${words[@]}" --mode ps-sync
expect_same w1 exact
train w2 "${words[@]}" --workers 2
train w2ps "${words[@]}" --workers 2 --ps 2
expect_same w2ps w2
cp cold/summary.json cold.json
for mode in local-sgd ps-async; do
    train $mode "${words[@]}" --workers 2 --mode $mode
    expect_better $mode cold
    expect_equal "carried in $mode" "$(json_number init_carried $mode/summary.json)" "$(json_number init_carried summary)"
done
train replicas "${words[@]}" --workers 2 --mode local-sgd --lr 1e-6 # what they train on is what was taken
is_true "$(json_number train_loss) < 0.6" || fail "workers of local-sgd begin at a loss of $(json_number train_loss)"
for optimizer in sgd ftrl adam; do
    train $optimizer --data today --init old --optimizer $optimizer
    expect_better $optimizer cold
done

# ---- killed, and resumed: the same bytes ----
words=(--data today --init old --batch 100 --epochs 3)
train whole "${words[@]}"
for kill in 5 50; do # before the first checkpoint, and behind it
    rm -rf killed
    expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --run killed "${words[@]}" --checkpoint-every 40 \
        --inject kill:chief@step=$kill
    train killed "${words[@]}" --checkpoint-every 40 --resume
    expect_same killed whole
    for name in taken fresh left carried; do
        expect_equal "init_$name" "$(json_number init_$name killed/summary.json)" "$(json_number init_$name whole/summary.json)"
    done
done
train killed "${words[@]}" --resume
expect_error "nothing left to do"
usage_error "init=" "the file that the model begins with" -- train --run killed --data today --batch 100 --epochs 3 --init cold --resume
usage_error "init=" -- train --run killed --data today --batch 100 --epochs 3 --resume
mv old moved
train killed --data today --init moved --batch 100 --epochs 4 --resume
train whole --data today --init moved --batch 100 --epochs 4 --force
expect_same killed whole
mv moved old
train lost "${words[@]}" --workers 2 --checkpoint-every 40 --inject kill:worker1@step=50
train kept "${words[@]}" --workers 2
expect_same lost kept

# ---- the best state of a run that went past it: with what was kept of that, not of the last ----
train past --data yesterday --validation 0.2 --keep-best --eval-every 20 --batch 100 --lr 0.5 --epochs 2 --exact
best=$(sed -n 's/.*"best": {"step": \([0-9]*\),.*/\1/p' past/summary.json)
is_true "$best > 0 && $best < $(json_number steps past/summary.json)" || fail "the best is that of step $best"
train until --data yesterday --validation 0.2 --batch 100 --lr 0.5 --steps "$best" --exact
expect_equal "the model of that step" "$(json_text model_sha256 past/summary.json)" "$(json_text model_sha256 until/summary.json)"
train from_past --data today --init past --init-state
train from_until --data today --init until --init-state
expect_same from_past from_until

# ---- refused ----
refused 66 "nobody" --data today --init nobody
run prep clicks today.tsv -o narrow --features 5000
refused 65 "hashed to 33762578 ids, those of the data to 5000: prepare the data with --features 33762578" --data narrow --init old
expect_exit 64 "$paceline" train --data today --run old --init old --force
[ -s old/model.safetensors ] || fail "the model to begin with is gone"
usage_error "--init-state is for --init RUN" -- train --run refused --data today --init-state
refused 64 "is a file" --data today --init old/model.safetensors --init-state
refused 64 "--optimizer adagrad, and here it is sgd" --data today --init old --init-state --optimizer sgd
run train --run none --data today --checkpoint-seconds 0
refused 66 "has no checkpoint" --data today --init none --init-state
mv yesterday before_that
refused 66 "yesterday" --data today --init old --init-state
cp -r today yesterday
refused 65 "is not the data set" --data today --init old --init-state
cp -r old damaged
printf x | dd of=damaged/model.safetensors bs=1 seek=5000 conv=notrunc status=none
refused 65 "damaged, or not the model of this run" --data today --init damaged
head -c 3000 old/model.safetensors >cut.safetensors
refused 65 "cut.safetensors" --data today --init cut.safetensors
refused 65 "today.tsv" --data today --init today.tsv
