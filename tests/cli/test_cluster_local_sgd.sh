#!/bin/bash
# --mode local-sgd: workers that train by themselves and merge. The same bytes whatever happens on the way, and close to
# what one process learns.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=cluster.sh
source "$(dirname "$0")/cluster.sh"

merging=(--mode local-sgd --epochs 3 --exchange 3000 --checkpoint-every 20)

# ---- the same bytes: threads, records, kills ----
train data calm "${merging[@]}" --workers 3
expect_equal "samples" "$(json_number samples)" $((3 * train_rows))
expect_equal "mode" "$(json_text mode)" local-sgd
expect_equal "flushes" "$(json_number flushes)" 13 # the start, and four of each epoch
is_true "$(json_number rounds) > 50 && $(json_number keys_per_row) > 0 && $(json_number bytes_per_row) > 0" ||
    fail "no account of rounds: $(cat out)"
train data watched "${merging[@]}" --workers 3 --threads 2 --eval-every 30 --log-every 1
expect_same_bytes calm watched
for kills in kill:worker1@step=3 kill:chief@step=60,kill:worker2@step=170 kill:worker2@checkpoint,kill:chief@end \
    kill:worker1@step=$((RANDOM % 300 + 1)),kill:chief@step=$((RANDOM % 300 + 1)); do
    echo "$kills"
    train data killed "${merging[@]}" --workers 3 --force --inject "$kills"
    expect_same_bytes calm killed
    is_true "$(json_number restarts) >= 1" || fail "nobody was killed"
    expect_equal "samples" "$(json_number samples)" $((3 * train_rows))
done

# With a rate that changes from step to step, and penalties that flow at that rate over the rows behind a flush.
for rule in adagrad sgd; do
    words=(--optimizer "$rule" --l2 0.05 --lr 0.2 --schedule invsqrt --warmup 40)
    train data "calm-$rule" "${merging[@]}" "${words[@]}" --workers 3
    train data "killed-$rule" "${merging[@]}" "${words[@]}" --workers 3 --threads 2 --inject kill:worker1@step=150
    expect_same_bytes "calm-$rule" "killed-$rule"
done

# ---- changes that travel as bf16: half the bytes, and the same ones whatever happens ----
train data narrow "${merging[@]}" --workers 3 --wire bf16
cmp -s narrow/model.safetensors calm/model.safetensors && fail "--wire bf16 has rounded nothing"
is_true "$(json_number bytes_per_row narrow.json) < 0.6 * $(json_number bytes_per_row calm.json)" || fail "bytes of --wire bf16"
is_true "($(json_number logloss narrow.json) - $(json_number logloss calm.json)) ^ 2 < 1e-7" || fail "log-loss of --wire bf16"
train data narrow-killed "${merging[@]}" --workers 3 --wire bf16 --inject kill:worker1@step=60,kill:chief@step=170
expect_same_bytes narrow narrow-killed
is_true "$(json_number restarts) >= 1" || fail "nobody was killed"

# ---- told to stop: the last flush is saved, and the rest is trained again ----
start_job "$paceline" train --data "$work/data" --run "$work/stopped" --batch 100 "${merging[@]}" --workers 3 \
    --inject slow:worker1=40x --log-every 1
wait_for trains stopped
kill -TERM "$job"
end_job 75
expect_error "interrupted after step"
train data stopped "${merging[@]}" --workers 3 --resume
expect_same_bytes calm stopped

# ---- SGD has other state where workers merge: nobody throws its checkpoints away for that ----
train data squares --mode local-sgd --workers 2 --optimizer sgd --steps 60
expect_exit 64 timeout -k 5 "$seconds_max" "$paceline" train --data data --run squares --batch 100 --optimizer sgd --resume --steps 90
expect_error "workers that merge (--mode local-sgd) keep other state"

