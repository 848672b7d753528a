#!/bin/bash
# --kernels: what it takes, where it may stand, and that with plain ones nothing wide is called. $TRAPPED is the program with
# traps instead of wide kernels (tests/traps). Several processes: test_cluster_kernels.sh.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- which there are ----
usage_error "option --kernels avx512: must be one of auto|plain|v2|v3|v4|neon" -- inspect --kernels avx512
usage_error "option --kernels" -- inspect --kernels
PACELINE_KERNELS=v9 usage_error "PACELINE_KERNELS=v9" "auto|plain|v2|v3|v4|neon" -- inspect
echo 'kernels: plian' >wrong.yaml
usage_error "wrong.yaml" "did you mean plain?" -- inspect --config wrong.yaml
run train --help
expect_text "--kernels SET" "default auto"

# ---- which are in use, and by which instructions bf16 is computed ----
for words in --version -V version; do
    PACELINE_KERNELS=v9 usage_error "PACELINE_KERNELS=v9" -- $words
    run $words --kernels plain
    expect_text "(kernels plain)" "this CPU runs plain" "--precision bf16 with plain: emulated"
    expect_exit 0 env PACELINE_KERNELS=plain "$paceline" $words
    expect_text "(kernels plain)"
done
run version --kernels plain --json
expect_text '"kernels":"plain"' '"runs":["plain"' '"bf16_by":"emulated"'
usage_error "unexpected word 3" -- version 3

# ---- data sets: the same bytes, and no trap ----
trapped()
{
    expect_exit 0 timeout -k 5 "$seconds_max" "$TRAPPED" "$@" --kernels plain
}

run gen clicks -o clicks.tsv --rows 3000 --seed 4
run gen clicks -o clicks.svm --rows 1000 --seed 5 --format svmlight
run gen reviews -o reviews.jsonl --rows 600 --seed 4
run gen images -o drawn --rows 120 --classes 3 --size 40 --seed 3

# prepared NAME WORDS...
prepared()
{
    run prep "${@:2}" -o "$1"
    prints "$1" >"$1.prints"
    rm -r "$1"
    trapped prep "${@:2}" -o "$1"
    prints "$1" | cmp -s - "$1.prints" || fail "$1 of plain kernels differs"
}

prepared clicks clicks clicks.tsv --holdout 0.2
prepared numbered clicks clicks.svm --holdout 0.2
prepared reviews reviews reviews.jsonl --holdout 0.2 --vocab 500 --length 30
prepared pictures images drawn --size 32 --holdout 0.2

# ---- models ----
model_of()
{
    case $1 in
    sgd) words=(--data clicks --model logreg --optimizer sgd) ;;
    adagrad) words=(--data clicks --model logreg --optimizer adagrad) ;;
    texts) words=(--data reviews --model logreg --epochs 1) ;;
    lstm) words=(--data reviews --model rnn --embed 8 --hidden 8 --epochs 1) ;;
    gru) words=(--data reviews --model rnn --cell gru --embed 8 --hidden 40 --layers 2 --bidirectional --epochs 1) ;;
    small) words=(--data pictures --model cnn --width 0.25 --epochs 1) ;;
    # Two steps: of maps of one pixel and 30 rows batch norm makes 1e-7 of rounding 1e-3 in two more.
    mobilenet) words=(--data pictures --model cnn --arch mobilenet-v2 --width 0.25 --batch 30 --steps 2) ;;
    esac
}

# near NAME...: these figures of plain.json and auto.json agree up to rounding.
near()
{
    local name

    for name in "$@"; do
        is_true "($(json_number "$name" plain.json) - $(json_number "$name" auto.json)) ^ 2 < 1e-6" ||
            fail "$model, $name: $(json_number "$name" plain.json) with plain kernels, $(json_number "$name" auto.json)"
    done
}

for model in sgd adagrad texts lstm gru small mobilenet; do
    model_of $model
    trapped train "${words[@]}" --run "$work/plain-$model" --json
    cp out plain.json
    expect_equal "kernels of $model" "$(json_text kernels)" plain
    run train "${words[@]}" --run "$work/auto-$model" --json
    cp out auto.json
    near train_loss logloss
    run train "${words[@]}" --run "$work/again" --threads 2 --json --force --kernels plain
    expect_equal "plain $model on two threads" "$(json_text model_sha256)" "$(json_text model_sha256 plain.json)"
done
widest=$(json_text kernels auto.json)
# Of logistic regression the bits are promised, with every set that this CPU runs.
for model in sgd adagrad texts; do
    model_of $model
    for set in auto v2 v3 v4; do
        "$paceline" inspect clicks --kernels $set >out 2>err || continue
        run train "${words[@]}" --run "$work/again" --json --force --kernels $set
        cmp -s plain-$model/model.safetensors again/model.safetensors || fail "$model: kernels $set have other bits than plain ones"
    done
done
for model in adagrad lstm small; do
    model_of $model
    trapped eval --run plain-$model --data "${words[1]}" --json
done
trapped predict --run plain-adagrad clicks.tsv
trapped predict --run plain-lstm reviews.jsonl
trapped predict --run plain-small drawn

# ---- the traps work, where there is something to trap ----
if [ "$widest" != plain ]; then
    for model in adagrad lstm small; do
        model_of $model
        expect_exit 134 "$TRAPPED" train "${words[@]}" --run "$work/caught" --force
        expect_error "a wide kernel was called"
    done
    run train "${words[@]}" --run "$work/again" --json --force --kernels "$widest"
    expect_equal "model of $widest" "$(json_text model_sha256)" "$(sha256sum <auto-small/model.safetensors | cut -d ' ' -f 1)"
fi

# ---- file < environment < command line ----
model_of sgd
echo 'kernels: plain' >plain.yaml
run train "${words[@]}" --run "$work/again" --json --force --config plain.yaml
expect_equal "kernels of a file" "$(json_text kernels)" plain
PACELINE_KERNELS=plain run train "${words[@]}" --run "$work/again" --json --force
expect_equal "kernels of the environment" "$(json_text kernels)" plain
PACELINE_KERNELS=plain run train "${words[@]}" --run "$work/again" --json --force --kernels auto
expect_equal "kernels of the command line" "$(json_text kernels)" "$widest"
expect_equal "kernels of summary.json" "$(json_text kernels again/summary.json)" "$widest"

# ---- oneDNN's kernels are those of CPUs without AVX-512, too (the thread sanitizer does without oneDNN) ----
if ! grep -q __tsan_init "$paceline"; then
    model_of mobilenet
    ONEDNN_VERBOSE=1 run train "${words[@]}" --run "$work/again" --force --kernels plain
    expect_text "onednn_verbose,info,cpu,isa:" "onednn_verbose,exec,cpu,convolution"
    ! grep -iE "avx-?512" out || fail "oneDNN uses AVX-512"
fi
