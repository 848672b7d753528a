#!/bin/bash
# --mode local-sgd of networks: workers that take steps of their own and average. The same bytes whatever happens on the way, and
# as good as what all-reduce learns.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

pictures=("${model[@]}")
words_of rnn
make_texts texts 1200 7
make_texts test 300 8
run prep reviews texts --format tab --test test --length 10 --stopwords none -o data --quiet
averaging=(--mode local-sgd --workers 3 --epochs 4 --exchange 100 --outer-lr 0.9 --outer-momentum 0.3 --checkpoint-every 8)

# ---- the same bytes: threads, records, kills ----
train calm "${averaging[@]}"
expect_equal "mode" "$(json_text mode)" local-sgd
expect_equal "samples" "$(json_number samples)" 4800
expect_equal "steps of a round" "$(json_number round_steps)" 6 # of 17 rows
expect_equal "flushes" "$(json_number flushes)" 35
expect_learned calm
train watched "${averaging[@]}" --threads 2 --eval-every 5 --log-every 1
expect_same watched calm
for kills in kill:worker1@step=2 kill:chief@step=30,kill:worker2@step=80 kill:worker2@checkpoint,kill:chief@end \
    kill:worker1@step=$((RANDOM % 90 + 1)),kill:chief@step=$((RANDOM % 90 + 1)); do
    echo "$kills"
    train killed "${averaging[@]}" --force --inject "$kills"
    expect_same killed calm
    is_true "$(json_number restarts killed.json) >= 1" || fail "nobody was killed"
    expect_equal "samples" "$(json_number samples killed.json)" 4800
done

# ---- told to stop in the middle of a round: the last flush is saved, and the rest is trained again ----
start_job "$paceline" train --data "$work/data" --run "$work/stopped" --batch 50 "${model[@]}" "${averaging[@]}" \
    --inject slow:worker1=300x --log-every 1
wait_for trains stopped
kill -TERM "$job"
end_job 75
expect_error "interrupted after step"
wait_for nothing_runs "$work/stopped"
train stopped "${averaging[@]}" --resume
expect_same stopped calm

# ---- it is what all-reduce learns, with fewer bytes ----
train all --mode allreduce --workers 3 --epochs 4
train often --mode local-sgd --workers 3 --epochs 4 --exchange 100
is_true "$(json_number logloss often.json) < 1.25 * $(json_number logloss all.json)" ||
    fail "log-loss $(json_number logloss often.json), of all-reduce $(json_number logloss all.json)"
# Rounds grow up to an epoch.
train rarely --mode local-sgd --workers 3 --epochs 40 --exchange 400
train always --mode allreduce --workers 3 --epochs 40
# bytes_of RUN: of all roles, which come first.
bytes_of()
{
    sed -n 's/^  "bytes_sent": \([0-9]*\).*/\1/p' "$1.json" | head -n 1
}
is_true "4 * $(bytes_of rarely) < $(bytes_of always)" || fail "$(bytes_of rarely) bytes, by all-reduce $(bytes_of always)"

# ---- one worker is mode local ----
train one --mode local-sgd --workers 1
train local --mode local
expect_same one local

# ---- pictures: batch norm, and the head alone ----
make_pictures drawn
run prep images drawn -o drawings --size 16 --holdout 0.2 --parts 12 --quiet
draw()
{
    run train --data "$work/drawings" --run "$work/$1" --batch 50 --json "${pictures[@]}" "${@:2}"
    cp out "$1.json"
}
draw drawn-calm --mode local-sgd --workers 2 --epochs 5 --exchange 75
expect_error "batch norm goes by the 25 rows of a worker's step"
draw drawn-killed --mode local-sgd --workers 2 --epochs 5 --exchange 75 --checkpoint-every 5 --inject kill:worker1@step=20
expect_same drawn-killed drawn-calm
run eval --run "$work/drawn-calm" --data "$work/drawings" --json
expect_equal "accuracy" "$(json_number accuracy)" "$(json_number accuracy drawn-calm.json)"
top=(--mode local-sgd --workers 2 --epochs 6 --exchange 75 --pretrained "$work/drawn-calm/model.safetensors" --train top --feature-cache "$work/cache")
draw top "${top[@]}"
draw top-killed "${top[@]}" --checkpoint-every 5 --inject kill:chief@step=20
expect_same top-killed top

# ---- what it says, and what it refuses ----
run train --data data --run dry "${model[@]}" --batch 50 --mode local-sgd --workers 4 --dry-run
expect_error "each worker takes up to 24 steps of its own, of 13 rows, then all are averaged" "by --mode allreduce it would be up to"
expect_error "rows/s; --mode local: about"
run train --data data --run dry "${model[@]}" --batch 50 --mode local-sgd --workers 4 --exchange 1 --dry-run
expect_error "workers that average behind every step send more"
# refused TEXT WORDS...
refused()
{
    expect_exit 64 timeout -k 5 "$seconds_max" "$paceline" train --data "$work/data" --run "$work/refused" --workers 2 --model rnn "${@:2}"
    expect_error "$1"
    [ ! -e refused ] || fail "a refused run has a directory"
}
refused "has no --ps" --mode local-sgd --ps 1
refused "has no --evaluator" --mode local-sgd --evaluator
refused "--reduce is for --mode allreduce" --mode local-sgd --reduce mpi
refused "--wire is for ps-sync" --mode local-sgd --wire bf16
refused "--exchange is for --mode local-sgd" --exchange 100
refused "--outer-lr is for --mode local-sgd" --mode allreduce --outer-lr 1
refused "--outer-momentum is for --mode local-sgd" --mode allreduce --outer-momentum 0
train steady --mode allreduce --workers 3 --epochs 1 --schedule constant
expect_exit 64 timeout -k 5 "$seconds_max" "$paceline" train --data "$work/data" --run "$work/steady" --batch 50 "${model[@]}" --workers 3 \
    --mode local-sgd --epochs 2 --schedule constant --resume
expect_error "workers that merge (--mode local-sgd) keep other state"
