#!/bin/bash
# The clicks job on several processes of this machine, beside one process and beside Vowpal Wabbit's all-reduce:
# bench/cluster.sh [TRAIN [TEST]]
#
# TRAIN and TEST are numbers of generated rows (2000000 and 200000). One pass, AdaGrad with its default rate. All commands
# run once, then all a second time and so on; every figure is the median over BENCH_REPEAT (5) runs. Environment: see
# bench/README.md. It is a report: the exit code says whether everything ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

train_rows=${1:-2000000}
test_rows=${2:-200000}
repeat=${BENCH_REPEAT:-5}
tree=${BENCH_SPANNING_TREE:-$(command -v spanning_tree || true)}
open_work cluster
unit="million rows/s"
vw_loss=-
command -v taskset >/dev/null || fail "taskset is missing (Debian: util-linux)"
batches=(100 1000 10000)
base="--loss_function logistic -b 25" # of VW, as in clicks.sh
baseline=exact-10000

# What is compared at every batch size: name, and how the tables call it.
setups=(exact sync-ps async-ps sync-shards async-shards allreduce)
declare -A title=(
    [exact]="local --exact, one thread, one core"
    [sync-ps]="ps-sync, 2 workers + 1 ps"
    [async-ps]="ps-async, 2 workers + 1 ps"
    [sync-shards]="ps-sync, 2 workers with a shard each"
    [async-shards]="ps-async, 2 workers with a shard each"
    [allreduce]="allreduce, 2 workers"
)
declare -A words=(
    [sync-ps]="--mode ps-sync --workers 2 --ps 1"
    [async-ps]="--mode ps-async --workers 2 --ps 1"
    [sync-shards]="--mode ps-sync --workers 2 --ps 0"
    [async-shards]="--mode ps-async --workers 2 --ps 0"
    [allreduce]="--mode allreduce --workers 2"
)

# --- measuring ---

# train_as NAME PREFIX WORDS...
train_as()
{
    # shellcheck disable=SC2086 # the prefix is none or several words
    trained "$1" $2 "$program" train --data "$work/data" --model logreg --run "$work/run" --quiet "${@:3}"
}

measure_local()
{
    local batch

    train_as block "taskset -c 0" --threads 1
    train_as threads "" --threads 2
    train_as merging "" --mode local-sgd --workers 2 --threads 1 --checkpoint-seconds 0
    for batch in "${batches[@]}"; do
        train_as "exact-$batch" "taskset -c 0" --exact --threads 1 --batch "$batch"
    done
}

# shellcheck disable=SC2086 # words are words
measure_cluster()
{
    local batch setup

    for batch in "${batches[@]}"; do
        for setup in "${setups[@]:1}"; do
            train_as "$setup-$batch" "" ${words[$setup]} --batch "$batch"
        done
        for setup in sync-ps async-ps; do
            train_as "tcp-$setup-$batch" "env OMPI_MCA_btl=tcp,self" ${words[$setup]} --batch "$batch"
        done
    done
}

# With --eval-every the evaluator has work before the end, too.
measure_crowd()
{
    local mode

    for mode in sync async; do
        train_as "crowd-$mode" "" --mode "ps-$mode" --workers 4 --ps 2 --evaluator --batch 10000
        train_as "crowd-$mode-busy" "" --mode "ps-$mode" --workers 4 --ps 2 --evaluator --batch 10000 --eval-every 50
    done
}

# Once is enough: what a synchronous run sends does not change.
measure_servers()
{
    local batch

    for batch in "${batches[@]}"; do
        train_as "four-$batch" "" --mode ps-sync --workers 2 --ps 4 --batch "$batch"
    done
}

# --- tables ---

# thousands N: with commas.
thousands()
{
    echo "$1" | sed -E ':again; s/^([0-9]+)([0-9]{3})/\1,\2/; t again'
}

# million NAME: rows/s; "-" if they were not measured.
million()
{
    [ ! -e "$results/$1.rate" ] && echo - || calculate "$(median "$1.rate") / 1e6" %.3f
}

# speed NAME: million rows/s, with the slowest and the fastest run.
speed()
{
    calculate "$(median "$1.rate") / 1e6" %.2f
    echo " ($(calculate "$(lowest "$1.rate") / 1e6" %.2f)-$(calculate "$(highest "$1.rate") / 1e6" %.2f))"
}

# against NAME OTHER: how many times as fast.
against()
{
    ratio "$(median "$1.rate")" "$(median "$2.rate")"
}

