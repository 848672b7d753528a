#!/bin/bash
# A warm start (--init) of every kind of model: by ids as they are, words and classes; other kinds and sizes are refused.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/warm.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

# ---- factorization machines, svmlight: ids as they are ----
awk 'BEGIN { srand(5); for (i = 0; i < 3000; i++) { a = int(rand() * 40); b = int(rand() * 40); printf "%d %d:1 %d:1\n", (a + b) % 2, 1 + a, 50 + b } }' >all.svm
awk '$2 < "3"' all.svm | head -n 400 >some.svm
run prep clicks all.svm -o all
run prep clicks some.svm -o some --holdout 0.5
train fm_old --data all --model fm --epochs 10 --lr 0.2
train fm_cold --data some --model fm
train fm_warm --data some --model fm --init fm_old
expect_better fm_warm fm_cold
is_true "$(json_number init_carried fm_warm/summary.json) > 0" || fail "fm carries nothing"
run predict --run fm_warm all.svm

# ---- texts ----
run gen reviews -o reviews.jsonl --rows 3000 --seed 5
run gen reviews -o later.jsonl --rows 800 --seed 6
run prep reviews reviews.jsonl -o texts --vocab 600 --length 40
run prep reviews later.jsonl -o later --vocab 500 --length 30 --holdout 0.4
run prep reviews later.jsonl -o later_like --like texts --holdout 0.4
small=(--model rnn --embed 8 --hidden 8 --epochs 1)
train rnn_old --data texts "${small[@]}" --epochs 4
train rnn_cold --data later "${small[@]}"
train rnn_warm --data later "${small[@]}" --init rnn_old
expect_better rnn_warm rnn_cold
is_true "$(json_number init_left rnn_warm/summary.json) % 8 == 0" || fail "words are left by halves"
train rnn_like --data later_like "${small[@]}" --init rnn_old
expect_equal "fresh with the same words" "$(json_number init_fresh)" 0
train rnn_state --data later "${small[@]}" --init rnn_old --init-state
expect_better rnn_state rnn_cold
train rnn_two --data later "${small[@]}" --init "$work/rnn_old" --workers 2 --mode local-sgd
expect_better rnn_two rnn_cold
train linear_old --data texts --epochs 4
train linear_cold --data later --epochs 1
train linear_warm --data later --epochs 1 --init linear_old
expect_better linear_warm linear_cold
grep -q "n-grams are numbered by the words" linear_warm.err || fail "n-grams are lost without a word"
train linear_like --data later_like --epochs 1 --init linear_old
expect_better linear_like linear_cold
expect_equal "left of the same words" "$(json_number init_left linear_like/summary.json)" 0

# ---- pictures ----
run gen images -o pictures --rows 300 --seed 5
run prep images pictures -o photos --size 32 --holdout 0.2
tiny=(--model cnn --width 0.25 --data photos --batch 30)
train cnn_old "${tiny[@]}" --epochs 3
train cnn_warm "${tiny[@]}" --steps 1 --lr 1e-9 --init cnn_old # next to nothing is learned but running statistics
is_true "($(json_number logloss cnn_warm.json) - $(json_number logloss cnn_old.json)) ^ 2 < 1e-4" ||
    fail "log-loss of cnn_warm $(json_number logloss cnn_warm.json), of cnn_old $(json_number logloss cnn_old.json)"
expect_equal "fresh" "$(json_number init_fresh cnn_warm/summary.json)" 0
train cnn_top "${tiny[@]}" --steps 1 --lr 1e-9 --train top --init cnn_old
is_true "($(json_number logloss cnn_top.json) - $(json_number logloss cnn_old.json)) ^ 2 < 1e-4" ||
    fail "log-loss of cnn_top $(json_number logloss cnn_top.json), of cnn_old $(json_number logloss cnn_old.json)"
train cnn_top2 "${tiny[@]}" --steps 20 --train top --init "$work/cnn_old" --workers 2
train cnn_top2 "${tiny[@]}" --steps 20 --train top --init "$work/cnn_old" --workers 2 --resume
expect_error "nothing left to do"

# ---- refused ----
refused 64 "is a model of kind fm, and this one is of kind logreg" --data some --init fm_old
refused 64 "--factors 8, and here it is 4" --data some --model fm --factors 4 --init fm_old
refused 64 "--hidden 8, and here it is 9" --data later "${small[@]}" --hidden 9 --init rnn_old
refused 64 "--arch small, and here it is resnet20" "${tiny[@]}" --arch resnet20 --init cnn_old
refused 65 "linear_old" --data some --init linear_old
run gen clicks -o criteo.tsv --rows 300
run prep clicks criteo.tsv -o criteo
run train --run numbered --data some
refused 65 "Criteo" --data criteo --init numbered
refused 64 "choose one" --data later "${small[@]}" --init rnn_old --embeddings vectors
refused 64 "choose one" "${tiny[@]}" --init cnn_old --pretrained cnn_old
refused 64 "layers that were not trained have none" "${tiny[@]}" --init cnn_top --init-state
train cnn_state "${tiny[@]}" --steps 1 --init cnn_old --init-state
