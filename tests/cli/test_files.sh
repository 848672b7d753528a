#!/bin/bash
# Odd files, planted names, and outputs that lie within inputs: tests/cli/test_files.sh PROGRAM
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1
ulimit -c 0

# refused CODE TEXT... -- ARGUMENTS...: with one message that has these texts, and at once.
refused()
{
    local texts words

    split_texts "${@:2}"
    expect_exit "$1" timeout -k 1 10 "$paceline" "${words[@]}"
    expect_error "${texts[@]}"
}

# expect_victim: what must not be touched has not been.
expect_victim()
{
    expect_equal "the victim" "$(cat victim precious/work 2>&1)" "precious
years"
}

# expect_listing DIRECTORY NAMES: its entries, hidden ones too.
expect_listing()
{
    expect_equal "what is in $1" "$(find "$1" -mindepth 1 -maxdepth 1 -printf '%f\n' | sort | tr '\n' ' ')" "$2 "
}

echo precious >victim
mkdir precious
echo years >precious/work
run gen clicks -o clicks.tsv --rows 400 --seed 5
run prep clicks clicks.tsv -o set --parts 2 --holdout 0.1
run gen reviews -o reviews.jsonl --rows 200
run prep reviews reviews.jsonl -o texts --vocab 100 --holdout 0.1
run train --data set --model logreg --run "$work/run" --epochs 1 --checkpoint-every 2 --batch 100 --exact
run gen images -o drawn --rows 40 --size 24 --classes 2
run prep images drawn -o pictures --size 8 --holdout 0.5
run train --data pictures --model cnn --run "$work/eyes" --epochs 1 --batch 8

# ---- pipes where files are expected: named, and not waited for ----
mkfifo fifo

# pipe_at PATH CODE -- ARGUMENTS...: with a pipe in the place of that file.
pipe_at()
{
    local path=$1 code=$2

    shift 3
    mv "$path" aside
    mkfifo "$path"
    refused "$code" "$path: " "not a file" -- "$@"
    rm "$path"
    mv aside "$path"
}

for file in part-00001.h5 ids.h5 checksums.json; do
    pipe_at set/$file 66 -- train --data set --model logreg --run "$work/none"
    pipe_at set/$file 66 -- inspect set
done
pipe_at texts/vocabulary.txt 66 -- prep reviews reviews.jsonl -o none --like texts
pipe_at pictures/classes.txt 66 -- train --data pictures --model cnn --run "$work/none"
pipe_at run/model.safetensors 66 -- eval --run run --data set
pipe_at run/model.safetensors 66 -- predict --run run clicks.tsv
for file in state.json metrics.jsonl; do
    pipe_at run/$file 64 -- train --data set --model logreg --run run --resume --epochs 2 --batch 100 --exact
