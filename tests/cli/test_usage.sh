#!/bin/bash
# Everything about the command line that needs no data: help, typos, wrong values, exit codes.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- help ----
expect_exit 64 "$paceline"
expect_no_output
expect_error "Usage: paceline VERB"

for words in --help -h help; do
    expect_exit 0 "$paceline" $words
    expect_no_error
    expect_text "gen clicks" "gen reviews" "prep clicks" train eval predict inspect "64 usage" "65 bad data" \
        "66 missing input" "70 bug" "74 input/output" "75 interrupted"
done
expect_exit 0 "$paceline" --version
expect_text "paceline "

for verb in "gen clicks" "gen reviews" "gen images" "prep clicks" "prep reviews" "prep images" merge train eval predict \
    inspect plan report top study tune; do
    expect_exit 0 "$paceline" $verb --help
    expect_no_error
    expect_text "Usage: paceline $verb" "Example" "  paceline $verb " "--json" "--quiet" "--config FILE" "--help"
    [ "$(awk '{ if (length($0) > widest) widest = length($0) } END { print widest }' out)" -le 100 ] ||
        fail "$verb --help is wider than 100 columns"
    mv out by_option
    expect_exit 0 "$paceline" help $verb
    cmp -s out by_option || fail "help $verb and $verb --help differ"
    expect_exit 0 "$paceline" ${verb%% *} --help
    expect_text "Usage: paceline $verb"
done
expect_exit 0 "$paceline" train --help
expect_text "--data DIR" "--run DIR" "--batch" "--epochs" "--optimizer" "required" "default"

# ---- help on a terminal: as wide as that, between 60 and 100 columns ----
# on_terminal COLUMNS WORDS...: what is shown is in $work/out; COLUMNS is its width, and not in the environment.
on_terminal()
{
    local columns=$1

    shift
    env -u COLUMNS TERM=xterm script -qefc "stty cols $columns; $(printf '%q ' "$paceline" "$@")" "$work/screen" >"$work/shown" </dev/null ||
        fail "no terminal: $(cat "$work/shown")"
    tr -d '\r' <"$work/shown" >"$work/out"
}

# widest: of all lines but examples, which are to be copied.
widest()
{
    grep -v '^  paceline ' out | grep -v '^      --' | awk '{ if (length($0) > widest) widest = length($0) } END { print widest }'
}

for verb in "gen clicks" "prep images" train plan study tune; do
    for columns in 60 77; do
        on_terminal $columns $verb --help
        expect_text "Usage: paceline $verb" "--kernels SET"
        [ "$(widest)" -le $columns ] || fail "$verb --help is $(widest) columns wide on a terminal of $columns"
        [ "$(widest)" -gt $((columns - 8)) ] || fail "$verb --help has only $(widest) of $columns columns"
    done
done
run train --help
mv out wanted
for columns in 100 250; do
    on_terminal $columns train --help
    cmp -s out wanted || fail "train --help is another one on a terminal of $columns columns"
done
on_terminal 20 train --help # as if it had 60
mv out narrow
on_terminal 60 train --help
cmp -s out narrow || fail "train --help is narrower than 60 columns"
on_terminal 100 --help
mv out wanted
run --help
cmp -s out wanted || fail "--help is another one on a terminal"
on_terminal 70 --help
[ "$(widest)" -le 70 ] || fail "--help is $(widest) columns wide on a terminal of 70"
expect_equal "words" "$(tr -s ' \n' '\n' <out)" "$(tr -s ' \n' '\n' <wanted)"
COLUMNS=60 expect_exit 0 "$paceline" train --help
cmp -s out <("$paceline" train --help) || fail "COLUMNS makes help narrower in a pipe"

# ---- verbs ----
usage_error "unknown verb tarin" "did you mean train?" -- tarin --data x
usage_error "unknown verb fly" "--help" -- fly
usage_error "unknown verb fly" -- help fly
usage_error "gen clicks" -- gen
usage_error "gen movies is not known" "gen clicks, gen reviews, gen images" -- gen movies -o x
usage_error "prep movies is not known" "prep clicks, prep reviews, prep images" -- prep movies x -o y
usage_error "no input" -- prep images -o y
usage_error "--format" "did you mean idx?" -- prep images x -o y --format ixd
usage_error "prep clicks" -- prep -o y

