#!/bin/bash
# Defaults beside alternatives: bench/defaults.sh [ROWS]
#
# Each default is tried beside three alternatives on every set at hand: log-loss of rows that were held out, the mean over hold-outs. Sets
# are generated (ROWS clicks, 100000, and a tenth of them; reviews; pictures), and public where their directories are named: A9A_DIR with
# a9a and perhaps w8a, BENCH_TEXTS with rt-polarity.pos and rt-polarity.neg. Of a public set a small part is a set, too:
# defaults go by the size of the data. A result is the default beside the best of the alternatives.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-100000}
seeds=${BENCH_SEEDS:-1 2 3}
open_work defaults

# fit DATA MODEL OPTIONS...: trains; the summary is in $results/fit.json.
fit()
{
    local data=$1 model=$2

    shift 2
    "$program" train --data "$data" --model "$model" --run "$work/fit" --force --quiet --json --report off --threads 1 "$@" \
        >"$results/fit.json" 2>"$results/fit.err" || {
        tail -n 3 "$results/fit.err" >&2
        fail "this failed: train --data $data --model $model $*"
    }
}

# mean_fit SET MODEL OPTIONS...: "log-loss accuracy" of held-out rows, the mean over SET-1, SET-2, ..., in the variable scored.
mean_fit()
{
    local set=$1 seed

    shift
    : >"$results/scores"
    for seed in $seeds; do
        fit "$work/$set-$seed" "$@"
        echo "$(number "$results/fit.json" logloss) $(number "$results/fit.json" accuracy)" >>"$results/scores"
    done
    scored=$(awk '{ a += $1; b += $2 } END { printf "%.5f %.4f", a / NR, b / NR }' "$results/scores")
}

prep()
{
    local kind=$1

    shift
    "$program" prep "$kind" "$@" --force --quiet --threads 1 --json >"$results/prep.json" 2>"$results/prep.err" || {
        tail -n 3 "$results/prep.err" >&2
        fail "this failed: prep $kind $*"
    }
}

# prep_all KIND SET HOLDOUT WORDS...: SET-1, SET-2, ...
prep_all()
{
    local kind=$1 set=$2 holdout=$3 seed

    shift 3
    for seed in $seeds; do
        prep "$kind" "$@" --holdout "$holdout" --seed "$seed" -o "$work/$set-$seed"
    done
}

