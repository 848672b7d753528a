#!/bin/bash
# A run that has lost its state together with its checkpoints does not begin anew by itself: what else there is tells that it
# had some.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 3000 --seed 5
run prep clicks clicks.tsv -o data --holdout 0.1
words=(train --data data --batch 100 --steps 30 --checkpoint-every 10 --quiet)
run "${words[@]}" --run base

# refused RUN: however often it is tried, and nothing but state.json and the log is written.
refused()
{
    local kept more

    kept=$(prints "$1" | grep -v 'state.json\|logs/')
    for more in --dry-run "" ""; do
        # shellcheck disable=SC2086 # it may be no word
        expect_exit 65 "$paceline" "${words[@]}" --run "$1" --resume $more
        expect_error "there is no checkpoint any more, but there was one of step 30; --force starts over"
        expect_equal "files of $1" "$(prints "$1" | grep -v 'state.json\|logs/')" "$kept"
    done
}

# ---- directories of checkpoints are there, but none is whole ----
cp -a base parts
rm parts/checkpoints/*/manifest.json parts/state.json parts/model.safetensors parts/summary.json
refused parts
run "${words[@]}" --run parts --force
expect_equal "model" "$(json_text model_sha256 parts/summary.json)" "$(json_text model_sha256 base/summary.json)"

# ---- only records tell of them ----
cp -a base records
rm -r records/checkpoints records/state.json records/model.safetensors
refused records
rm records/summary.json
refused records

# ---- nothing was ever saved, and state.json is gone: there is nothing to lose ----
run "${words[@]}" --run early --checkpoint-every 0 --checkpoint-seconds 0
rm early/state.json early/model.safetensors early/summary.json
run "${words[@]}" --run early --checkpoint-every 0 --checkpoint-seconds 0 --resume
expect_error "the run ended before its first checkpoint: it begins at step 0"
