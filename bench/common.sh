#!/bin/bash
# What the benchmark scripts share; sourced by them. They set:
#     program   the paceline to measure
#     work      a directory for data; everything in it may be replaced
#     results   a directory in it: outputs of commands, and one file per series of measured values
#     record    a file with tab-separated lines, of which bench/page makes the page: facts about the machine, and results
export LC_ALL=C

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
build=${BENCH_BUILD:-$root/build}
repeat=${BENCH_REPEAT:-3}
python=${BENCH_PYTHON:-}
program=$build/paceline

# fail TEXT: also in a subshell, where its exit does not end the script: close_work finds the mark.
fail()
{
    echo "${0##*/}: $*" >&2
    [ ! -d "${results:-}" ] || echo "$*" >>"$results/failed"
    exit 1
}

# open_work NAME: makes $work (BENCH_DIR, kept; or a new one, removed at the end) and an empty $results in it; begins the
# record of the benchmark NAME (BENCH_RECORD, or in $results).
open_work()
{
    workload=$1
    [ -x "$program" ] || fail "$program is missing; run make first, or set BENCH_BUILD"
    if [ -n "${BENCH_DIR:-}" ]; then
        mkdir -p "$BENCH_DIR"
        work=$(cd "$BENCH_DIR" && pwd)
    else
        work=$(mktemp -d "${TMPDIR:-/tmp}/paceline-bench.XXXXXX")
        trap 'rm -rf "$work"' EXIT
    fi
    results=$work/results-$workload
    rm -rf "$results"
    mkdir "$results"
    record=${BENCH_RECORD:-$results/record}
    printf 'workload\t%s\n' "$workload" >"$record"
}

# close_work: the end of a script: its results; its exit code tells whether something did not run.
close_work()
{
    heading "Results"
    echo "| | figure | beside | ratio | wanted | |"
    echo "|---|---|---|---|---|---|"
    awk -F '\t' '
        function shown(text, before) { return text == "-" ? "" : before text }
        NF == 9 { print "| " $2 " | " $3 shown($4, " ") " | " shown($5) shown($6, ": ") " | " shown($7) " | " shown($8) " | " shown($9) " |" }
    ' "$record"
    echo
    fact "load after" "$(cut -d' ' -f1-3 /proc/loadavg)"
    echo
    echo "Other programs on the machine make times longer and uneven."
    [ ! -e "$results/failed" ]
}

heading()
{
    printf '\n## %s\n\n' "$*"
}

# fact NAME VALUE: a line of the record about where, when or what was measured.
fact()
{
    echo "- $1: $2"
    printf '%s\t%s\n' "$1" "$2" >>"$record"
}

# cpu_model: as the kernel calls it. Virtual machines often have a name without a number, the same for
# generations that differ twofold: family and model tell them apart.
cpu_model()
{
    local model

    model=$(sed -n '/^model name/ { s/^[^:]*: //p; q }' /proc/cpuinfo)
    case $model in
    '') uname -m ;;
    *[0-9]*) echo "$model" ;;
    *) echo "$model, family $(cpu_number 'cpu family') model $(cpu_number model)" ;;
    esac
}

# cpu_number FIELD: of the first processor.
cpu_number()
{
    sed -nE "/^$1[[:space:]]*:/ { s/^[^:]*: //p; q }" /proc/cpuinfo
}

# machine_name: what figures depend on most, in a few words: "2 x Intel Xeon, AVX-512".
machine_name()
{
    local model flags vectors

    model=$(cpu_model | sed -E 's/\([^)]*\)//g; s/ @.*//; s/ (CPU|Processor|[0-9]+-Core)//g; s/,//; s/ +/ /g')
    flags=$(sed -n '/^\(flags\|Features\)/ { s/^[^:]*://p; q }' /proc/cpuinfo)
    case "$flags " in
    *" avx512f "*) vectors=AVX-512 ;;
    *" avx2 "*) vectors=AVX2 ;;
    *" asimd "*) vectors=NEON ;;
    *) vectors="no wide vectors" ;;
    esac
    echo "$(nproc) x $model, $vectors${PACELINE_KERNELS:+, kernels $PACELINE_KERNELS}"
}

# kernels_name: those that are measured; PACELINE_KERNELS chooses others than the widest.
kernels_name()
{
    "$program" --version | sed -n 's/.*(kernels \(.*\)).*/\1/p'
}

# bar NARROW WIDE: what is wanted of a machine without AVX-512, or with it.
bar()
{
    [ "$(kernels_name)" = v4 ] && echo "$2" || echo "$1"
}

