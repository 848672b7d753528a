#!/bin/bash
# Damage to any file of a data set or a run is noticed, or harmless: tests/cli/test_damaged_files.sh PROGRAM
#
# A seeded sample of what can be tried: DAMAGES=N tries N to each file in each way, SEED=N takes other places.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

each=${DAMAGES:-1} seed=${SEED:-1}
tried=0 harmless=0 expected=
RANDOM=$seed
bounded=(timeout -k 5 "$seconds_max" "$paceline")

# place SIZE: somewhere below.
place()
{
    echo $(((RANDOM << 15 | RANDOM) % $1))
}

# damage FILE WAY: flip (a bit), zero (4 KB), cut, gone. Says in `what` what was done.
damage()
{
    local size at byte

    size=$(stat -c %s "$1")
    at=$((size > 0 ? $(place $((size > 0 ? size : 1))) : 0))
    what="$1: $2 at $at of $size (SEED=$seed)"
    case $2 in
    flip)
        byte=$(od -An -tu1 -j $at -N 1 "$1")
        printf '%b' "\\x$(printf %02x $((byte ^ 1 << at % 8)))" | dd of="$1" bs=1 seek=$at conv=notrunc status=none
        ;;
    zero)
        at=$((at / 4096 * 4096))
        head -c $((size - at < 4096 ? size - at : 4096)) /dev/zero |
            dd of="$1" bs=4096 seek=$((at / 4096)) conv=notrunc status=none
        ;;
    cut) truncate -s $at "$1" ;;
    gone) rm "$1" ;;
    esac
}

# attempt WORDS...: sets code; whatever is refused is refused for the right reason, by the name of the file.
attempt()
{
    code=0
    "${bounded[@]}" "$@" >out 2>err </dev/null || code=$?
    case $code in
    0) return ;;
    65) ;;
    66) [ "$way" = gone ] || fail "$what: exit code 66: $*" ;;
    *) fail "$what: exit code $code: $*" ;;
    esac
    grep -qF "${file##*/}" err || fail "$what: its name is not in the message: $*"
}

train()
{
    rm -rf "$1"
    attempt train --data "$2" --run "$1" --seed 7 --quiet "${@:3}"
}

# ---- data sets ----

# damage_set KIND TRAIN-WORDS...: each file of the data set KIND in each way. Either train refuses it, or it makes the same
# model; inspect refuses it, but for checksums that are not there.
damage_set()
{
    local kind=$1 before after ways=(flip zero cut gone)

    shift
    [ "$kind" = columns ] || [ -n "${DAMAGES:-}" ] || ways=(flip zero) # what is cut or gone is so for every kind
    file='' way=none what="the whole $kind"
    train whole "$kind" "$@"
    [ $code -eq 0 ] || fail "$what"
    before=$(sha256sum <whole/model.safetensors)
    for file in "$kind"/*; do
        for way in "${ways[@]}"; do
            for ((i = 0; i < each; i++)); do
                rm -rf set
                cp -r "$kind" set
                damage "set/${file##*/}" $way
                cmp -s "$file" "set/${file##*/}" && continue # zeroes were there before
                tried=$((tried + 1))
                train run set "$@"
                if [ -e run/model.safetensors ]; then # perhaps only test rows are damaged
                    after=$(sha256sum <run/model.safetensors)
                    expect_equal "$what: the model" "$after" "$before"
                fi
                if [ $code -eq 0 ]; then
                    harmless=$((harmless + 1))
                    [ "$way ${file##*/}" != "gone checksums.json" ] || expect_error "has no checksums.json"
                elif [ -e run/summary.json ]; then
                    fail "$what: a refused run has a summary"
                fi
                attempt inspect set
                [ $code -ne 0 ] || [ "$way ${file##*/}" = "gone checksums.json" ] || fail "$what: inspect is content"
            done
        done
    done
}

run gen clicks -o clicks.tsv --rows 600 --quiet
run gen clicks -o clicks.svm --rows 600 --format svmlight --quiet
run gen reviews -o reviews.jsonl --rows 300 --quiet
run gen images -o pictures --rows 40 --quiet
run prep clicks clicks.tsv -o columns --parts 2 --holdout 0.2 --quiet
run prep clicks clicks.svm -o lengths --parts 2 --holdout 0.2 --quiet
run prep reviews reviews.jsonl -o texts --parts 2 --holdout 0.2 --length 20 --vocab 300 --quiet
run prep images pictures -o images --parts 2 --holdout 0.2 --size 12 --quiet

