#!/bin/bash
# Damaged, missing and unwritable checkpoints, interruptions, resuming with other processes: tests/fault/test_damage.sh PROGRAM
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

host=$(hostname)
bounded=(timeout -s KILL "$seconds_max")
base=(--data "$work/data" --batch 100 --log-every 10 --checkpoint-every 100 --quiet --deadline 20)
two=(--mode ps-sync --workers 2 --ps 0) # two parts

# train CODE RUN WORDS...: it ends with that code; what it says is in err.
train()
{
    expect_exit "$1" "${bounded[@]}" "$paceline" train --run "$work/$2" "${base[@]}" "${@:3}"
}

sha()
{
    json_text model_sha256 "$1/summary.json"
}

# expect_model RUN RUN: byte for byte.
expect_model()
{
    expect_equal "model of $1" "$(sha "$1")" "$(sha "$2")"
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ"
}

# copy_of RUN NAME
copy_of()
{
    rm -rf "$2"
    cp -a "$1" "$2"
}

newest()
{
    local found=("$1"/checkpoints/step-*)

    echo "${found[-1]}"
}

# state RUN NAME: a number of its state.json.
state()
{
    json_number "$2" "$1/state.json"
}

# flip FILE: changes a byte in its middle.
flip()
{
    local place byte

    place=$(($(stat -c %s "$1") / 2))
    byte=$(od -An -tu1 -j $place -N 1 "$1")
    printf '%b' "\\x$(printf %02x $((byte ^ 1)))" | dd of="$1" bs=1 seek=$place conv=notrunc status=none
}

cut()
{
    truncate -s -1 "$1"
}

make_data 8000
train 0 whole "${two[@]}" --steps 350
train 0 ended "${two[@]}" --steps 200
expect_equal "checkpoints" "$(cd ended/checkpoints && echo *)" "step-000000000100.0001 step-000000000200.0001"
expect_equal "files" "$(cd "$(newest ended)" && echo *)" \
    "manifest.json part-00000-of-00002.safetensors part-00001-of-00002.safetensors"