# commit_name: of which version the program was built.
commit_name()
{
    local commit=${BENCH_COMMIT:-}

    if [ -z "$commit" ]; then
        commit=$(git -C "$root" rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
        # Only what the build reads: other files do not change the program.
        [ -z "$(git -C "$root" status --porcelain -- CMakeLists.txt src cli include 2>/dev/null | head -n 1)" ] ||
            commit="$commit with local changes"
    fi
    echo "$commit"
}

# print_machine [TEXT]: on what, when and which version; figures mean nothing without it. TEXT: which of the times count.
print_machine()
{
    heading "Machine"
    fact machine "$(machine_name)"
    fact cpu "$(cpu_model)"
    fact memory "$(awk '/^MemTotal/ { printf "%.1f GiB", $2 / 1048576 }' /proc/meminfo)"
    fact kernel "$(uname -sr)"
    fact "huge pages" "$(sed 's/.*\[\(.*\)\].*/\1/' /sys/kernel/mm/transparent_hugepage/enabled 2>/dev/null || echo unknown)"
    fact date "$(date -u '+%Y-%m-%d %H:%M UTC')"
    fact "load before" "$(cut -d' ' -f1-3 /proc/loadavg)"
    fact version "$("$program" --version | head -n 1 | sed 's/ (.*//')"
    fact kernels "$(kernels_name)"
    fact commit "$(commit_name)"
    fact times "${1:-best of $repeat, all values shown}; files are in the page cache"
}

# result WHAT FIGURE UNIT [BESIDE THEIRS KIND [BAR]]: a line of the record. BESIDE is what was measured in the same run to compare with,
# THEIRS its figure, and KIND what the ratio tells: "more" FIGURE / THEIRS, "less" THEIRS / FIGURE, "above" per cent of THEIRS, "points"
# of a share. BAR is what is wanted, of the ratio if it has a unit (">= 1.6x", "<= 0.5 %", ">= 3 points"), otherwise of the figure
# ("<= 160"). "-" is for what was not measured, or is not there.
result()
{
    awk -v OFS='\t' -v workload="$workload" -v what="$1" -v figure="${2:--}" -v unit="${3:--}" -v beside="${4:--}" -v theirs="${5:--}" \
        -v kind="${6:--}" -v bar="${7:--}" '
        function times(a, b) { return sprintf(a / b < 10 ? "%.2fx" : a / b < 100 ? "%.1fx" : "%.0fx", a / b) }
        function ratio() {
            if (figure == "-" || theirs == "-")
                return "-"
            return kind == "more" ? times(figure, theirs) : kind == "less" ? times(theirs, figure) : \
                kind == "above" ? sprintf("%+.2f %%", (figure / theirs - 1) * 100) : \
                kind == "points" ? sprintf("%+.1f points", (figure - theirs) * 100) : "-"
        }
        function verdict(value, part) {
            value = bar ~ /(x|%|points)$/ ? ratio() : figure
            if (bar == "-" || value == "-")
                return bar == "-" ? "-" : "skipped"
            split(bar, part, " ")
            return (part[1] == ">=" ? value + 0 >= part[2] + 0 : value + 0 <= part[2] + 0) ? "PASS" : "MISS"
        }
        BEGIN { print workload, what, figure, unit, beside, theirs, ratio(), bar, verdict() }' >>"$record"
}

# number FILE KEY: the number of that key in a JSON file, of several the outermost (a verdict has seconds, too), of those the first.
number()
{
    awk -v key="\"$2\"" '
        # depth TEXT: how many objects and lists are open behind it.
        function depth(text) { return gsub(/[{[]/, "", text) - gsub(/[]}]/, "", text) }
        { text = text $0 " " }
        END {
            for (least = 1e9; match(text, key "[ \t]*:[ \t]*-?[0-9]+(\\.[0-9]+)?([eE][-+]?[0-9]+)?"); text = substr(text, RSTART + RLENGTH)) {
                level += depth(substr(text, 1, RSTART))
                if (level >= least)
                    continue
                least = level
                value = substr(text, RSTART, RLENGTH)
            }
            if (value == "")
                exit 1
            sub(/^"[^"]*"[ \t]*:[ \t]*/, "", value)
            print value
        }' "$1" || fail "$1 has no number called $2"
}

# word FILE KEY: the first string of that key in a JSON file.
word()
{
    sed -nE "s/.*\"$2\"[ \t]*:[ \t]*\"([^\"]*)\".*/\1/p" "$1" | head -n 1
}

# calculate EXPRESSION [FORMAT]: awk arithmetic.
calculate()
{
    awk "BEGIN { printf(\"${2:-%.6g}\", ($1)) }" || fail "cannot calculate $1"
}

# ratio A B [FORMAT]
ratio()
{
    calculate "$1 / $2" "${3:-%.2f}"
}

# measured FILE COMMAND...: runs it; FILE gets "user system peak": seconds, seconds, KiB. Without /usr/bin/time
# (Debian: time) they are sampled from /proc.
measured()
{
    local file=$1 pid sample times user=0 system=0 peak=0 ticks status=0

    shift
    if [ -x /usr/bin/time ]; then
        /usr/bin/time -o "$file" -f '%U %S %M' "$@"
        return
    fi
    ticks=$(getconf CLK_TCK)
    "$@" &
    pid=$!
    while sample=$(awk '/^VmHWM/ { print $2 }' "/proc/$pid/status" 2>/dev/null) && [ -n "$sample" ]; do
        peak=$sample
        # A process that has just ended gives nothing: keep what was read before.
        times=$(sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null | cut -d' ' -f12,13) || true
        [ -z "$times" ] || read -r user system <<<"$times"
        sleep 0.02
    done
    wait "$pid" || status=$? # whoever calls this with || has switched -e off
    awk -v u="$user" -v s="$system" -v p="$peak" -v t="$ticks" 'BEGIN { print u / t, s / t, p }' >"$file"
    return $status
}

# note SERIES VALUE: adds a value to a series.
note()
{
    echo "$2" >>"$results/$1"
}

# note_cpu SERIES COMMAND...: runs it, quietly; adds its CPU seconds, user and system, to a series.
note_cpu()
{
    local TIMEFORMAT='%3U %3S'

    { time "${@:2}" --quiet >"$results/run.out" 2>"$results/run.err"; } 2>"$results/usage" || {
        tail -n 5 "$results/run.err" >&2
        fail "this command failed: ${*:2}"
    }
    note "$1" "$(awk '{ print $1 + $2 }' "$results/usage")"
}

# measure_pairs PAIRS CASE...: `once CASE 1` and `once CASE 2` so many times, in turn first: what the machine does meanwhile
# meets both.
measure_pairs()
{
    local each i

    for each in "${@:2}"; do
        for ((i = 0; i < $1; i++)); do
            once "$each" $((1 + i % 2))
            once "$each" $((2 - i % 2))
        done
    done
}

# timed NAME COMMAND...: runs it, output in NAME.out and NAME.err; adds to the series NAME.wall and NAME.cpu (seconds)
# and NAME.peak (MiB). Prints the command the first time.
timed()
{
    local name=$1 begin end user system peak

    shift
    [ -e "$results/$name.wall" ] || echo "    \$ $*"
    begin=$EPOCHREALTIME
    measured "$results/$name.usage" "$@" >"$results/$name.out" 2>"$results/$name.err" || {
        tail -n 5 "$results/$name.err" >&2
        fail "this command failed: $*"
    }
    end=$EPOCHREALTIME
    read -r user system peak < <(tail -n 1 "$results/$name.usage")
    note "$name.wall" "$(calculate "$end - $begin" %.4f)"
    note "$name.cpu" "$(calculate "$user + $system" %.2f)"
    note "$name.peak" "$(calculate "$peak / 1024" %.0f)"
}

# torch_narrows PYTHON: the setting with which its PyTorch computes in bf16 on this CPU; empty: there is none. Versions whose oneDNN finds AMX die of an
# illegal instruction on some machines that have it.
torch_narrows()
{
    local way probe='import torch
x, y = torch.ones(4, 16, 64), torch.ones(4, 32, 8, 8)
with torch.autocast("cpu", dtype=torch.bfloat16):
    (torch.nn.LSTM(64, 64)(x)[0].float().sum() + torch.nn.Conv2d(32, 32, 3)(y).float().sum()).backward()'

    for way in DNNL_MAX_CPU_ISA=DEFAULT DNNL_MAX_CPU_ISA=AVX512_CORE_BF16; do
        if (env "$way" "$1" -c "$probe") >"$results/probe.out" 2>&1; then
            echo "$way"
            return 0
        fi
    done
}

lowest()
{
    sort -g "$results/$1" | head -n 1
}

# best SERIES [FORMAT]: its lowest value; "-" if it was not measured.
best()
{
    [ ! -e "$results/$1" ] && echo - || calculate "$(lowest "$1")" "${2:-%.2f}"
}

highest()
{
    sort -g "$results/$1" | tail -n 1
}

median()
{
    sort -g "$results/$1" | awk '
        { value[NR] = $1 }
        END { if (!NR) exit 1; print NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2 }' ||
        fail "no values called $1"
}

# excess SERIES SERIES: "median low high" of the ratios of pairs, in per cent above 1; the interval holds the median with 95 %.
excess()
{
    paste "$results/$1" "$results/$2" | awk '{ print ($1 / $2 - 1) * 100 }' | sort -g | awk '
        { value[NR] = $1 }
        END {
            low = int(NR / 2 - 0.98 * sqrt(NR)) # ranks of the interval: of 20, the 6th and the 15th
            low = low < 0 ? 0 : low
            middle = NR % 2 ? value[(NR + 1) / 2] : (value[NR / 2] + value[NR / 2 + 1]) / 2
            printf "%.2f %.2f %.2f\n", middle, value[low + 1], value[NR - low]
        }'
}

# all SERIES [FORMAT]: its values in order of measurement.
all()
{
    awk -v format="${2:-%.2f}" '{ printf("%s" format, NR > 1 ? " " : "", $1) }' "$results/$1" || fail "no values called $1"
}

# score LABELS PREDICTIONS: "log-loss AUC" of one probability per line; labels are 1, and 0 or -1. The same for all
# programs, so that none marks its own work.
score()
{
    [ "$(wc -l <"$1")" -eq "$(wc -l <"$2")" ] || fail "$1 and $2 differ in their number of lines"
    paste -d' ' "$1" "$2" | sort -g -k2,2 | awk '
        function close_tie() { ranks += positive_here * (before + (here + 1) / 2); before += here; here = positive_here = 0 }
        {
            p = $2 < 1e-12 ? 1e-12 : $2 > 1 - 1e-12 ? 1 - 1e-12 : $2
            loss -= $1 == 1 ? log(p) : log(1 - p)
            if (NR > 1 && $2 != last)
                close_tie()
            last = $2
            here++
            if ($1 == 1) { positive_here++; positive++ }
        }
        END {
            close_tie()
            negative = NR - positive
            auc = positive && negative ? (ranks - positive * (positive + 1) / 2) / positive / negative : 0
            printf "%.5f %.5f\n", loss / NR, auc
        }'
}

has_module()
{
    [ -n "$python" ] && "$python" -c "import $1" 2>/dev/null
}

# --- runs of train, by their summary.json ---

# make_clicks TRAIN TEST: $work/data, prepared from generated rows; the raw rows stay beside it.
make_clicks()
{
    {
        "$program" gen clicks -o "$work/train.tsv" --rows "$1" --force --quiet
        "$program" gen clicks -o "$work/test.tsv" --rows "$2" --seed 2 --force --quiet
        "$program" prep clicks "$work/train.tsv" --test "$work/test.tsv" -o "$work/data" --force --quiet
    } >"$results/data.out"
}

# trained NAME COMMAND...: a training that writes $work/run; adds to the series NAME.rate (rows/s) and NAME.loss (test rows),
# and keeps the summary as NAME.json/N.
trained()
{
    local name=$1 summary

    shift
    rm -rf "$work/run"
    timed "$name" "$@"
    mkdir -p "$results/$name.json"
    summary=$results/$name.json/$(wc -l <"$results/$name.wall")
    cp "$work/run/summary.json" "$summary"
    note "$name.rate" "$(number "$summary" samples_per_second)"
    note "$name.loss" "$(number "$summary" logloss)"
}

# median_summary NAME: the summary of the run in the middle; of an even number, the slower one of the two.
median_summary()
{
    local number

    number=$(awk '{ print NR, $1 }' "$results/$1.rate" | sort -g -k2,2 | awk '{ n[NR] = $1 } END { print n[int((NR + 1) / 2)] }')
    echo "$results/$1.json/$number"
}

# roles_of SUMMARY: a line for each role: role rows data_s compute_s communicate_s wait_s waits_for cpu_s MiB.
roles_of()
{
    awk '
        function field(key, rest)
        {
            if (!match($0, "\"" key "\": *"))
                return "-"
            rest = substr($0, RSTART + RLENGTH)
            sub(/^"/, "", rest)
            sub(/[",}].*/, "", rest)
            return rest == "" || rest == "null" ? "-" : rest
        }
        /"roles":/ { inside = 1 }
        inside && /"role":/ {
            print field("role"), field("rows"), field("data_s"), field("compute_s"), field("communicate_s"), field("wait_s"),
                field("waits_for"), field("cpu_s"), field("rss_max_bytes") / 1048576
        }
        inside && /\]/ { exit }' "$1"
}

# --- Vowpal Wabbit ---

# to_vw_text FILE: a namespace per column; integers in logarithmic bins, absent fields as a word of their own, as paceline
# treats them.
to_vw_text()
{
    awk -F '\t' '
        function bin(v) { return v == "" ? "none" : v < 3 ? v + 0 : int(log(v) * log(v)) + 2 }
        {
            line = $1 == 1 ? "1" : "-1"
            for (i = 2; i <= 14; i++)
                line = line " |i" (i - 1) " " bin($i)
            for (i = 15; i <= 40; i++)
                line = line " |c" (i - 14) " " ($i == "" ? "none" : $i)
            print line
        }' "$1"
}

# vw NAME PREFIX ARGUMENTS...: a measured run; adds NAME.vw, the seconds without Python's start.
vw()
{
    local name=$1

    shift
    # shellcheck disable=SC2086 # the prefix is none or several words
    timed "$name" $1 "$python" "$root/bench/run_vw.py" "${@:2}"
    note "$name.vw" "$(number "$results/$name.out" seconds)"
}
