#!/bin/bash
# What options do to the quality of a model: bench/quality.sh [ROWS [options|merging [SET...]]]
#
# On ROWS (1000000) generated clicks, and on the public set a9a if A9A_DIR names a directory with its files a9a and a9a.t.
# `options`: settings are chosen on rows held out from the training rows; the test file is scored
# only with what was chosen and with the defaults. `merging`: what workers that train by themselves (local-sgd) lose beside
# one process, by their number. SETs are clicks: ROWS of them, and a fifth; files: a9a, and w8a if it lies beside it, repeated to
# more than a million rows, the former with values other than 1, too; texts: a fiftieth of ROWS generated reviews, and if BENCH_TEXTS
# is a directory with them, SST-2 and rt-polarity (as for rnn.sh), the latter also with eight sentences as one text. Without any: all.
# BENCH_WORKERS ("1 2 4 8 16 32") and BENCH_EPOCHS ("1 3") say what is tried, BENCH_SEEDS ("1") over which orders of rows means are
# taken.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-1000000}
subject=${2:-options}
sets=("${@:3}")
[ $# -gt 2 ] || sets=(clicks files texts)
case $subject in options | merging) ;; *) fail "options or merging, not: $subject" ;; esac
open_work quality
repeat=1
seeds="1 2 3"
optimizers="adagrad ftrl adam sgd momentum"

# fit NAME DATA OPTIONS...: trains; "logloss auc accuracy train_loss" of its test rows in NAME.score.
fit()
{
    local name=$1 data=$2 out=$results/$1.json

    shift 2
    "$program" train --data "$data" --model logreg --run "$work/fit" --force --quiet --json "$@" >"$out" 2>"$results/$name.err" || {
        tail -n 3 "$results/$name.err" >&2
        fail "this failed: train --data $data $*"
    }
    echo "$(number "$out" logloss) $(number "$out" auc) $(number "$out" accuracy)" >"$results/$name.score"
}

# mean_fit NAME DATA OPTIONS...: the same, as the mean over the data sets DATA-1, DATA-2, ...
mean_fit()
{
    local name=$1 data=$2 seed

    shift 2
    : >"$results/$name.scores"
    for seed in $seeds; do
        fit "$name" "$data-$seed" "$@"
        cat "$results/$name.score" >>"$results/$name.scores"
    done
    awk '{ a += $1; b += $2; c += $3 } END { print a / NR, b / NR, c / NR }' "$results/$name.scores" >"$results/$name.score"
}

line()
{
    awk -v text="$1" '{ printf("| %s | %.5f | %.5f | %.2f %% |\n", text, $1, $2, $3 * 100) }' "$results/$2.score"
}

table()
{
    echo
    echo "| $1 | log-loss | AUC | accuracy |"
    echo "|---|---|---|---|"
}

logloss_of()
{
    cut -d' ' -f1 "$results/$1.score"
}

prep()
{
    "$program" prep clicks "$@" --force --quiet --json >"$results/prep.json" 2>"$results/prep.err" || {
        tail -n 3 "$results/prep.err" >&2
        fail "this failed: prep clicks $*"
    }
}

# loss_result WHAT NAME BESIDE THEIRS: log-loss of a fit beside another log-loss.
loss_result()
{
    result "$1: log-loss" "$(calculate "$(logloss_of "$2")" %.5f)" - "$3" "$(calculate "$4" %.5f)" above
}

# --- generated clicks ---

generated_data()
{
    local seed

    "$program" gen clicks -o "$work/train.tsv" --rows "$rows" --force --quiet --json >"$results/gen.json"
    "$program" gen clicks -o "$work/test.tsv" --rows $((rows / 10)) --seed 2 --force --quiet --json >"$results/gen-test.json"
    head -n $((rows / 10)) "$work/train.tsv" >"$work/tenth.tsv"
    prep "$work/train.tsv" --test "$work/test.tsv" -o "$work/bins"
    prep "$work/train.tsv" --test "$work/test.tsv" -o "$work/values" --numeric values
    for seed in $seeds; do
        prep "$work/train.tsv" --holdout 0.1 --seed "$seed" -o "$work/gen-$seed"
        prep "$work/tenth.tsv" --holdout 0.1 --seed "$seed" -o "$work/tenth-$seed"
    done
}

