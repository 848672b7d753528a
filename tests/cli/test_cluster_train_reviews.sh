#!/bin/bash
# Training on texts on several processes: every mode learns, the synchronous ones the same; who is killed or stopped goes on.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

make_texts texts 1200 7
make_texts test 300 8
run prep reviews texts --format tab --test test --length 10 --stopwords none -o data --quiet

for name in logreg rnn; do
    words_of $name

    # ---- the same model for the same workers, and nearly that of one ----
    clip=()
    [ $name = logreg ] || clip=(--clip 0) # servers would see each worker's part clipped
    train $name-one --epochs 3 --log-every 1 "${clip[@]}"
    train $name-all --epochs 3 --log-every 1 "${clip[@]}" --workers 2
    expect_equal "mode" "$(json_text mode)" allreduce
    for ps in 0 1 2; do
        train $name-ps$ps --mode ps-sync --epochs 3 --log-every 1 "${clip[@]}" --workers 2 --ps $ps
        expect_same $name-ps$ps $name-all
    done
    expect_same_losses $name-all $name-one
    expect_same_losses $name-ps1 $name-one
    expect_learned $name-all

    # ---- asynchronous ----
    for words in "ps-async --workers 2 --ps 1" "ps-ssp --staleness 1 --workers 2 --ps 0"; do
        read -ra words <<<"$words"
        rm -rf async
        train async --epochs 4 --mode "${words[@]}"
        expect_equal "mode" "$(json_text mode)" "${words[0]}"
        expect_equal "samples of ${words[*]}" "$(json_number samples)" 4800
        expect_learned async
    done

    # ---- a worker is killed: the same bytes ----
    train $name-killed --epochs 3 --workers 2 "${clip[@]}" --checkpoint-every 20 --inject kill:worker1@step=50
    expect_error "; starting again from step "
    expect_equal "restarts" "$(json_number restarts)" 1
    expect_same $name-killed $name-all
done

# ---- texts of very different length: some workers have no rows of some steps ----
awk 'BEGIN { for (i = 0; i < 200; i++) { text = "one"; for (k = 0; i % 5 == 0 && k < 90; k++) text = text " two"; print i % 2 "\t" text } }' >uneven.tab
run prep reviews uneven.tab --format tab -o uneven --length 90 --stopwords none --quiet
for mode in allreduce ps-sync; do
    run train --data uneven --run "uneven-$mode" "${model[@]}" --batch 7 --steps 12 --mode $mode --workers 3 --json
    cp out "uneven-$mode.json"
done
expect_same uneven-allreduce uneven-ps-sync

# ---- the rest is for networks ----
# Gradients that MPI sums, threads in every worker, an evaluator.
train mpi --epochs 3 --log-every 1 --clip 0 --workers 2 --reduce mpi
expect_same_losses mpi rnn-one
train scored --epochs 3 --clip 0 --workers 2 --threads 2 --evaluator --eval-every 10
expect_same scored rnn-all
sed -n 's/.*"kind":"eval".*"step":\([0-9]*\).*"n":\([0-9]*\).*/\1 \2/p' scored/metrics.jsonl >evals
expect_equal "last eval" "$(tail -n 1 evals)" "72 300"
expect_equal "evals and skipped ones" $(($(wc -l <evals) - 1 + $(json_number evaluations_skipped scored.json))) 7
run eval --run scored --data data --json
for score in accuracy precision recall auc n tp fp tn fn; do
    expect_equal "$score" "$(json_number $score)" "$(json_number $score scored.json)"
done
train early --epochs 200 --schedule constant --lr 0.5 --eval-every 10 --early-stop 1 --workers 2
expect_error "stopping early"

# 128 rows on each worker.
run train --data data --run "$work/study" --model rnn --preset reviews-2019 --steps 2 --workers 2
grep -qx 'batch: 256' study/config.yaml || fail "batch of two workers: $(grep '^batch' study/config.yaml)"

# Killed before its first checkpoint: the vectors of a file are there again.
sed '/^$/,$d' data/vocabulary.txt | cut -f 1 |
    awk '{ printf "%s", $1; for (i = 0; i < 8; i++) printf " %g", (NR * 7 + i * 3) % 5 / 10; print "" }' >vectors
train vectors-whole --epochs 1 --workers 2 --ps 1 --embeddings "$work/vectors"
train vectors-killed --epochs 1 --workers 2 --ps 1 --embeddings "$work/vectors" --inject kill:chief@step=15
expect_equal "restarts" "$(json_number restarts)" 1
expect_same vectors-killed vectors-whole

# Stopped: exit code 75, and the same bytes.
stopped_run_goes_on 20

# ---- what is refused, once ----
# refused CODE TEXT WORDS...
refused()
{
    expect_exit "$1" timeout -k 5 $seconds_max "$paceline" train --data "$work/data" --run "$work/refused" --workers 2 \
        --model rnn "${@:3}"
    expect_error "$2"
    expect_equal "errors" "$(grep -c '^paceline: error: ' err)" 1
    wait_for nothing_runs "$work/refused"
    [ ! -e refused/model.safetensors ] || fail "a refused run has a model"
    rm -rf refused
}
refused 64 "--reduce" --mode ps-sync --reduce mpi
refused 64 "ftrl" --optimizer ftrl
refused 65 "vectors" --embed 7 --embeddings "$work/vectors"
refused 66 "missing" --embeddings "$work/missing"
