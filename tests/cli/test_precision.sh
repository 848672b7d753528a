#!/bin/bash
# --precision bf16: whom it is for, what it needs, that it is part of what a run is, and the same bits in all synchronous modes.
# Everywhere with --kernels plain, which imitates it; with other kernels where the CPU can.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen reviews -o reviews.jsonl --rows 600 --seed 4
run prep reviews reviews.jsonl -o reviews --holdout 0.2 --vocab 500 --length 30
words=(--data reviews --model rnn --embed 8 --hidden 8 --epochs 1 --batch 60)

# ---- whom it is for, what it needs ----
usage_error "--precision bf16 is for networks, not for logreg" -- train --data reviews --model logreg --run r --precision bf16
usage_error "option --precision f16: must be one of f32|bf16" -- train "${words[@]}" --run r --precision f16
if "$paceline" gen reviews -o few.jsonl --rows 10 --kernels v3 >/dev/null 2>&1; then
    usage_error "--precision bf16 needs" "AVX512_BF16" "those in use are v3" "--kernels plain imitates it" -- \
        train "${words[@]}" --run r --precision bf16 --kernels v3
fi

# train RUN WORDS...
train()
{
    run train "${words[@]}" --run "$@" --json
}

# ---- what a run says ----
train f32 --kernels plain
expect_equal precision "$(json_text precision)" f32
train emulated --kernels plain --precision bf16
expect_equal precision "$(json_text precision)" bf16
expect_equal "by" "$(json_text bf16_by)" emulated
grep -q 'precision: "bf16"' emulated/config.yaml || fail "config.yaml does not have the precision"
! cmp -s f32/model.safetensors emulated/model.safetensors || fail "bf16 makes no difference"

# ---- a run goes on with what it began with ----
usage_error "--precision f32: emulated was made with bf16" -- train "${words[@]}" --epochs 2 --run emulated --resume --kernels plain --precision f32

# ---- all modes that add up alike have the same bits ----
for kernels in plain auto; do
    "$paceline" train "${words[@]}" --run try --dry-run --precision bf16 --kernels $kernels >/dev/null 2>&1 || continue
    train "local-$kernels" --kernels $kernels --precision bf16 --threads 1
    train "threads-$kernels" --kernels $kernels --precision bf16 --threads 2
    train "sync-$kernels" --kernels $kernels --precision bf16 --mode ps-sync
    train "all-$kernels" --kernels $kernels --precision bf16 --mode allreduce
    for mode in threads sync all; do
        cmp -s "local-$kernels/model.safetensors" "$mode-$kernels/model.safetensors" || fail "$mode differs with kernels $kernels"
    done
    train "two-$kernels" --kernels $kernels --precision bf16 --workers 2
    echo "kernels $kernels: by $(json_text bf16_by)"
done