# row TEXT FUNCTION SETUP...: a line with FUNCTION's figure for every batch size; the arguments after SETUP go to it too.
row()
{
    local text=$1 function=$2 setup=$3 batch line

    line="| $text |"
    for batch in "${batches[@]}"; do
        line+=" $("$function" "$setup-$batch" "${@:4}") |"
    done
    echo "$line"
}

# batch_header: of a table with a column for every batch size.
batch_header()
{
    local batch line="| |" rule="|---|"

    for batch in "${batches[@]}"; do
        line+=" batch $(thousands "$batch") |"
        rule+="---|"
    done
    echo "$line"
    echo "$rule"
}

speed_tables()
{
    local setup line

    heading "Million rows/s, median of $repeat (slowest-fastest)"
    batch_header | sed '1s/$/ 1,000 \/ 10,000 |/; 2s/$/---|/'
    for setup in "${setups[@]}"; do
        line=$(row "${title[$setup]}" speed "$setup")
        echo "$line $(against "$setup-1000" "$setup-10000") |"
    done
    echo
    echo "Without --exact (block rule, batch 512): one thread, one core $(speed block); two threads $(speed threads);"
    echo "local-sgd, two workers of one thread $(speed merging), $(against merging block) times one thread."
    heading "The same as a multiple of local --exact --batch 10000 on one core"
    batch_header
    for setup in "${setups[@]}"; do
        row "${title[$setup]}" against "$setup" $baseline
    done
    echo
    echo "Local without --exact: one thread $(against block $baseline), two threads $(against threads $baseline)."
}

loss()
{
    calculate "$(median "$1.loss")" %.5f
}

# worse NAME BATCHLESS-OTHER: by how many per cent its log-loss is above the other's at the same batch size.
worse()
{
    calculate "($(median "$1.loss") / $(median "$2-${1##*-}.loss") - 1) * 100" %+.3f
    echo " %"
}

# staleness NAME: mean and largest number of pushes of others between a pull and its push; 63 stands for more, too.
staleness()
{
    sed -n 's/.*"staleness": *\[\(.*\)\].*/\1/p' "$(median_summary "$1")" | awk -F, '{
        for (i = 1; i <= NF; i++) {
            count += $i
            sum += $i * (i - 1)
            if ($i > 0)
                largest = i - 1
        }
        printf "%.2f, %d", count ? sum / count : 0, largest
    }'
}

loss_table()
{
    local setup

    heading "Log-loss on $test_rows test rows, median of $repeat"
    batch_header
    for setup in "${setups[@]}"; do
        row "${title[$setup]}" loss "$setup"
    done
    row "ps-async above ps-sync, with 1 ps" worse async-ps sync-ps
    row "ps-async above ps-sync, with shards" worse async-shards sync-shards
    row "ps-sync above local --exact, with 1 ps" worse sync-ps exact
    echo
    echo "Local without --exact: $(loss block); local-sgd, two workers: $(loss merging)."
    heading "Staleness of the asynchronous runs: pushes of others since the pull; mean, largest (63: or more)"
    batch_header
    row "${title[async-ps]}" staleness async-ps
    row "${title[async-shards]}" staleness async-shards
}

crowd_line()
{
    echo "| $1 | $(speed "$2") | $(against "$2" "$3") |"
}

crowd_table()
{
    local mode

    heading "More processes than cores: 4 workers + 2 ps + evaluator, batch 10,000"
    echo "| | million rows/s | against 2 workers + 1 ps of that mode |"
    echo "|---|---|---|"
    for mode in sync async; do
        crowd_line "ps-$mode" "crowd-$mode" "$mode-ps-10000"
        crowd_line "ps-$mode --eval-every 50" "crowd-$mode-busy" "$mode-ps-10000"
    done
}

# worker_kb NAME: kB that a worker sends and receives in a step. What servers of their own move is not a worker's.
worker_kb()
{
    awk '
        function value(key, rest)
        {
            if (!match($0, "\"" key "\": *"))
                return 0
            rest = substr($0, RSTART + RLENGTH)
            return rest + 0
        }
        /"roles":/ { top = 1 }
        !top { workers += value("workers"); ps += value("ps"); steps += value("steps") }
        !top { bytes += value("bytes_sent") + value("bytes_received") }
        /"servers":/ { servers = 1 }
        servers && ps > 0 { bytes -= value("bytes_sent") + value("bytes_received") }
        servers && /\]/ { servers = 0 }
        END { printf "%.1f", bytes / workers / steps / 1000 }' "$(median_summary "$1")"
}

