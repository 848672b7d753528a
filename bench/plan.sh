#!/bin/bash
# Predicted beside measured: bench/plan.sh [CELLS [SEED]]
#
# CELLS (12) jobs are drawn by SEED (1) from those that a lab can hold: clicks at 100, 1,000 and 10,000 rows a step, rnn and
# cnn at 128 and 512; 2, 4, 8 workers; 1, 2 servers or none; 1 Gbit/s and 100 Mbit/s; every mode. `paceline plan` learns from runs
# of some seconds on one host alone, and predicts them; then they run. Needs root: hosts of 0.15 core are made by tests/lab/lab.
# What is compared is the speed once a job is under way, without its start. With BENCH_DIR what was measured is kept, and only
# what is missing runs: more cells of the same seed go on with it. It is a report: the exit code says whether everything ran.
# Environment: see bench/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

cells=${1:-12}
seed=${2:-1}
lab=$root/tests/lab/lab
share=0.15
period=7
declare -A words=([clicks]="--model logreg" [rnn]="--model rnn --embed 128 --hidden 128" [cnn]="--model cnn --arch small")

make_data()
{
    [ ! -d "$work/clicks" ] || return 0
    {
        "$program" gen clicks -o "$work/clicks.tsv" --rows 2020000 --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/clicks" --holdout 0.01 --force --quiet
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 57000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/rnn" --holdout 0.01 --force --quiet
        rm -rf "$work/pictures" "$work/pictures-test" "$work/clicks.tsv"
        "$program" gen images -o "$work/pictures" --rows 4096 --force --quiet
        "$program" gen images -o "$work/pictures-test" --rows 64 --seed 2 --force --quiet
        "$program" prep images "$work/pictures" --test "$work/pictures-test" --size 32 -o "$work/cnn" --force --quiet
    } >"$results/data.out"
}

# draw: a line for each cell: DATA MODE WORKERS PS BATCH RATE
draw()
{
    awk -v cells="$cells" -v seed="$seed" '
        function pick(list, parts, count) { count = split(list, parts, " "); return parts[1 + int(rand() * count)] }
        BEGIN {
            srand(seed)
            while (drawn < cells) {
                data = pick("clicks clicks clicks rnn cnn")
                mode = pick(data == "cnn" ? "allreduce ps-sync ps-async" : "allreduce ps-sync ps-async local-sgd")
                ps = mode ~ /^ps/ ? pick("0 1 2") : "-"
                batch = mode == "local-sgd" && data == "clicks" ? 512 : data == "clicks" ? pick("100 1000 10000") : pick("128 512")
                line = data " " mode " " pick("2 4 8") " " ps " " batch " " pick("1gbit 1gbit 100mbit")
                if (!(line in seen)) { seen[line] = 1; drawn++; print line }
            }
        }'
}

# steps_of DATA MODE BATCH: some seconds of it
steps_of()
{
    case $1-$2-$3 in
    clicks-local-sgd-*) echo 3906 ;;
    clicks-*-100) echo 2500 ;;
    clicks-*-1000) echo 1000 ;;
    clicks-*) echo 250 ;;
    rnn-*-128) echo 40 ;;
    rnn-*) echo 24 ;;
    cnn-*-128) echo 24 ;;
    *) echo 10 ;;
    esac
}

# train RUN DATA LAB-WORDS -- WORDS...: unless it was.
train()
{
    local run=$1 data=$2 lab_words=() own

    shift 2
    [ ! -e "$run/summary.json" ] || return 0
    while [ "$1" != -- ]; do
        lab_words+=("$1")
        shift
    done
    read -ra own <<<"${words[$data]}"
    rm -rf "$run"
    "$lab" run "${lab_words[@]}" --cpu $share --period $period -- "$program" train --data "$work/$data" "${own[@]}" --run "$run" \
        --threads 1 --eval-rows 1 --checkpoint-seconds 0 --report off --quiet "${@:2}" >>"$results/train.out" 2>&1 ||
        fail "$run: see $results/train.out"
}

# On one host alone: a run of each family of work.
calibrate()
{
    train "$work/runs/clicks-block" clicks --hosts 1 -- --mode local --steps 3000
    train "$work/runs/clicks-steps" clicks --hosts 1 -- --mode ps-sync --workers 1 --ps 0 --batch 1000 --steps 1000
    train "$work/runs/rnn-steps" rnn --hosts 1 -- --mode local --batch 128 --steps 24
    train "$work/runs/cnn-steps" cnn --hosts 1 -- --mode local --batch 128 --steps 8
}

# measure DATA MODE WORKERS PS BATCH RATE
measure()
{
    local processes=$3 ps=() number

    if [ "$4" != - ]; then
        processes=$(($3 + $4))
        ps=(--ps "$4")
    fi
    for ((number = 2; number <= processes + 1; number++)); do
        echo "host$number"
    done >"$work/hosts-$processes"
    train "$work/runs/$1-$2-$3-$4-$5-$6" "$1" --hosts $((processes + 1)) --rate "$6" --cpu-of host1=none -- --mode "$2" \
        --workers "$3" "${ps[@]}" --batch "$5" --steps "$(steps_of "$1" "$2" "$5")" --hosts "$work/hosts-$processes"
}

# predict DATA RATE: beside all runs of these that were measured
predict()
{
    local known=(--run "$work/runs/$1-steps") runs=() line

    [ "$1" != clicks ] || known+=(--run "$work/runs/clicks-block")
    while read -r line; do
        [ "${line%% *}-${line##* }" != "$1-$2" ] || runs+=("$work/runs/${line// /-}")
    done <"$work/cells"
    [ ${#runs[@]} -gt 0 ] || return 0
    "$program" plan "${known[@]}" --net "$2" --check "${runs[@]}" --quiet --json >"$results/check-$1-$2.json"
    "$program" plan "${known[@]}" --net "$2" --check "${runs[@]}" --quiet | grep "$work" | sed "s,$work/runs/,,; s/ *$//"
}

open_work plan
mkdir -p "$work/runs"
make_data
print_machine "one run each"
draw >"$work/cells"
calibrate
while read -r -a cell; do
    measure "${cell[@]}"
done <"$work/cells"
heading "Predicted beside measured, rows/s; $cells cells of seed $seed"
echo '```'
for data in clicks rnn cnn; do
    for rate in 1gbit 100mbit; do
        predict $data $rate
    done
done | tee "$results/table"
echo '```'
awk '{ for (i = 1; i <= NF; i++) if ($i ~ /%$/) { e = $i; gsub(/[+%-]/, "", e); print e } }' "$results/table" | sort -n >"$results/errors"
median=$(awk '{ e[NR] = $1 } END { print (e[int((NR + 1) / 2)] + e[int(NR / 2) + 1]) / 2 }' "$results/errors")
agree=$(awk '{ n = NF; if ($(n - 2) == $(n - 1)) a++ } END { printf "%.2f", a / NR }' "$results/table")
result "error of predicted rows/s, median" "$median" "%" - - - "<= 10"
result "error of predicted rows/s, worst" "$(tail -n 1 "$results/errors")" "%" - - - "<= 25"
result "predicted bottleneck is the verdict" "$agree" - - - - ">= 0.9"
close_work
