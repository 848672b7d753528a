#!/bin/bash
# Defaults beside alternatives: bench/defaults.sh [ROWS]
#
# Each default is tried beside three alternatives on every set at hand: log-loss of rows that were held out, the mean over hold-outs
# (BENCH_SEEDS; of networks the first), each of which has first weights and a sample order of its own, too. Sets are generated: ROWS clicks (100000) and a tenth of
# them; a tenth of ROWS reviews, and as many as long ones, four in one text; a two-hundredth of ROWS pictures. And public where their directories
# are named: A9A_DIR with a9a and perhaps w8a; BENCH_TEXTS with rt-polarity.pos, rt-polarity.neg, sst2-train.tsv and sst2-test.tsv;
# BENCH_FASHION, of which as many are taken, too. Of a public set a small part is a set, too, and so are long texts made
# of short ones: defaults go by the size of the data. A result is the default beside the best of the alternatives.
#
# BENCH_PARTS, some of "clicks fm linear rnn cnn", takes less time than all.
set -euo pipefail
. "$(dirname "$0")/common.sh"

rows=${1:-100000}
seeds=${BENCH_SEEDS:-1 2}
parts=${BENCH_PARTS:-clicks fm linear rnn cnn}
fashion=${BENCH_FASHION:-/usr/share/datasets/fashion-mnist}
open_work defaults
mkdir "$results/fits"

# --- fits: each is made once, however many tables ask for it ---

# fit_name DATA MODEL OPTIONS...: its files, without an ending, in the variable named.
fit_name()
{
    named=$results/fits/$(basename "$1")$(printf '_%s' "${@:2}" | tr -c 'A-Za-z0-9._-' '_')
}

# fit SEED DATA MODEL OPTIONS...: trains; its summary is NAME.json, its configuration NAME.yaml.
fit()
{
    local seed=$1 data=$2 model=$3

    shift 2
    fit_name "$data" "$@"
    [ ! -e "$named.json" ] || return 0
    shift
    "$program" train --data "$data" --model "$model" --run "$named.run" --force --quiet --json --report off --threads 1 --seed "$seed" "$@" \
        >"$named.out" 2>"$named.err" || {
        tail -n 3 "$named.err" >&2
        fail "this failed: train --data $data --model $model $*"
    }
    mv "$named.run/config.yaml" "$named.yaml"
    rm -rf "$named.run"
    mv "$named.out" "$named.json"
}

# start SET MODEL OPTIONS...: fits of all hold-outs, SET-1, SET-2, ..., in the background, two at a time.
start()
{
    local set=$1 seed

    shift
    for seed in $seeds; do
        while [ "$(jobs -pr | wc -l)" -ge 2 ]; do
            wait -n || true # one that fails leaves no summary
        done
        fit "$seed" "$work/$set-$seed" "$@" &
    done
}

# mean_fit SET MODEL OPTIONS...: "log-loss accuracy" of held-out rows, the mean over hold-outs, in the variable scored; `named` is one of
# the fits.
mean_fit()
{
    local set=$1 seed

    start "$@"
    wait
    shift
    : >"$results/scores"
    for seed in $seeds; do
        fit_name "$work/$set-$seed" "$@"
        [ -e "$named.json" ] || exit 1 # it has been said why
        echo "$(number "$named.json" logloss) $(number "$named.json" accuracy)" >>"$results/scores"
    done
    scored=$(awk '{ a += $1; b += $2 } END { printf "%.5f %.4f", a / NR, b / NR }' "$results/scores")
}

# --- sets ---

prep()
{
    local kind=$1

    shift
    "$program" prep "$kind" "$@" --force --quiet --threads 1 --json >"$results/prep.json" 2>"$results/prep.err" || {
        tail -n 3 "$results/prep.err" >&2
        fail "this failed: prep $kind $*"
    }
}

# prep_all KIND SET WORDS...: SET-1, SET-2, ...; @ in a word is the number.
prep_all()
{
    local kind=$1 set=$2 seed

    shift 2
    for seed in $seeds; do
        prep "$kind" "${@//@/$seed}" --seed "$seed" -o "$work/$set-$seed"
    done
}

generate()
{
    "$program" gen "$@" --force --quiet --json >"$results/gen.json"
}

# --- tables ---

table()
{
    echo
    echo "| $1 | | | | |"
    echo "|---|---|---|---|---|"
}