# ---- texts: by steps of each worker's own, on n-grams of which nearly none are hot ----
make_texts raw 3300 7
run prep reviews raw --format tab --holdout 0.1 --length 10 --stopwords none -o texts --json
text_rows=$(json_number train_rows)
texts=(--mode local-sgd --workers 3 --epochs 3 --exchange 1000 --checkpoint-every 10 --ngram 2)
train texts read-calm "${texts[@]}"
expect_equal "samples" "$(json_number samples)" $((3 * text_rows))
expect_equal "flushes" "$(json_number flushes)" 10 # the start, and three of each epoch
is_true "$(json_number rounds) > 50 && $(json_number logloss) < 0.5 * $(json_number null_logloss)" || fail "rounds, or what was learned: $(cat out)"
train texts read-watched "${texts[@]}" --threads 2 --eval-every 7 --log-every 1
expect_same_bytes read-calm read-watched
train texts read-killed "${texts[@]}" --inject kill:worker1@step=$((RANDOM % 80 + 1)),kill:chief@step=45
expect_same_bytes read-calm read-killed
is_true "$(json_number restarts) >= 1" || fail "nobody was killed"
start_job "$paceline" train --data "$work/texts" --run "$work/read-stopped" --model logreg --batch 100 "${texts[@]}" \
    --inject stall:worker1=10s@step=30 --log-every 1
wait_for trains read-stopped
kill -TERM "$job"
end_job 75
expect_error "interrupted after step"
wait_for nothing_runs "$work/read-stopped"
train texts read-stopped "${texts[@]}" --resume
expect_same_bytes read-calm read-stopped
train texts read-all --mode allreduce --workers 3 --epochs 3 --ngram 2
is_true "$(json_number logloss read-calm.json) < 1.02 * $(json_number logloss read-all.json)" ||
    fail "log-loss $(json_number logloss read-calm.json), of all-reduce $(json_number logloss read-all.json)"
run train --data texts --run dry --model logreg --mode local-sgd --workers 4 --dry-run
expect_error "(exact rule)" "rounds and" "rows/s; --mode local: about"

# ---- one worker is mode local ----
train texts read-one --mode local-sgd --workers 1
train texts read-local --mode local
expect_same_bytes read-one read-local
train data one --mode local-sgd --workers 1
train data local --mode local
expect_same_bytes one local

# ---- what it learns ----
# as_good RUN RUN PERCENT: the log-loss of the first is not that much higher.
as_good()
{
    is_true "$(json_number logloss "$1.json") < (1 + $3 / 100) * $(json_number logloss "$2.json")" ||
        fail "log-loss of $1 $(json_number logloss "$1.json"), of $2 $(json_number logloss "$2.json")"
}

run gen clicks -o many.tsv --rows 220000 --seed 9
run prep clicks many.tsv -o many --holdout 0.09
train many many-local --mode local
# As a9a has it: 14 of 123 features, of which some decide.
awk 'BEGIN {
    srand(4)
    for (row = 0; row < 36000; row++) {
        z = -1; line = ""
        for (group = 0; group < 14; group++) {
            id = group * 9 + int(9 * rand() * rand()); z += sin(id * id) * .9; line = line " " id ":1"
        }
        print (rand() < 1 / (1 + exp(-z)) ? 1 : -1) line
    }
}' >adults.svm
run prep clicks adults.svm -o adults --format svmlight --holdout 0.2
train adults adults-local --mode local --epochs 3
for workers in 2 4; do
    train many many-$workers --mode local-sgd --workers $workers
    as_good many-$workers many-local .2
    train adults adults-$workers --mode local-sgd --workers $workers --epochs 3
    as_good adults-$workers adults-local .2
done

# ---- what it says ----
run train --data data --run dry --mode local-sgd --workers 4 --dry-run
expect_error "rounds and"
expect_error "below 50000 merging takes longer than training"
# refused TEXT WORDS...
refused()
{
    train_refused 64 "$1" -- --mode local-sgd --workers 2 "${@:2}"
}
refused "there is no sum over a step (--exact)" --exact
refused "steps of more than 512 rows" --batch 513
refused "has no --ps" --ps 2
refused "--outer-lr and --outer-momentum are for networks" --outer-momentum 0
refused "has no --evaluator" --evaluator
refused "for logreg in local-sgd" --model fm --wire bf16
refused "most parameters of fm are met by few rows" --model fm
refused "take --optimizer adagrad, ftrl or sgd" --optimizer adam