damage_set columns --model logreg
damage_set lengths --model logreg --exact --batch 50
damage_set texts --model logreg --ngram 1
damage_set images --model cnn --batch 16 --epochs 1

# ---- the model of a run ----

train model columns --model logreg --checkpoint-every 1
run eval --run model --data columns --json --quiet
cp out eval.json
run predict --run model clicks.tsv --quiet
cp out predictions

# expect_use WORDS...: the damage is refused, or what comes out is what came out before: $expected.
expect_use()
{
    attempt "$@"
    [ $code -ne 0 ] || cmp -s out "$expected" || fail "$what: not noticed by $1"
}

for file in model.safetensors summary.json config.yaml metrics.jsonl state.json; do
    for way in flip zero cut gone; do
        for ((i = 0; i < each; i++)); do
            rm -rf run
            cp -r model run
            damage run/$file $way
            cmp -s model/$file run/$file && continue
            tried=$((tried + 1))
            expected=eval.json expect_use eval --run run --data columns --json --quiet
            [ $code -eq 0 ] || [ $file = model.safetensors ] || [ $file = summary.json ] || fail "$what: refused"
            [ $file != model.safetensors ] || [ $code -ne 0 ] || fail "$what: eval is content"
            expected=predictions expect_use predict --run run clicks.tsv --quiet
            [ $file != model.safetensors ] || [ $code -ne 0 ] || fail "$what: predict is content"
            attempt inspect run
            [ "$file $way" != "summary.json zero" ] || [ $code -eq 65 ] || fail "$what: inspect is content"
            [ $file != model.safetensors ] || [ "$way" = gone ] || [ $code -eq 65 ] || fail "$what: inspect is content"
            case "$way $file" in
            "gone model.safetensors" | "gone summary.json") [ $code -eq 66 ] || fail "$what: inspect is content" ;;
            esac
            grep -q '^checkpoints$' out || fail "$what: inspect does not tell the rest"
        done
    done
done

# The way out of a model that is not the one of its summary.
rm -rf run
cp -r model run
rm run/summary.json
run eval --run run --data columns --json
cmp -s out eval.json || fail "a run without a summary scores differently"
expect_error "run/model.safetensors: cannot be compared" "run/summary.json does not exist"
train other columns --model logreg --lr 0.2
cp other/model.safetensors run/model.safetensors
cp model/summary.json run
expect_exit 65 "${bounded[@]}" eval --run run --data columns
expect_error "run/model.safetensors: damaged, or not the model of this run" "train --resume writes it again" \
    "to use it unchecked, name the file instead of the run"
run eval --run run/model.safetensors --data columns
rm run/model.safetensors
expect_exit 66 "${bounded[@]}" eval --run run --data columns
expect_error "run/model.safetensors: is gone, though the run has finished: train --resume writes it again"
rm run/summary.json
expect_exit 66 "${bounded[@]}" eval --run run --data columns
expect_error "run/model.safetensors: does not exist: no run, or one that has not finished"

# ---- what is known by a file that is gone ----

cp -r columns headless
rm headless/part-00000.h5
expect_exit 66 "${bounded[@]}" prep clicks clicks.tsv -o none --like headless
expect_error "part-00000.h5"
mkdir none
expect_exit 65 "${bounded[@]}" inspect none
expect_error "part-00000.h5" "logs/paceline.log" "manifest.json"

# ---- checkpoints ----

checkpoint=$(echo model/checkpoints/step-* | awk '{ print $NF }')
run inspect "$checkpoint"
for file in "$checkpoint"/*; do
    for way in flip zero cut gone; do
        rm -rf step-000000000001.0001
        cp -r "$checkpoint" step-000000000001.0001
        damage "step-000000000001.0001/${file##*/}" $way
        cmp -s "$file" "step-000000000001.0001/${file##*/}" && continue
        tried=$((tried + 1))
        expect_exit 65 "${bounded[@]}" inspect step-000000000001.0001
        expect_error "${file##*/}"
    done
done
echo "$tried damages, $harmless of them harmless"
