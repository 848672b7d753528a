#!/bin/bash
# Why a model says what it says: predict --explain, eval --errors and the names that inspect has, against plain computations.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit

# sums FILE BIAS: each line's probability is that of the bias and all its reasons, which come by falling size.
sums()
{
    awk -F '\t' -v bias="$2" -v wrong=0 '
        NF < 3 || NF % 2 == 0 { wrong = 1 }
        {
            sum = bias
            for (i = 3; i <= NF; i += 2) {
                sum += $i
                if (i > 3 && $i ^ 2 > $(i - 2) ^ 2 * (1 + 1e-9)) wrong = 1
            }
            p = 1 / (1 + exp(-sum))
            if ((p - $1) ^ 2 > 1e-8) wrong = 1
        }
        END { exit wrong || NR == 0 }' "$1" || fail "$1 does not add up with $2: $(head -n 1 "$1" | cut -c 1-300)"
}

# bias RUN
bias()
{
    run inspect "$1" --top 0
    awk '$1 == "bias" { print $2 }' out
}

# same_probabilities FILE FILE: explaining changes no answer.
same_probabilities()
{
    cmp -s <(cut -f 1 "$1") <(cut -f 1 "$2") || fail "$1 and $2 have other probabilities"
}

# ---- clicks ----
run gen clicks -o clicks.tsv --rows 3000
run prep clicks clicks.tsv -o clicks --holdout 0.3
run train --data clicks --model logreg --run logreg --quiet
run train --data clicks --model fm --run fm --factors 3 --quiet
head -n 40 clicks.tsv >some.tsv
for model in logreg fm; do
    run predict --run $model some.tsv -o plain --force
    run predict --run $model some.tsv --explain 1000 -o all --force
    run predict --run $model some.tsv --explain 3 -o three --force
    sums all "$(bias $model)"
    same_probabilities plain all
    cmp -s <(cut -f 1-7 all) three || fail "the first three reasons of $model are others"
done
grep -qE '	C[0-9]+\+[0-9]+ \* C[0-9]+\+[0-9]+	' all || fail "no pairs of features"
run predict --run logreg some.tsv --explain 39 -o all --force
awk -F '\t' 'NF > 79 { exit 1 }' all || fail "more reasons than columns"

# The heaviest feature of a row is the one of the model with that name.
run inspect logreg --top 100000
name=$(cut -f 2 all | head -n 1)
amount=$(cut -f 3 all | head -n 1)
weight=$(grep -F "feature $name," out | sed 's/.*weight //')
is_true "($weight - $amount) ^ 2 < 1e-10" || fail "$name weighs $weight, not $amount"

# svmlight: weight times value; by id. What the model does not know is no reason.
printf '%s\n' '1 3:2 5:1' '0 4:1' '1 3:1' '0 4:2 5:1' '1 3:1 4:1' >numbers.svm
run prep clicks numbers.svm -o numbers --format svmlight
run train --data numbers --model logreg --run numbered --epochs 20 --quiet
printf '%s\n' '3:3 77:1' '99:1' >new.svm
expect_exit 0 "$paceline" predict --run numbered new.svm --explain 5 --format svmlight
one=$(sed -n 1p out | cut -f 2)
expect_equal "the only reason" "$one" 3
expect_equal "fields of a row that nothing is known of" "$(sed -n 2p out | awk -F '\t' '{ print NF }')" 1

# ---- texts ----
awk 'BEGIN {
    srand(5)
    for (i = 0; i < 2000; i++) {
        good = rand() < 0.5; not = rand() < 0.5
        printf "%d\tthe%d food%d was%d %s%s today%d\n", good != not, rand() * 20, rand() * 20, rand() * 20,
            not ? "not " : "", good ? "tasty" : "stale", rand() * 20
    }
}' >texts.tsv
run prep reviews texts.tsv -o texts --format tab --stopwords none --holdout 0.2
run train --data texts --model logreg --run linear --quiet
run train --data texts --model rnn --run rnn --hidden 8 --embed 8 --epochs 4 --batch 32 --quiet
cut -f 2 texts.tsv | head -n 50 >some.txt
for model in linear rnn; do
    run predict --run $model some.txt --format lines -o plain --force
    run predict --run $model some.txt --format lines --explain 1000 -o all --force
    same_probabilities plain all
    [ $model = rnn ] || sums all "$(bias linear)"