numeric_and_rule()
{
    local difference

    heading "Generated clicks, $rows rows, scored on $((rows / 10)) others"
    echo "Best possible log-loss $(calculate "$(number "$results/gen-test.json" best_logloss)" %.5f), always the mean" \
        "$(calculate "$(number "$results/gen-test.json" null_logloss)" %.5f)."
    fit bins "$work/bins"
    fit values "$work/values"
    fit exact "$work/bins" --exact
    fit exact-100 "$work/bins" --exact --batch 100
    fit exact-4096 "$work/bins" --batch 4096
    table "options"
    line "default: --numeric bins, block rule, --batch 512" bins
    line "prep --numeric values" values
    line "--exact" exact
    line "--exact --batch 100" exact-100
    line "--batch 4096 (exact)" exact-4096
    difference=$(calculate "$(logloss_of bins) - $(logloss_of exact)" %+.5f)
    echo
    echo "Block rule less exact rule at --batch 512: $difference."
    loss_result "$rows clicks, default options" bins "the model behind the data" "$(number "$results/gen-test.json" best_logloss)"
    loss_result "$rows clicks, prep --numeric values" values "--numeric bins" "$(logloss_of bins)"
    loss_result "$rows clicks, --exact --batch 100" exact-100 "the block rule" "$(logloss_of bins)"
    loss_result "$rows clicks, --batch 4096" exact-4096 "the block rule" "$(logloss_of bins)"
    result "$rows clicks, log-loss of the block rule less that of the exact rule" "$difference" - - - - "<= 0.001"
}

rates_of()
{
    case $1 in
    adagrad | ftrl) echo 0.02 0.05 0.07 0.1 0.15 0.2 0.3 ;;
    sgd) echo 0.0005 0.001 0.002 0.005 0.01 0.02 0.05 ;;
    momentum) echo 0.00005 0.0001 0.0002 0.0005 0.001 0.002 0.005 ;;
    adam) echo 0.0001 0.0002 0.0005 0.001 0.002 0.005 0.01 ;;
    esac
}

# rates TITLE DATA OPTIMIZER OPTIONS...: a line with the log-loss of each rate, also kept for the tables at the end.
rates()
{
    local title=$1 data=$2 optimizer=$3 lr cells="" best

    shift 3
    : >"$results/rates"
    for lr in $(rates_of "$optimizer"); do
        mean_fit rate "$data" --optimizer "$optimizer" --lr "$lr" "$@"
        echo "$(logloss_of rate) $lr" >>"$results/rates"
        cells="$cells $(calculate "$(logloss_of rate)" %.4f) |"
    done
    best=$(sort -g "$results/rates" | head -n 1)
    echo "| $title${*:+ }$* |$cells ${best#* } |" >>"$results/summary-$optimizer"
    [ "$optimizer" != adagrad ] || loss_result "$title${*:+ }$*, adagrad with its default rate" "default-$optimizer" "with the best of 7 rates" "${best% *}"
}

