#!/bin/bash
# A finished run keeps its last checkpoint: it can become longer, as if it had been so long from the beginning, and have its
# model written again. --resume never makes it another run.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1
run gen clicks -o others.tsv --rows 3000 --seed 6
run prep clicks others.tsv -o other --holdout 0.1
run gen reviews -o reviews.jsonl --rows 600 --seed 5
run prep reviews reviews.jsonl -o texts --holdout 0.1 --vocab 50 --length 4

# train RUN WORDS...
train()
{
    run train --data data --run "$work/$1" --json "${@:2}"
}

sha()
{
    sha256sum <"$1/model.safetensors"
}

newest_of()
{
    find "$1/checkpoints" -name manifest.json | sort | tail -n 1 | sed 's|.*/step-0*\([0-9]*\)\..*|\1|'
}

# expect_kept RUN COMMAND...: it changes nothing in the run but its log.
expect_kept()
{
    local before

    before=$(cd "$1" && find . -type f ! -path './logs/*' ! -name state.json -exec sha256sum {} + | sort)
    "${@:2}"
    expect_equal "$1" "$(cd "$1" && find . -type f ! -path './logs/*' ! -name state.json -exec sha256sum {} + | sort)" "$before"
    expect_equal "ending of $1" "$(json_text ending "$1/state.json")" "done"
}

# ---- longer is as if it had been so long ----

# expect_longer WORDS...: 17 steps, which end within an epoch, and then 5 epochs are 5 epochs, and begin where the 17 have
# ended.
expect_longer()
{
    rm -rf short long
    train long --epochs 5 "$@"
    train short --steps 17 "$@"
    end=$(json_number steps)
    expect_equal "last checkpoint" "$(newest_of short)" "$end"
    train short --epochs 5 "$@" --resume
    grep -q "\"kind\":\"start\",.*\"step\":$end,.*\"incarnation\":2" short/metrics.jsonl ||
        fail "it has not begun at step $end: $(grep '"kind":"start"' short/metrics.jsonl)"
    expect_equal "model after $*" "$(sha short)" "$(sha long)"
    for name in steps samples epochs rows_computed rows_computed_twice logloss; do
        expect_equal "$name after $*" "$(json_number $name short/summary.json)" "$(json_number $name long/summary.json)"
    done
    # Ranks tell sums since their start: another start, another last digit.
    is_true "($(json_number train_loss short/summary.json) - $(json_number train_loss long/summary.json)) ^ 2 < 1e-24" ||
        fail "train_loss after $*: $(json_number train_loss short/summary.json) instead of $(json_number train_loss long/summary.json)"
    sed -n 's/.*"kind":"step","t":\([^,]*\),"step":\([0-9]*\).*/\1 \2/p' short/metrics.jsonl >records
    awk '$1 < time || $2 <= step { exit 1 } { time = $1; step = $2 }' records || fail "steps are told twice"
    expect_equal "last step" "$(tail -n 1 records | cut -d ' ' -f 2)" "$(json_number steps short/summary.json)"
}
expect_longer --seed -5
expect_longer --optimizer ftrl --l1 0.1 --l2 0.01 --checkpoint-every 4
expect_longer --exact --schedule invsqrt --warmup 3 --l2 0.001
expect_longer --model fm --factors 2
expect_longer --data texts --model rnn --embed 2 --hidden 2 --schedule constant
expect_longer --workers 2 --ps 1
expect_equal "checkpoints kept" "$(find short/checkpoints -name manifest.json | wc -l)" 2

# A mode of its own for either half, and other numbers of processes.
rm -rf short
train short --epochs 2 --batch 100 --exact
train short --epochs 3 --batch 100 --workers 2 --ps 1 --mode ps-async --resume
expect_equal "samples" "$(json_number samples)" 8100
expect_equal "last checkpoint" "$(newest_of short)" 81

# ---- what it began with is not to be changed ----

