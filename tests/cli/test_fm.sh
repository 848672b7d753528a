#!/bin/bash
# A factorization machine as a user runs it: every mode, killed and resumed, eval, predict, inspect. It is also the kind
# that has no line of its own anywhere outside its room: what works here works for any kind on sparse rows.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

# train RUN WORDS...: what it prints as JSON stays in RUN.json.
train()
{
    run train --data "$work/data" --model fm --run "$work/$1" --batch 100 --json "${@:2}"
    cp out "$1.json"
}

# expect_same RUN RUN
expect_same()
{
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ"
}

# Labels that no linear model can tell: of four features two come together, and it matters whether they match.
awk 'BEGIN {
    srand(3)
    for (i = 0; i < 6000; i++) {
        a = int(rand() * 2); b = int(rand() * 2); noise = 5 + int(rand() * 20)
        printf "%d %d:1 %d:1 %d:1\n", (rand() < 0.9) ? a == b : a != b, 1 + a, 3 + b, noise
    }
}' >pairs.svm
head -n 5000 pairs.svm >first.svm
tail -n 1000 pairs.svm >last.svm
run prep clicks first.svm --test last.svm -o data

# ---- it learns what pairs mean, in every mode ----
words=(--epochs 12 --lr 0.2)
run train --data data --model logreg --run linear --epochs 12 --json
is_true "$(json_number accuracy) < 0.6" || fail "a linear model cannot know: $(json_number accuracy)"
train local "${words[@]}" --threads 1
expect_equal "model" "$(json_text model)" fm
is_true "$(json_number accuracy) > 0.85" || fail "accuracy $(json_number accuracy)"
is_true "$(json_number weights) % 9 == 0" || fail "8 factors and a weight for each feature"
train w1 "${words[@]}" --mode ps-sync
train w1ps "${words[@]}" --ps 2
train w1all "${words[@]}" --mode allreduce
for name in w1 w1ps w1all; do
    expect_same $name local
done
train w2 "${words[@]}" --mode ps-sync --workers 2
train w2ps "${words[@]}" --workers 2 --ps 2 --evaluator --eval-every 100
train w2all "${words[@]}" --workers 2
expect_same w2ps w2
expect_same w2all w2
for mode in ps-async "ps-ssp --staleness 2"; do
    # shellcheck disable=SC2086 # words
    train async "${words[@]}" --workers 2 --mode $mode --force
    is_true "$(json_number accuracy) > 0.85" || fail "accuracy of $mode: $(json_number accuracy)"
done
for optimizer in sgd momentum adam; do
    train $optimizer --optimizer $optimizer --factors 3 --steps 60
    train two_$optimizer --optimizer $optimizer --factors 3 --steps 60 --workers 2
    is_true "($(json_number logloss $optimizer.json) - $(json_number logloss two_$optimizer.json)) ^ 2 < 1e-10" ||
        fail "log-loss of two workers with $optimizer"
done

# ---- killed, and resumed: the same bytes ----
train whole --epochs 4 --checkpoint-every 40
expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data --model fm --run "$work/killed" --batch 100 \
    --epochs 4 --checkpoint-every 40 --inject kill:chief@step=150
train killed --epochs 4 --checkpoint-every 40 --resume
expect_same killed whole
expect_exit 64 "$paceline" train --data data --model fm --run "$work/killed" --batch 100 --epochs 9 --factors 4 --resume
expect_error factors

# ---- used ----
run eval --run local --data data --json
for name in logloss auc mean_predicted; do
    expect_equal "$name of eval" "$(json_number $name)" "$(json_number $name local.json)"
done
cp out scores
run predict --run local last.svm
expect_equal "predictions" "$(wc -l <out)" 1000
mean=$(awk '{ sum += $1 } END { printf "%.17g", sum / NR }' out)
is_true "($mean - $(json_number mean_predicted scores)) ^ 2 < 1e-10" || fail "predict and eval differ: $mean"
printf '1 1:1 3:1 999:5\n' >unknown.svm # an id that the model has never seen says nothing
printf '1 1:1 3:1\n' >known.svm
run predict --run local unknown.svm
cp out unknown
run predict --run local known.svm
cmp -s out unknown || fail "an unknown id changes a prediction"
run prep clicks last.svm --like local -o later
run eval --run local --data later --json
expect_equal "logloss of rows like the model's" "$(json_number logloss)" "$(json_number logloss scores)"
run inspect local/model.safetensors --json
tr -d '\t' <out >described
expect_equal "factors" "$(json_number factors described)" 8
expect_text '"heaviest"' '"encoding"'
run train --help fm
expect_text --factors

# ---- refused ----
usage_error --factors "for --model fm" -- train --data data --model logreg --run refused --factors 4
usage_error --l2 -- train --data data --model fm --run refused --l2 0.1
usage_error ftrl -- train --data data --model fm --run refused --optimizer ftrl
usage_error --dropout -- train --data data --model fm --run refused --dropout 0.5
usage_error --workers -- train --data data --model fm --run refused --workers 2 --threads 2
usage_error --factors -- train --data data --model fm --run refused --factors 129
