#!/bin/bash
# Reviews from raw lines to a data set, beside wc -w and a Python script: bench/reviews.sh [ROWS]
#
# ROWS is a number of generated reviews (6000000, about 4 GB: starting and ending mpirun takes half a second). The Python script
# gets the first 40000 of them: its speed does not depend on how many there are. Environment: see bench/README.md. It is a report: the exit code says whether everything
# ran, not whether the figures are good.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-6000000}
python_rows=40000
open_work reviews
one_core="taskset -c 0"
command -v taskset >/dev/null || fail "taskset is missing (Debian: util-linux)"
script_python=${python:-$(command -v python3 || true)}

# speed BYTES SECONDS: MB/s.
speed()
{
    calculate "$1 / $2 / 1e6" %.0f
}

generate()
{
    heading "gen: $rows reviews"
    timed gen "$program" gen reviews -o "$work/reviews.jsonl" --rows "$rows" --force --json
    bytes=$(number "$results/gen.out" bytes)
    head -n $python_rows "$work/reviews.jsonl" >"$work/some.jsonl"
    some_bytes=$(stat -c %s "$work/some.jsonl")
    gzip -1 -c "$work/reviews.jsonl" >"$work/reviews.jsonl.gz"
    echo
    echo "$(calculate "$bytes / 1e6" %.0f) MB, $(calculate "$bytes / $rows" %.0f) bytes a review."
}

# prepared NAME PREFIX WORDS...: a measured prep of $work/data; adds NAME.map, .reduce and .write (seconds).
prepared()
{
    local name=$1 stage

    rm -rf "$work/data"
    # shellcheck disable=SC2086 # the prefix is none or several words
    timed "$name" $2 "$program" prep reviews "${@:3}" -o "$work/data" --json
    for stage in map reduce write; do
        note "$name.$stage" "$(number "$results/$name.out" ${stage}_seconds)"
    done
    note "$name.phases" "$(calculate "$(tail -n 1 "$results/$name.map") + $(tail -n 1 "$results/$name.reduce") + $(tail -n 1 "$results/$name.write")" %.4f)"
}

# stage_line TEXT NAME
stage_line()
{
    local wall

    wall=$(lowest "$2.wall")
    echo "| $1 | $(all "$2.wall") | $(speed "$bytes" "$wall") | $(all "$2.map") | $(all "$2.reduce") | $(all "$2.write") |" \
        "$(all "$2.cpu") | $(highest "$2.peak") | $(calculate "$(number "$results/$2.out" bytes_spilled) / 1e6" %.0f) |"
}