expect_whole ended/checkpoints/*
expect_equal "incarnation and checkpoint" "$(state ended incarnation) $(state ended checkpoint)" "1 200"

# ---- a damaged file: the checkpoint before is used, and the file is named ----
copy_of ended same
train 0 same "${two[@]}" --steps 350 --resume
expect_model same whole
grep -q '"kind":"start".*"step":200,' same/metrics.jsonl || fail "not resumed from step 200"
for damage in cut flip rm; do
    for file in manifest.json part-00000-of-00002.safetensors part-00001-of-00002.safetensors; do
        copy_of ended hurt
        $damage "$(newest hurt)/$file"
        ! is_whole "$(newest hurt)" || fail "$damage $file: inspect finds nothing wrong"
        train 0 hurt "${two[@]}" --steps 350 --resume
        if [ "$damage $file" = "rm manifest.json" ]; then
            expect_error "the checkpoint of step 200 is gone, or its manifest.json is"
        else
            expect_error "step-000000000200.0001/$file"
        fi
        grep -q '"kind":"start".*"step":100,' hurt/metrics.jsonl || fail "$damage $file: not resumed from step 100"
        expect_model hurt whole
        expect_equal "incarnation" "$(state hurt incarnation)" 2
        expect_equal "step records" "$(grep -c '"kind":"step"' hurt/metrics.jsonl)" 35
        expect_whole hurt/checkpoints/*
    done
done

# What a death has left half-written or half-removed goes, even if no other checkpoint follows.
copy_of ended hurt
mkdir hurt/checkpoints/step-000000000150.0001
touch hurt/checkpoints/step-000000000150.0001/part-00000-of-00002.safetensors
train 0 hurt "${two[@]}" --steps 290 --resume
expect_whole hurt/checkpoints/*

# ---- nothing good is left ----
for damage in flip rm; do
    copy_of ended hurt
    for directory in hurt/checkpoints/*; do
        $damage "$directory/part-00001-of-00002.safetensors"
    done
    before=$(cd hurt/checkpoints && find . -type f -exec sha256sum {} + | sort)
    train 65 hurt "${two[@]}" --steps 350 --resume
    expect_error "step-000000000100.0001/part-00001-of-00002.safetensors"
    expect_equal "checkpoints" "$(cd hurt/checkpoints && find . -type f -exec sha256sum {} + | sort)" "$before"
done
rm -rf hurt/checkpoints/*
train 65 hurt "${two[@]}" --steps 350 --resume
expect_error "there was one of step 200"
rmdir hurt/checkpoints
train 65 hurt "${two[@]}" --steps 350 --resume
expect_error "there was one of step 200"
train 0 hurt "${two[@]}" --steps 350 --force
expect_model hurt whole

# Damage and death together: the restart finds the damage. The pauses let the checkpoint be whole before.
train 0 both --mode ps-sync --workers 2 --ps 2 --steps 350 \
    --inject "corrupt-checkpoint@step=300,$(printf 'stall:worker1=0.3s@step=%d,' 310 320 330 340)kill:worker1@step=349"
expect_error "starting again from step 300" "step-000000000300.0001/part-0" "trying the one before"
expect_model both whole
expect_equal "restarts and incarnation" "$(state both restarts) $(state both incarnation)" "1 2"

# ---- a full disk ----
# Full but for less than a part: records and state still find room.
if [ "$(id -u)" -eq 0 ] && mkdir disk && mount -t tmpfs -o size=6m none disk 2>/dev/null; then
    trap 'umount -l "$work/disk" 2>/dev/null; clean_up' EXIT
    copy_of ended disk/run
    start_job "${bounded[@]}" "$paceline" train --run "$work/disk/run" "${base[@]}" --mode ps-sync --workers 2 --ps 2 \
        --steps 350 --resume --checkpoint-every 40 --inject stall:worker1=2s@step=210,stall:worker1=3s@step=330
    wait_for test -s disk/run/faults
    head -c $(($(df --output=avail -B 1 disk | tail -n 1) - 100000)) /dev/zero >disk/filler
    wait_for grep -q 'No space left' err
    expect_whole disk/run/checkpoints/step-000000000200.0001
    rm disk/filler
    end_job 0
    expect_error "warning: " "part-0000"
    expect_model disk/run whole
    expect_whole disk/run/checkpoints/*
    umount disk
else
    echo "skipped: a full disk (needs root)"
fi

# ---- interrupted ----
# start RUN WORDS...: a job that would go on for hours, until it trains.
start()
{
    start_job "$paceline" train --run "$work/$1" "${base[@]}" --epochs 1000000 "${@:2}"
    wait_for trains "$1"
    begun=$SECONDS
}

# finish RUN WORDS...: resumes it for some more steps; the model is that of a run that was never disturbed.
finish()
{
    local more=$((step + 150))

    train 0 "$1" --steps $more --resume "${@:2}"
    rm -rf plain
    train 0 plain --steps $more "${@:2}"
    expect_model "$1" plain
}

for signal in TERM USR1 INT; do
    rm -rf stopped
    start stopped "${two[@]}"
    kill -$signal $job
    end_job 75
    [ $((SECONDS - begun)) -le 10 ] || fail "SIG$signal: $((SECONDS - begun)) s until the end"
    wait_for nothing_runs "$work/stopped"
    step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
    expect_equal "newest checkpoint" "$(newest stopped)" "$(printf 'stopped/checkpoints/step-%012d.0001' "$step")"
    expect_whole stopped/checkpoints/*
    [ ! -e stopped/summary.json ] || fail "an interrupted run has a summary"
    finish stopped "${two[@]}"
    expect_equal "restarts and incarnation" "$(state stopped restarts) $(state stopped incarnation)" "0 2"
done

# The command that was typed is killed: everything goes with it.
rm -rf stopped
start stopped "${two[@]}" --evaluator
: >segments
note_segments "$work/stopped"
wait_for compgen -G 'stopped/checkpoints/*/manifest.json' >/dev/null
kill -KILL $job
end_job 137 2>/dev/null
begun=$SECONDS
wait_for nothing_runs "$work/stopped"
[ $((SECONDS - begun)) -le 5 ] || fail "it took $((SECONDS - begun)) s until all processes were gone"
xargs -r rm -f <segments # nobody was left to do it
step=$(last_step stopped)
finish stopped "${two[@]}" --evaluator
expect_equal "incarnation" "$(state stopped incarnation)" 2

# ---- resumed with other processes ----
train 0 one --steps 350 --exact
for words in "--mode ps-sync --workers 2 --ps 1" "--mode ps-sync --workers 2 --ps 3" "--mode allreduce --workers 2"; do
    read -ra words <<<"$words"
    copy_of ended elastic
    train 0 elastic --steps 350 --resume "${words[@]}"
    expect_model elastic whole
done
for words in "--mode ps-sync --workers 3 --ps 2" "--mode allreduce --workers 3" "--mode local --exact"; do
    read -ra words <<<"$words"
    copy_of ended elastic
    train 0 elastic --steps 350 --resume "${words[@]}"
    expect_near elastic whole
