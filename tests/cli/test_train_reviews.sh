#!/bin/bash
# Training on texts as a user runs it, in one process: from raw texts to a scored model. Several:
# test_cluster_train_reviews.sh.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
cd "$work" || exit 1

make_texts texts 1200 7
make_texts test 300 8
run prep reviews texts --format tab --test test --length 10 --stopwords none -o data --json
train_rows=$(json_number train_rows)
expect_equal "rows" "$train_rows" 1200

# expect_interrupted RUN: sets step, where it was.
expect_interrupted()
{
    expect_error "interrupted after step" "--resume"
    [ ! -e "$1/summary.json" ] && [ ! -e "$1/model.safetensors" ] || fail "an interrupted run has a summary"
    step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
}

# agrees RUN PROBABILITIES TEXTS ACCURACY: so many of the rows are on the right side of 1/2, to all digits.
agrees()
{
    expect_equal "rows that $1 predicts" "$(wc -l <"$2")" "$(wc -l <"$3")"
    cut -f 1 "$3" | paste "$2" - | awk '{ hits += ($1 >= 0.5) == $2 } END { printf "%.17g\n", hits / NR }' >hits
    is_true "$(cat hits) == $4" || fail "$1: predict has an accuracy of $(cat hits), not of $4"
}

for name in logreg rnn; do
    words_of $name

    # ---- it learns, and any number of threads gives the same bytes ----
    train $name --threads 1 --epochs 8 --log-every 1
    expect_object
    cmp -s out $name/summary.json || fail "train --json differs from summary.json"
    expect_equal "model" "$(json_text model)" $name
    expect_equal "mode" "$(json_text mode)" local
    expect_equal "samples" "$(json_number samples)" $((8 * train_rows))
    expect_equal "steps told" "$(grep -c '"kind":"step"' $name/metrics.jsonl)" $((8 * train_rows / 50))
    expect_learned $name
    for threads in 2 3; do
        train $name-threads --threads $threads --epochs 8 --force
        expect_same $name-threads $name
    done
    run train --config $name/config.yaml --run "$work/$name-again" --json
    expect_equal "model by the configuration of $name" "$(json_text model_sha256)" "$(sha $name)"

    # ---- what it says about the test rows ----
    run eval --run $name --data data --json
    for score in accuracy precision recall f1 auc n tp fp tn fn; do
        expect_equal "$score of $name" "$(json_number $score)" "$(json_number $score $name.json)"
    done
    is_true "($(json_number logloss) - $(json_number logloss $name.json)) ^ 2 < 1e-18" || fail "log-loss of $name"
    run predict --run $name test --format tab -o $name.probabilities --force
    agrees $name $name.probabilities test "$(json_number accuracy $name.json)"
    make_texts later 200 9
    run prep reviews later --format tab --like "$work/$name" --positive 1 -o later-$name
    run eval --run $name --data later-$name --json
    expect_equal "later rows" "$(json_number n)" 200
    cp out later.json
    run predict --run $name later --format tab -o later.probabilities --force
    agrees $name later.probabilities later "$(json_number accuracy later.json)"
    run inspect $name --json
    expect_text '"model"' '"vocabulary"'

    # ---- stopped, killed, and resumed: the same bytes ----
    words=(--epochs 5 --checkpoint-every 40)
    train $name-whole "${words[@]}"
    expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data --run "$work/$name-killed" --batch 50 \
        "${model[@]}" "${words[@]}" --inject kill:chief@step=100
    train $name-killed "${words[@]}" --resume
    expect_same $name-killed $name-whole
    expect_equal "restarts" "$(json_number restarts)" 1
    # From step 80, 40 or 0: the newest that was whole when the kill came.
    is_true "$(json_number rows_computed_twice) % 2000 == 1000" ||
        fail "$(json_number rows_computed_twice) rows were computed twice"
    start_job "$paceline" train --data data --run "$work/$name-stopped" --batch 50 "${model[@]}" --schedule constant \
        --log-every 5 --epochs 1000000
    wait_for trains $name-stopped
    kill -INT "$job"
    end_job 75
    expect_interrupted $name-stopped
    words=(--schedule constant --steps $((step + 30)))
    train $name-stopped "${words[@]}" --resume
    train $name-onward "${words[@]}"
    expect_same $name-stopped $name-onward

    # ---- stopping early ----
    train $name-early --epochs 200 --schedule constant --eval-every 10 --early-stop 1 --lr 0.5
    expect_error "stopping early"
    expect_text '"early_stopped": true'
done

# ---- word vectors ----
words_of rnn
# Those of all words but the last; number i of word w is w / 4 - i.
sed '/^$/,$d' data/vocabulary.txt | cut -f 1 | head -n -1 |
    awk '{ printf "%s", $1; for (i = 0; i < 8; i++) printf " %g", NR / 4 - i; print "" }' >vectors
