#!/bin/bash
# --balance: workers of synchronous steps have shares by their speed. Whatever is decided, every row counts once, what dies ends with
# the bytes of what it has recorded, and another run repeats them.
source "$(dirname "$0")/lib.sh"
# shellcheck source=texts.sh
source "$(dirname "$0")/texts.sh"
# shellcheck source=pictures.sh
source "$(dirname "$0")/pictures.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

# rows_of RUN STEP: how its last division before STEP deals out a step.
rows_of()
{
    awk -v step="$2" '{ match($0, /"from": [0-9]+/); from = substr($0, RSTART + 8, RLENGTH - 8) }
        from + 0 < step + 0 { match($0, /\[[0-9, ]*\]/); rows = substr($0, RSTART + 1, RLENGTH - 2) }
        END { gsub(",", "", rows); print rows }' "$work/$1/shares.jsonl"
}

# share_of RUN STEP WORKER
share_of()
{
    rows_of "$1" "$2" | cut -d ' ' -f $(($3 + 1))
}

pictures=("${model[@]}")
words_of rnn
make_texts texts 1200 7
make_texts test 300 8
run prep reviews texts --format tab --test test --length 10 --stopwords none -o data --quiet
# So slow that it shows where others use the processors, too: these steps take a tenth of a millisecond.
slow=(--inject slow:worker1=300x)

# ---- by words: a slow worker has less, a run that repeats it has the same bytes ----
train even --workers 3 --epochs 4
[ ! -e even/shares.jsonl ] || fail "even shares were recorded"
for mode in allreduce "ps-sync --ps 1"; do
    read -ra mode_words <<<"--mode $mode"
    train slow "${mode_words[@]}" --workers 3 --epochs 4 --balance auto "${slow[@]}" --force
    is_true "$(share_of slow 90 1) < 10" || fail "$mode: the slow worker has $(rows_of slow 90)"
    grep -q '"kind":"cost",.*"role":"worker1","step":[0-9]*,"rows":[0-9]*,"step_s":[0-9]' slow/metrics.jsonl ||
        fail "$mode: what steps cost is not recorded"
    expect_equal "samples" "$(json_number samples slow.json)" 4800
    is_true "$(json_number logloss slow.json) < 1.1 * $(json_number logloss even.json)" ||
        fail "$mode: log-loss $(json_number logloss slow.json), of even shares $(json_number logloss even.json)"
    train again "${mode_words[@]}" --workers 3 --epochs 4 --balance replay:slow --force
    expect_same again slow
    cmp slow/shares.jsonl again/shares.jsonl >"$work/cmp" || # gains are not repeated
        expect_equal "steps and rows" "$(sed 's/, "gain.*//' again/shares.jsonl)" "$(sed 's/, "gain.*//' slow/shares.jsonl)"
done

# ---- killed: the bytes of its own record ----
for kills in kill:worker1@step=20 kill:chief@step=37 kill:worker2@step=$((RANDOM % 80 + 10)),kill:chief@step=$((RANDOM % 80 + 10)); do
    echo "$kills"
    train killed --workers 3 --epochs 4 --balance auto --checkpoint-every 15 --force --inject "slow:worker1=300x,$kills"
    is_true "$(json_number restarts killed.json) >= 1" || fail "nobody was killed"
    expect_equal "samples" "$(json_number samples killed.json)" 4800
    train again --workers 3 --epochs 4 --balance replay:killed --force
    expect_same again killed
done

# ---- other intervals; slowness that comes and goes, in steps that are more than what a step costs without rows ----
train every --workers 3 --epochs 16 --balance 5 --hidden 96 --embed 64 --inject slow:worker2=60x@step=20..60
is_true "$(share_of every 60 2) < 10" || fail "while it was slow: $(rows_of every 60)"
# That it has more rows again when it is fast again is tested without clocks (test_balance.c): where others use the cores, too, what
# its few rows cost is noise for longer than this run lasts.
echo "rows when it was fast again: $(rows_of every 384)"
train epochs --workers 3 --epochs 4 --balance epoch "${slow[@]}"
expect_equal "before the first epoch ends" "$(rows_of epochs 24)" "16 17 17"
is_true "$(share_of epochs 90 1) < 10" || fail "by epochs: $(rows_of epochs 90)"

