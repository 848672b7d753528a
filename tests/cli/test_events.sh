#!/bin/bash
# Event files for TensorBoard: which there are, what becomes of them when a run goes on or is replaced, and that nothing
# about them ends a run. What is in them is read by tests/unit/test_events.c, and by TensorBoard in tests/extra/tensorboard.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
first=events.out.tfevents.0000000001.paceline
second=events.out.tfevents.0000000002.paceline
run gen clicks -o clicks.tsv --rows 3000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --holdout 0.1 --quiet
words=(--data data --batch 100 --exact --quiet)

# expect_tags FILE TAG...: each is in there.
expect_tags()
{
    local tag

    for tag in "${@:2}"; do
        grep -qaF -- "$tag" "$1" || fail "$1 has no $tag"
    done
}

# ---- what there is ----
run train "${words[@]}" --run "$work/alone" --eval-every 10 --checkpoint-every 10
expect_no_error
expect_equal "files of one process" "$(cd alone/events && find . -type f | sort | paste -s)" "./chief/$first	./chief/$first-end"
expect_tags alone/events/chief/$first brain.Event:2 train/loss train/lr test/auc time/compute config.yaml \
    _hparams_/session_start_info _hparams_/experiment 'batch: 100'
expect_tags alone/events/chief/$first-end _hparams_/session_end_info
run train "${words[@]}" --run "$work/roles" --workers 2 --ps 1 --evaluator
expect_no_error
expect_equal "roles" "$(cd roles/events && echo *)" "chief evaluator ps0 worker1"
expect_tags roles/events/ps0/$first system/memory_bytes
expect_tags roles/events/worker1/$first time/wait
expect_tags roles/events/chief/$first test/logloss

# ---- a run that goes on, and one that has finished ----
cp -r alone longer
run train "${words[@]}" --run "$work/longer" --epochs 2 --resume
expect_equal "files of two starts" "$(cd longer/events/chief && echo *)" "$first $second $second-end"
cmp -s alone/events/chief/$first longer/events/chief/$first || fail "the file of the first start was changed"
expect_tags longer/events/chief/$second train/loss
cp -r longer before
run train "${words[@]}" --run "$work/longer" --epochs 2 --resume
diff -r before/events longer/events || fail "a finished run has other events"
# Nothing is left to train, but the model: no steps at all.
rm longer/model.safetensors
run train "${words[@]}" --run "$work/longer" --epochs 2 --resume
expect_equal "files of three starts" "$(find longer/events/chief -name '*paceline' | wc -l)" 3

# ---- one that is replaced ----
echo mine >roles/events/worker1/notes
echo mine >roles/events/notes
run train "${words[@]}" --run "$work/roles" --force
expect_equal "what is left" "$(cd roles/events && find . -type f | sort | paste -s)" \
    "./chief/$first	./chief/$first-end	./notes	./worker1/notes"

# ---- one that diverges ----
expect_exit 1 "$paceline" train --data data --run diverged --optimizer sgd --lr 1e5 --batch 100 --log-every 1 --quiet
expect_tags diverged/events/chief/$first-end _hparams_/session_end_info

# ---- things in the way: a warning, and the same model ----
mkdir elsewhere
for thing in link pipe file; do
    rm -rf planted && cp -r alone planted
    rm -r planted/events/chief
    case $thing in
    link) ln -s "$work/elsewhere" planted/events/chief ;;
    pipe) mkfifo planted/events/chief ;;
    file) echo mine >planted/events/chief ;;
    esac
    run train "${words[@]}" --run "$work/planted" --epochs 2 --resume
    expect_error "warning: $work/planted/events/chief: " "event files lack something, training goes on"
    expect_equal "warnings" "$(grep -c 'event files lack' err)" 1
    cmp -s planted/model.safetensors longer/model.safetensors || fail "$thing: the model is another one"
    [ -z "$(ls elsewhere)" ] || fail "something was written through a link"
done
[ "$(cat planted/events/chief)" = mine ] || fail "somebody's file was changed"

# ---- a disk that is full ----
if [ -n "${SHIM:-}" ]; then # none beside sanitizers
    for words_more in "" "--workers 2 --ps 1"; do
        # shellcheck disable=SC2086 # they are options
        LD_PRELOAD=$SHIM SHIM_FILES='write:/events/:ENOSPC' run train "${words[@]}" --run "$work/full" --force $words_more
        expect_error "/full/events/chief/$first: cannot write: No space left on device: event files lack something, training goes on"
        expect_equal "warnings" "$(grep -c 'No space' err)" 1
        cmp -s full/model.safetensors alone/model.safetensors || [ -n "$words_more" ] || fail "the model is another one"
        [ -s full/summary.json ] && [ ! -s full/events/chief/$first ] || fail "it did not finish, or the disk was not full"
    done
fi