known=$(wc -l <vectors)
[ "$known" -gt 20 ] || fail "$known words"
# expect_begun RUN: its model, which has hardly been trained, has them behind the three special words.
expect_begun()
{
    expect_error "vectors for $known of $((known + 1)) words"
    model_part "$1" embedding.weight | od -An -v -w32 -tf4 | tail -n +4 | head -n "$known" |
        paste -d ' ' vectors - | awk -v known="$known" '
            { for (i = 2; i <= 9; i++) wrong += ($i - $(i + 8)) ^ 2 > 1e-12 }
            NF != 17 || wrong { print; exit 1 }
            END { if (NR != known) exit 1 }' >wrong || fail "$1 has not begun with the vectors: $(cat wrong)"
}
train begun --embeddings vectors --steps 1 --lr 1e-12
expect_begun begun
gzip -k vectors
train begun --embeddings vectors.gz --steps 1 --lr 1e-12 --force
expect_begun begun
# Killed before its first checkpoint, it begins again with the same.
train vectors-whole --embeddings vectors --epochs 2
[ "$(sha vectors-whole)" != "$(train vectors-none --epochs 2 && sha vectors-none)" ] || fail "vectors make no difference"
expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data --run "$work/vectors-killed" --batch 50 \
    "${model[@]}" --epochs 2 --embeddings vectors --inject kill:chief@step=20
train vectors-killed --embeddings vectors --epochs 2 --resume
expect_error "begins at step 0"
expect_same vectors-killed vectors-whole

# ---- presets and weights ----
expect_config()
{
    local line

    for line in "${@:2}"; do
        grep -qxF -- "$line" "$1/config.yaml" || fail "not in config.yaml of $1: $line: $(cat "$1/config.yaml")"
    done
}
run train --data data --run study --model rnn --preset reviews-2019 --steps 2 --json
expect_config study 'layers: 2' 'hidden: 32' 'embed: 100' 'dense: 32' 'dropout: 0.5' 'word-dropout: 0' 'clip: 0' \
    'pooling: "last"' 'cell: "lstm"' 'optimizer: "momentum"' 'schedule: "constant"' 'batch: 128' 'epochs: 10' \
    'class-weight: "0.2"'
grep -qE '^lr: 0\.1(0*[0-9])?$' study/config.yaml || fail "lr of the study: $(grep '^lr:' study/config.yaml)"
run train --data data --run study2 --model rnn --preset reviews-2019 --steps 2 --hidden 4 --lr 0.5 --class-weight 3
expect_config study2 'layers: 2' 'hidden: 4' 'lr: 0.5' 'class-weight: "3"'
train weighted --class-weight balanced --epochs 1
expect_config weighted 'class-weight: "balanced"'
train heavy --class-weight 20 --epochs 1
is_true "$(json_number mean_predicted heavy.json) > $(json_number mean_predicted weighted.json) + 0.05" ||
    fail "a heavy class is not predicted more often"

# ---- what is refused ----
train_refused 64 "--l1" "rnn" -- --model rnn --l1 0.1
train_refused 64 "--hidden" "logreg" -- --model logreg --hidden 5
train_refused 64 "--embeddings" "logreg" -- --embeddings vectors
train_refused 64 "ftrl" "rnn" -- --model rnn --optimizer ftrl
train_refused 64 "--dropout" -- --model rnn --dropout -0.5
train_refused 64 "--word-dropout" -- --model rnn --word-dropout -0.5
train_refused 64 "--dropout" -- --model rnn --dropout 1
train_refused 64 "--class-weight" "nonsense" -- --model rnn --class-weight nonsense
train_refused 64 "--class-weight" -- --model rnn --class-weight -1
train_refused 64 "--ngram" -- --model rnn --ngram 3
train_refused 64 "--exact" -- --model rnn --exact
train_refused 65 "vectors" "8 values" -- --model rnn --embed 7 --embeddings vectors
train_refused 66 "missing" -- --model rnn --embeddings missing

# A set of another kind, vocabulary or length.
run gen clicks -o clicks.tsv --rows 500 --seed 5
run prep clicks clicks.tsv -o clicks --holdout 0.1
train_refused 64 "clicks" "no texts" -- --model rnn --data clicks
run train --data clicks --run clicks-run
run prep reviews texts --format tab --test test --length 12 --stopwords none -o longer
run prep reviews texts --format tab --test test --length 10 --stopwords none --vocab 20 -o smaller
for name in logreg rnn; do
    for set in longer:length smaller:vocabulary clicks:text; do
        expect_exit 65 "$paceline" eval --run $name --data "${set%:*}"
        expect_error "paceline: error: " "${set#*:}"
    done
    words_of $name
    for epochs in 5 9; do
        expect_exit 64 "$paceline" train --data longer --run $name-killed --batch 50 "${model[@]}" --epochs $epochs --resume
        expect_error "$name-killed" "other options or data"
    done
done
expect_exit 65 "$paceline" eval --run clicks-run --data data
expect_error "paceline: error: " "text"
usage_error "trained on texts" "--format" -- predict --run rnn clicks.tsv --format criteo
expect_exit 64 "$paceline" predict --run clicks-run test --format tab
expect_error "clicks-run" "texts"