prepare()
{
    local turn one

    heading "prep: tokenise, count, vocabulary, shuffle, encode, write (time of the whole command)"
    for ((turn = 0; turn < repeat; turn++)); do
        prepared one "$one_core" "$work/reviews.jsonl" --threads 1
        [ "$turn" -gt 0 ] || { mv "$work/data" "$work/data-one"; }
        prepared threads "" "$work/reviews.jsonl" --threads 2
        [ "$turn" -gt 0 ] || diff -rq "$work/data" "$work/data-one" || echo "The sets of one and two threads differ."
        prepared processes "" "$work/reviews.jsonl" -n 2
        [ "$turn" -gt 0 ] || diff -rq "$work/data" "$work/data-one" || echo "The sets of one and two processes differ."
        prepared small "$one_core" "$work/reviews.jsonl" --threads 1 --memory 128M
        prepared dedup "$one_core" "$work/reviews.jsonl" --threads 1 --dedup
        prepared gzip "$one_core" "$work/reviews.jsonl.gz" --threads 1
        # shellcheck disable=SC2086
        timed words env LC_ALL=C.UTF-8 $one_core wc -w "$work/reviews.jsonl"
        timed read $one_core cat "$work/reviews.jsonl"
    done
    echo
    echo "| | seconds | MB/s of JSON | map | reduce | write | CPU seconds | peak MiB | MB spilled |"
    echo "|---|---|---|---|---|---|---|---|---|"
    stage_line "one core, --threads 1" one
    stage_line "--threads 2" threads
    stage_line "-n 2" processes
    stage_line "one core, --memory 128M" small
    stage_line "one core, --dedup" dedup
    stage_line "one core, gzip -1" gzip
    echo "| one core, wc -w (C.UTF-8) | $(all words.wall) | $(speed "$bytes" "$(lowest words.wall)") | - | - | - | $(all words.cpu) | - | - |"
    echo "| one core, cat | $(all read.wall) | $(speed "$bytes" "$(lowest read.wall)") | - | - | - | $(all read.cpu) | - | - |"
    echo
    echo "Two processes against one, without starting and ending them: $(ratio "$(lowest one.phases)" "$(lowest processes.phases)") times."
    one=$(speed "$bytes" "$(lowest one.wall)")
    result "prep, one core" "$one" MB/s - - - "$(bar - ">= 500")"
    result "prep, one core" "$one" MB/s "wc -w in C.UTF-8, one core" "$(speed "$bytes" "$(lowest words.wall)")" more "$(bar ">= 1.5x" ">= 2.3x")"
    result "prep, two threads" "$(speed "$bytes" "$(lowest threads.wall)")" MB/s "one core" "$one" more ">= 1.6x"
    result "prep, two processes" "$(speed "$bytes" "$(lowest processes.wall)")" MB/s "one core" "$one" more ">= 1.8x"
    result "prep, two processes, without starting and ending them" "$(best processes.phases)" s "one core" "$(best one.phases)" less
    result "prep --memory 128M, one core" "$(speed "$bytes" "$(lowest small.wall)")" MB/s "with the default memory" "$one" more
    result "prep --memory 128M, one core: peak memory" "$(highest small.peak)" MiB - - - "<= 160"
    result "prep --dedup, one core" "$(speed "$bytes" "$(lowest dedup.wall)")" MB/s "without it" "$one" more
    result "prep of gzip -1, one core" "$(speed "$bytes" "$(lowest gzip.wall)")" MB/s "of plain text" "$one" more
}

# The arithmetic alone, by what it reads.
stages()
{
    [ -x "$build/bench/bench_text" ] || return 0
    heading "Steps of map alone (GB/s of CPU time: plain, fast, of memcpy)"
    timed steps $one_core "$build/bench/bench_text"
    echo
    sed 's/^/    /' "$results/steps.out"
    result "map alone, fast kernels, one core" "$(awk '$1 == "all" { print $5 }' "$results/steps.out")" GB/s \
        "plain kernels" "$(awk '$1 == "all" { print $3 }' "$results/steps.out")" more
}

compare()
{
    local turn

    heading "A Python script (json, re, Counter), $python_rows reviews"
    if [ -z "$script_python" ]; then
        echo "Skipped: there is no python3 (Debian: python3)."
        return
    fi
    sed '1,/^$/d' "$work/data-one/vocabulary.txt" >"$work/stops"
    for ((turn = 0; turn < repeat; turn++)); do
        timed python $one_core "$script_python" "$root/bench/python_reviews.py" "$work/some.jsonl" "$work/stops" "$work/python"
        note python.seconds "$(number "$results/python.out" seconds)"
    done
    prepared some "$one_core" "$work/some.jsonl" --threads 1
    cut -f1 "$work/python/vocabulary.txt" >"$work/python-words"
    sed '/^$/,$d' "$work/data/vocabulary.txt" | cut -f1 >"$work/own-words"
    cmp -s "$work/python-words" "$work/own-words" || echo "The script's vocabulary is another one."
    echo
    echo "| | seconds | MB/s of JSON |"
    echo "|---|---|---|"
    echo "| both passes | $(all python.seconds) | $(calculate "$some_bytes / $(lowest python.seconds) / 1e6" %.1f) |"
    echo "| - counting | $(number "$results/python.out" count_seconds) | - |"
    echo "| - encoding and shuffling | $(number "$results/python.out" encode_seconds) | - |"
    echo "| - writing | $(number "$results/python.out" write_seconds) | - |"
    result "prep, one core" "$(speed "$bytes" "$(lowest one.wall)")" MB/s \
        "a Python script, one core" "$(calculate "$some_bytes / $(lowest python.seconds) / 1e6" %.1f)" more ">= 30x"
}

echo "# Reviews: from raw lines to a data set"
print_machine
generate
prepare
stages
compare

close_work