# ---- what is resumed goes on with the shares that it had; with other workers, or none of it, evenly ----
train part --workers 3 --steps 40 --balance auto --checkpoint-every 10 "${slow[@]}" --schedule constant
before=$(rows_of part 40)
train part --workers 3 --steps 44 --balance replay:part --schedule constant --resume
expect_equal "shares of a resumed run" "$(rows_of part 44)" "$before"
# ---- another run's divisions are not its own (there another worker is slow): refused, and nothing has changed ----
cp part/metrics.jsonl before.jsonl
expect_exit 64 timeout 100 "$paceline" train --data data --run part --batch 50 "${model[@]}" --workers 3 --steps 48 --schedule constant \
    --balance replay:every --resume
expect_error "--balance replay:every: divides step " "otherwise than part/shares.jsonl" "say --balance replay:part"
cmp part/metrics.jsonl before.jsonl || fail "what was refused has changed the run"
train repeats --workers 3 --steps 16 --balance replay:slow --schedule constant
cp -r slow kept
sed -i 1q slow/shares.jsonl # as if it had been made anew
train repeats --workers 3 --steps 20 --balance replay:slow --schedule constant --resume
expect_error "warning: slow/shares.jsonl: has changed since this run began"
rm -r slow
train repeats --workers 3 --steps 24 --balance replay:slow --schedule constant --resume
expect_error "goes by its own record"
expect_equal "rows" "$(rows_of repeats 24)" "$(rows_of kept 24)"

train part --workers 2 --steps 80 --balance auto --schedule constant --resume
expect_equal "workers" "$(rows_of part 80 | wc -w)" 2
train part --workers 2 --steps 96 --schedule constant --resume
expect_equal "even shares" "$(rows_of part 96)" "25 25"
train_refused 64 "cannot be replayed" -- --batch 50 "${model[@]}" --workers 2 --balance replay:part

# ---- batch norm over shares: as with even ones ----
make_pictures pictures
run prep images pictures -o data --size 32 --holdout 0.2 --quiet --force
model=("${pictures[@]}" --arch resnet20 --checkpoint-seconds 0)
train even --workers 3 --steps 16 --force
train slow --workers 3 --steps 16 --balance 2 --force --inject slow:worker2=20x
[ "$(wc -l <slow/shares.jsonl)" -ge 2 ] || fail "nothing was decided"
is_true "$(share_of slow 16 2) < 10" || fail "pictures: $(rows_of slow 16)"
is_true "($(json_number train_loss slow.json) / $(json_number train_loss even.json) - 1) ^ 2 < 1e-6" ||
    fail "training loss $(json_number train_loss slow.json), with even shares $(json_number train_loss even.json)"
train again --workers 3 --steps 16 --balance replay:slow --force
expect_same again slow

# ---- what cannot be: told before anything is made, or replaced ----
two=("${model[@]}" --batch 50 --workers 2)
train_refused 64 "possible are off, auto, epoch, a number of steps" -- "${two[@]}" --balance often
train_refused 64 "possible are off, auto" -- "${two[@]}" --balance 0
train_refused 64 "asynchronous ones take rows as fast as they are" -- "${two[@]}" --mode ps-async --balance auto
train_refused 64 "mode local has one" -- "${model[@]}" --mode local --balance auto
train_refused 66 "there is no run" -- "${two[@]}" --balance replay:nowhere
train_refused 66 "had even shares" -- "${two[@]}" --balance replay:even
train_refused 64 "among 3 workers" -- "${two[@]}" --balance replay:slow
train_refused 64 "divides steps of 50 rows" -- "${model[@]}" --batch 40 --workers 3 --balance replay:slow
cp -r slow hurt
sed -i '2s/"rows": \[/&1/' hurt/shares.jsonl
train_refused 65 "shares.jsonl: line 2" -- "${model[@]}" --batch 50 --workers 3 --balance replay:hurt
cp slow/shares.jsonl hurt/ && sed -i 1d hurt/shares.jsonl
train_refused 65 "line before it is missing" -- "${model[@]}" --batch 50 --workers 3 --balance replay:hurt
cp slow/shares.jsonl hurt/ && truncate -s -1 hurt/shares.jsonl
train_refused 65 "cut short" -- "${model[@]}" --batch 50 --workers 3 --balance replay:hurt
cp slow/shares.jsonl hurt/ && sed -i '$d' hurt/shares.jsonl
train_refused 65 "shares.jsonl: has $(($(wc -l <slow/shares.jsonl) - 1)) lines, and the run ended with $(wc -l <slow/shares.jsonl)" \
    "the last are missing" -- "${model[@]}" --batch 50 --workers 3 --balance replay:hurt
rm hurt/shares.jsonl
train_refused 65 "has 0 lines" -- "${model[@]}" --batch 50 --workers 3 --balance replay:hurt
