#!/bin/bash
# What is a clicks job bound by, synchronous or asynchronous, by batch size? bench/bottlenecks.sh [ROWS]
#
# Two published studies of the same job came to opposite verdicts: synchronous training bound by CPU and asynchronous by the
# network, and the other way round. Here four workers and a server, each on a host of a lab (tests/lab/lab) with 0.35 of a
# core and a link of 1 Gbit/s, train at five batch sizes; CPU, network and disk are those of the run's records, beside what
# the hosts' own interfaces counted, and the verdict is that of the run. ROWS (100000) are rows of clicks. BENCH_PLOT: a file
# for a plot (SVG). Needs root. Environment: see bench/README.md. It is a report: the exit code says whether everything ran.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-100000}
lab=$root/tests/lab/lab
share=0.35 rate=1gbit workers=4
modes=(sync async)
batches=(1 20 100 1000 10000)
declare -A steps=([1]=20000 [20]=10000 [100]=4000 [1000]=1000 [10000]=200)
unit=20000 # rows, to which figures are related: as in the studies
hosts=(host2 host3 host4 host5 host6)
open_work bottlenecks
"$lab" check || fail "no lab can be made here"

# --- on host1 of the lab ---

# count_bytes FILE: bytes that went through each host's link: "host received sent".
count_bytes()
{
    local host

    for host in "${hosts[@]}"; do
        echo "$host $("$LAB_AGENT" "$host" cat /proc/net/dev |
            awk -F '[: ]+' '$2 != "lo" && NR > 2 { got += $3; sent += $11 } END { print got, sent }')"
    done >"$1"
}

train_and_count()
{
    count_bytes "$results/before"
    "$program" train "$@" --quiet
    count_bytes "$results/after"
}

# --- one job ---

# of_roles RUN PATTERN KEYS...: sums over roles whose name matches, of what they counted from their first sample to the last;
# all_of_roles: since their processes began, or, of interfaces, since their hosts did.
of_roles()
{
    sum_samples 1 "$@"
}

all_of_roles()
{
    sum_samples 0 "$@"
}

sum_samples()
{
    awk -v since="$1" -v pattern="$3" -v keys="${*:4}" '
        function value(key) {
            return match($0, "\"" key "\":[-+.0-9eE]+") ? substr($0, RSTART + length(key) + 3, RLENGTH - length(key) - 3) + 0 : 0
        }
        /"kind":"sample"/ && match($0, /"role":"[a-z0-9]+"/) {
            role = substr($0, RSTART + 8, RLENGTH - 9)
            if (role !~ pattern)
                next
            sum = 0
            for (i = split(keys, key, " "); i > 0; i--)
                sum += value(key[i])
            if (!(role in last))
                all -= since * sum
            last[role] = sum
        }
        END { for (role in last) all += last[role]; printf "%.6f\n", all }' "$2/metrics.jsonl"
}

# told NAME KEY: of the verdict in that summary; taken NAME CAUSE: seconds.
told()
{
    sed -n 's/^  "verdict": \({.*}\),$/\1/p' "$results/$1.json" | sed -n "s/.*[{,] *\"$2\": *\"\{0,1\}\([^\"}]*\)[\",}].*/\1/p"
}

taken()
{
    sed -n 's/^  "verdict": {.*"taken": {\([^}]*\)}.*/\1/p' "$results/$1.json" | sed -n "s/.*\"$2\": \([^,]*\).*/\1/p"
}

# measure MODE BATCH
measure()
{
    local name=$1-$2 run=$work/run

    rm -rf "$run"
    export -f train_and_count count_bytes
    export program results
    # shellcheck disable=SC2016 # host1 expands it
    "$lab" run --hosts $((workers + 2)) --rate $rate --cpu $share --cpu-of host1=none -- \
        env hosts_text="${hosts[*]}" bash -ec 'read -r -a hosts <<<"$hosts_text"; train_and_count "$@"' - \
        --data "$work/clicks" --model logreg --run "$run" --hosts "$work/hosts" --mode "ps-$1" --workers $workers --ps 1 \
        --batch "$2" --steps "${steps[$2]}" >"$results/$name.out" 2>"$results/$name.err" || {
        tail -n 5 "$results/$name.err" >&2
        fail "this job failed: $name"
    }
    cp "$run/summary.json" "$results/$name.json" # of the last run: what is said of it is that of one
    note "$name.s" "$(number "$results/$name.json" seconds)"
    note "$name.rows" $(($2 * ${steps[$2]}))
    note "$name.cpu_workers" "$(of_roles "$run" '^(chief|worker)' user_s system_s)"
    note "$name.cpu_ps" "$(of_roles "$run" '^ps' user_s system_s)"
    note "$name.sent" "$(all_of_roles "$run" . net_sent_bytes)"
    note "$name.received" "$(all_of_roles "$run" . net_received_bytes)"
    note "$name.read" "$(of_roles "$run" . read_bytes)"
    note "$name.write" "$(of_roles "$run" . write_bytes)"
    note "$name.link" "$(paste -d' ' "$results/before" "$results/after" | awk '{ sum += $5 - $2 + $6 - $3 } END { print sum }')"
    note "$name.ps" "$(of_roles "$run" '^ps' net_sent_bytes net_received_bytes)"
}

