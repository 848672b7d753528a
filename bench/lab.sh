#!/bin/bash
# How jobs scale over hosts that are slow enough for this machine to hold ten of them:
# bench/lab.sh [TRAIN [TEST [servers|merging|networks|before|all]]]
#
# TRAIN and TEST are numbers of generated clicks (2000000 and 20000). `merging` measures workers that train by themselves
# (local-sgd) beside one host alone, `networks` rnn and cnn by all-reduce (reviews and pictures, always as many; ten minutes),
# `servers` everything else; 10000000 rows are a size at which merging is at home, and servers take hours.
# `before` measures parameters on servers and on workers beside an earlier program, BENCH_BEFORE, in turn; `all` does, too,
# if there is one. Needs root: every process runs on a host of its own, made
# by tests/lab/lab, with 0.15 of a core and a link of 1 Gbit/s. The command itself is typed on one more host without a limit,
# so that the launcher takes nothing from the chief. All commands run once, then all a second time and so on; every figure is
# the median over BENCH_REPEAT (3) runs. Environment: see bench/README.md. It is a report: the exit code says whether
# everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

train_rows=${1:-2000000}
test_rows=${2:-20000}
tables=${3:-all}
case $tables in servers | merging | networks | before | all) ;; *) fail "servers, merging, networks, before or all, not: $tables" ;; esac
before=${BENCH_BEFORE:-}
[ "$tables" != before ] || [ -x "$before" ] || fail "before: BENCH_BEFORE has to be the program to compare with"

# has TABLE: is it to be measured?
has()
{
    [ "$tables" = "$1" ] || [ "$tables" = all ]
}

# compares: with an earlier program?
compares()
{
    has before && [ -n "$before" ]
}

lab=$root/tests/lab/lab
share=0.15
rate=1gbit
servers=2
batch=10000
ways=("$rate f32" "100mbit f32" "100mbit bf16") # of workers that train by themselves: their links, and --wire
counts=(1 2 4 8)
declare -A efficient=([2]=.85 [4]=.78 [8]=.72) # what local-sgd has to reach of as many hosts alone
declare -A reduced=([2]=.9 [4]=.82 [8]=.75)    # and networks by all-reduce
networks=(rnn cnn)
declare -A network_name=([rnn]="rnn, hidden 128" [cnn]="cnn small, 32 x 32 pixels")
declare -A network_words=([rnn]="--embed 128 --hidden 128 --steps 48" [cnn]="--arch small --steps 16")
network_rows=128 # of each worker in a step
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

# alone NAME: the block rule on one such host.
alone()
{
    trained "$1" "$lab" run --hosts 1 --cpu $share --period "${periods[0]}" -- "$program" train --data "$work/data" \
        --model logreg --run "$work/run" --threads 1 --checkpoint-seconds 0 --quiet
}

# measure_merging WAY WORKERS
measure_merging()
{
    trained "merging-$1-$2" "$lab" run --hosts $(($2 + 1)) --rate "${1% *}" --cpu $share --cpu-of host1=none \
        --period "${periods[0]}" -- "$program" train --data "$work/data" --model logreg --run "$work/run" --mode local-sgd \
        --workers "$2" --threads 1 --wire "${1#* }" --checkpoint-seconds 0 --hosts "$work/hosts-$2-alone" --quiet
}

measure_all_merging()
{
    local workers way

    alone block
    for way in "${ways[@]}"; do
        for workers in "${counts[@]:1}"; do
            measure_merging "$way" "$workers"
        done
    done
}

make_networks()
{
    {
        "$program" gen reviews -o "$work/reviews.jsonl" --rows 57000 --force --quiet
        "$program" prep reviews "$work/reviews.jsonl" -o "$work/data-rnn" --holdout 0.01 --force --quiet
        rm -rf "$work/pictures" "$work/pictures-test"
        "$program" gen images -o "$work/pictures" --rows 4096 --force --quiet
        "$program" gen images -o "$work/pictures-test" --rows 64 --seed 2 --force --quiet
        "$program" prep images "$work/pictures" --test "$work/pictures-test" --size 32 -o "$work/data-cnn" --force --quiet
    } >"$results/networks.out"
}

