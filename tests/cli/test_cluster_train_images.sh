#!/bin/bash
# Training on pictures on several processes: every mode learns, the synchronous ones the same; who is killed or stopped
# goes on; the head alone, on features that all have computed.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

make_pictures pictures
run prep images pictures -o data --size 16 --holdout 0.2 --parts 12 --quiet
rows=$(find pictures -name '*.jpg' | wc -l)

# ---- the same model for the same workers; a scored one, from two servers that have as much to do ----
words=(--epochs 5 --log-every 1)
train all "${words[@]}" --workers 2
expect_equal "mode" "$(json_text mode)" allreduce
train servers "${words[@]}" --mode ps-sync --workers 2 --ps 2 --evaluator --eval-every 10
expect_same servers all
expect_scored servers
tr '{' '\n' <servers/summary.json | sed -n 's/^"role": "ps[0-9]*".*"bytes_received": \([0-9]*\), "bytes_sent": \([0-9]*\).*/\1 \2/p' >bytes
awk '{ sum += $1 + $2; most = $1 + $2 > most ? $1 + $2 : most; least = least && least < $1 + $2 ? least : $1 + $2 }
    END { exit !(NR == 2 && sum > 0 && most < 1.05 * least) }' bytes || fail "bytes of the servers: $(cat bytes)"
is_true "$(json_number bytes servers.json) < 1.05" || fail "imbalance of $(json_number bytes servers.json)"

# Statistics of all workers' rows: the same numbers as one worker's. Plain steps do not enlarge what rounding changes.
plain=(--epochs 3 --log-every 1 --optimizer momentum --lr 0.02 --augment "flip,crop" --dropout 0.2)
train plain-one "${plain[@]}"
train plain-two "${plain[@]}" --workers 2 --ps 0
train plain-mpi "${plain[@]}" --workers 3 --reduce mpi
expect_same_losses plain-two plain-one
expect_same_losses plain-mpi plain-one

# ---- asynchronous ----
for words in "ps-async --workers 2 --ps 1" "ps-ssp --staleness 1 --workers 2 --ps 0"; do
    read -ra words <<<"$words"
    rm -rf async
    train async --epochs 15 --mode "${words[@]}"
    expect_equal "mode" "$(json_text mode)" "${words[0]}"
    # How far it comes depends on who is faster.
    is_true "$(json_number logloss async.json) < 0.95 * $(json_number null_logloss async.json)" ||
        fail "log-loss of ${words[*]}: $(json_number logloss async.json)"
done

# ---- who is killed is started again, and the bytes are the same ----
words=(--epochs 5 --checkpoint-every 10)
for role in worker1 ps0 chief; do
    rm -rf killed
    train killed "${words[@]}" --workers 2 --ps 2 --inject kill:$role@step=25
    expect_error "; starting again from step "
    expect_equal "restarts" "$(json_number restarts)" 1
    expect_same killed all
done
stopped_run_goes_on 10

# ---- the head alone: three processes share the pictures ----
top=(--pretrained "$work/all/model.safetensors" --train top --epochs 10 --feature-cache "$work/cache")
train top "${top[@]}" --workers 3
expect_error " $work/cache/" # "kept in", or "taken from" if the other two were done before the chief looked
expect_equal "caches" "$(find cache -mindepth 1 -maxdepth 1 | wc -l)" 1
expect_scored top
rm -rf cache
train top-alone "${top[@]}" --workers 1 --mode allreduce
expect_error "features: $rows pictures"
find cache -type f -exec sha256sum {} + | sed "s|$work||" | sort -k 2 >alone
rm -rf cache
train top-again "${top[@]}" --workers 3
expect_same top-again top
find cache -type f -exec sha256sum {} + | sed "s|$work||" | sort -k 2 | cmp -s - alone || fail "the caches differ"
train top-servers "${top[@]}" --workers 3 --ps 1 --evaluator --inject kill:worker2@step=40
expect_error "features: taken from "
expect_same top-servers top

# ---- what is refused, once ----
# refused CODE TEXT WORDS...
refused()
{
    expect_exit "$1" timeout -k 5 $seconds_max "$paceline" train --data "$work/data" --run "$work/refused" --workers 2 \
        --model cnn --width 0.25 "${@:3}"
    expect_error "$2"
    expect_equal "errors" "$(grep -c '^paceline: error: ' err)" 1
    wait_for nothing_runs "$work/refused"
    [ ! -e refused/model.safetensors ] || fail "a refused run has a model"
    rm -rf refused
}
refused 64 "no such layer" --pretrained "$work/all/model.safetensors" --train from:nowhere
refused 66 "missing" --pretrained "$work/missing" --train top
refused 65 "model.safetensors" --pretrained "$work/all/model.safetensors" --arch resnet20