# --- what others count ---

# differs WHAT WHOSE OURS THEIRS: a result, in per cent of theirs.
differs()
{
    result "$1: off by" "$(calculate "100 * ($3 > $4 ? $3 - $4 : $4 - $3) / $4" %.2f)" % "$2" "$4" - "<= 5"
}

# compare_cpu: a job of two workers on this machine, beside what the kernel says of all its processes.
compare_cpu()
{
    rm -rf "$work/run"
    note_cpu cpu.kernel "$program" train --data "$work/clicks" --model logreg --run "$work/run" --workers 2 --mode ps-sync \
        --batch 1000 --steps 60000
    note cpu.records "$(all_of_roles "$work/run" . user_s system_s)"
}

# sectors: read from the disk that $work is on, so far.
sectors()
{
    awk '{ print $3 }' "/sys/dev/block/$(stat -c '%Hd:%Ld' "$work")/stat"
}

# compare_disk: rows that are in no cache, beside what the disk counts.
compare_disk()
{
    local before part

    [ -e "/sys/dev/block/$(stat -c '%Hd:%Ld' "$work")/stat" ] || return 0 # no disk of its own
    {
        "$program" gen clicks -o "$work/clicks.tsv" --rows $((10 * rows)) --force --quiet
        "$program" prep clicks "$work/clicks.tsv" -o "$work/many" --force --quiet
    } >"$results/gen.out"
    sync "$work"/many/*
    for part in "$work"/many/part-*; do
        dd if="$part" iflag=nocache count=0 status=none
    done
    "$program" --version >"$results/warm.out"
    rm -rf "$work/run"
    before=$(sectors)
    "$program" train --data "$work/many" --model logreg --run "$work/run" --epochs 1 --quiet >"$results/here.out"
    note disk.kernel $((($(sectors) - before) * 512))
    note disk.records "$(all_of_roles "$work/run" . read_bytes)"
}

# --- tables ---

# each NAME SERIES: per $unit rows.
each()
{
    calculate "$(median "$1.$2") * $unit / $(median "$1.rows")" "${3:-%.2f}"
}

table_of()
{
    local name mode batch

    heading "$unit rows, by batch"
    echo "| mode, batch | seconds | CPU, a worker | CPU, the server | network, all links | the server's link | disk read / written | verdict |"
    echo "|---|---|---|---|---|---|---|---|"
    for mode in "${modes[@]}"; do
        for batch in "${batches[@]}"; do
            name=$mode-$batch
            echo "| $mode, $batch | $(each "$name" s %.3g) s" \
                "| $(calculate "100 * $(median "$name.cpu_workers") / $workers / $(median "$name.s")" %.0f) %" \
                "| $(calculate "100 * $(median "$name.cpu_ps") / $(median "$name.s")" %.0f) %" \
                "| $(calculate "($(median "$name.sent") + $(median "$name.received")) / 1e6 * $unit / $(median "$name.rows")" %.3g) MB" \
                "| $(calculate "$(median "$name.ps") * 8 / 1e6 / $(median "$name.s")" %.0f) Mbit/s" \
                "| $(each "$name" read "%.0f" | awk '{ printf "%.2f", $1 / 1e6 }') / $(each "$name" write "%.0f" | awk '{ printf "%.2f", $1 / 1e6 }') MB" \
                "| $(told "$name" cause): $(told "$name" evidence) |"
        done
    done
    heading "What is advised"
    echo "| mode, batch | |"
    echo "|---|---|"
    for mode in "${modes[@]}"; do
        for batch in "${batches[@]}"; do
            echo "| $mode, $batch | $(told "$mode-$batch" advice) |"
        done
    done
}

# plot: one bar for each job, its height the time, its parts the causes. Colours that everybody can tell apart.
plot()
{
    local mode batch cause

    for mode in "${modes[@]}"; do
        for batch in "${batches[@]}"; do
            for cause in compute data network server straggler steps checkpoint scoring; do
                echo "$mode $batch $cause $(taken "$mode-$batch" $cause)"
            done
        done
    done | awk '
        BEGIN {
            split("compute data network server straggler steps checkpoint scoring", causes, " ")
            split("#0072b2 #56b4e9 #d55e00 #e69f00 #cc79a7 #999999 #009e73 #f0e442", colours, " ")
            left = 60; wide = 52; gap = 14; high = 240; top = 34
        }
        {
            job = $1 " " $2
            if (!(job in place)) { place[job] = ++jobs; name[jobs] = $2; mode[jobs] = $1 }
            taken[job, $3] = $4
            all[job] += $4
        }
        END {
            width = left + jobs * (wide + gap) + 2 * gap + 120
            printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" font-family=\"sans-serif\" font-size=\"12\">\n", width, top + high + 60
            print "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>"
            printf "<text x=\"%d\" y=\"18\" font-size=\"14\">Where the time goes, by mode and batch (share of each job)</text>\n", left
            for (tick = 0; tick <= 100; tick += 25) {
                y = top + high - tick / 100 * high
                printf "<line x1=\"%d\" x2=\"%d\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#dddddd\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%d %%</text>\n", left, left + jobs * (wide + gap) + gap, y, y, left - 6, y + 4, tick
            }
            for (job in place) {
                n = place[job]
                x = left + gap + (n - 1) * (wide + gap) + (n > jobs / 2 ? gap : 0)
                y = top + high
                for (c = 1; c in causes; c++) {
                    part = all[job] > 0 ? taken[job, causes[c]] / all[job] * high : 0
                    y -= part
                    if (part > 0)
                        printf "<rect x=\"%d\" y=\"%.2f\" width=\"%d\" height=\"%.2f\" fill=\"%s\"><title>%s %s: %s %.0f %%</title></rect>\n", x, y, wide, part, colours[c], mode[n], name[n], causes[c], 100 * part / high
                }
                printf "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%s</text>\n", x + wide / 2, top + high + 16, name[n]
            }
            printf "<text x=\"%d\" y=\"%d\">synchronous, rows in a step</text>\n", left + gap, top + high + 38
            printf "<text x=\"%d\" y=\"%d\">asynchronous, rows in a batch</text>\n", left + 2 * gap + jobs / 2 * (wide + gap), top + high + 38
            for (c = 1; c in causes; c++)
                printf "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%d\" y=\"%d\">%s</text>\n", width - 110, top + (c - 1) * 20, colours[c], width - 92, top + (c - 1) * 20 + 11, causes[c]
            print "</svg>"
        }'
}

{
    "$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --force --quiet
    "$program" prep clicks "$work/clicks.tsv" -o "$work/clicks" --holdout 0.1 --force --quiet
} >"$results/gen.out"
printf '%s\n' "host2 roles=chief" "host3 roles=worker" "host4 roles=worker" "host5 roles=worker" "host6 roles=ps" >"$work/hosts"
print_machine "medians of $repeat runs"
for ((i = 0; i < repeat; i++)); do
    for mode in "${modes[@]}"; do
        for batch in "${batches[@]}"; do
            measure "$mode" "$batch"
        done
    done
done
table_of
[ -z "${BENCH_PLOT:-}" ] || plot >"$BENCH_PLOT"
for mode in "${modes[@]}"; do
    for batch in "${batches[@]}"; do
        name=$mode-$batch
        differs "$mode, $batch: bytes through all links, by the records" "the interfaces" \
            "$(calculate "$(median "$name.sent") + $(median "$name.received")" %.0f)" "$(median "$name.link")"
    done
done
compare_cpu
compare_disk
differs "CPU seconds of a job on this machine, by the records" "the kernel, with the launcher" "$(median cpu.records)" "$(median cpu.kernel)"
[ ! -e "$results/disk.kernel" ] ||
    differs "bytes read from the disk, by the records" "the disk" "$(median disk.records)" "$(median disk.kernel)"
close_work
