#!/bin/bash
# A benchmark at a tiny size leaves a report that bench/page turns into a table. What it measures here means nothing.
source "$(dirname "$0")/lib.sh"
bench=$(cd "$(dirname "$0")/../../bench" && pwd)
for name in ${!BENCH_*} A9A_DIR SVMLIGHT_FILES; do
    unset "$name"
done
export BENCH_BUILD BENCH_OUT=$work/reports BENCH_REPEAT=1 BENCH_COMMIT=abc TMPDIR=$work
BENCH_BUILD=$(dirname "$paceline")
cd "$work" || exit 1

# ---- a report ----
expect_exit 0 timeout -k 5 240 "$bench/run" clicks 40000 2000
expect_text "## Results" "| prep, two threads |" "Report: $work/reports/"
report=$(echo reports/*-clicks.tsv)
expect_equal "first line" "$(head -n 1 "$report")" "$(printf 'command\tBENCH_REPEAT=1 bench/run clicks 40000 2000')"
for name in workload date commit version machine cpu memory kernel "load before" "load after"; do
    grep -qP "^$name\t[^\t]+$" "$report" || fail "the report does not tell: $name"
done
grep -qP '^clicks\tlog-loss after one pass\t0\.[0-9]+\t-\tthe model behind the data\t0\.[0-9]+\t\+[0-9.]+ %\t-\t-$' "$report" ||
    fail "no result beside another"
grep -qP '^clicks\ttrain, two threads\t[0-9.]+\tmillion rows/s\tone core\t[0-9.]+\t[0-9.]+x\t>= 1.[67]x\t(PASS|MISS)$' "$report" ||
    fail "no result with a verdict"
expect_equal "lines that are neither facts nor results nor comments" "$(grep -v '^#' "$report" | awk -F '\t' 'NF != 2 && NF != 9' | wc -l)" 0
grep -q '^#     \$ paceline gen clicks -o train.tsv ' "$report" || fail "no command in the comments"
! grep -qF "$work" "$report" || fail "the report has paths of this machine"

# ---- its page ----
expect_exit 0 "$bench/page" reports -
expect_text "## Clicks" "](../bench/reports/${report##*/}), paceline " "commit abc, \`BENCH_REPEAT=1 bench/run clicks 40000 2000\`" "| train, two threads | one core | >= 1."

# ---- wrong words ----
expect_exit 64 "$bench/run" clicks 10 movies
expect_error "no bench/movies.sh" "there are: backups balance bottlenecks checkpoint checksums clicks cluster"
expect_exit 0 "$bench/run" --help
expect_text "bench/run [NAME [SIZE...]]" "There are: backups balance bottlenecks checkpoint" " quality "
expect_exit 64 "$bench/run" 10
expect_exit 64 "$bench/run" common

# ---- a benchmark that fails says so, and its report is not shown ----
mkdir broken
printf '#!/bin/bash\n[ "$1" != --version ] || { echo paceline 0; exit 0; }\nexit 70\n' >broken/paceline
chmod +x broken/paceline
rm -r reports
BENCH_BUILD=$work/broken expect_exit 1 "$bench/run" clicks 40000 2000
expect_error "this command failed"
grep -qP '^failed\tyes$' reports/*-clicks.tsv || fail "the report does not tell that the benchmark failed"
expect_exit 65 "$bench/page" reports -
expect_error "a run that failed"
expect_no_output