# train_network NAME MODEL WORKERS LAB-WORDS -- WORDS...: as many rows of each worker, without checkpoints.
train_network()
{
    local name=$1 model=$2 workers=$3 lab_words=() words

    shift 3
    while [ "$1" != -- ]; do
        lab_words+=("$1")
        shift
    done
    read -ra words <<<"${network_words[$model]}"
    trained "$name" "$lab" run "${lab_words[@]}" --cpu $share --period "${periods[0]}" -- "$program" train \
        --data "$work/data-$model" --model "$model" "${words[@]}" --run "$work/run" --batch $((network_rows * workers)) \
        --threads 1 --eval-rows 1 --checkpoint-seconds 0 --report off --quiet "${@:2}"
}

measure_networks()
{
    local model workers

    for model in "${networks[@]}"; do
        train_network "$model-local" "$model" 1 --hosts 1 -- --mode local
        for workers in "${counts[@]}"; do
            train_network "$model-$workers" "$model" "$workers" --hosts $((workers + 1)) --rate $rate --cpu-of host1=none -- \
                --mode allreduce --workers "$workers" --hosts "$work/hosts-$workers-alone"
        done
    done
}

# measure_beside WHICH PROGRAM MODE PS: the largest job, with so many servers, or, 0, shards on the workers.
measure_beside()
{
    local workers=${counts[-1]} hosts=$work/hosts-${counts[-1]}

    [ "$4" -gt 0 ] || hosts+=-alone
    trained "$1-$3-$4" "$lab" run --hosts $((workers + $4 + 1)) --rate $rate --cpu $share --cpu-of host1=none \
        --period "${periods[0]}" -- "$2" train --data "$work/data" --model logreg --run "$work/run" --mode "ps-$3" \
        --workers "$workers" --ps "$4" --batch $batch --epochs 2 --hosts "$hosts" --quiet
}

measure_all_beside()
{
    local mode ps

    for mode in sync async; do
        for ps in 0 $servers; do
            measure_beside before "$before" $mode "$ps"
            measure_beside now "$program" $mode "$ps"
        done
    done
}