# sweep TITLE DATA OPTIONS...: optimisers with their default rates, on held-out rows; then their rates.
sweep()
{
    local title=$1 data=$2 optimizer best

    shift 2
    heading "$title: held-out rows, mean of hold-outs ($seeds)${*:+, }$*"
    echo "Optimisers with their default rates:"
    table "--optimizer"
    for optimizer in $optimizers; do
        mean_fit "default-$optimizer" "$data" --optimizer "$optimizer" "$@"
        line "$optimizer, --lr $(calculate "$(number "$results/default-$optimizer.json" lr)")" "default-$optimizer"
        rates "$title" "$data" "$optimizer" "$@"
    done
    best=$(for optimizer in ${optimizers#* }; do logloss_of "default-$optimizer"; done | sort -g | head -n 1)
    loss_result "$title${*:+ }$*, adagrad with its default rate" default-adagrad "the best of the other optimisers" "$best"
}

print_rates()
{
    local optimizer

    for optimizer in $optimizers; do
        heading "Rates of $optimizer: log-loss on held-out rows"
        # shellcheck disable=SC2046 # rates are words
        printf '| |%s best |\n|---|%s---|\n' "$(printf ' %s |' $(rates_of "$optimizer"))" "$(printf -- '%.0s---|' $(rates_of "$optimizer"))"
        cat "$results/summary-$optimizer"
    done
}

# --- a9a ---

# Settings to choose from, one per line.
a9a_settings()
{
    local epochs lr

    echo "--epochs 1"
    for epochs in 3 5 10 20; do
        echo "--epochs $epochs"
        for lr in 0.02 0.05 0.2; do
            echo "--epochs $epochs --lr $lr"
        done
        echo "--epochs $epochs --lr 0.1 --schedule linear"
        echo "--epochs $epochs --lr 0.1 --l2 1e-5"
        echo "--epochs $epochs --lr 0.1 --l2 1e-4"
        echo "--epochs $epochs --optimizer ftrl"
        echo "--epochs $epochs --optimizer ftrl --l1 0.3 --l2 1"
        echo "--epochs $epochs --optimizer ftrl --l1 1 --l2 10"
        echo "--epochs $epochs --optimizer adam"
        echo "--epochs $epochs --optimizer sgd --lr 0.01"
        echo "--epochs $epochs --optimizer sgd --schedule linear"
    done
}

a9a_choose()
{
    local options

    heading "a9a: settings, chosen by log-loss on held-out training rows, mean of hold-outs ($seeds)"
    : >"$results/choices"
    while read -r options; do
        # shellcheck disable=SC2086 # options are words
        mean_fit choice "$work/a9a" $options
        echo "$(cat "$results/choice.score") $options" >>"$results/choices"
    done < <(a9a_settings)
    echo "The ten best of $(wc -l <"$results/choices"), and the default:"
    table "options"
    sort -g "$results/choices" | awk 'NR <= 10 || / --epochs 1$/ {
        text = $4
        for (i = 5; i <= NF; i++) text = text " " $i
        printf("| %s | %.5f | %.5f | %.2f %% |\n", text, $1, $2, $3 * 100)
    }'
}

a9a_test()
{
    local options loss auc accuracy

    options=$(sort -g "$results/choices" | head -n 1 | cut -d' ' -f4-)
    heading "a9a.t: what was chosen, trained on all rows of a9a"
    prep "$A9A_DIR/a9a" --test "$A9A_DIR/a9a.t" -o "$work/a9a-all"
    # shellcheck disable=SC2086
    fit chosen "$work/a9a-all" $options
    fit one-pass "$work/a9a-all"
    echo "    \$ paceline prep clicks a9a --test a9a.t -o a9a-data"
    echo "    \$ paceline train --data a9a-data --model logreg --run a9a-run $options"
    table "options"
    line "$options" chosen
    line "default, one pass" one-pass
    read -r loss auc accuracy <"$results/chosen.score"
    loss_result "a9a.t, default options" one-pass "options chosen on held-out rows" "$loss"
    result "a9a.t, options chosen on held-out rows: log-loss" "$(calculate "$loss" %.5f)" - - - - "<= 0.326"
    result "a9a.t, options chosen on held-out rows: AUC" "$(calculate "$auc" %.5f)" - - - - ">= 0.901"
    result "a9a.t, options chosen on held-out rows: accuracy" "$(calculate "$accuracy" %.4f)" - - - - ">= 0.848"
}

a9a()
{
    local seed

    if [ -z "${A9A_DIR:-}" ]; then
        heading "a9a"
        echo "Skipped: set A9A_DIR to a directory with a9a and a9a.t (from the LIBSVM data page, binary classification)."
        return
    fi
    for seed in $seeds; do
        prep "$A9A_DIR/a9a" --holdout 0.2 --seed "$seed" -o "$work/a9a-$seed"
    done
    sweep "a9a" "$work/a9a"
    sweep "a9a" "$work/a9a" --epochs 10
    a9a_choose
    a9a_test
}

# More svmlight files to try rates on.
others()
{
    local file seed

    for file in ${SVMLIGHT_FILES:-}; do
        for seed in $seeds; do
            prep "$file" --format svmlight --holdout 0.2 --seed "$seed" -o "$work/other-$seed"
        done
        sweep "${file##*/}" "$work/other"
        sweep "${file##*/}" "$work/other" --epochs 5
    done
}

# --- workers that train by themselves ---

worker_counts=${BENCH_WORKERS:-1 2 4 8 16 32}

# repeated FILE TIMES TRAIN TEST: every fifth row to TEST, all others TIMES times to TRAIN.
repeated()
{
    local i

    awk 'NR % 5 == 0' "$1" >"$4"
    for ((i = 0; i < $2; i++)); do
        awk 'NR % 5 != 0' "$1"
    done >"$3"
}

# other_values FILE: those of each column times a number of its own, .5 to 2.
other_values()
{
    awk '{ for (i = 2; i <= NF; i++) { split($i, pair, ":"); $i = pair[1] ":" pair[2] * (0.5 + pair[1] % 7 / 4) } print }' "$1"
}

# merging_fit NAME DATA OPTIONS...: the mean log-loss over BENCH_SEEDS, in NAME.score.
merging_fit()
{
    local name=$1 seed

    : >"$results/$name.scores"
    for seed in ${BENCH_SEEDS:-1}; do
        fit "$name" "${@:2}" --seed "$seed"
        cat "$results/$name.score" >>"$results/$name.scores"
    done
    awk '{ a += $1 } END { printf("%.8f\n", a / NR) }' "$results/$name.scores" >"$results/$name.score"
}

# merging_line TITLE DATA EPOCHS: log-loss of one process, then by how many per cent that of so many workers is above it.
merging_line()
{
    local workers cells="" loss

    for workers in $worker_counts; do
        if [ "$workers" -eq 1 ]; then
            merging_fit "merging-1" "$2" --epochs "$3"
            cells=" $(calculate "$(logloss_of merging-1)" %.5f) |"
            continue
        fi
        merging_fit "merging-$workers" "$2" --epochs "$3" --mode local-sgd --workers "$workers" --threads 1
        loss=$(calculate "($(logloss_of "merging-$workers") / $(logloss_of merging-1) - 1) * 100" %+.3f)
        cells="$cells $loss |"
        result "$1, epochs $3, log-loss of local-sgd, $workers workers" "$(logloss_of "merging-$workers")" - "mode local" \
            "$(logloss_of merging-1)" above "<= 0.2 %"
    done
    echo "| $1 | $3 |$cells"
}

merging_set()
{
    local epochs

    for epochs in ${BENCH_EPOCHS:-1 3}; do
        merging_line "$1" "$2" "$epochs"
    done
}

merging_clicks()
{
    "$program" gen clicks -o "$work/train.tsv" --rows "$rows" --force --quiet --json >"$results/gen.json"
    "$program" gen clicks -o "$work/test.tsv" --rows 100000 --seed 2 --force --quiet --json >"$results/gen-test.json"
    prep "$work/train.tsv" --test "$work/test.tsv" -o "$work/all"
    head -n $((rows / 5)) "$work/train.tsv" >"$work/fifth.tsv"
    prep "$work/fifth.tsv" --test "$work/test.tsv" -o "$work/fifth"
    rm "$work/train.tsv" "$work/fifth.tsv"
    merging_set "$rows clicks" "$work/all"
    merging_set "$((rows / 5)) clicks" "$work/fifth"
}

merging_files()
{
    [ -n "${A9A_DIR:-}" ] || return 0
    repeated "$A9A_DIR/a9a" 40 "$work/train.svm" "$work/test.svm"
    prep "$work/train.svm" --format svmlight --test "$work/test.svm" -o "$work/svm"
    merging_set "a9a, 40 times" "$work/svm"
    other_values "$A9A_DIR/a9a" >"$work/values.svm"
    repeated "$work/values.svm" 40 "$work/train.svm" "$work/test.svm"
    prep "$work/train.svm" --format svmlight --test "$work/test.svm" -o "$work/svm"
    merging_set "a9a, other values, 40 times" "$work/svm"
    [ -e "$A9A_DIR/w8a" ] || return 0
    repeated "$A9A_DIR/w8a" 30 "$work/train.svm" "$work/test.svm"
    prep "$work/train.svm" --format svmlight --test "$work/test.svm" -o "$work/svm"
    merging_set "w8a, 30 times" "$work/svm"
}

# text_set TITLE WORDS...: prepared, then 1- and 2-grams of it.
text_set()
{
    "$program" prep reviews "${@:2}" -o "$work/texts" --force --quiet --json >"$results/prep.json" 2>"$results/prep.err" || {
        tail -n 3 "$results/prep.err" >&2
        fail "this failed: prep reviews ${*:2}"
    }
    merging_set "$1" "$work/texts"
}

# joined LABEL FILE: eight lines as one text, behind a label and a tab.
joined()
{
    awk -v label="$1" '{ text = text " " $0 } NR % 8 == 0 { print label "\t" text; text = "" }' "$2"
}

merging_texts()
{
    local texts=${BENCH_TEXTS:-}

    "$program" gen reviews -o "$work/reviews.jsonl" --rows $((rows / 50)) --force --quiet --json >"$results/gen.json"
    text_set "$((rows / 50)) reviews" "$work/reviews.jsonl" --holdout 0.1
    rm "$work/reviews.jsonl"
    [ -n "$texts" ] || return 0
    text_set "SST-2" "$texts/sst2-train.tsv" --test "$texts/sst2-test.tsv" --length 60 --stopwords none --text-field sentence --label-field label
    text_set "rt-polarity" "$texts/rt-polarity.pos=1" "$texts/rt-polarity.neg=0" --length 60 --stopwords none --holdout 0.2
    {
        joined 1 "$texts/rt-polarity.pos"
        joined 0 "$texts/rt-polarity.neg"
    } >"$work/joined.tab"
    text_set "rt-polarity, eight sentences as one" "$work/joined.tab" --format tab --length 480 --stopwords none --holdout 0.2
}

merging()
{
    local set

    heading "Workers that train by themselves: log-loss of test rows, and by how many per cent it is above that of mode local"
    # shellcheck disable=SC2086 # counts are words
    printf '| | epochs |%s\n|---|---|%s\n' "$(printf ' %s |' $worker_counts)" "$(printf -- '%.0s---|' $worker_counts)"
    for set in "${sets[@]}"; do
        case $set in
        clicks | files | texts) "merging_$set" ;;
        *) fail "clicks, files or texts, not: $set" ;;
        esac
    done
}

echo "# Quality: what options do"
print_machine
if [ "$subject" = merging ]; then
    merging
    close_work
    exit
fi
generated_data
numeric_and_rule
sweep "$rows clicks" "$work/gen"
sweep "$rows clicks" "$work/gen" --epochs 3
sweep "$((rows / 10)) clicks" "$work/tenth"
a9a
others
print_rates
close_work
