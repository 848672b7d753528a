#!/bin/bash
# Disks that are slower than the deadline: nobody is taken for dead who only waits for one. The jobs run at the same time,
# since all they do is wait.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 2000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --holdout 0.1 --parts 1 --quiet
declare -A jobs

# begin NAME RULES WORDS...: trains in the background, on a disk that goes by those rules.
begin()
{
    local name=$1 rules=$2

    shift 2
    LD_PRELOAD=$SHIM SHIM_FILES=$rules timeout -s KILL $seconds_max "$paceline" train --data data --model logreg \
        --run "$work/$name" --batch 200 --steps 30 --deadline 2 --max-restarts 0 --json "$@" \
        >"$name.out" 2>"$name.err" </dev/null &
    jobs[$name]=$!
}

# finish NAME: it has ended well, and nobody was lost on the way.
finish()
{
    local got=0

    wait "${jobs[$1]}" || got=$?
    cp "$1.out" out && cp "$1.err" err
    [ $got -eq 0 ] || fail "$1: exit code $got"
    expect_equal "restarts of $1" "$(json_number restarts)" 0
}

# To be resumed from a disk on which a checkpoint takes longer to read than first contact may take.
run train --data data --model logreg --run "$work/resumed" --batch 200 --steps 20 --checkpoint-every 10 --exact --quiet
cp -r resumed resumed-ps
begin resumed read:safetensors:2.8s --workers 2 --resume
begin resumed-ps read:manifest.json:11s --workers 2 --ps 1 --resume
# What the chief writes, at the beginning and at the end.
begin model fsync:model.safetensors:4s --workers 2
begin model-async fsync:model.safetensors:4s --mode ps-async --workers 2 --ps 1
begin files 'fsync:config.yaml:3s fsync:cluster.json:3s' --workers 2 --ps 1 --evaluator
begin summary 'fsync:summary.json:3s fsync:state.json:3s' --workers 2
# Checkpoints: the directory, parts, the manifest.
begin saves fsync:checkpoints:3s --checkpoint-every 20 --mode allreduce
begin saves-allreduce fsync:checkpoints:3s --checkpoint-every 20 --workers 2
begin saves-sync fsync:checkpoints:3s --checkpoint-every 20 --mode ps-sync --workers 2
begin saves-async fsync:checkpoints:3s --checkpoint-every 20 --mode ps-async --workers 2 --ps 1
# Rows, whoever reads them.
begin rows read@8192:data/part-:3s --workers 2 --evaluator --steps 1
begin rows-chief read@8192:data/part-:3s --workers 2 --steps 1
# An evaluator that cannot keep up says so.
begin behind none --workers 2 --evaluator --steps 300 --eval-every 1 --inject slow:evaluator=100x
for name in "${!jobs[@]}"; do
    finish "$name"
done
grep -q 'warning: writing model.safetensors has taken 2.* s so far; the others wait' model.err ||
    fail "it is not said what takes so long: $(cat model.err)"

grep -q 'the evaluator is behind, and has skipped [0-9]* evaluations' behind.err || fail "skipped in silence: $(cat behind.err)"

# It is the thread that works which gives the signs: who hangs is noticed, be it at the end.
expect_exit 1 timeout -s KILL $seconds_max "$paceline" train --data data --model logreg --run "$work/hung" --batch 200 \
    --steps 30 --deadline 1 --max-restarts 0 --workers 2 --inject stall:chief@end
expect_error "chief (rank 0, host $(hostname)) has given no sign of life for"
