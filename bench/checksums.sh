#!/bin/bash
# What checksums of rows cost: BENCH_BEFORE=PROGRAM bench/checksums.sh [ROWS]
#
# CPU seconds (user + system) per row, with PROGRAM an earlier one that neither writes nor compares them. Three comparisons:
# comparing alone (this program on data sets with sums beside those of PROGRAM, which have none), the whole program beside
# PROGRAM, each on data sets that it has prepared itself, and a run beside one without a last checkpoint. Pairs of runs take
# turns in who is first, BENCH_REPEAT (20) of each; the figures are the median of the pairs' ratios and the interval that
# holds it with 95 % (by ranks). ROWS (4000000) are rows of clicks; texts are a hundredth of that, pictures a thousandth.
# Environment: see bench/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-4000000}
pairs=${BENCH_REPEAT:-20}
before=${BENCH_BEFORE:?is the program to compare with}
cost_max=2 # per cent of training
open_work checksums
[ -x "$before" ] || fail "$before is missing"

texts=$((rows / 100 > 1000 ? rows / 100 : 1000)) pictures=$((rows / 1000 > 100 ? rows / 1000 : 100))
declare -A title=(
    [block]="logreg, block rule, one core, one epoch"
    [block10]="logreg, block rule, one core, ten epochs"
    [exact]="logreg, --exact, one core, one epoch"
    [rnn]="rnn, one epoch"
    [cnn]="cnn, one epoch"
    [prep]="prep clicks, one core"
)
declare -A words=(
    [block]="clicks --model logreg --threads 1"
    [block10]="clicks --model logreg --threads 1 --epochs 10"
    [exact]="clicks --model logreg --threads 1 --exact --batch 10000"
    [rnn]="texts --model rnn --threads 1 --embed 16 --hidden 16 --epochs 1"
    [cnn]="images --model cnn --threads 1 --epochs 1"
)
declare -A count=([block]=$rows [block10]=$((rows * 10)) [exact]=$rows [rnn]=$texts [cnn]=$pictures [prep]=$rows)
# What is compared, and with what: "PROGRAM DATA LAST" of either side.
declare -A sides=(
    [sums]="now now no, now before no"
    [all]="now now no, before before no"
    [last]="now now yes, now now no"
)
declare -A compared=(
    [sums]="comparing rows with their sums"
    [all]="the whole program, beside the one before"
    [last]="the checkpoint of the last step, written once a run"
)
cases=(sums.block sums.block10 sums.exact sums.rnn sums.cnn all.block all.block10 all.exact all.rnn all.cnn all.prep last.block)

make_data()
{
    local who set

    "$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --force --quiet >"$results/gen.out"
    "$program" gen reviews -o "$work/reviews.jsonl" --rows "$texts" --force --quiet >>"$results/gen.out"
    rm -rf "$work/pictures"
    "$program" gen images -o "$work/pictures" --rows "$pictures" --quiet >>"$results/gen.out"
    for who in now before; do
        set=$(program_of $who)
        "$set" prep clicks "$work/clicks.tsv" -o "$work/clicks-$who" --force --quiet >"$results/prep.out"
        "$set" prep reviews "$work/reviews.jsonl" -o "$work/texts-$who" --length 60 --force --quiet >>"$results/prep.out"
        "$set" prep images "$work/pictures" -o "$work/images-$who" --size 32 --force --quiet >>"$results/prep.out"
    done
}

program_of()
{
    [ "$1" = now ] && echo "$program" || echo "$before"
}

# once CASE SIDE: one run of what is compared, 1, or what it is compared with, 2; adds its CPU seconds to CASE.SIDE.
once()
{
    local what=${1%%.*} job=${1#*.} who data last line

    read -r who data last < <(cut -d , -f "$2" <<<"${sides[$what]}")
    rm -rf "$work/out"
    if [ "$job" = prep ]; then
        line=(prep clicks "$work/clicks.tsv" --threads 1 -o "$work/out")
    else
        read -r -a line <<<"${words[$job]}"
        line=(train --data "$work/${line[0]}-$data" --run "$work/out" "${line[@]:1}")
        [ "$last" = yes ] || line+=(--checkpoint-seconds 0)
    fi
    note_cpu "$1.$2" "$(program_of "$who")" "${line[@]}"
}

make_data
print_machine "CPU seconds, user and system; medians of $pairs pairs"
fact rows "$rows of clicks, $texts texts, $pictures pictures"
measure_pairs "$pairs" "${cases[@]}"

heading "CPU seconds per row"
echo "| | | without | with | cost, median | 95 % |"
echo "|---|---|---|---|---|---|"
for each in "${cases[@]}"; do
    what=${each%%.*} job=${each#*.}
    read -r middle low high < <(excess "$each.1" "$each.2")
    with=$(calculate "$(median "$each.1") / ${count[$job]} * 1e9" %.4g)
    without=$(calculate "$(median "$each.2") / ${count[$job]} * 1e9" %.4g)
    echo "| ${compared[$what]} | ${title[$job]} | $without ns | $with ns | $middle % | $low .. $high % |"
    bar=-
    [ "$what" != sums ] || bar="<= $cost_max"
    result "${title[$job]}: ${compared[$what]}" "$middle" "%" "95 % interval, from" "$low" - "$bar"
done
close_work
