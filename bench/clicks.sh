#!/bin/bash
# The clicks job, from raw rows to a scored model, beside liblinear and Vowpal Wabbit: bench/clicks.sh [TRAIN [TEST]]
#
# TRAIN and TEST are numbers of generated rows (2000000 and 200000). Environment: see bench/README.md. It is a report: the
# exit code says whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

train_rows=${1:-2000000}
test_rows=${2:-200000}
open_work clicks
unit="million rows/s"
one_core="taskset -c 0"
command -v taskset >/dev/null || fail "taskset is missing (Debian: util-linux)"

# rate ROWS SECONDS: million rows/s; "-" if they were not measured.
rate()
{
    [ "$2" = - ] && echo - || calculate "$1 / $2 / 1e6" %.3f
}

# --- paceline ---

generate()
{
    local turn

    heading "gen: $train_rows rows to train on, $test_rows to test"
    for ((turn = 0; turn < repeat; turn++)); do
        timed gen "$program" gen clicks -o "$work/train.tsv" --rows "$train_rows" --force --json
        timed gen-one $one_core "$program" gen clicks -o "$work/train.tsv" --rows "$train_rows" --threads 1 --force --json
    done
    timed gen-test "$program" gen clicks -o "$work/test.tsv" --rows "$test_rows" --seed 2 --force --json
    train_bytes=$(number "$results/gen.out" bytes)
    test_bytes=$(number "$results/gen-test.out" bytes)
    train_rows=$(number "$results/gen.out" rows)
    test_rows=$(number "$results/gen-test.out" rows)
    cut -f1 "$work/test.tsv" >"$work/labels"
    echo
    echo "| | seconds | million rows/s | MB/s |"
    echo "|---|---|---|---|"
    echo "| one core | $(all gen-one.wall) | $(rate "$train_rows" "$(lowest gen-one.wall)") | $(calculate "$train_bytes / $(lowest gen-one.wall) / 1e6" %.0f) |"
    echo "| all cores | $(all gen.wall) | $(rate "$train_rows" "$(lowest gen.wall)") | $(calculate "$train_bytes / $(lowest gen.wall) / 1e6" %.0f) |"
    result "gen, all cores" "$(rate "$train_rows" "$(lowest gen.wall)")" "$unit" "one core" "$(rate "$train_rows" "$(lowest gen-one.wall)")" more
}

prep_line()
{
    local rows=$((train_rows + test_rows)) bytes=$((train_bytes + test_bytes)) wall

    wall=$(lowest "$2.wall")
    echo "| $1 | $(all "$2.wall") | $(rate "$rows" "$wall") | $(calculate "$bytes / $wall / 1e6" %.0f) | $(all "$2.cpu") |" \
        "$(highest "$2.peak") | $(all "$2.parse") | $(all "$2.write") |"
}

prepare()
{
    local turn name one two processes

    heading "prep: hash, relabel, shuffle, write (time of the whole command)"
    for ((turn = 0; turn < repeat; turn++)); do
        rm -rf "$work/data"
        timed prep-two "$program" prep clicks "$work/train.tsv" --test "$work/test.tsv" -o "$work/data" --threads 2 --json
        mv "$work/data" "$work/data-two"
        timed prep-processes "$program" prep clicks "$work/train.tsv" --test "$work/test.tsv" -o "$work/data" -n 2 --json
        mv "$work/data" "$work/data-processes"
        timed prep-one $one_core "$program" prep clicks "$work/train.tsv" --test "$work/test.tsv" -o "$work/data" --threads 1 --json
        for name in prep-one prep-two prep-processes; do
            note $name.parse "$(number "$results/$name.out" parse_seconds)"
            note $name.write "$(number "$results/$name.out" write_seconds)"
            note $name.phases "$(calculate "$(number "$results/$name.out" parse_seconds) + $(number "$results/$name.out" write_seconds)" %.3f)"
        done
        for name in two processes; do
            [ "$turn" -gt 0 ] || diff -rq "$work/data" "$work/data-$name" >"$results/prep.diff" ||
                echo "The data sets of prep-one and prep-$name differ: $(tr '\n' ' ' <"$results/prep.diff")"
            rm -rf "$work/data-$name"
        done
    done
    echo
    echo "| | seconds | million rows/s | MB/s of input | CPU seconds | peak MiB | parse seconds | write seconds |"
    echo "|---|---|---|---|---|---|---|---|"
    prep_line "one core, --threads 1" prep-one
    prep_line "--threads 2" prep-two
    prep_line "-n 2" prep-processes
    one=$(rate $((train_rows + test_rows)) "$(lowest prep-one.wall)")
    two=$(rate $((train_rows + test_rows)) "$(lowest prep-two.wall)")
    processes=$(rate $((train_rows + test_rows)) "$(lowest prep-processes.wall)")
    result "prep, one core" "$one" "$unit" - - - "$(bar ">= 1.2" ">= 2.5")"
    result "prep, two threads" "$two" "$unit" "one core" "$one" more ">= 1.6x"
    result "prep, two processes" "$processes" "$unit" "one core" "$one" more ">= 1.8x"
    result "prep, two processes, without starting, numbering ids and ending" "$(best prep-processes.phases)" s "one core" "$(best prep-one.phases)" less
    result "prep, one core: peak memory" "$(highest prep-one.peak)" MiB
}

