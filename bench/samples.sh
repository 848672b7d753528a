#!/bin/bash
# What it costs that every rank reports once a second: bench/samples.sh [ROWS]
#
# CPU seconds (user + system, all processes of a job) per row, beside the same program built without such reports. One a second
# costs less than runs differ by; so the program is built to make a hundred of them, and a hundredth of what those cost is the
# figure: its upper end, since that is what is known. Pairs of runs take turns in who is first, BENCH_REPEAT (20) of each; the
# median of the pairs' ratios is shown with the interval that holds it with 95 % (by ranks). ROWS (1000000) are rows of clicks;
# each job goes over them often enough to take some seconds. Environment: see bench/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-1000000}
pairs=${BENCH_REPEAT:-20}
often=100  # reports a second
cost_max=1 # per cent
open_work samples

# build_with NAME NANOSECONDS: between two reports.
build_with()
{
    cmake -S "$root" -B "$work/$1" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_C_FLAGS="-DPACE__REPORT_EVERY_NS=$2ull" \
        >"$results/$1.out"
    ninja -C "$work/$1" paceline >>"$results/$1.out"
}

build_with without 1000000000000000000
build_with often $((1000000000 / often))
"$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --force --quiet >"$results/gen.out"
"$program" prep clicks "$work/clicks.tsv" -o "$work/clicks" --force --quiet >>"$results/gen.out"

declare -A words=(
    [local]="--epochs 40 --threads 1"
    [sync-2-100]="--mode ps-sync --workers 2 --batch 100 --epochs 1"
    [sync-2-1000]="--mode ps-sync --workers 2 --batch 1000 --epochs 4"
    [sync-2-10000]="--mode ps-sync --workers 2 --batch 10000 --epochs 8"
    [async-8-100]="--mode ps-async --workers 6 --ps 2 --batch 100 --epochs 1"
    [async-8-10000]="--mode ps-async --workers 6 --ps 2 --batch 10000 --epochs 8"
)
cases=(local sync-2-100 sync-2-1000 sync-2-10000 async-8-100 async-8-10000)

# once CASE SIDE: with many reports (1) or without any (2); adds its CPU seconds to CASE.SIDE.
once()
{
    local line who=$work/often/paceline

    [ "$2" = 1 ] || who=$work/without/paceline
    read -r -a line <<<"${words[$1]}"
    rm -rf "$work/run"
    note_cpu "$1.$2" "$who" train --data "$work/clicks" --model logreg --run "$work/run" "${line[@]}" --checkpoint-seconds 0
}

print_machine "CPU seconds, user and system; medians of $pairs pairs"
measure_pairs "$pairs" "${cases[@]}"

heading "CPU seconds of a job"
echo "| mode, ranks, batch | without | $often reports a second | cost of these, median | 95 % | of one a second, at most |"
echo "|---|---|---|---|---|---|"
for each in "${cases[@]}"; do
    read -r middle low high < <(excess "$each.1" "$each.2")
    most=$(calculate "$high / $often" %.3f)
    echo "| $each | $(calculate "$(median "$each.2")" %.2f) s | $(calculate "$(median "$each.1")" %.2f) s | $middle % | $low .. $high % | $most % |"
    result "$each: cost of reports, at most" "$most" "%" - - - "<= $cost_max"
done
close_work