# ---- options ----
usage_error "--output" "missing" -- gen clicks
usage_error "--data" "missing" -- train --run r
mkdir known && touch known/config.yaml
usage_error "--data DIR is missing" "--config known/config.yaml has all options of that run" -- train --resume --run known
usage_error "--run" "missing" -- eval --data d
usage_error "--run" "missing" -- predict x
usage_error "unknown option --opitmizer" "did you mean --optimizer?" -- train --data d --run r --opitmizer sgd
usage_error "unknown option --row" "did you mean --rows?" -- gen clicks -o x --row 3
usage_error "unknown option -output" -- gen clicks -output x
usage_error "--run needs a value" "--force" -- train --data d --run --force
usage_error "--run needs a value" -- train --data d --run
usage_error "--rows" "none" "whole number" -- gen clicks -o x --rows none
usage_error "--rows 0" "out of range" -- gen clicks -o x --rows 0
usage_error "--epochs -1" "must be between 1 and 1000000" -- train --data d --run r --epochs -1
usage_error "--epochs 0" "must be above 0" -- train --data d --run r --epochs 0
usage_error "--lr -1" "must be above 0 and at most 1000000" -- train --data d --run r --lr -1
usage_error "--memory 1M" "must be between 128M and 1024T" -- prep clicks x -o y --memory 1M
usage_error "--optimizer" "adagard" "did you mean adagrad?" -- train --data d --run r --optimizer adagard
usage_error "unexpected word extra" -- train extra --data d --run r
# It is told before what is missing, which it may have been meant to be.
usage_error "unexpected word a9" -- train a9 --run z
usage_error "unexpected word l1" -- eval l1 a9
usage_error "unexpected word x.tsv" -- gen clicks x.tsv
expect_exit 0 "$paceline" train rnn --help
usage_error "no input" -- prep clicks -o x
usage_error "no input" -- predict --run r
usage_error "inspect takes one" -- inspect
usage_error "inspect takes one" -- inspect a b
usage_error "--json" "--output" -- predict --run r --json x
usage_error "--json" -- gen clicks -o - --json
usage_error "--output" "missing" -- gen reviews
usage_error "--rows 0" "out of range" -- gen reviews -o x --rows 0
usage_error "unknown option --format" -- gen reviews -o x --format criteo
usage_error "--json" -- gen reviews -o - --json
usage_error "--output" "missing" -- gen images
usage_error "--classes 11" "out of range" -- gen images -o x --classes 11
usage_error "--variant" "shape" "did you mean shapes?" -- gen images -o x --variant shape
[ ! -e x ] || fail "a usage error left a file"

# ---- the configuration file and the environment ----
printf 'rows: 5\n\nformt: criteo\n' >typo.yaml
usage_error "typo.yaml:3" "formt" "did you mean format?" -- gen clicks -o x --config typo.yaml
printf 'rows: 5\nseed: many\n' >value.yaml
usage_error "value.yaml:2" "seed" "many" -- gen clicks -o x --config value.yaml
printf 'rows: "5\n' >broken.yaml
usage_error "broken.yaml" "YAML" -- gen clicks -o x --config=broken.yaml
expect_exit 66 "$paceline" gen clicks -o x --config nowhere.yaml
expect_error "nowhere.yaml"
export PACELINE_ROWS=-1
usage_error "PACELINE_ROWS=-1" "out of range" -- gen clicks -o x
unset PACELINE_ROWS
expect_exit 64 env PACELINE_ROSW=7 PACELINE_BATCH=9 "$paceline" gen clicks -o x --rows 0
expect_error "paceline: warning: " "PACELINE_ROSW" "did you mean PACELINE_ROWS?"
! grep -q PACELINE_BATCH err || fail "a variable of another verb was warned about"
[ ! -e x ] || fail "a usage error left a file"

# ---- missing input ----
expect_exit 66 "$paceline" inspect nowhere
expect_no_output
expect_error "nowhere"
expect_exit 66 "$paceline" train --data nowhere --model logreg --run run1
expect_error "nowhere"
expect_exit 66 "$paceline" prep clicks nowhere.tsv -o data --format criteo
expect_error "nowhere.tsv"

# ---- standard output that cannot be written ----
got=0
"$paceline" --help >/dev/full 2>"$work/err" || got=$?
[ "$got" -eq 74 ] || fail "exit code $got instead of 74 on a full disk"
expect_error "standard output"
got=0
"$paceline" --help >&- 2>"$work/err" || got=$?
[ "$got" -eq 74 ] || fail "exit code $got instead of 74 with standard output closed"

# ---- help on one kind of model: its own options, and defaults as they are for it ----
run train --help
expect_text "paceline train --help rnn" "--workers" "(default by model)"
! grep -qE -- "^ +--hidden" out || fail "the common help has options of one kind"
run train --help rnn
expect_text "--hidden H" "(default 64)" "--batch B" "(default 128)" "(default 3)" "false, true, auto; default auto" \
    "By the data: where rows have room for more than 100 words, texts are read in both directions"
! grep -qE -- "^ +--arch" out || fail "help on rnn has options of another kind"
run train --help cnn
expect_text "--arch A" "default cosine" "Mobilenets" "up to 40 epochs of so few pictures"
run train --help fm
expect_text "--factors K" "By the data: --lr (adagrad) 1 / entries of a row, 0.03 to 0.15"
usage_error "--help nothing" "logreg, rnn, cnn" -- train --help nothing
usage_error "--hidden" "--model rnn" "not for cnn" -- train --data d --run r --model cnn --hidden 4