# cell TEXT: an option, and log-loss and accuracy of `scored`.
cell()
{
    printf ' %s: %.4f, %.2f %% |' "$1" "${scored% *}" "$(calculate "${scored#* } * 100")"
}

# weigh TITLE DEFAULT: a line of the table, and a result: the default's score in $results/default beside the best of $results/others, lines
# "log-loss accuracy option".
weigh()
{
    local best

    best=$(sort -g "$results/others" | head -n 1)
    result "$1: $2" "$(cut -d' ' -f1 "$results/default")" - "best of $(cut -d' ' -f3- "$results/others" | paste -sd, | sed 's/,/, /g')" "${best%% *}" above
}

# among TITLE SET MODEL NAME VALUES... [-- OPTIONS...]: the default of --NAME beside VALUES of it.
among()
{
    local title=$1 set=$2 model=$3 name=$4 value line other values=()

    shift 4
    while [ $# -gt 0 ] && [ "$1" != -- ]; do
        values+=("$1")
        shift
    done
    shift $(($# > 0))
    mean_fit "$set" "$model" "$@"
    echo "$scored" >"$results/default"
    value=$(sed -nE "s/^$name: *\"?([^\"]*)\"?/\1/p" "$work/fit/config.yaml")
    line="| $title |$(cell "--$name $value, the default")"
    : >"$results/others"
    for other in "${values[@]}"; do
        mean_fit "$set" "$model" "--$name" "$other" "$@"
        echo "$scored $other" >>"$results/others"
        line="$line$(cell "$other")"
    done
    echo "$line"
    weigh "$title" "--$name $value"
}

# prepared TITLE SET MODEL NAME VALUES...: the same of an option of prep; SET-VALUE-1 and so on are there.
prepared()
{
    local title=$1 set=$2 model=$3 name=$4 line other

    shift 4
    mean_fit "$set" "$model"
    echo "$scored" >"$results/default"
    line="| $title, $model |$(cell "--$name, the default")"
    : >"$results/others"
    for other in "$@"; do
        mean_fit "$set-$other" "$model"
        echo "$scored $other" >>"$results/others"
        line="$line$(cell "$other")"
    done
    echo "$line"
    weigh "$title, $model" "prep --$name"
}

table()
{
    echo
    echo "| $1 | | | | |"
    echo "|---|---|---|---|---|"
}

# --- clicks ---

click_set()
{
    among "$1" "$2" logreg lr 0.03 0.1 0.3
    among "$1" "$2" logreg epochs 2 5 20
    among "$1" "$2" logreg optimizer ftrl adam sgd
}

# public FILE ROWS: the set of that name, and one of its first rows alone.
public()
{
    local name=${1##*/}

    [ -e "$1" ] || return 0
    prep_all clicks "$name" 0.2 "$1" --format svmlight
    click_set "$name" "$name"
    head -n "$2" "$1" >"$work/small.svm"
    prep_all clicks "$name-small" 0.2 "$work/small.svm" --format svmlight
    click_set "$name, $2 rows" "$name-small"
}

clicks()
{
    heading "Clicks: logreg, mean of hold-outs ($seeds): log-loss, accuracy"
    "$program" gen clicks -o "$work/clicks.tsv" --rows "$rows" --force --quiet --json >"$results/gen.json"
    head -n $((rows / 10)) "$work/clicks.tsv" >"$work/tenth.tsv"
    prep_all clicks clicks 0.1 "$work/clicks.tsv"
    prep_all clicks tenth 0.2 "$work/tenth.tsv"
    table "set"
    click_set "$rows clicks" clicks
    click_set "$((rows / 10)) clicks" tenth
    [ -n "${A9A_DIR:-}" ] || return 0
    public "$A9A_DIR/a9a" 4000
    public "$A9A_DIR/w8a" 6000
}

# --- texts ---

# text_set TITLE SET HOLDOUT WORDS...: prepared in all ways, then tried.
text_set()
{
    local title=$1 set=$2 holdout=$3 value

    shift 3
    prep_all reviews "$set" "$holdout" "$@"
    prep_all reviews "$set-none" "$holdout" "$@" --stopwords none
    for value in 3000 5000 30000; do
        prep_all reviews "$set-$value" "$holdout" "$@" --vocab "$value"
    done
    for value in 50 200 400; do
        prep_all reviews "$set-l$value" "$holdout" "$@" --length "$value"
    done
    among "$title" "$set" logreg lr 0.03 0.12 0.2
    among "$title" "$set" logreg epochs 3 5 20
    among "$title" "$set" logreg ngram 1 3 4
    prepared "$title" "$set" logreg "stopwords english" none
    prepared "$title" "$set" logreg "vocab 10000" 3000 5000 30000
    prepared "$title" "$set" logreg length l50 l200 l400
}

# joined LABEL FILE: eight lines as one text, behind a label and a tab.
joined()
{
    awk -v label="$1" '{ text = text " " $0 } NR % 8 == 0 { print label "\t" text; text = "" }' "$2"
}

texts()
{
    heading "Texts: mean of hold-outs ($seeds): log-loss, accuracy"
    "$program" gen reviews -o "$work/reviews.jsonl" --rows 10000 --force --quiet --json >"$results/gen.json"
    table "set"
    text_set "10000 reviews" reviews 0.2 "$work/reviews.jsonl"
    [ -n "${BENCH_TEXTS:-}" ] || return 0
    text_set "rt-polarity" rt 0.2 "$BENCH_TEXTS/rt-polarity.pos=1" "$BENCH_TEXTS/rt-polarity.neg=0"
    { joined 1 "$BENCH_TEXTS/rt-polarity.pos" && joined 0 "$BENCH_TEXTS/rt-polarity.neg"; } >"$work/joined.tab"
    text_set "rt-polarity, eight sentences as one" joined 0.2 "$work/joined.tab" --format tab
    seeds=${seeds%% *}
    among "rt-polarity, rnn" rt rnn epochs 2 6 10
    among "rt-polarity, rnn" rt rnn dropout 0 0.3 0.7
    among "rt-polarity, rnn" rt rnn lr 0.001 0.002 0.01
}

echo "# Defaults beside alternatives"
print_machine "none: what was learned, which no other program changes"
clicks
texts
close_work