write_hosts()
{
    local workers number

    for workers in "${counts[@]}"; do
        for ((number = 2; number <= workers + servers + 1; number++)); do
            echo "host$number"
        done >"$work/hosts-$workers"
        head -n "$workers" "$work/hosts-$workers" >"$work/hosts-$workers-alone"
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

# of_one WAY WORKERS: throughput over that of as many hosts alone.
of_one()
{
    calculate "$(median "merging-$1-$2.rate") / $(median block.rate) / $2" %.2f
}

# beside_one WAY WORKERS: by how many per cent the log-loss is above that of a host alone.
beside_one()
{
    calculate "($(median "merging-$1-$2.loss") / $(median block.loss) - 1) * 100" %+.3f
}

merging_table()
{
    local workers way summary

    heading "Workers that train by themselves: $share of a core for each; period ${periods[0]} ms"
    echo "One epoch, without checkpoints. Thousand rows/s, median of $repeat (slowest-fastest). One host alone, mode local:"
    echo "$(speed block), log-loss $(calculate "$(median block.loss)" %.5f). Efficiency: over as many times that."
    echo
    echo "| local-sgd | workers | thousand rows/s | efficiency | log-loss, % above local | bytes a row, sent by all | rounds |"
    echo "|---|---|---|---|---|---|---|"
    for way in "${ways[@]}"; do
        for workers in "${counts[@]:1}"; do
            summary=$(median_summary "merging-$way-$workers")
            echo "| ${way/ /, } | $workers | $(speed "merging-$way-$workers") | $(of_one "$way" "$workers") |" \
                "$(beside_one "$way" "$workers") | $(calculate "$(number "$summary" bytes_per_row)" %.1f) |" \
                "$(number "$summary" rounds) |"
        done
    done
}

# better WHICH MODE: of shards on the workers and servers of their own, thousand rows/s.
better()
{
    printf '%s\n' "$(thousand "$1-$2-0")" "$(thousand "$1-$2-$servers")" | sort -g | tail -n 1
}

before_table()
{
    local mode ps

    heading "${counts[-1]} workers beside an earlier program: batch $batch, two epochs, in turn"
    echo "Thousand rows/s, median of $repeat (slowest-fastest). Earlier: $("$before" --version | head -n 1)"
    echo
    echo "| | servers | before | now | ratio |"
    echo "|---|---|---|---|---|"
    for mode in sync async; do
        for ps in 0 $servers; do
            echo "| ps-$mode | $ps | $(speed "before-$mode-$ps") | $(speed "now-$mode-$ps") |" \
                "$(ratio "$(median "now-$mode-$ps.rate")" "$(median "before-$mode-$ps.rate")")x |"
        done
    done
}

before_results()
{
    local mode

    for mode in sync async; do
        result "ps-$mode, ${counts[-1]} workers, better of 0 and $servers ps" "$(better now $mode)" "thousand rows/s" \
            "the earlier program" "$(better before $mode)" more ">= 2x"
        result "ps-$mode, ${counts[-1]} workers, shards on them" "$(thousand "now-$mode-0")" "thousand rows/s" \
            "$servers servers" "$(thousand "now-$mode-$servers")" more ">= 1x"
    done
}

merging_results()
{
    local workers way=${ways[0]}

    result "local, block rule, $share of a core" "$(thousand block)" "thousand rows/s"
    for workers in "${counts[@]:1}"; do
        result "local-sgd, $workers workers" "$(thousand "merging-$way-$workers")" "thousand rows/s" \
            "$workers times one host alone" "$(thousand block "$workers")" more ">= ${efficient[$workers]}x"
        result "log-loss of local-sgd, $workers workers" "$(median "merging-$way-$workers.loss")" - "one host alone" \
            "$(median block.loss)" above "<= 0.2 %"
    done
}

networks_table()
{
    local model workers

    heading "Networks by all-reduce: $share of a core and $rate for each; $network_rows rows of each worker; period ${periods[0]} ms"
    echo "Rows/s, median of $repeat (slowest-fastest). Efficiency: over as many times one host alone, mode local."
    echo
    echo "| | workers | rows/s | efficiency | bytes sent by a worker and step |"
    echo "|---|---|---|---|---|"
    for model in "${networks[@]}"; do
        echo "| ${network_name[$model]} | local | $(rows_speed "$model-local") | | |"
        for workers in "${counts[@]}"; do
            echo "| ${network_name[$model]} | $workers | $(rows_speed "$model-$workers") |" \
                "$(calculate "$(median "$model-$workers.rate") / $(median "$model-local.rate") / $workers" %.2f) |" \
                "$(bytes_of_step "$(median_summary "$model-$workers")") |"
        done
    done
}

# rows_speed NAME: rows/s, with the slowest and the fastest run.
rows_speed()
{
    echo "$(calculate "$(median "$1.rate")" %.0f) ($(calculate "$(lowest "$1.rate")" %.0f)-$(calculate "$(highest "$1.rate")" %.0f))"
}

# bytes_of_step SUMMARY: of a worker, which has network_rows in each.
bytes_of_step()
{
    calculate "$(number "$1" bytes_sent) / $(number "$1" samples) * $network_rows" %.0f
}

networks_results()
{
    local model workers

    for model in "${networks[@]}"; do
        result "${network_name[$model]}, local, $share of a core" "$(calculate "$(median "$model-local.rate")" %.1f)" "rows/s"
        for workers in "${counts[@]:1}"; do
            result "${network_name[$model]}, allreduce, $workers workers" "$(calculate "$(median "$model-$workers.rate")" %.1f)" \
                "rows/s" "$workers times one host alone" "$(calculate "$(median "$model-local.rate") * $workers" %.1f)" more \
                ">= ${reduced[$workers]}x"
        done
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
    echo "# Slow hosts"
    echo
    echo "Skipped: this machine cannot make hosts of namespaces; $lab check says why (it needs root)."
    exit 0
fi
open_work lab
echo "# Slow hosts"
print_machine "median of $repeat"
fact hosts "at most $((counts[-1] + servers)) with $share of a core each, $(calculate "(${counts[-1]} + $servers) * $share" %.2f) of $(nproc) cores together"
[ "$tables" = networks ] || make_clicks "$train_rows" "$test_rows"
! has networks || make_networks
write_hosts

heading "Commands: $train_rows clicks to train on, $test_rows to test"
for ((turn = 0; turn < repeat; turn++)); do
    ! has servers || measure_all
    ! has merging || measure_all_merging
    ! compares || measure_all_beside
    ! has networks || measure_networks
done
if has servers; then
    throttle_table
    scaling_table
    shares_table
    period_table
    lab_results
fi
if has merging; then
    merging_table
    merging_results
fi
if has networks; then
    networks_table
    networks_results
fi
if compares; then
    before_table
    before_results
fi
close_work