# refuses TEXT WORDS...: the finished run stays what it is.
refuses()
{
    expect_kept z usage_error "$1" "--force" -- train --run z --resume --quiet "${@:2}"
}
train z --seed -5 --epochs 2
expect_equal "seed" "$(json_number seed)" -5
expect_kept z train z --seed -5 --epochs 2 --resume
expect_error "nothing left to do"
refuses "--optimizer ftrl (was adagrad), --lr 0.1 (was 0.07), --l2 0.5 (was 0): z was made otherwise" --data data --seed -5 --epochs 2 --optimizer ftrl --l2 0.5
refuses "--exact: z was made without" --data data --seed -5 --epochs 2 --exact
refuses "--model rnn: z was made with logreg" --data data --seed -5 --epochs 2 --model rnn
refuses "--seed 5: z was made with -5" --data data --seed 5 --epochs 2
refuses "made by a job with other options or data" --data other --seed -5 --epochs 2
refuses "z was made with" --data texts --seed -5 --epochs 2
refuses "made by a job with other options or data" --data other --seed -5 --epochs 4
refuses "a run can become longer, not shorter" --data data --seed -5 --epochs 1
# The same if a launcher of the user's starts it.
expect_kept z expect_exit 64 "$mpirun" -n 1 "$paceline" train --run z --data data --mode allreduce --seed -5 --epochs 2 --resume
expect_error "--exact: z was made without that"

# What the run was is not taken from a config.yaml that has lost its end, or a value.
cp z/config.yaml whole.yaml
for damage in "truncate -s 200" "sed -i s/^lr:.*/lr:.0.5/"; do
    $damage z/config.yaml
    train z --seed -5 --epochs 2 --resume
    expect_error "z/config.yaml: damaged, or changed since the run wrote it" "nothing left to do"
    expect_kept z expect_exit 64 "$paceline" train --run z --resume --quiet --data data --seed -5 --epochs 2 --lr 0.5
    expect_error "z/summary.json: made by a job with other options or data: lr=0.07 there, lr=0.5 here"
done
cp whole.yaml z/config.yaml

# A data set is known by all that it holds: one label among thousands, test rows, names of classes.
awk -F '\t' 'NR == 2990 { $1 = 1 - $1 } 1' OFS='\t' clicks.tsv >corrected.tsv
run prep clicks corrected.tsv -o corrected --holdout 0.1
refuses "data=" --data corrected --seed -5 --epochs 2
expect_error "z/summary.json: made by a job with other options or data" "what the rows of --data hold"
run prep clicks clicks.tsv --test others.tsv -o tested
run train --data tested --run tests --quiet
run prep clicks clicks.tsv --test corrected.tsv -o tested --force
usage_error "what the rows of --data hold, test rows" -- train --data tested --run tests --resume --quiet

for schedule in linear cosine; do
    rm -rf short
    train short --epochs 2 --schedule $schedule
    expect_kept short usage_error "cannot be stretched" -- train --data data --run short --epochs 4 --schedule $schedule \
        --resume --quiet
done

# Killed before its first checkpoint: it begins again, as the same job.
expect_exit 137 "$paceline" train --data data --run killed --epochs 2 --inject kill:chief@step=3 --quiet
state=$(cat killed/state.json)
usage_error "--lr 0.5: killed was made with" -- train --data data --run killed --epochs 2 --lr 0.5 --resume --quiet
expect_equal "state of a run that was refused" "$(cat killed/state.json)" "$state"
train killed --epochs 2 --seed 1 --resume
expect_error "begins at step 0"

# ---- a model that is gone is written again ----
model=$(sha z)
for damage in rm "truncate -s 1000" "truncate -s 0"; do
    $damage z/model.safetensors
    train z --seed -5 --epochs 2 --resume
    expect_error "z: the run has finished, but" "written again" "resuming from"
    expect_equal "model after $damage" "$(sha z)" "$model"
    expect_kept z train z --seed -5 --epochs 2 --resume
done
rm z/state.json z/model.safetensors
train z --seed -5 --epochs 2 --resume
expect_equal "model without state.json" "$(sha z)" "$model"

