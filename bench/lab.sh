#!/bin/bash
# How the clicks job scales over hosts that are slow enough for this machine to hold ten of them: bench/lab.sh [TRAIN [TEST]]
#
# TRAIN and TEST are numbers of generated rows (2000000 and 20000). Needs root: every process runs on a host of its own, made
# by tests/lab/lab, with 0.15 of a core and a link of 1 Gbit/s. The command itself is typed on one more host without a limit,
# so that the launcher takes nothing from the chief. All commands run once, then all a second time and so on; every figure is
# the median over BENCH_REPEAT (3) runs. Environment: see bench/README.md. It is a report: the exit code says whether
# everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

train_rows=${1:-2000000}
test_rows=${2:-20000}
lab=$root/tests/lab/lab
share=0.15
rate=1gbit
servers=2
batch=10000
counts=(1 2 4 8)
periods=(7 20 100) # ms, over which the kernel counts the share; the first is the one of the main tables
busy_turns=10000000

# --- measuring ---

# on_one_host NAME SHARE PERIOD COMMAND...: as timed, on a lab's only host.
on_one_host()
{
    timed "$1" "$lab" run --hosts 1 --cpu "$2" --period "$3" -- "${@:4}"
}

# What a share of a core is worth: to arithmetic that needs no memory, and to the trainer in one process.
measure_throttle()
{
    local period=$2 name=$1-$2
    local loop="begin=\$EPOCHREALTIME; awk 'BEGIN { for (i = 0; i < $busy_turns; i++) x += i }'; echo \$begin \$EPOCHREALTIME"

    on_one_host "busy-$name" "$1" "$period" bash -c "$loop"
    note "busy-$name.rate" "$(awk -v turns=$busy_turns '{ printf "%.1f", turns / ($2 - $1) }' "$results/busy-$name.out")"
    trained "local-$name" "$lab" run --hosts 1 --cpu "$1" --period "$period" -- "$program" train --data "$work/data" \
        --model logreg --run "$work/run" --exact --threads 1 --batch $batch --quiet
}

# measure_job MODE WORKERS PERIOD
measure_job()
{
    local name=$1-$2-$3 hosts=$(($2 + servers + 1)) places

    trained "$name" "$lab" run --hosts "$hosts" --rate $rate --cpu $share --cpu-of host1=none --period "$3" -- \
        "$program" train --data "$work/data" --model logreg --run "$work/run" --mode "ps-$1" --workers "$2" --ps $servers \
        --batch $batch --hosts "$work/hosts-$2" --quiet
    places=$(grep -o '"host": *"[^"]*"' "$work/run/cluster.json" | sort -u | wc -l)
    [ "$places" -eq $((hosts - 1)) ] || fail "$name: $((hosts - 1)) processes were on $places hosts"
}

write_hosts()
{
    local workers number

    for workers in "${counts[@]}"; do
        for ((number = 2; number <= workers + servers + 1; number++)); do
            echo "host$number"
        done >"$work/hosts-$workers"
    done
}

measure_all()
{
    local workers period mode

    measure_throttle none "${periods[0]}"
    for period in "${periods[@]}"; do
        measure_throttle $share "$period"
    done
    for mode in async sync; do
        for workers in "${counts[@]}"; do
            measure_job $mode "$workers" "${periods[0]}"
        done
    done
    for period in "${periods[@]:1}"; do
        for mode in async sync; do
            measure_job $mode "${counts[0]}" "$period"
            measure_job $mode "${counts[-1]}" "$period"
        done
    done
}

# --- tables ---

# speed NAME: thousand rows/s, with the slowest and the fastest run.
speed()
{
    calculate "$(median "$1.rate") / 1e3" %.0f
    echo " ($(calculate "$(lowest "$1.rate") / 1e3" %.0f)-$(calculate "$(highest "$1.rate") / 1e3" %.0f))"
}

# efficiency MODE WORKERS PERIOD: throughput over that of as many single workers.
efficiency()
{
    calculate "$(median "$1-$2-$3.rate") / $(median "$1-${counts[0]}-$3.rate") / $2 * ${counts[0]}" %.2f
}

throttle_line()
{
    local free=$2-none-${periods[0]} period

    for period in "${periods[@]}"; do
        echo "| $1 | $period ms | $(ratio "$(median "$2-$share-$period.rate")" "$(median "$free.rate")" %.3f) |" \
            "$(calculate "$(median "$2-$share-$period.rate") / $(median "$free.rate") / $share" %.2f) |"
    done
}

throttle_table()
{
    heading "What $share of a core is worth"
    echo "Throughput on a host with that share over that on a host without a limit, one process, nobody else in the lab."
    echo
    echo "| | period | of a core's throughput | of what the share promises |"
    echo "|---|---|---|---|"
    throttle_line "a loop in awk: no memory" busy
    throttle_line "local --exact --batch $batch --threads 1" local
}