train_line()
{
    echo "| $1 | $(all "$2.seconds" %.3f) | $(rate "$train_rows" "$(lowest "$2.seconds")") | $(all "$2.wall") | $(all "$2.cpu") | $(highest "$2.peak") |"
}

bare_line()
{
    echo "| $1 | $(all "$2" %.3f) | $(rate "$train_rows" "$(lowest "$2")") | - | - | - |"
}

# Three times in a turn, as often as bench_logreg repeats what it does: a pass takes a fifth of a second.
train_thrice()
{
    local name time

    for ((time = 0; time < 3; time++)); do
        rm -rf "$work/run" "$work/run-two" "$work/run-exact"
        timed train-one $one_core "$program" train --data "$work/data" --model logreg --run "$work/run" --threads 1 --json
        timed train-two "$program" train --data "$work/data" --model logreg --run "$work/run-two" --threads 2 --json
        timed train-exact $one_core "$program" train --data "$work/data" --model logreg --run "$work/run-exact" --threads 1 --exact --batch 10000 --json
        for name in train-one train-two train-exact; do
            note $name.seconds "$(number "$results/$name.out" seconds)"
        done
    done
}

train()
{
    local turn

    heading "train: one pass, default options"
    for ((turn = 0; turn < repeat; turn++)); do
        train_thrice
        timed bare $one_core "$build/bench/bench_logreg" "$work/data"
        awk '$1 == "plain" { print $2 }' "$results/bare.out" | sort -g | head -n 1 >>"$results/plain"
        awk '$1 == "kernels" { print $2 }' "$results/bare.out" | sort -g | head -n 1 >>"$results/kernels"
    done
    echo
    echo "Pass: the training pass, as the program reports it. Command: from start to end, with scoring and the saved model."
    echo
    echo "| | pass, seconds | million rows/s | command, seconds | CPU seconds | peak MiB |"
    echo "|---|---|---|---|---|---|"
    train_line "one core, --threads 1" train-one
    train_line "--threads 2" train-two
    train_line "one core, --exact --batch 10000" train-exact
    bare_line "bench_logreg kernels, one core, rows in memory" kernels
    bare_line "bench_logreg plain, one core, rows in memory" plain
    one=$(lowest train-one.seconds)
    echo
    if [ "$(word "$results/train-one.out" model_sha256)" = "$(word "$results/train-two.out" model_sha256)" ]; then
        echo "Both models have the same bytes: SHA-256 $(word "$results/train-one.out" model_sha256)"
    else
        echo "The models of one and two threads DIFFER."
    fi
    own_rate=$(rate "$train_rows" "$one")
    result "train, one core" "$own_rate" "$unit" "the kernels alone, rows in memory" "$(rate "$train_rows" "$(lowest kernels)")" more "$(bar - "$(wide_bar "$own_rate")")"
    result "train, one core" "$own_rate" "$unit" "a plain loop, rows in memory" "$(rate "$train_rows" "$(lowest plain)")" more "$(bar ">= 1.6x" -)"
    result "train, two threads" "$(rate "$train_rows" "$(lowest train-two.seconds)")" "$unit" "one core" "$own_rate" more "$(bar ">= 1.6x" ">= 1.7x")"
    result "train --exact, batches of 10,000, one core" "$(rate "$train_rows" "$(lowest train-exact.seconds)")" "$unit" "the block rule" "$own_rate" more ">= 0.5x"
    result "train, one core: peak memory" "$(highest train-one.peak)" MiB
}