# traffic_table: sets dense, kB of all parameters and gradients.
traffic_table()
{
    local setup features kb

    features=$("$program" inspect "$work/data" --json >"$results/inspect" && number "$results/inspect" features)
    dense=$(calculate "2 * 4 * $features / 1000" %.0f)
    heading "Traffic: kB that a worker sends and receives in a step"
    echo "All parameters and all gradients, once each: 2 x 4 x $(thousands "$features") bytes = $(thousands "$dense") kB."
    echo
    batch_header | sed '1s/$/ dense \/ batch 100 |/; 2s/$/---|/'
    for setup in "${setups[@]:1}"; do
        kb=$(worker_kb "$setup-100")
        echo "$(row "${title[$setup]}" worker_kb "$setup") $(calculate "$dense / $kb" %.0f) |"
    done
}

# imbalance NAME: bytes and requests, largest over mean.
imbalance()
{
    sed -nE 's/.*"imbalance": *\{"bytes": *([^,]*), *"requests": *([^}]*)\}.*/\1 \2/p' "$(median_summary "$1")" |
        awk '{ printf "%.3f, %.3f\n", $1, $2 }'
}

servers_table()
{
    heading "Balance of 4 servers, ps-sync, 2 workers: bytes, requests; each the largest over the mean"
    batch_header
    row "largest / mean" imbalance four
    echo
    echo "| batch 100 | requests | MB received | MB sent |"
    echo "|---|---|---|---|"
    awk '/"servers":/ { inside = 1 } inside && /"role":/ {
            split($0, part, /[:,}]/)
            gsub(/[ "]/, "", part[2])
            printf "| %s | %d | %.2f | %.2f |\n", part[2], part[4], part[6] / 1e6, part[8] / 1e6
        } inside && /\]/ { exit }' "$(median_summary four-100)"
}

roles_table()
{
    local setup

    heading "Where the time goes at batch 10,000: per cent of the role's time in the median run"
    echo "| | role | seconds | data | compute | communicate | wait | most for | CPU seconds of the process | peak MiB |"
    echo "|---|---|---|---|---|---|---|---|---|---|"
    for setup in "${setups[@]:1}"; do
        roles_of "$(median_summary "$setup-10000")" | awk -v text="${title[$setup]}" '{
            sum = $3 + $4 + $5 + $6
            scale = sum > 0 ? 100 / sum : 0
            printf "| %s | %s | %.2f | %.0f | %.0f | %.0f | %.0f | %s | %.2f | %.0f |\n",
                NR == 1 ? text : "", $1, sum, $3 * scale, $4 * scale, $5 * scale, $6 * scale, $7, $8, $9
        }'
    done
}

# over_tcp NAME: its speed, and against shared memory.
over_tcp()
{
    echo "$(speed "tcp-$1"), $(against "tcp-$1" "$1")x"
}

tcp_table()
{
    heading "Over TCP (loopback) instead of shared memory: million rows/s, and against shared memory"
    batch_header
    row "${title[sync-ps]}" over_tcp sync-ps
    row "${title[async-ps]}" over_tcp async-ps
}

# --- Vowpal Wabbit ---

vw_why_not()
{
    if ! has_module vowpalwabbit; then
        echo "no Python with vowpalwabbit (bench/README.md says how to get it)"
    elif [ -z "$tree" ] || [ ! -x "$tree" ]; then
        echo "no spanning_tree (bench/README.md says how to build it; BENCH_SPANNING_TREE says where it is)"
    fi
}

# start_tree: VW's own meeting point for the nodes. It dies of a connection that says nothing, so that only the kernel's
# table can tell whether it listens.
start_tree()
{
    local deadline=$((SECONDS + 10)) port

    tree_port=${BENCH_PORT:-26543}
    port=$(printf ':%04X' "$tree_port")
    ! grep -qE "^ *[0-9]+: [0-9A-F]+$port [0-9A-F:]+ 0A " /proc/net/tcp || fail "port $tree_port is taken; set BENCH_PORT"
    setpriv --pdeathsig TERM "$tree" --nondaemon --port "$tree_port" >"$results/tree.out" 2>&1 &
    tree_pid=$!
    until grep -qE "^ *[0-9]+: [0-9A-F]+$port [0-9A-F:]+ 0A " /proc/net/tcp; do
        kill -0 $tree_pid 2>/dev/null && [ $SECONDS -lt $deadline ] ||
            fail "spanning_tree does not listen: $(tail -n 1 "$results/tree.out")"
        sleep 0.05
    done
}

