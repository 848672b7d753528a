#!/bin/bash
# Defaults that go by the data, as a user meets them: what is said, what is written down, and who is warned.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# rows COUNT IDS: svmlight of five entries each, of which the first decides the label three times in four.
rows()
{
    awk -v count="$1" -v ids="$2" 'BEGIN {
        srand(7)
        for (row = 0; row < count; row++) {
            first = 1 + int(rand() * ids / 5)
            line = (rand() < 0.75 ? first % 2 : rand() < 0.5) " " first ":1"
            for (i = 1; i < 5; i++)
                line = line " " first + int(ids / 5) * i ":1"
            print line
        }
    }'
}

# ---- rate and passes of clicks ----
rows 3000 50 >short.svm
run prep clicks short.svm --format svmlight -o short --holdout 0.2
run train --data short --model logreg --run usual
expect_error "by default, for 2400 rows of 5 entries: --epochs 10 --lr 0.3"
grep -q '^epochs: 10$' usual/config.yaml && grep -q '^lr: 0.3' usual/config.yaml || fail "config.yaml does not have what was chosen"
run train --data short --model logreg --run said --epochs 10 --lr 0.3 --json
! grep -q "by default" err || fail "what was said is called a default"
expect_equal "model" "$(json_text model_sha256)" "$(json_text model_sha256 usual/summary.json)"
run train --config usual/config.yaml --run "$work/again" --json
expect_equal "model by the configuration" "$(json_text model_sha256)" "$(json_text model_sha256 usual/summary.json)"
for mode in "--exact" "--mode ps-sync --workers 2 --ps 1" "--mode local-sgd --workers 2"; do
    # shellcheck disable=SC2086 # options are words
    run train --data short --model logreg --run dry --dry-run $mode
    expect_error "--epochs 10 --lr 0.3"
done

# A run of which half is done goes on with the same rate, whoever repeats its command line.
run train --data short --model logreg --run half --epochs 5
run train --data short --model logreg --run half --resume
cmp -s half/model.safetensors usual/model.safetensors || fail "a run that goes on has chosen otherwise"

# A factorization machine has as many passes, and a rate of its own.
run train --data short --model fm --run pairs
expect_error "by default, for 2400 rows of 5 entries: --epochs 10 --lr 0.15"
grep -q '^epochs: 10$' pairs/config.yaml && grep -q '^lr: 0.15' pairs/config.yaml || fail "fm: config.yaml does not have what was chosen"

# ---- overfitting ----
rows 300 2000 >few.svm
run prep clicks few.svm --format svmlight -o few --holdout 0.3
run train --data few --model logreg --run heart --epochs 40 --lr 2
expect_text "overfitting          it has learned training rows by heart" "Try --epochs 20, a lower --lr"
expect_equal "told in the summary" "$(grep -c '"overfitting": "it has learned' heart/summary.json)" 1
run train --data short --model logreg --run usual --force
! grep -q "by heart" out || fail "a run as usual is called overfitting"
grep -q '"overfitting": null' usual/summary.json || fail "the summary does not say that there is none"

# ---- ratings of 1 to 10, and texts that were cut ----
awk 'BEGIN {
    for (row = 0; row < 40; row++) {
        printf "%d\t", 1 + row % 10
        for (word = 0; word < (row % 4 ? 30 : 180); word++)
            printf "w%d ", (row * 37 + word * 11) % 300
        print ""
    }
}' >texts
run prep reviews texts --format tab -o open --json
expect_equal "room" "$(json_number length)" 180
expect_equal "cut" "$(json_number cut_texts)" 0
expect_error "rows have room for 180 words (--length)" "warning: 20 ratings are above 5" "--positive"
run prep reviews texts --format tab -o cut --length 100 --positive 7
expect_error "10 of 40 texts were cut" "--length 180 would keep 95 % of them whole"
! grep -q "above 5" err || fail "who has said --positive is warned"
run prep reviews texts --format tab -o later --like open --positive 7 --json
expect_equal "room of what is like it" "$(json_number length)" 180
run inspect open
expect_text "--length 180"
usage_error "--length" "100" "180" -- prep reviews texts --format tab -o none --like open --length 100


# ---- how texts are read: by the room that rows have ----
run prep reviews texts --format tab -o short-texts --length 100 --positive 7 --holdout 0.2
run prep reviews texts --format tab -o long-texts --length 101 --positive 7 --holdout 0.2
run train --data short-texts --model rnn --hidden 4 --embed 4 --run last
expect_error "by default, for 32 rows: --epochs 3 --lr 0.004 --bidirectional false --pooling last"
grep -q '^epochs: 3$' last/config.yaml || fail "few short texts are passed more often"
run train --data long-texts --model rnn --hidden 4 --embed 4 --run mean --json
expect_error "by default, for 32 rows: --epochs 8 --lr 0.004 --bidirectional true --pooling mean"
grep -q '^bidirectional: "true"$' mean/config.yaml && grep -q '^pooling: "mean"$' mean/config.yaml ||
    fail "config.yaml does not say how texts are read"
run train --data long-texts --model rnn --hidden 4 --embed 4 --run said --force --json --epochs 8 --lr 0.004 --bidirectional --pooling mean
! grep -q "by default" err || fail "what was said is called a default"
expect_equal "model" "$(json_text model_sha256)" "$(json_text model_sha256 mean/summary.json)"
run train --config mean/config.yaml --run "$work/again" --force --json
expect_equal "model by the configuration" "$(json_text model_sha256)" "$(json_text model_sha256 mean/summary.json)"
run train --data long-texts --model rnn --hidden 4 --embed 4 --epochs 1 --run one --no-bidirectional --pooling last
grep -q '^bidirectional: "false"$' one/config.yaml || fail "--no-bidirectional is not taken"
run train --config one/config.yaml --run "$work/one-again"
grep -q '^bidirectional: "false"$' one-again/config.yaml || fail "false does not come back from config.yaml"
for ways in "false false" "off false" "true true" "on true" "auto true"; do
    run train --data long-texts --model rnn --hidden 4 --embed 4 --run ways --force --steps 1 "--bidirectional=${ways% *}"
    grep -q "^bidirectional: \"${ways#* }\"$" ways/config.yaml || fail "--bidirectional=${ways% *} is not ${ways#* }"
done
run train --data long-texts --model rnn --preset reviews-2019 --run preset --steps 1
grep -q '^bidirectional: "false"$' preset/config.yaml && grep -q '^pooling: "last"$' preset/config.yaml ||
    fail "a preset's way of reading is not its own"
for mode in "--mode allreduce --workers 2" "--mode ps-sync --workers 2 --ps 1"; do
    # shellcheck disable=SC2086 # options are words
    run train --data long-texts --model rnn --hidden 4 --embed 4 --run dry --force --dry-run $mode
    expect_error "--bidirectional true --pooling mean"
done
usage_error "--length 0" -- prep reviews texts --format tab -o none --length 0
