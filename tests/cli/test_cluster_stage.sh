#!/bin/bash
# Local copies of a data set: the same model from nearer by, in one process and in several, whatever becomes of the copies.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

run gen clicks -o clicks.tsv --rows 20000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --parts 4 --holdout 0.1 --quiet
mkdir disk
copies=disk/paceline-stage-$(id -u)
bytes=$(stat -c %s data/part-*.h5 | awk '{ all += $1 } END { print all }')

# train RUN WORDS...: what it prints as JSON is in out.
train()
{
    run train --data "$work/data" --run "$work/$1" --epochs 4 --json "${@:2}"
    cp "$1/model.safetensors" "$1.model" 2>/dev/null || fail "$1 has no model"
}

# expect_figures RUN REUSED COPIED: bytes in its summary.
expect_figures()
{
    expect_equal "bytes reused by $1" "$(json_number bytes_reused "$1/summary.json")" "$2"
    expect_equal "bytes copied by $1" "$(json_number bytes_copied "$1/summary.json")" "$3"
}

expect_same()
{
    cmp -s "$1.model" "$2.model" || fail "the models of $1 and $2 differ"
}

has_copies()
{
    [ "$(find $copies -name 'part-*.h5' 2>/dev/null | wc -l)" -eq "$1" ]
}

# begin RUN WORDS...: training that goes on until it is stopped.
begin()
{
    start_job "$paceline" train --data "$work/data" --run "$work/$1" --epochs 1000000 --log-every 20 --stage disk "${@:2}"
}

# ---- one process ----
train plain
run train --data data --run dry --epochs 4 --stage disk --dry-run
expect_error "staging: 0 of 4 parts (0.0 MB) are in $copies" "would be copied from data"
[ ! -e $copies ] || fail "a dry run has made $copies"

run train --data data --run dry --epochs 4 --stage "$work/missing" --dry-run
expect_error "nothing would be staged: $work/missing: no such directory. Rows would be read from data"
! grep -q "copied" err || fail "a dry run without a directory tells of copies"
for words in "--stage-bytes 1G" "--stage-rate 1M" --stage-clean; do
    # shellcheck disable=SC2086
    expect_exit 64 "$paceline" train --data data --run lone $words
    expect_error "${words%% *} needs --stage DIR"
    [ ! -e lone ] || fail "a refused run has a directory"
done

begin until
wait_for has_copies 4
kill -TERM "$job"
end_job 75
expect_error "staging: 0 of 4 parts (0.0 MB)" "are copied from"
megabytes=$(awk "BEGIN { printf \"%.1f\", $bytes / 1e6 }")
expect_error "$megabytes MB of copies stay in $copies for later runs; --stage-clean deletes them"
train near --stage disk
expect_error "$megabytes MB of copies stay in $copies"
expect_figures near "$bytes" 0
expect_equal "bytes read from the source" "$(json_number bytes_read_from_source near/summary.json)" 0
expect_same near plain
grep -q '^stage: "\?disk"\?$' near/config.yaml || fail "config.yaml does not have the option"
run train --data data --run near --epochs 5 --resume # the same job without it

# ---- several, which share the copies ----
train plain2 --workers 2 --evaluator
train near2 --workers 2 --evaluator --stage disk
expect_figures near2 "$bytes" 0
expect_same near2 plain2
train clean2 --workers 2 --stage disk --stage-clean
! grep -q "stay in" err || fail "what was removed is said to stay"
expect_same clean2 plain2
[ ! -e $copies ] || fail "$copies is still there: $(ls $copies)"
train first2 --workers 2 --stage disk # some are copied while it trains, by one of them
expect_same first2 plain2
is_true "$(json_number bytes_copied first2/summary.json) <= $bytes" || fail "parts were copied twice"
is_true "$(json_number bytes_reused first2/summary.json) == 0" || fail "nothing was there before"

# ---- no more than is allowed ----
rm -r $copies
begin bounded --stage-bytes $((bytes / 2 + 1000))
wait_for has_copies 2
kill -TERM "$job"
end_job 75
expect_error "stay there (--stage-bytes"
has_copies 2 || fail "$(find $copies -name 'part-*.h5' | wc -l) copies instead of 2"

# ---- a damaged copy: the source has the rows, and one warning says so ----
begin whole
wait_for has_copies 4
kill -TERM "$job"
end_job 75
for words in "" "--workers 2"; do
    cp -p "$(find $copies -name 'part-*.h5' | sort | head -n 1)" good
    damaged=$(find $copies -name 'part-*.h5' | sort | head -n 1)
    head -c 8192 /dev/zero | dd of="$damaged" bs=4096 seek=20 conv=notrunc status=none
    # shellcheck disable=SC2086
    train damaged --force --stage disk $words
    expect_error "$damaged: the copy is damaged" "training goes on from $work/data/part-"
    expect_same damaged "plain${words:+2}"
    expect_equal "copies dropped" "$(json_number copies_dropped damaged/summary.json)" 1
    expect_error "1 dropped as damaged"
    # Another worker may have copied the part again by now.
    [ ! -e "$damaged" ] || cmp -s good "$damaged" || fail "the damaged copy is still there"
    cp -p good "$damaged"
done

# ---- a set that was made anew is not the old one ----
run gen clicks -o other.tsv --rows 20000 --seed 6 --quiet
mv data data.old
run prep clicks other.tsv -o data --parts 4 --holdout 0.1 --quiet
train other
train other.near --stage disk
expect_equal "bytes reused" "$(json_number bytes_reused other.near/summary.json)" 0
expect_same other other.near

# ---- where nothing can be staged, training goes on all the same ----
train unstaged --stage "$work/missing"
expect_error "warning: nothing is staged: $work/missing: no such directory"
expect_same unstaged other
rm -rf $copies && mkdir $copies && mkfifo $copies/lock
train unlocked --force --stage disk
expect_error "warning: " "$copies/lock: is a pipe, not a file: nothing more is copied"
expect_same unlocked other
for disk in disk "$work/missing"; do # one of a host says so
    train unlocked --force --stage "$disk" --workers 3
    expect_equal "warnings" "$(grep -c "warning: .*\(is a pipe\|no such directory\)" err)" 1
done
if [ -n "${SHIM:-}" ]; then # a disk that is full
    rm -rf $copies
    expect_exit 0 env "SHIM_FILES=write:paceline-stage:ENOSPC" LD_PRELOAD="$SHIM" "$paceline" train --data data \
        --run full --epochs 40 --stage disk
    expect_error "warning: " "No space left on device: nothing more is copied"
    has_copies 0 || fail "copies on a full disk"
    expect_exit 0 env "SHIM_FILES=fsync:paceline-stage:EIO" LD_PRELOAD="$SHIM" "$paceline" train --data data \
        --run failing --epochs 40 --stage disk
    expect_error "cannot be written: Input/output error: nothing more is copied"
fi