done
for words in "--mode ps-async --workers 2 --ps 1" "--mode ps-ssp --staleness 1 --workers 3 --ps 2"; do
    read -ra words <<<"$words"
    copy_of ended elastic
    train 0 elastic --steps 350 --resume "${words[@]}"
    expect_equal "samples" "$(json_number samples elastic/summary.json)" "$(json_number samples whole/summary.json)"
    # ... and back again, with another number of parts.
    train 0 elastic --steps 450 --resume --mode ps-sync --workers 2 --ps 2
    expect_equal "steps" "$(json_number steps elastic/summary.json)" 450
done
expect_near one whole

# ---- dead before the first checkpoint, and dead again and again ----
# expect_last_words TEXT...: the last line is an error, and holds each of them.
expect_last_words()
{
    local text last

    last=$(tail -n 1 err)
    [ "${last#paceline: error: }" != "$last" ] || fail "the last words are no error: $last"
    for text; do
        [[ $last == *"$text"* ]] || fail "not in the last words: $text: $last"
    done
}

# who ROLE RANK: as far as the launcher knows.
who()
{
    if [ $outlives = yes ]; then echo "$1 (rank $2, host $host)"; else echo "$1"; fi
}

train 1 early "${two[@]}" --steps 350 --max-restarts 0 --inject kill:worker1@step=50 --checkpoint-every 300
expect_last_words "$(who worker1 1)" "--resume goes on from the beginning"
[ ! -e early/summary.json ] || fail "a lost run has a summary"
train 0 early "${two[@]}" --steps 350 --resume
expect_model early whole
expect_equal "restarts and incarnation" "$(state early restarts) $(state early incarnation)" "1 2"
train 1 late --mode ps-sync --workers 2 --ps 2 --steps 350 --max-restarts 0 --inject kill:ps1@end
expect_last_words "$(who ps1 3)" "--resume goes on from step 350"
train 0 late --mode ps-sync --workers 2 --ps 2 --steps 350 --resume
expect_model late whole
train 1 again --mode ps-sync --workers 2 --ps 1 --steps 350 --max-restarts 2 \
    --inject kill:ps0@start,kill:ps0@start,kill:ps0@start,kill:ps0@start
expect_last_words "$(who ps0 2)" "gave up after 2 restarts" "--resume goes on from"
expect_equal "faults" "$(wc -l <again/faults)" 3
expect_equal "restarts and incarnation" "$(state again restarts) $(state again incarnation)" "2 3"
train 0 again --mode ps-sync --workers 2 --ps 1 --steps 350 --resume
expect_model again whole
# With a new checkpoint in between the count begins anew. One is written before the next but one begins.
often=(--mode ps-sync --workers 2 --ps 1 --steps 800)
train 0 undisturbed "${often[@]}"
train 0 often "${often[@]}" --max-restarts 1 --inject kill:ps0@step=150,kill:chief@step=450,kill:worker1@step=750
expect_model often undisturbed
expect_equal "restarts" "$(state often restarts)" 3

# ---- a holder that does not see the run directory: its part goes through the chief ----
if [ "$(id -u)" -eq 0 ] && unshare -m true 2>/dev/null; then
    mkdir hidden
    cat >hide <<END
#!/bin/bash
[ "\${OMPI_COMM_WORLD_RANK:-\${PMI_RANK:-}}" = 2 ] || exec "\$@"
exec unshare -m bash -c 'mount -t tmpfs none $work/hidden && exec "\$@"' hide "\$@"
END
    cat >launcher <<END
#!/bin/bash
words=()
for word; do
    [ "\$word" != "$paceline" ] || words+=("$work/hide")
    words+=("\$word")
done
exec $(command -v "$mpirun") "\${words[@]}"
END
    chmod +x hide launcher
    train 0 hidden --mode ps-sync --workers 2 --ps 2 --steps 350 --mpirun "$work/launcher"
    expect_model hidden whole
    expect_error "ps0"
    expect_whole hidden/checkpoints/*
    expect_equal "parts" "$(cd "$(newest hidden)" && echo part-*)" \
        "part-00000-of-00002.safetensors part-00001-of-00002.safetensors"
    train 0 hidden --mode ps-sync --workers 2 --ps 2 --steps 450 --resume
    train 0 longer "${two[@]}" --steps 450
    expect_model hidden longer
else
    echo "skipped: a hidden run directory (needs root)"
fi
