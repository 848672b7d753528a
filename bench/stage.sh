#!/bin/bash
# What local copies of the data are worth where four hosts read one slow source: bench/stage.sh [ROWS [EPOCHS]]
#
# ROWS clicks (200000) are trained on for EPOCHS (10) by one job of four workers, each on a host of its own (tests/lab/lab), and
# by four jobs of one process each, side by side, as a search for settings has them. Hosts of a lab share files and memory, so
# a preloaded library (tests/shim/source.c) plays the source: all reads of the data set together get 200 Mbit/s, and what is
# read again travels again, as if the data were larger than the hosts' memory. Each is done without --stage, with it, and
# with it once more, when the copies are there. /dev/shm, which every host has for itself, is its local disk. Needs root.
# Environment: see bench/README.md. It is a report: the exit code says whether everything ran.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-200000}
epochs=${2:-10}
lab=$root/tests/lab/lab
hosts=4
rate=25e6 # bytes a second: 200 Mbit/s
shim=$build/tests/libshim_source.so
ways=(plain staged again)
declare -A name=([plain]="without --stage" [staged]="with --stage" [again]="with --stage, copies there")

# The words of train that all have.
train_words()
{
    echo train --data "$work/data" --model logreg --epochs "$epochs" --batch $batch --log-every "$per_epoch" \
        --checkpoint-seconds 0 --threads 1 --report off --force --quiet
}

# stage_words WAY
stage_words()
{
    [ "$1" = plain ] || echo --stage /dev/shm
}

# in_lab SCRIPT: on host1 of a lab whose hosts read the source over the link.
in_lab()
{
    SHIM_SOURCE=$work/data SHIM_SOURCE_RATE=$rate SHIM_SOURCE_CLOCK=$work/clock "$lab" run --hosts $hosts -- bash -c "$1"
}

shim_words="LD_PRELOAD=$shim SHIM_SOURCE SHIM_SOURCE_RATE SHIM_SOURCE_CLOCK"

# One job of four workers, staged and then again on the same hosts.
job_script()
{
    local way=$1

    echo "mpirun --host host1,host2,host3,host4 --bind-to none --allow-run-as-root $(printf -- '-x %s ' $shim_words) \
        $program $(train_words) --workers $hosts --run $work/job-$way $(stage_words "$way") || exit 1"
}

# Four jobs, one on each host.
jobs_script()
{
    local way=$1 host

    for host in 1 2 3 4; do
        echo "\$LAB_AGENT host$host env LD_PRELOAD=$shim SHIM_SOURCE=\$SHIM_SOURCE SHIM_SOURCE_RATE=\$SHIM_SOURCE_RATE \
            SHIM_SOURCE_CLOCK=\$SHIM_SOURCE_CLOCK $program $(train_words) --mode local --run $work/jobs-$way-$host \
            $(stage_words "$way") & p$host=\$!"
    done
    echo 'for p in $p1 $p2 $p3 $p4; do wait $p || exit 1; done'
}

# epoch_times RUN: seconds of each epoch.
epoch_times()
{
    sed -nE 's/^\{"kind":"(start|step)","t":([0-9.e+-]+),"step":([0-9]+).*/\2 \3/p' "$1/metrics.jsonl" |
        awk -v each="$per_epoch" '$2 % each == 0 { if (n++) printf "%.2f ", $1 - last; last = $1 }'
}

# show WHAT WAY RUN
show()
{
    local times

    times=$(epoch_times "$3")
    echo "| $1 | ${name[$2]} | $(awk '{ for (i = 1; i <= NF; i++) printf "%s%s", $i, i < NF ? " | " : "" }' <<<"$times") | $(awk '{ for (i = 1; i <= NF; i++) s += $i; printf "%.1f", s }' <<<"$times") |"
    read -r first second _ <<<"$times"
    result "$1, ${name[$2]}: epoch 1" "$first" s
    result "$1, ${name[$2]}: epoch 2" "$second" s
}

open_work stage
"$lab" check || fail "no lab can be made here"
[ -e "$shim" ] || fail "$shim is missing: build the target shim_source"
"$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --quiet --force >/dev/null
rm -rf "$work/data"
"$program" prep clicks "$work/clicks.tsv" -o "$work/data" --quiet >/dev/null
batch=4096
per_epoch=$(((rows + batch - 1) / batch))
print_machine "one run of each"
fact data "$rows rows, $(du -sm "$work/data" | cut -f1) MiB, $hosts hosts, one source of 200 Mbit/s"

heading "Seconds of each epoch"
printf '| | |'
for ((i = 1; i <= epochs; i++)); do printf ' %s |' "$i"; done
echo ' all |'
printf '%s' '|---|---|'
for ((i = 0; i <= epochs; i++)); do printf '%s' '---|'; done
echo
: >"$work/clock"
in_lab "$(job_script plain)" >"$results/job.out" 2>&1 || fail "$(tail -n 3 "$results/job.out")"
in_lab "$(job_script staged)
$(job_script again)" >>"$results/job.out" 2>&1 || fail "$(tail -n 3 "$results/job.out")"
for way in "${ways[@]}"; do show "one job of 4 workers" "$way" "$work/job-$way"; done
in_lab "$(jobs_script plain)" >"$results/jobs.out" 2>&1 || fail "$(tail -n 3 "$results/jobs.out")"
in_lab "$(jobs_script staged)
$(jobs_script again)" >>"$results/jobs.out" 2>&1 || fail "$(tail -n 3 "$results/jobs.out")"
for way in "${ways[@]}"; do show "4 jobs of one process, the first" "$way" "$work/jobs-$way-1"; done
for way in staged again; do
    cmp "$work/job-plain/model.safetensors" "$work/job-$way/model.safetensors" || fail "another model with --stage"
    cmp "$work/jobs-plain-1/model.safetensors" "$work/jobs-$way-1/model.safetensors" || fail "another model with --stage"
done
echo
grep -h '"stage"' "$work"/job-*/summary.json "$work"/jobs-*-1/summary.json || true
close_work