done
pipe_at run/logs/paceline.log 74 -- train --data set --model logreg --run run --resume --epochs 2 --batch 100 --exact
refused 66 "fifo: is a pipe, not a file" -- train --config fifo
refused 66 "fifo: is a pipe, not a file" -- train --data texts --model rnn --embeddings fifo --run "$work/none"
refused 66 "fifo: is a pipe, not a file" -- train --data pictures --model cnn --pretrained fifo --run "$work/none"
refused 66 "fifo" -- inspect fifo
refused 66 "victim" -- predict --run victim/. clicks.tsv
[ ! -e none ] || fail "something was made"
pipe_in_checkpoint()
{
    local newest file

    cp -r run hurt
    newest=$(find hurt/checkpoints -mindepth 1 -maxdepth 1 | sort | tail -n 1)
    for file in "$newest"/*; do
        mv "$file" aside
        mkfifo "$file"
        timeout -k 1 10 "$paceline" inspect "$newest" >out 2>err
        expect_error "$file: is a pipe, not a file"
        rm "$file"
        mv aside "$file"
    done
    rm -r hurt
}
pipe_in_checkpoint
python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind("socket")' 2>/dev/null &&
    refused 66 "socket: is a socket, not a file" -- train --config socket
refused 66 "/dev/null: is a device, not a file" -- eval --run /dev/null --data set
refused 66 "precious: is a directory" -- train --config precious

# ---- raw inputs may be pipes, and a signal ends the wait for their writers ----
expect_exit 0 timeout -k 5 $seconds_max "$paceline" predict --run run clicks.tsv
cp out wanted
cp clicks.tsv rows.tsv
"$paceline" predict --run run <(cat clicks.tsv) >out 2>err || fail "a process substitution"
cmp -s out wanted || fail "predictions through a process substitution"
"$paceline" predict --run run - <clicks.tsv >out 2>err || fail "standard input"
cmp -s out wanted || fail "predictions from standard input"
expect_exit 0 timeout -k 5 $seconds_max "$paceline" prep clicks --format criteo <(cat clicks.tsv) -o piped --parts 2 --holdout 0.1
expect_exit 0 timeout -k 5 $seconds_max "$paceline" prep reviews --format jsonl <(cat reviews.jsonl) -o piped_texts --vocab 100 --holdout 0.1
start_job "$paceline" predict --run run fifo
cat clicks.tsv >fifo
end_job 0
cmp -s out wanted || fail "predictions through a named pipe"

# waits_on_pipe: the job has the pipe open, and reads.
waits_on_pipe()
{
    [ "/proc/$job/exe" -ef "$paceline" ] && [ -n "$(find "/proc/$job/fd" -lname "$work/fifo" 2>/dev/null)" ]
}

for signal in TERM INT; do
    start_job env --default-signal=INT "$paceline" prep clicks --format criteo fifo -o waiting
    wait_for waits_on_pipe
    kill -$signal "$job"
    end_job 75
    expect_error "interrupted: nothing was kept"
    expect_nothing waiting
    start_job env --default-signal=INT "$paceline" predict --run run fifo -o waiting.txt
    wait_for waits_on_pipe
    kill -$signal "$job"
    end_job 75
    expect_error "interrupted: nothing was kept"
    expect_equal "what is left" "$(find . -name 'waiting*')" ""
done
exec 3<>fifo # a writer that says nothing
start_job "$paceline" prep clicks --format criteo fifo -o waiting 3>&-
wait_for waits_on_pipe
kill -TERM "$job"
end_job 75
expect_nothing waiting
exec 3>&-

# ---- a signal leaves nothing of what is being made ----
has_begun()
{
    compgen -G "stopped.tmp-*" >/dev/null || [ -e .stopped.partial/.paceline ]
}

for verb in "gen clicks --rows 1G" "gen reviews --rows 1G" "gen images --rows 1M"; do
    for signal in TERM INT; do
        # shellcheck disable=SC2086 # words are words
        start_job env --default-signal=INT "$paceline" $verb -o stopped
        wait_for has_begun
        kill -$signal "$job"
        end_job 75
        expect_error "interrupted: nothing was kept"
        expect_equal "what is left" "$(find . -maxdepth 1 -name '*stopped*')" ""
    done
done

# ---- names that somebody else has planted ----
for planted in "ln -s precious .new.partial" "cp -r precious .new.partial" "cp victim .new.partial"; do
    $planted
    for verb in "prep clicks clicks.tsv" "gen images --rows 4 --size 24"; do
        # shellcheck disable=SC2086 # words are words
        refused 64 "/.new.partial: is in the way" "move it away" -- $verb -o "$work/new"
        [ ! -e new ] || fail "there is a new one"
    done
    expect_equal "what was planted" "$(cat .new.partial/work .new.partial 2>/dev/null)" "$([ -f .new.partial ] && echo precious || echo years)"
    expect_victim
    rm -r .new.partial
done
ln -s victim out.txt.tmp
run predict --run run clicks.tsv -o out.txt
ln -s victim merged.h5.tmp
run merge set -o merged.h5
ln -s victim run/model.safetensors.tmp
ln -s victim run/state.json.tmp
run train --data set --model logreg --run "$work/run" --epochs 1 --batch 100 --force
expect_victim
rm out.txt.tmp merged.h5.tmp
for name in checkpoints metrics.jsonl logs state.json summary.json model.safetensors rows; do
    mv "run/$name" aside 2>/dev/null
    case $name in checkpoints | logs) ln -s "$work/precious" "run/$name" ;; *) ln -s "$work/victim" "run/$name" ;; esac
    [ $name != logs ] || touch precious/paceline.log # a run by all looks
    refused 64 "run/$name: is a link" -- train --data set --model logreg --run "$work/run" --resume --epochs 2 --batch 100
    [ $name != logs ] || refused 64 "run/logs: is a link" -- train --data set --model logreg --run "$work/run" --force
    rm -f precious/paceline.log
    expect_victim
    expect_listing precious work
    rm "run/$name"
    [ ! -e aside ] || mv aside "run/$name"
done

# ---- outputs that exist, and outputs within inputs ----
run predict --run run clicks.tsv
cp out wanted
echo mine >mine.txt
refused 64 "mine.txt: exists; use --force to replace it" -- predict --run run clicks.tsv -o mine.txt
refused 64 "mine.txt: exists; use --force to replace it" -- eval --run eyes --data pictures --errors mine.txt
expect_equal "the file" "$(cat mine.txt)" mine
if [ -n "${SHIM:-}" ]; then # none beside sanitizers
    LD_PRELOAD=$SHIM SHIM_FILES='fsync:mine.txt:EIO' expect_exit 74 "$paceline" predict --run run clicks.tsv -o mine.txt --force
    expect_error "mine.txt: cannot write: Input/output error"
fi
expect_equal "the file" "$(cat mine.txt)" mine
touch mine.txt.tmp-0123456789abcdef # of a writer that was killed
run predict --run run clicks.tsv -o mine.txt --force
cmp -s mine.txt wanted || fail "the predictions were not replaced"
run eval --run eyes --data pictures --errors mine.txt --force
expect_equal "what is left" "$(find . -name 'mine.txt*')" ./mine.txt
before=$(prints set) model=$(sha256sum <run/model.safetensors)
ln -s set other
ln set/part-00000.h5 hard.h5
refused 64 "is part of what is read" -- merge set -o set/part-00000.h5 --force
refused 64 "is part of what is read" -- merge set -o other/part-00000.h5 --force
refused 64 "is part of what is read" -- merge set -o set/new.h5
refused 64 "is part of what is read" -- prep images drawn -o drawn/set
refused 64 "is part of what is read" -- prep clicks clicks.tsv --like set -o other/../set --force
refused 64 "is part of what is read" -- prep clicks rows.tsv -o rows.tsv
refused 64 "is part of what is read" -- predict --run run rows.tsv -o rows.tsv --force
refused 64 "is part of what is read" -- predict --run run rows.tsv -o run/model.safetensors --force
refused 64 "is part of what is read" -- eval --run eyes --data pictures --errors pictures/images.txt --force
for file in metrics.jsonl summary.json model.safetensors logs/paceline.log logs/page.html; do
    refused 64 "run/$file: is part of what is read" -- report run -o run/$file --force
done
run report run -o run/report.html --force
run report run -o run/page.html
refused 64 "is part of what is read" -- train --data set --model logreg --run "$work/set/run"
for more in "" --dry-run --force --resume "--workers 2" "--workers 2 --force"; do # by a way that is not there yet
    for there in run set; do
        # shellcheck disable=SC2086 # words
        refused 74 "nothere/../$there: nothere does not exist" -- train --data set --model logreg --run nothere/../$there $more
    done
done
refused 74 "nothere does not exist" -- prep clicks clicks.tsv -o nothere/../set --force
refused 74 "nothere does not exist" -- prep clicks clicks.tsv -o nothere/../new
refused 74 "nothere does not exist" -- merge set -o nothere/../new.h5
[ ! -e nothere ] || fail "a directory was made for a job that was refused"
expect_equal "the set" "$(prints set)" "$before"
expect_equal "the model" "$(sha256sum <run/model.safetensors)" "$model"
cmp -s rows.tsv clicks.tsv || fail "the input was changed"

# ---- replacing ----
touch piped/results.h5
refused 64 "piped: holds results.h5 besides a data set" -- prep clicks clicks.tsv -o piped --force
rm piped/results.h5
for how in 0s EINVAL; do # with and without a file system that can exchange two names
    LD_PRELOAD=${SHIM:-} SHIM_FILES="exchange:piped:$how" expect_exit 0 "$paceline" prep clicks clicks.tsv -o piped --force
    expect_equal "what is left" "$(find . -maxdepth 1 -name '.*piped*')" ""
    run inspect piped
done

# ---- a working directory that is gone ----
mkdir gone
got=0
(cd gone && rmdir ../gone && timeout -k 1 10 "$paceline" train --data "$work/set" --run inside --steps 1) >out 2>err || got=$?
[ $got -gt 0 ] && [ $got -lt 128 ] || fail "exit code $got in a directory that was removed"
expect_error "inside"