# Wanted of one core with AVX-512: 15 million rows/s, or that much of what the kernels alone make.
wide_bar()
{
    [ "$(calculate "$1 >= 15" %d)" = 1 ] && echo ">= 15" || echo ">= 0.85x"
}

# quality_line TEXT LOGLOSS AUC SECONDS
quality_line()
{
    local seconds=$4

    [ "$seconds" = - ] || seconds=$(calculate "$seconds" %.2f)
    echo "| $1 | $2 | $3 | $seconds |" >>"$results/quality"
}

judge()
{
    local logloss auc

    "$program" predict --run "$work/run" "$work/test.tsv" --quiet >"$work/predictions"
    read -r logloss auc < <(score "$work/labels" "$work/predictions")
    own_logloss=$logloss own_auc=$auc
    best_logloss=$(calculate "$(number "$results/gen-test.out" best_logloss)" %.5f)
    quality_line "the model behind the data (best possible)" "$best_logloss" - -
    quality_line "paceline, one pass" "$logloss" "$auc" "$(lowest train-one.seconds)"
    quality_line "paceline, as train reports it" "$(calculate "$(number "$results/train-one.out" logloss)" %.5f)" \
        "$(calculate "$(number "$results/train-one.out" auc)" %.5f)" "$(lowest train-one.seconds)"
    quality_line "always the mean" "$(calculate "$(number "$results/gen-test.out" null_logloss)" %.5f)" 0.5 -
}

# --- liblinear ---

liblinear()
{
    local logloss auc column

    heading "liblinear, to convergence, on the same rows and features"
    liblinear_logloss=- liblinear_auc=-
    if ! command -v liblinear-train >/dev/null; then
        echo "Skipped: not installed (Debian: apt-get install liblinear-tools)."
        return
    elif ! has_module h5py; then
        echo "Skipped: exporting the rows needs h5py (python3 -m venv V; V/bin/pip install h5py; BENCH_PYTHON=V/bin/python)."
        return
    fi
    "$python" "$root/bench/export_svmlight.py" "$work/data" train >"$work/train.svm"
    "$python" "$root/bench/export_svmlight.py" "$work/data" test >"$work/test.svm"
    timed liblinear liblinear-train -s 7 -c 0.05 -B 1 -q "$work/train.svm" "$work/liblinear.model"
    timed liblinear-predict liblinear-predict -b 1 "$work/test.svm" "$work/liblinear.model" "$work/liblinear.out"
    column=$(awk 'NR == 1 { for (i = 2; i <= NF; i++) if ($i == 1) print i }' "$work/liblinear.out")
    awk -v column="$column" 'NR > 1 { print $column }' "$work/liblinear.out" >"$work/liblinear.predictions"
    cut -d' ' -f1 "$work/test.svm" >"$work/liblinear.labels"
    read -r logloss auc < <(score "$work/liblinear.labels" "$work/liblinear.predictions")
    liblinear_logloss=$logloss liblinear_auc=$auc
    echo
    echo "$(all liblinear.wall) s with reading its text, $(highest liblinear.peak) MiB;" \
        "$(ratio "$(lowest liblinear.wall)" "$(lowest train-one.wall)" %.0f) times the time of paceline train on one core."
    quality_line "liblinear -s 7 -c 0.05, converged" "$logloss" "$auc" "$(lowest liblinear.wall)"
    result "train, the whole command, one core" "$(best train-one.wall)" s "liblinear to convergence, with reading its text" "$(best liblinear.wall)" less
    rm -f "$work/train.svm"
}

# --- Vowpal Wabbit ---

vw_line()
{
    local name=$2 start=$3 seconds loss

    seconds=$(calculate "$(lowest "$name.vw") - $start")
    loss=$(calculate "$(number "$results/$name.out" average_loss)" %.5f)
    note "$name.best" "$seconds"
    echo "| $1 | $(all "$name.vw") | $(rate "$train_rows" "$seconds") | $(ratio "$seconds" "$one" %.1f)x | $loss |"
}