# cell TEXT: an option, and log-loss and accuracy of `scored`.
cell()
{
    printf ' %s: %.4f, %.2f %% |' "$1" "${scored% *}" "$(calculate "${scored#* } * 100")"
}

# row TITLE DEFAULT: of $results/default and $results/others, lines "log-loss accuracy option": a line of the table, and a result.
row()
{
    local line best

    read -r scored <"$results/default"
    line="| $1 |$(cell "$2, the default")"
    while read -r a b other; do
        scored="$a $b"
        line="$line$(cell "$other")"
    done <"$results/others"
    echo "$line"
    best=$(sort -g "$results/others" | head -n 1)
    result "$1: $2" "$(cut -d' ' -f1 "$results/default")" - "best of $(cut -d' ' -f3- "$results/others" | paste -sd, | sed 's/,/, /g')" "${best%% *}" above
}

# among TITLE SET MODEL NAME VALUES...: the default of --NAME beside three of VALUES that are not the default. A value may be other
# options instead.
among()
{
    local title=$1 set=$2 model=$3 name=$4 value other others=()

    shift 4
    mean_fit "$set" "$model"
    echo "$scored" >"$results/default"
    value=$(sed -nE "s/^$name: *\"?([^\"]*)\"?/\1/p" "$named.yaml")
    for other in "$@"; do
        [ "$other" != "$value" ] && [ ${#others[@]} -lt 3 ] || continue
        others+=("$other")
        # shellcheck disable=SC2046 # several words
        start "$set" "$model" $(options_of "$name" "$other")
    done
    wait
    : >"$results/others"
    for other in "${others[@]}"; do
        # shellcheck disable=SC2046
        mean_fit "$set" "$model" $(options_of "$name" "$other")
        echo "$scored $other" >>"$results/others"
    done
    row "$title" "--$name $value"
}

# options_of NAME VALUE: a value that is options instead is these.
options_of()
{
    case $2 in
    --*) echo "$2" ;;
    *) echo "--$1 $2" ;;
    esac
}

# prepared TITLE SET MODEL NAME VALUES...: the same of an option of prep; SET-VALUE-1 and so on are there.
prepared()
{
    local title=$1 set=$2 model=$3 name=$4 other

    shift 4
    start "$set" "$model"
    for other in "$@"; do
        start "$set-$other" "$model"
    done
    wait
    mean_fit "$set" "$model"
    echo "$scored" >"$results/default"
    : >"$results/others"
    for other in "$@"; do
        mean_fit "$set-$other" "$model"
        echo "$scored $other" >>"$results/others"
    done
    row "$title" "prep --$name"
}

# --- clicks ---

linear_clicks()
{
    among "$1" "$2" logreg lr 0.03 0.1 0.3
    among "$1" "$2" logreg epochs 2 5 20
    among "$1" "$2" logreg optimizer ftrl adam sgd
}

machines_of_factors()
{
    among "$1, fm" "$2" fm factors 4 16 32
    among "$1, fm" "$2" fm lr 0.02 0.05 0.15 0.3
    among "$1, fm" "$2" fm epochs 2 4 20
    among "$1, fm" "$2" fm optimizer adam sgd momentum
}

# each_of_clicks COMMAND: on every set.
each_of_clicks()
{
    local file name small

    "$1" "$rows clicks" clicks
    "$1" "$((rows / 10)) clicks" tenth
    for file in "${A9A_DIR:-}/a9a" "${A9A_DIR:-}/w8a"; do
        [ -n "${A9A_DIR:-}" ] && [ -e "$file" ] || continue
        name=${file##*/}
        small=$([ "$name" = a9a ] && echo 4000 || echo 6000)
        "$1" "$name" "$name"
        "$1" "$name, $small rows" "$name-small"
    done
}

prepare_clicks()
{
    local file name

    generate clicks -o "$work/clicks.tsv" --rows "$rows"
    head -n $((rows / 10)) "$work/clicks.tsv" >"$work/tenth.tsv"
    prep_all clicks clicks "$work/clicks.tsv" --holdout 0.1
    prep_all clicks tenth "$work/tenth.tsv" --holdout 0.2
    for file in "${A9A_DIR:-}/a9a" "${A9A_DIR:-}/w8a"; do
        [ -n "${A9A_DIR:-}" ] && [ -e "$file" ] || continue
        name=${file##*/}
        prep_all clicks "$name" "$file" --format svmlight --holdout 0.2
        head -n "$([ "$name" = a9a ] && echo 4000 || echo 6000)" "$file" >"$work/small.svm"
        prep_all clicks "$name-small" "$work/small.svm" --format svmlight --holdout 0.2
    done
}

# --- texts ---

# joined LABEL FILE: eight lines as one text, behind a label and a tab.
joined()
{
    awk -v label="$1" '{ text = text " " $0 } NR % 8 == 0 { print label "\t" text; text = "" }' "$2"
}

# opinions SEED SET ROWS: texts of ten sentences of rt-polarity, of which three in four are of the text's label, as in a review that has
# for and against. The sentences of the test rows (SET 1) are none of the training rows (SET 0): a fifth of all, by SEED.
opinions()
{
    awk -v state="$1" -v set="$2" -v rows="$3" '
        # Numbers of its own, the same in every awk.
        function drawn(below) { state = (state * 16807) % 2147483647; return int(state / 2147483647 * below) }
        function shuffle(label, i, j, keep) {
            for (i = count[label] - 1; i > 0; i--) {
                j = drawn(i + 1)
                keep = text[label, i]; text[label, i] = text[label, j]; text[label, j] = keep
            }
        }
        function next_of(label) {
            if (at[label] == count[label]) { at[label] = 0; shuffle(label) }
            return text[label, at[label]++]
        }
        BEGIN { for (i = 0; i < 10; i++) drawn(2) }
        {
            label = FILENAME ~ /pos$/
            if ((drawn(5) == 0) == set)
                text[label, count[label]++] = $0
        }
        END {
            for (label = 0; label < 2; label++) shuffle(label)
            for (row = 0; row < rows; row++) {
                line = ""
                for (i = 0; i < 10; i++) line = line " " next_of(drawn(4) > 0 ? row % 2 : 1 - row % 2)
                print row % 2 "\t" line
            }
        }' "$BENCH_TEXTS/rt-polarity.neg" "$BENCH_TEXTS/rt-polarity.pos"
}

# long_reviews FILE: four generated reviews as one, all good or all bad.
long_reviews()
{
    awk '
        {
            text = $0; sub(/.*"reviewText": "/, "", text); sub(/", "overall".*/, "", text)
            rating = $0; sub(/.*"overall": /, "", rating)
            good = rating + 0 >= 4
            all[good] = all[good] " " text
        }
        ++count[good] % 4 == 0 { printf "{\"reviewText\": \"%s\", \"overall\": %d}\n", all[good], good; all[good] = "" }' "$1"
}

# prep_texts SET WORDS...: prepared in all ways.
prep_texts()
{
    local set=$1 value

    shift
    prep_all reviews "$set" "$@"
    prep_all reviews "$set-none" "$@" --stopwords none
    prep_all reviews "$set-all" "$@" --no-keep-negations
    prep_all reviews "$set-25" "$@" --stopwords "$work/25"
    for value in 3000 5000 30000; do
        prep_all reviews "$set-$value" "$@" --vocab "$value"
    done
    for value in 50 200 400; do
        prep_all reviews "$set-l$value" "$@" --length "$value"
    done
}

prepare_texts()
{
    local seed

    echo "the a an and of to in is it that this for on with as was be by at are from or its has have" | tr ' ' '\n' >"$work/25"
    generate reviews -o "$work/reviews.jsonl" --rows $((rows / 10))
    prep_texts reviews "$work/reviews.jsonl" --holdout 0.2
    generate reviews -o "$work/four.jsonl" --rows $((rows / 10)) --seed 2
    long_reviews "$work/four.jsonl" >"$work/long.jsonl"
    prep_texts long "$work/long.jsonl" --holdout 0.2
    [ -n "${BENCH_TEXTS:-}" ] || return 0
    prep_texts rt "$BENCH_TEXTS/rt-polarity.pos=1" "$BENCH_TEXTS/rt-polarity.neg=0" --holdout 0.2
    prep_texts sst "$BENCH_TEXTS/sst2-train.tsv" --test "$BENCH_TEXTS/sst2-test.tsv" --text-field sentence --label-field label
    { joined 1 "$BENCH_TEXTS/rt-polarity.pos" && joined 0 "$BENCH_TEXTS/rt-polarity.neg"; } >"$work/joined.tab"
    prep_texts joined "$work/joined.tab" --format tab --holdout 0.2
    for seed in $seeds; do
        opinions "$seed" 0 $((rows / 100)) >"$work/opinions-$seed.tab"
        opinions "$seed" 1 $((rows / 200)) >"$work/opinions-test-$seed.tab"
    done
    prep_texts opinions "$work/opinions-@.tab" --test "$work/opinions-test-@.tab" --format tab
}

# each_of_texts COMMAND
each_of_texts()
{
    "$1" "$((rows / 10)) reviews" reviews
    "$1" "$((rows / 40)) long reviews" long
    [ -n "${BENCH_TEXTS:-}" ] || return 0
    "$1" "SST-2" sst
    "$1" "rt-polarity" rt
    "$1" "rt-polarity, eight sentences as one" joined
    "$1" "rt-polarity, ten sentences for and against" opinions
}

linear_texts()
{
    among "$1" "$2" logreg lr 0.03 0.07 0.12 0.2
    among "$1" "$2" logreg epochs 3 5 20
    among "$1" "$2" logreg ngram 1 3 4
    prepared "$1" "$2" logreg "stopwords english" none all 25
    prepared "$1" "$2" logreg "vocab 10000" 3000 5000 30000
    prepared "$1" "$2" logreg length l50 l200 l400
}

recurrent()
{
    local seeds=${seeds%% *} # one hold-out: networks take the longest

    among "$1, rnn" "$2" rnn lr 0.001 0.002 0.004 0.01
    among "$1, rnn" "$2" rnn epochs 2 4 8 16
    among "$1, rnn" "$2" rnn pooling last mean max
    among "$1, rnn" "$2" rnn bidirectional false true "--layers 2" "--layers 2 --dense 32"
    among "$1, rnn" "$2" rnn hidden 16 32 64 128
    among "$1, rnn" "$2" rnn embed 16 32 64 128
    among "$1, rnn" "$2" rnn dropout 0 0.3 0.5 0.7
    prepared "$1, rnn" "$2" rnn "stopwords english" none all 25
}

# --- pictures ---

# idx KIND COUNT SIZE SHAPE FILE: the first COUNT pictures, or labels, of a file of Fashion-MNIST, of SIZE bytes each, as such a file.
idx()
{
    local kind=$1 count=$2 size=$3 shape=$4 file=$5 head=8

    [ "$size" -eq 1 ] || head=16
    gzip -dcf "$file" >"$work/idx"
    printf '%b' "\\0000\\0000\\0010\\0$kind\\0000\\0000$(printf '\\0%03o\\0%03o' $((count / 256)) $((count % 256)))$shape"
    head -c $((head + count * size)) "$work/idx" | tail -c $((count * size))
    rm "$work/idx"
}

prepare_pictures()
{
    local count=$((rows / 200))

    generate images -o "$work/pictures" --rows "$count" --size 48
    prep_all images pictures "$work/pictures" --holdout 0.5 --size 32
    [ -d "$fashion" ] || return 0
    mkdir -p "$work/idx-files"
    idx 003 "$count" 784 '\0000\0000\0000\0034\0000\0000\0000\0034' "$(ls "$fashion"/train-images-idx3-ubyte*)" >"$work/idx-files/train-images-idx3-ubyte"
    idx 001 "$count" 1 '' "$(ls "$fashion"/train-labels-idx1-ubyte*)" >"$work/idx-files/train-labels-idx1-ubyte"
    prep_all images fashion "$work/idx-files" --holdout 0.5
}

convolutional()
{
    local seeds=${seeds%% *}

    among "$1, cnn" "$2" cnn optimizer momentum sgd adagrad
    among "$1, cnn" "$2" cnn lr 0.001 0.003 0.006 0.012
    among "$1, cnn" "$2" cnn epochs 10 20 60
    among "$1, cnn" "$2" cnn augment none flip crop flip,crop,colour
}

each_of_pictures()
{
    "$1" "$((rows / 200)) pictures" pictures
    [ ! -d "$fashion" ] || "$1" "Fashion-MNIST, $((rows / 200)) pictures" fashion
}

# --- all ---

# wants NAME...: is one of them among the parts?
wants()
{
    local name

    for name in "$@"; do
        case " $parts " in
        *" $name "*) return 0 ;;
        esac
    done
    return 1
}

# part NAME TITLE EACH COMMAND: a table of it, if it is wanted.
part()
{
    wants "$1" || return 0
    heading "$2: log-loss, accuracy of held-out rows"
    table "set"
    "$3" "$4"
}

echo "# Defaults beside alternatives"
print_machine "none: what was learned, which no other program changes"
! wants clicks fm || prepare_clicks
part clicks "Clicks: logreg" each_of_clicks linear_clicks
part fm "Clicks: fm" each_of_clicks machines_of_factors
! wants linear rnn || prepare_texts
part linear "Texts: logreg" each_of_texts linear_texts
part rnn "Texts: rnn" each_of_texts recurrent
! wants cnn || prepare_pictures
part cnn "Pictures: cnn" each_of_pictures convolutional
close_work
