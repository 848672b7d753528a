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
usage_error "--length 0" -- prep reviews texts --format tab -o none --length 0