done
awk -F '\t' 'NR == FNR { words[FNR] = split($0, each, " "); next } NF != 1 + 2 * words[FNR] { exit 1 }' some.txt all ||
    fail "not each word of a text has been left out"

# What is gone without a word is what the model says of the text without it.
printf '%s\n' 'the1 food2 was3 not tasty' 'the1 food2 was3 tasty' >two.txt
run predict --run rnn two.txt --format lines --explain 10 -o two
gone=$(head -n 1 two | tr '\t' '\n' | grep -x -A 1 not | tail -n 1)
awk -v gone="$gone" '{ logit[NR] = log($1 / (1 - $1)) }
    END { exit (logit[1] - logit[2] - gone) ^ 2 > 1e-6 }' two || fail "without \"not\" there is not $gone less"
echo 'the1 food2 was3 not tasty' | "$paceline" predict --run linear - --explain 2 >out 2>err || fail "typed texts"
expect_equal "typed texts" "$(awk -F '\t' '{ print NF }' out)" 5

# inspect has the words of n-grams; of --top, all that are in the training rows.
run inspect linear --top 4
expect_text "feature not tasty, id " "feature not stale, id "
run inspect linear --top 100000
! grep -q 'feature n-gram' out || fail "n-grams without words"
run train --data texts --model logreg --run linear2 --workers 2 --ps 1 --quiet
run inspect linear2 --top 4
expect_text "feature not tasty, id "

# ---- mistakes ----
for model in linear rnn; do
    run eval --run $model --data texts --json
    cp out scores
    run eval --run $model --data texts --json --errors wrong.tsv --force
    cmp -s out scores || fail "--errors changes what is printed"
    wrong=$(($(json_number fp) + $(json_number fn)))
    expect_equal "mistakes of $model" "$(wc -l <wrong.tsv)" "$wrong"
done
run train --data texts --model logreg --run bad --steps 1 --quiet
run eval --run bad --data texts --errors wrong.tsv --force
[ -s wrong.tsv ] || fail "nothing is wrong"
awk -F '\t' '
    NF != 5 || ($4 > 0.5) == $3 || $1 !~ /^part-[0-9]+\.h5$/ { exit 1 }
    { sure = ($4 - 0.5) ^ 2 }
    NR > 1 && sure > last { exit 1 }
    { last = sure }' wrong.tsv || fail "no mistakes, or not the surest first: $(head -n 3 wrong.tsv)"
cut -f 5 wrong.tsv | head -n 20 >again.txt
run predict --run bad again.txt --format lines -o again
cmp -s again <(cut -f 4 wrong.tsv | head -n 20) || fail "the rows are others"
run eval --run logreg --data clicks --errors wrong.tsv --force
awk -F '\t' 'NF != 5 || split($5, each, " ") != 39 || each[14] !~ /^C1\+/ { exit 1 }' wrong.tsv || fail "no clicks by column"

# ---- pictures ----
run gen images -o pictures --rows 60 --classes 3 --variant shapes
run prep images pictures -o pictures.set --size 16 --holdout 0.3
run train --data pictures.set --model cnn --run cnn --epochs 1 --quiet
picture=$(find pictures -type f | head -n 1)
expect_exit 0 "$paceline" predict --run cnn "$picture" --explain 4
expect_equal "rows of cells" "$(awk -F '\t' '{ print NF - 3 }' out)" 4
expect_equal "cells of a row" "$(cut -f 7 out | wc -w)" 4
expect_exit 0 "$paceline" predict --run cnn "$picture" --top 3 --explain 2
expect_equal "fields with three classes" "$(awk -F '\t' '{ print NF }' out)" 9

# ---- what cannot be ----
usage_error "--explain 17" "at most 16 x 16 cells" -- predict --run cnn "$picture" --explain 17
usage_error "--explain" -- predict --run logreg some.tsv --explain -1
usage_error "--explain" -- predict --run logreg some.tsv --explain 1001
usage_error "wrong.tsv" "--force" -- eval --run linear --data texts --errors wrong.tsv
usage_error "not standard output" -- eval --run linear --data texts --errors -
exit 0
