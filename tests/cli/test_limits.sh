#!/bin/bash
# Limits of the system: tests/cli/test_limits.sh PROGRAM
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# limited LIMIT CODE TEXT -- ARGUMENTS...: under `ulimit LIMIT` the program ends with that code and says that.
limited()
{
    local limit=$1 code=$2 text=$3 got=0

    shift 4
    # shellcheck disable=SC2086 # words are words
    (ulimit -c 0 && ulimit $limit && trap '' XFSZ && exec env --default-signal=XFSZ timeout -k 5 "$seconds_max" "$paceline" "$@") >out 2>err </dev/null || got=$?
    [ $got -eq "$code" ] || fail "exit code $got instead of $code: ulimit $limit: $*"
    [ -z "$text" ] || expect_error "$text"
    expect_equal "what is left" "$(find . -name '*.partial' -o -name '*.tmp*')" ""
}

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o set --parts 80 --holdout 0.1
run train --data set --model logreg --run "$work/run" --epochs 1

# Open files: what is short of them is not damaged.
for words in "inspect set" "eval --run run --data set" "train --data set --model logreg --run $work/none" "merge set -o merged.h5"; do
    for files in 40 50; do
        # shellcheck disable=SC2086 # words are words
        limited "-n $files" 74 ".h5: cannot open: Too many open files" -- $words
    done
done
limited "-n 100" 74 "Too many open files" -- prep clicks clicks.tsv -o none --parts 80
limited "-Sn 40" 0 "" -- inspect set # a soft limit is raised

# Several processes: launchers that run out of files wait for ever.
limited "-n 32" 74 "32 open files are allowed (ulimit -n), and 48 are needed to start 4 processes on this machine" -- \
    train --data set --model logreg --run "$work/none" --mode ps-sync --workers 4
echo "localhost slots=8" >hosts # the same machine, by another name
limited "-n 32" 74 "48 are needed to start 4 processes on this machine" -- \
    train --data set --model logreg --run "$work/none" --workers 4 --hosts hosts
if is_open_mpi; then # so does this one, of room in files
    limited "-f 4000" 74 "files of 4000 KiB are allowed (ulimit -f), and mpirun needs 4096 KiB to start several processes" -- \
        train --data set --model logreg --run "$work/none" --workers 2
fi

# The size of files.
limited "-f 20" 74 "none.tsv: cannot write: File too large" -- gen clicks -o none.tsv --rows 3000
limited "-f 20" 74 "File too large" -- prep clicks clicks.tsv -o none
limited "-f 20" 74 "none.txt: cannot write: File too large" -- predict --run run clicks.tsv -o none.txt
limited "-f 20" 74 "none.h5: cannot write: File too large" -- merge set -o none.h5
limited "-f 20" 74 "model.safetensors: cannot write: File too large" -- train --data set --model logreg --run "$work/none" --checkpoint-seconds 0
[ ! -e none.tsv ] && [ ! -e none.txt ] && [ ! -e none.h5 ] || fail "half a file is there"

# Time: the first limit is a warning.
limited "-St 1" 75 "stopping" -- train --data set --model logreg --run "$work/timed" --epochs 1000000 --threads 1
run inspect timed/checkpoints/*

# Memory. (A sanitizer needs more than that to begin with.)
if (ulimit -v 120000 && "$paceline" --version) >out 2>err; then
    limited "-v 120000" 1 "out of memory" -- prep clicks clicks.tsv -o large
    limited "-v 120000" 0 "" -- eval --run run --data set
fi
