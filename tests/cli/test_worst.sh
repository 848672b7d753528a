#!/bin/bash
# mistakes.json: the test rows of texts and pictures that a model is surest of, and wrong, whoever has scored them; in the report.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

export ASAN_OPTIONS=detect_leaks=0 # MPI leaks at exit
run gen reviews -o texts.jsonl --rows 600
run prep reviews texts.jsonl -o texts --length 30 --holdout 0.4
run gen images -o pictures --rows 200 --classes 4 --variant shapes
run prep images pictures -o pictures.set --size 16 --holdout 0.5

# worst RUN: a line for each, "row actual predicted probability".
worst()
{
    sed -n 's/^ *{"row": \([0-9]*\), "actual": "\([^"]*\)", "predicted": "\([^"]*\)", "probability": \([^,}]*\).*/\1 \2 \3 \4/p' \
        "$1/mistakes.json"
}

# check RUN: up to ten, all of them wrong, the surest first; and the report has them.
check()
{
    local total wrong

    total=$(sed -n '1s/.*"mistakes": \([0-9]*\),.*/\1/p' "$1/mistakes.json")
    wrong=$(awk -v n="$(json_number n "$1/summary.json")" -v a="$(json_number accuracy "$1/summary.json")" \
        'BEGIN { printf "%.0f", n * (1 - a) }')
    expect_equal "mistakes of $1" "$total" "$wrong"
    expect_equal "lines of $1" "$(worst "$1" | wc -l)" "$((total < 10 ? total : 10))"
    worst "$1" | awk 'NR > 1 && $4 > last { exit 1 } $2 == $3 || $4 > 1 { exit 1 } { last = $4 }' || fail "odd: $(worst "$1")"
    grep -q 'Worst mistakes' "$1/report.html" || fail "the report of $1 has no mistakes"
}

rnn=(train --data texts --model rnn --hidden 8 --embed 8 --epochs 2 --batch 32 --quiet)
run "${rnn[@]}" --run rnn
check rnn
grep -q '"text": "[a-z]' rnn/mistakes.json || fail "texts have no words"
run "${rnn[@]}" --run by-evaluator --workers 2 --mode ps-sync --evaluator
check by-evaluator
run train --data texts --model logreg --run linear --epochs 1 --quiet
check linear

run train --data pictures.set --model cnn --run cnn --epochs 2 --quiet
check cnn
grep -q '"name": "pictures/' cnn/mistakes.json || fail "pictures have no names"
sed -n '2s/.*"png": "\([^"]*\)".*/\1/p' cnn/mistakes.json | base64 -d >one.png || fail "no base64"
expect_equal "a PNG file" "$(head -c 4 one.png | od -An -tx1 | tr -d ' \n')" 89504e47
grep -q '<img alt="" src="data:image/png;base64,iVBOR' cnn/report.html || fail "the report has no pictures"

# Clicks are nothing to look at; a run that is replaced keeps nothing of the one before.
run gen clicks -o clicks.tsv --rows 500
run prep clicks clicks.tsv -o clicks --holdout 0.2
run train --data clicks --run cnn --force --quiet
[ ! -e cnn/mistakes.json ] || fail "clicks have mistakes"

# What somebody else has put there is shown as text, or not at all.
cat >rnn/mistakes.json <<'END'
{"version": 1, "mistakes": 2, "worst": [
  {"row": 1, "actual": "<b>", "predicted": "x", "probability": 0.5, "text": "</script><script>alert(1)</script>"},
  {"row": 2, "actual": 7, "png": "\"><script>", "probability": "high"}]}
END
run report rnn -o odd.html
! grep -q '<script>alert' odd.html || fail "it is code"
grep -qF '&lt;script&gt;alert' odd.html || fail "it is gone"
for text in '' '[]' '{"worst": 7}' '{"worst": [7, null, {}]}' '{'; do
    echo "$text" >rnn/mistakes.json
    run report rnn -o odd.html --force
done