prepare_vw()
{
    local node

    to_vw_text "$work/train.tsv" >"$work/train.vw"
    to_vw_text "$work/test.tsv" >"$work/test.vw"
    cut -f1 "$work/test.tsv" >"$work/labels"
    : >"$work/empty.vw"
    split -n r/2 -d -a 1 --additional-suffix=.vw "$work/train.vw" "$work/half"
    onethread=
    ! has_module vowpal_wabbit_next || onethread=--onethread
    # shellcheck disable=SC2086 # options are words
    for node in 0 1; do
        vw vw-cache "" $base -k --cache_file "$work/half$node.cache" -d "$work/half$node.vw"
        [ -z "$onethread" ] ||
            vw vw-cache "" $onethread $base -k --cache_file "$work/half$node.onethread.cache" -d "$work/half$node.vw"
    done
    # shellcheck disable=SC2086
    vw vw-cache "" $onethread $base -k --cache_file "$work/train.cache" -d "$work/train.vw"
    start_tree
}

# vw_pair NAME MEET ONETHREAD WORDS...: a process for each half of the rows, at the same time; the words {} in WORDS become
# the node's number. MEET "" is for two that never meet. Adds to NAME.vw the time from the moment at which both are there to
# the end of the last one. With --onethread each has a core of its own.
vw_pair()
{
    local name=$1 meet=$2 thread=$3 node command pids=() begins=() ends=()

    shift 3
    pairs=$((${pairs:-0} + 1))
    for node in 0 1; do
        command=(timeout 1200)
        [ -z "$thread" ] || command+=(taskset -c $((node % $(nproc))))
        # shellcheck disable=SC2206 # options are words
        command+=("$python" "$root/bench/run_vw.py" $thread $base --quiet "${@//\{\}/$node}" -d "$work/half$node.vw"
            --cache_file "$work/half$node${thread:+.onethread}.cache")
        [ -z "$meet" ] ||
            command+=(--span_server localhost --span_server_port "$tree_port" --total 2 --node "$node" --unique_id "$pairs")
        [ -e "$results/$name.vw" ] || echo "    \$ ${command[*]} &"
        "${command[@]}" >"$results/$name.$node.out" 2>"$results/$name.$node.err" &
        pids+=($!)
    done
    for node in 0 1; do
        wait "${pids[node]}" || fail "VW's node $node failed: $(tail -n 1 "$results/$name.$node.err")"
        begins+=("$(number "$results/$name.$node.out" begin)")
        ends+=("$(number "$results/$name.$node.out" end)")
    done
    note "$name.vw" "$(printf '%s\n' "${begins[*]}" "${ends[*]}" |
        awk '{ last = $1 > $2 ? $1 : $2 } NR == 1 { begin = last } END { printf "%.4f", last - begin }')"
}

# shellcheck disable=SC2086 # options are words
measure_vw()
{
    vw vw-empty "" $onethread $base --quiet -d "$work/empty.vw"
    vw vw-one "taskset -c 0" $onethread $base --quiet --cache_file "$work/train.cache" -d "$work/train.vw"
    vw_pair vw-two meet ""
    [ -n "$onethread" ] || return 0
    vw_pair vw-two-onethread meet $onethread
    vw_pair vw-apart "" $onethread
}

# vw_quality: log-loss of the model after the all-reduce, both nodes' copies.
vw_quality()
{
    local node auc

    vw_pair vw-save meet "$onethread" -f "$work/node{}.vwmodel"
    for node in 0 1; do
        vw "vw-predict$node" "" --quiet -t -i "$work/node$node.vwmodel" --link logistic -p "$work/node$node.predictions" -d "$work/test.vw"
    done
    read -r vw_loss auc < <(score "$work/labels" "$work/node0.predictions")
    echo
    echo "Log-loss of VW's model after the all-reduce: $vw_loss, AUC $auc (one pass on half of the rows by each node)."
    cmp -s "$work/node0.predictions" "$work/node1.predictions" || echo "The two nodes do NOT predict the same."
    rm -f "$work"/node*.vwmodel
}

vw_line()
{
    local seconds

    [ -e "$results/$2.vw" ] || return 0
    seconds=$(calculate "$(median "$2.vw") - $(median vw-empty.vw)" %.4f)
    [ "$3" = no ] || note vw-best "$seconds"
    note "$2.rate" "$(ratio "$train_rows" "$seconds" %.0f)"
    echo "| $1 | $(all "$2.vw") | $(calculate "$train_rows / $seconds / 1e6" %.3f) | $(against sync-shards-10000 "$2") |"
}

