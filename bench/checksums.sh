#!/bin/bash
# What checksums of rows cost: BENCH_BEFORE=PROGRAM bench/checksums.sh [ROWS]
#
# CPU seconds (user + system) per row of this program, beside those of an earlier one that neither writes nor compares
# them, each on data sets that it has prepared itself. Pairs of runs take turns in who is first, BENCH_REPEAT (20) of each;
# the figures are the median of the pairs' ratios and the interval that holds it with 95 % (by ranks). ROWS (2000000) are
# rows of clicks; texts are a fiftieth of that, pictures a thousandth. Environment: see bench/README.md.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-2000000}
pairs=${BENCH_REPEAT:-20}
before=${BENCH_BEFORE:?is the program to compare with}
cost_max=2 # per cent of training
open_work checksums
[ -x "$before" ] || fail "$before is missing"

texts=$((rows / 50 > 1000 ? rows / 50 : 1000)) pictures=$((rows / 1000 > 100 ? rows / 1000 : 100))
cases=(block block10 exact rnn cnn prep)
declare -A title=(
    [block]="train, block rule, one core, one epoch"
    [block10]="train, block rule, one core, ten epochs"
    [exact]="train, --exact, one core, one epoch"
    [rnn]="train rnn, one epoch"
    [cnn]="train cnn, one epoch"
    [prep]="prep clicks, one core"
)
declare -A words=(
    [block]="clicks --model logreg --threads 1"
    [block10]="clicks --model logreg --threads 1 --epochs 10"
    [exact]="clicks --model logreg --threads 1 --exact --batch 10000"
    [rnn]="texts --model rnn --threads 1 --embed 16 --hidden 16"
    [cnn]="images --model cnn --threads 1 --epochs 1"
)
declare -A count=([block]=$rows [block10]=$((rows * 10)) [exact]=$rows [rnn]=$texts [cnn]=$pictures [prep]=$rows)

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

# once WHO CASE: one run; adds its CPU seconds to the series CASE.WHO.
once()
{
    local data line TIMEFORMAT='%3U %3S'

    rm -rf "$work/out"
    if [ "$2" = prep ]; then
        line=(prep clicks "$work/clicks.tsv" --threads 1 -o "$work/out")
    else
        read -r -a line <<<"${words[$2]}"
        data=${line[0]}
        line=(train --data "$work/$data-$1" --run "$work/out" "${line[@]:1}")
    fi
    { time "$(program_of "$1")" "${line[@]}" --quiet >"$results/run.out" 2>"$results/run.err"; } 2>"$results/usage" || {
        tail -n 5 "$results/run.err" >&2
        fail "this command failed: $1: ${line[*]}"
    }
    note "$2.$1" "$(awk '{ print $1 + $2 }' "$results/usage")"
}

# ratios CASE: "median low high" of now / before, in per cent above.
ratios()
{
    paste "$results/$1.now" "$results/$1.before" | awk '{ print ($1 / $2 - 1) * 100 }' | sort -g | awk '
        { value[NR] = $1 }
        END {
            low = int(NR / 2 - 0.98 * sqrt(NR)) # ranks of the interval: of 20, the 6th and the 15th
            low = low < 0 ? 0 : low
            middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
            printf "%.2f %.2f %.2f\n", middle, value[low + 1], value[NR - low]
        }'
}

make_data
print_machine "CPU seconds, user and system; medians of $pairs pairs"
fact rows "$rows of clicks, $texts texts, $pictures pictures"
for each in "${cases[@]}"; do
    for ((i = 0; i < pairs; i++)); do
        order=(now before)
        ((i % 2 == 0)) || order=(before now)
        once "${order[0]}" "$each"
        once "${order[1]}" "$each"
    done
done

heading "CPU seconds per row"
echo "| | before | now | cost, median | 95 % |"
echo "|---|---|---|---|---|"
for each in "${cases[@]}"; do
    read -r middle low high < <(ratios "$each")
    now=$(calculate "$(median "$each.now") / ${count[$each]} * 1e9" %.4g)
    was=$(calculate "$(median "$each.before") / ${count[$each]} * 1e9" %.4g)
    echo "| ${title[$each]} | $was ns | $now ns | $middle % | $low .. $high % |"
    bar="<= $cost_max"
    [ "$each" != prep ] || bar=-
    result "${title[$each]}: cost of checksums" "$middle" "%" "95 % interval, from" "$low" - "$bar"
done
close_work