# vw_quality TEXT NAME ARGUMENTS...: trains once more and saves, predicts the test rows; sets vw_logloss.
vw_quality()
{
    local text=$1 name=$2 logloss auc

    shift 2
    vw "$name-save" "" "$@" -f "$work/$name.vwmodel" -d "$work/train.vw"
    vw "$name-predict" "" --quiet -t -i "$work/$name.vwmodel" --link logistic -p "$work/$name.predictions" -d "$work/test.vw"
    read -r logloss auc < <(score "$work/labels" "$work/$name.predictions")
    vw_logloss=$logloss
    quality_line "$text" "$logloss" "$auc" "$(lowest "$name-save.vw")"
    rm -f "$work/$name.vwmodel"
}

vowpal()
{
    local turn onethread="" base="--loss_function logistic -b 25" begin

    heading "Vowpal Wabbit: the same rows as text and from its cache, one pass"
    vw_cache_seconds=- vw_logloss=-
    if ! has_module vowpalwabbit; then
        echo "Skipped: not installed (python3 -m venv V; V/bin/pip install vowpalwabbit vowpal-wabbit-next; BENCH_PYTHON=V/bin/python)."
        return
    fi
    if has_module vowpal_wabbit_next; then
        onethread=--onethread
    else
        echo "Without --onethread: that needs vowpal-wabbit-next ($python -m pip install vowpal-wabbit-next)."
    fi
    begin=$EPOCHREALTIME
    to_vw_text "$work/train.tsv" >"$work/train.vw"
    to_vw_text "$work/test.tsv" >"$work/test.vw"
    echo "Text made by awk in $(calculate "$EPOCHREALTIME - $begin" %.0f) s, not counted below. Its first row:"
    echo
    echo "    $(head -n 1 "$work/train.vw")"
    echo
    : >"$work/empty.vw"
    # shellcheck disable=SC2086 # options are words
    for ((turn = 0; turn < repeat; turn++)); do
        vw vw-empty "" $base -d "$work/empty.vw"
        vw vw-text "" $base -d "$work/train.vw"
        [ "$turn" -gt 0 ] || vw vw-cache-make "" $base -k --cache_file "$work/two.cache" -d "$work/train.vw"
        vw vw-cache "" $base --cache_file "$work/two.cache" -d "$work/train.vw"
        vw vw-cache-core "$one_core" $base --cache_file "$work/two.cache" -d "$work/train.vw"
        vw vw-text-core "$one_core" $base -d "$work/train.vw"
        vw vw-sgd "" $base --sgd --cache_file "$work/two.cache" -d "$work/train.vw"
        [ -n "$onethread" ] || continue
        vw vw-empty-one "$one_core" $onethread $base -d "$work/empty.vw"
        vw vw-text-one "$one_core" $onethread $base -d "$work/train.vw"
        [ "$turn" -gt 0 ] || vw vw-cache-make-one "" $onethread $base -k --cache_file "$work/one.cache" -d "$work/train.vw"
        vw vw-cache-one "$one_core" $onethread $base --cache_file "$work/one.cache" -d "$work/train.vw"
        vw vw-sgd-one "$one_core" $onethread $base --sgd --cache_file "$work/one.cache" -d "$work/train.vw"
    done
    vw_table "$onethread"
    # shellcheck disable=SC2086
    vw_quality "VW $base --sgd, one pass" vw-quality-sgd $base --sgd
    # shellcheck disable=SC2086
    vw_quality "VW $base, one pass" vw-quality $base
    rm -f "$work"/*.cache
}

vw_table()
{
    local start

    start=$(lowest vw-empty.vw)
    echo
    fact "Vowpal Wabbit" "$(word "$results/vw-text.out" version)"
    echo
    echo "seconds: all of VW, without Python. million rows/s: without the time that VW takes for an empty file ($(calculate "$start" %.3f) s) either."
    echo
    echo "| VW | seconds | million rows/s | time / paceline's pass on one core | progressive loss |"
    echo "|---|---|---|---|---|"
    vw_line "text, parse thread, all cores" vw-text "$start"
    vw_line "text, parse thread, one core" vw-text-core "$start"
    vw_line "cache, parse thread, all cores" vw-cache "$start"
    vw_line "cache, parse thread, one core" vw-cache-core "$start"
    vw_line "cache, parse thread, all cores, --sgd" vw-sgd "$start"
    cp "$results/vw-cache-core.best" "$results/vw-cache.fastest"
    cp "$results/vw-text-core.vw" "$results/vw-text.fastest"
    if [ -n "$1" ]; then
        start=$(lowest vw-empty-one.vw)
        vw_line "text, --onethread, one core (VW $(word "$results/vw-text-one.out" version))" vw-text-one "$start"
        vw_line "cache, --onethread, one core" vw-cache-one "$start"
        vw_line "cache, --onethread, one core, --sgd" vw-sgd-one "$start"
        cat "$results/vw-cache-one.best" >>"$results/vw-cache.fastest"
        cat "$results/vw-text-one.vw" >>"$results/vw-text.fastest"
    fi
    vw_cache_seconds=$(lowest vw-cache.fastest)
}

# raw_to_model NAME PREFIX THREADS: prep and train of the training rows alone; adds to NAME.total.
raw_to_model()
{
    rm -rf "$work/raw-data" "$work/raw-run"
    # shellcheck disable=SC2086
    timed "$1-prep" $2 "$program" prep clicks "$work/train.tsv" -o "$work/raw-data" --threads "$3" --json
    # shellcheck disable=SC2086
    timed "$1-train" $2 "$program" train --data "$work/raw-data" --model logreg --run "$work/raw-run" --threads "$3" --json
    note "$1.total" "$(calculate "$(tail -n 1 "$results/$1-prep.wall") + $(tail -n 1 "$results/$1-train.wall")" %.3f)"
    rm -rf "$work/raw-data" "$work/raw-run"
}

raw_log()
{
    local turn base="--loss_function logistic -b 25" model=$work/raw.vwmodel

    heading "From the raw log to a finished model on disk"
    # shellcheck disable=SC2086
    for ((turn = 0; turn < repeat; turn++)); do
        raw_to_model raw-one "$one_core" 1
        raw_to_model raw-all "" 0
        [ "$vw_logloss" != - ] || continue
        vw raw-vw "" $base -d "$work/train.vw" -f "$model"
        vw raw-vw-core "$one_core" $base -d "$work/train.vw" -f "$model"
        ! has_module vowpal_wabbit_next || vw raw-vw-one "$one_core" --onethread $base -d "$work/train.vw" -f "$model"
        rm -f "$model"
    done
    echo
    echo "| | one core, seconds | all cores, seconds |"
    echo "|---|---|---|"
    echo "| paceline prep + train, both commands | $(all raw-one.total) | $(all raw-all.total) |"
    if [ "$vw_logloss" != - ]; then
        echo "| VW from text, parse thread | $(all raw-vw-core.vw) | $(all raw-vw.vw) |"
        [ ! -e "$results/raw-vw-one.vw" ] || echo "| VW from text, --onethread | $(all raw-vw-one.vw) | - |"
        cat "$results"/raw-vw-core.vw "$results"/raw-vw-one.vw >"$results/raw-vw-best" 2>/dev/null || true
    fi
    result "raw log to model on disk, one core" "$(best raw-one.total)" s "Vowpal Wabbit from text, one core" "$(best raw-vw-best)" less ">= 4x"
    result "raw log to model on disk, all cores" "$(best raw-all.total)" s "Vowpal Wabbit from text, all cores" "$(best raw-vw.vw)" less ">= 4x"
}

# --- the report ---

echo "# Clicks: paceline beside its peers"
print_machine
generate
prepare
train
judge
liblinear
vowpal
raw_log

heading "Quality on $test_rows test rows (scored by the same script; seconds to train)"
echo "| | log-loss | AUC | seconds |"
echo "|---|---|---|---|"
sort -t'|' -k3,3g "$results/quality"

result "train, one core" "$own_rate" "$unit" "Vowpal Wabbit from its cache, one core" "$(rate "$train_rows" "$vw_cache_seconds")" more ">= 20x"
result "log-loss after one pass" "$own_logloss" - "the model behind the data" "$best_logloss" above
result "log-loss after one pass" "$own_logloss" - "liblinear, converged" "$liblinear_logloss" above "<= 0.5 %"
result "log-loss after one pass" "$own_logloss" - "Vowpal Wabbit, one pass" "$vw_logloss" above "<= 0 %"
result "AUC after one pass" "$own_auc" - "liblinear, converged" "$liblinear_auc" above
close_work