vw_table()
{
    local setup

    echo
    fact "Vowpal Wabbit" "$(word "$results/vw-two.0.out" version)"
    echo
    echo "seconds: from the moment at which both nodes have started to the end of the last one; without Python's start. million rows/s:"
    echo "median, without the time that VW takes for an empty file ($(calculate "$(median vw-empty.vw)" %.3f) s)."
    echo
    echo "| VW | seconds | million rows/s | times that: ${title[sync-shards]}, batch 10,000 |"
    echo "|---|---|---|---|"
    vw_line "two nodes, all-reduce, parse thread each" vw-two yes
    vw_line "two nodes, all-reduce, --onethread, a core each (VW $(word "$results/vw-one.out" version))" vw-two-onethread yes
    vw_line "two processes with half of the rows each, which never meet: two models" vw-apart no
    vw_line "one process, all rows, one core" vw-one no
    note vw-allreduce.rate "$(ratio "$train_rows" "$(lowest vw-best)" %.0f)"
    echo
    echo "As a multiple of the faster of VW's two all-reduces:"
    echo
    batch_header
    for setup in "${setups[@]:1}"; do
        row "${title[$setup]}" against "$setup" vw-allreduce
    done
}

# --- results ---

speed_results()
{
    local setup batch

    result "local --exact, one core, batch 10,000" "$(million $baseline)" "$unit"
    result "local-sgd, 2 workers" "$(million merging)" "$unit" "local, block rule, one thread" "$(million block)" more ">= 1.7x"
    result "log-loss of local-sgd, 2 workers" "$(loss merging)" - "local, block rule" "$(loss block)" above "<= 0.2 %"
    for setup in "${setups[@]:1}"; do
        for batch in "${batches[@]}"; do
            result "${title[$setup]}, batch $(thousands "$batch")" "$(million "$setup-$batch")" "$unit" \
                "local --exact, one core" "$(million $baseline)" more
        done
    done
    for setup in "${setups[@]:1}"; do
        result "${title[$setup]}, batch 10,000" "$(million "$setup-10000")" "$unit" "Vowpal Wabbit's all-reduce, two nodes" "$(million vw-allreduce)" more
    done
}

loss_results()
{
    local batch

    for batch in "${batches[@]}"; do
        result "log-loss of ${title[async-ps]}, batch $(thousands "$batch")" "$(loss "async-ps-$batch")" - "ps-sync" "$(loss "sync-ps-$batch")" above
    done
    result "log-loss of ${title[sync-ps]}, batch 10,000" "$(loss sync-ps-10000)" - "Vowpal Wabbit's all-reduce" "$vw_loss" above
}

# What many processes, a network and small steps cost.
other_results()
{
    local mode name setup

    for mode in sync async; do
        name=$mode-ps-10000
        result "ps-$mode, 4 workers + 2 ps + evaluator, batch 10,000" "$(million "crowd-$mode")" "$unit" "2 workers + 1 ps" "$(million "$name")" more
        result "ps-$mode, 2 workers + 1 ps over TCP, batch 10,000" "$(million "tcp-$name")" "$unit" "shared memory" "$(million "$name")" more
    done
    for setup in sync-ps allreduce; do
        result "${title[$setup]}, batch 100: a worker's traffic in a step" "$(worker_kb "$setup-100")" kB "all parameters and gradients" "$dense" less
    done
    result "ps-sync, 2 workers + 4 ps, batch 100: bytes of the busiest server over the mean" "$(imbalance four-100 | cut -d, -f1)" -
}

# --- the report ---

echo "# Clicks on several processes"
print_machine "median of $repeat"
why=$(vw_why_not)
make_clicks "$train_rows" "$test_rows"

heading "Commands: $train_rows rows to train on, $test_rows to test"
[ -n "$why" ] || prepare_vw
for ((turn = 0; turn < repeat; turn++)); do
    measure_local
    measure_cluster
    measure_crowd
    [ "$turn" -gt 0 ] || measure_servers
    [ -n "$why" ] || measure_vw
done

speed_tables
loss_table
heading "Vowpal Wabbit: the same rows from its cache, two nodes, one pass"
if [ -n "$why" ]; then
    echo "Skipped: $why."
else
    vw_quality
    vw_table
    kill "$tree_pid"
    rm -f "$work"/*.cache
fi
crowd_table
traffic_table
servers_table
roles_table
tcp_table
speed_results
loss_results
other_results
close_work