scaling_table()
{
    local mode workers period=${periods[0]} one

    heading "Workers, with $servers servers: $share of a core and $rate for each; batch $batch, period $period ms"
    echo "Thousand rows/s, median of $repeat (slowest-fastest). Efficiency: over as many times the throughput of one worker."
    echo
    echo "| workers | ps-async | against 1 | efficiency | ps-sync | against 1 | efficiency | ps-sync / ps-async |"
    echo "|---|---|---|---|---|---|---|---|"
    for workers in "${counts[@]}"; do
        echo -n "| $workers |"
        for mode in async sync; do
            one=$(median "$mode-${counts[0]}-$period.rate")
            echo -n " $(speed "$mode-$workers-$period") | $(ratio "$(median "$mode-$workers-$period.rate")" "$one")x |"
            echo -n " $(efficiency $mode "$workers" "$period") |"
        done
        echo " $(ratio "$(median "sync-$workers-$period.rate")" "$(median "async-$workers-$period.rate")") |"
    done
}

# shares_line MODE WORKERS PERIOD: means over the workers and over the servers of the run in the middle. Who waits looks for
# messages now and then: what that takes of the CPU share is missing when a message comes.
shares_line()
{
    roles_of "$(median_summary "$1-$2-$3")" | awk -v text="| ps-$1 | $2 | $3 ms |" -v share=$share '
        {
            sum = $3 + $4 + $5 + $6
            if (sum <= 0)
                next
        }
        $1 ~ /^ps/ {
            servers++
            server_cpu += $8 / sum / share
            busy += $5 / sum
            if ($5 / sum > busiest)
                busiest = $5 / sum
            next
        }
        {
            workers++
            worker_cpu += $8 / sum / share
            rows += $2
            own += $3 + $4
            data += $3 / sum
            compute += $4 / sum
            communicate += $5 / sum
            wait += $6 / sum
            if ($6 / sum > longest)
                longest = $6 / sum
            if (++blamed[$7] > most) {
                most = blamed[$7]
                culprit = $7
            }
        }
        END {
            scale = 100 / workers
            printf "%s %.2f | %.0f | %.0f | %.0f | %.0f | %.0f | %s (%d of %d) | %.0f | %.0f | %.0f | %.0f |\n", text,
                own / rows * 1e6, data * scale, compute * scale, communicate * scale, wait * scale, longest * 100, culprit, most,
                workers, worker_cpu * scale, busy * 100 / servers, busiest * 100, server_cpu * 100 / servers
        }'
}

shares_table()
{
    local mode workers period=${periods[0]}

    heading "Where the time goes: per cent, in the median run"
    echo "Times are wall-clock times: pauses that the kernel makes because the share is used up count as what they interrupt. CPU: of"
    echo "the share of the host, for all that the process did, its start included."
    echo
    echo "| | workers | period | us of data + compute a row | data | compute | communicate | wait | longest wait of a worker |" \
        "wait most for | workers' CPU | servers busy | busiest server | servers' CPU |"
    echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
    for mode in async sync; do
        for workers in "${counts[@]}"; do
            shares_line $mode "$workers" "$period"
        done
        for period in "${periods[@]:1}"; do
            shares_line $mode "${counts[0]}" "$period"
            shares_line $mode "${counts[-1]}" "$period"
        done
        period=${periods[0]}
    done
}

period_table()
{
    local mode period last=${counts[-1]}

    heading "What the period of the throttling does: $last workers + $servers servers"
    echo "| | period | thousand rows/s, ${counts[0]} worker | $last workers | efficiency |"
    echo "|---|---|---|---|---|"
    for mode in async sync; do
        for period in "${periods[@]}"; do
            echo "| ps-$mode | $period ms | $(speed "$mode-${counts[0]}-$period") | $(speed "$mode-$last-$period") |" \
                "$(efficiency $mode "$last" "$period") |"
        done
    done
}

# --- results ---

# thousand NAME: rows/s, times FACTOR.
thousand()
{
    calculate "$(median "$1.rate") / 1e3 * ${2:-1}" %.1f
}

lab_results()
{
    local mode workers period=${periods[0]} one=${counts[0]} unit="thousand rows/s"

    result "local --exact, $share of a core" "$(thousand "local-$share-$period")" "$unit" \
        "$share of the speed on a core" "$(thousand "local-none-$period" $share)" more
    for mode in async sync; do
        result "ps-$mode, $one worker + $servers ps" "$(thousand "$mode-$one-$period")" "$unit"
        for workers in "${counts[@]:1}"; do
            result "ps-$mode, $workers workers + $servers ps" "$(thousand "$mode-$workers-$period")" "$unit" \
                "$workers times one worker" "$(thousand "$mode-$one-$period" "$workers")" more
        done
    done
}

# --- the report ---

status=0
"$lab" check >/dev/null || status=$?
if [ $status -eq 77 ]; then
    echo "# Clicks on slow hosts"
    echo
    echo "Skipped: this machine cannot make hosts of namespaces; $lab check says why (it needs root)."
    exit 0
fi
open_work lab
echo "# Clicks on slow hosts"
print_machine "median of $repeat"
fact hosts "at most $((counts[-1] + servers)) with $share of a core each, $(calculate "(${counts[-1]} + $servers) * $share" %.2f) of $(nproc) cores together"
make_clicks "$train_rows" "$test_rows"
write_hosts

heading "Commands: $train_rows rows to train on, $test_rows to test"
for ((turn = 0; turn < repeat; turn++)); do
    measure_all
done
throttle_table
scaling_table
shares_table
period_table
lab_results
close_work