# ---- without checkpoints: nothing to go on from, and nothing is lost ----
train none --epochs 2 --checkpoint-seconds 0
expect_equal "checkpoints" "$(json_number checkpoints), $(find none/checkpoints -name manifest.json | wc -l)" "0, 0"
for words in "" --dry-run; do
    # shellcheck disable=SC2086 # it may be no word
    expect_kept none expect_exit 65 "$paceline" train --data data --run none --epochs 4 --resume --quiet $words
    expect_error "finished without a checkpoint to go on from" "--force"
done
rm none/state.json
expect_exit 65 "$paceline" train --data data --run none --epochs 4 --resume --quiet
[ -s none/model.safetensors ] && [ -s none/summary.json ] || fail "a finished run is lost with its state.json"

# ---- an early stop is an end, too ----
stops=(--batch 100 --eval-every 9 --lr 0.5)
train whole "${stops[@]}" --epochs 10
train early "${stops[@]}" --epochs 10 --early-stop 2
stop=$(json_number steps)
is_true "$stop < 270" || fail "it has not stopped early"
expect_equal "last checkpoint" "$(newest_of early)" "$stop"
expect_kept early train early "${stops[@]}" --epochs 20 --early-stop 2 --resume
expect_error "has stopped early, after step $stop" "nothing left to do"
train early "${stops[@]}" --epochs 10 --resume
expect_equal "model of a run that has stopped early, and went on" "$(sha early)" "$(sha whole)"
# What the last step was scored with counts if it becomes longer.
train at-once "${stops[@]}" --epochs 10 --early-stop 2
for length in 9 $((stop - 9)) $stop; do
    train parts$length "${stops[@]}" --steps "$length" --early-stop 2
    train parts$length "${stops[@]}" --epochs 10 --early-stop 2 --resume
    expect_equal "steps in parts" "$(json_number steps)" "$stop"
    expect_equal "model in parts" "$(sha parts$length)" "$(sha at-once)"
done

# ---- vectors are known by what they are ----
for i in 1 2; do
    seq 1 40 | awk -v i=$i '{ print "w" $1, i, $1 }' >vectors$i
done
words=(--data texts --model rnn --embed 2 --hidden 2 --schedule constant)
train z "${words[@]}" --epochs 1 --embeddings vectors1 --force
cp vectors1 elsewhere
expect_kept z train z "${words[@]}" --epochs 1 --embeddings elsewhere --resume
refuses "embeddings=" "${words[@]}" --epochs 1 --embeddings vectors2
refuses "embeddings=" "${words[@]}" --epochs 2 --embeddings vectors2
refuses "embeddings=" "${words[@]}" --epochs 1
train z "${words[@]}" --epochs 2 --embeddings elsewhere --resume

# ---- a checkpoint on a disk that does not give it back is passed over, and kept until another is written ----
if [ -n "${SHIM:-}" ]; then
    newest=step-000000000020.0001
    train whole --batch 100 --steps 30 --force
    train unread --batch 100 --steps 20 --checkpoint-every 10
    for file in part-00000 manifest.json; do
        rm -rf again && cp -r unread again
        LD_PRELOAD=$SHIM SHIM_FILES="read:$newest/$file:EIO" train again --batch 100 --steps 30 --resume
        expect_error "$newest/$file" "Input/output error" "trying the one before" "resuming from $work/again/checkpoints/step-000000000010"
        expect_equal "model after EIO" "$(sha again)" "$(sha whole)"
    done
    rm -rf again && cp -r unread again
    LD_PRELOAD=$SHIM SHIM_FILES="read:$newest/part:EIO" expect_exit 137 timeout -k 5 $seconds_max "$paceline" train --data data \
        --run "$work/again" --batch 100 --steps 30 --resume --inject kill:chief@step=15
    train again --batch 100 --steps 30 --resume
    expect_error "resuming from $work/again/checkpoints/$newest"
    rm -rf again && cp -r unread again
    LD_PRELOAD=$SHIM SHIM_FILES="read:part-00000-of:EIO" expect_kept again expect_exit 74 "$paceline" train --data data --run again \
        --batch 100 --steps 30 --resume
    expect_error "none of its 2 checkpoints can be read now" "try again"
fi
