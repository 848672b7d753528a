#!/bin/bash
# What the program says to whoever is new to it: names of other tools, files that are none of ours, what may not be read,
# readers that leave early.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- names that other tools have ----
given=(train --data d --run r)
while read -r theirs ours; do
    usage_error "unknown option $theirs (did you mean $ours?)" -- "${given[@]}" "$theirs=1"
done <<END
--learning-rate --lr
--learning_rate --lr
--lr-rate --lr
--eta --lr
--batch-size --batch
--batchsize --batch
--Batch_Size --batch
--num-workers --workers
--nepochs --epochs
--num-epochs --epochs
--optimiser --optimizer
--output --run
--input --data
--weight-decay --l2
--hidden-size --hidden
--eval_every --eval-every
--num-layers --layers
END
usage_error "--output-dir (did you mean --output?)" -- prep clicks x --output-dir y
usage_error "--model (did you mean --run?)" -- predict x --model y
usage_error "--num-threads (did you mean --threads?)" -- gen clicks -o x --num-threads 2
usage_error "unknown verb fit (did you mean train?)" -- fit --data d
usage_error "unknown verb evaluate (did you mean eval?)" -- evaluate
usage_error "unknown verb generate (did you mean gen?)" -- generate clicks
printf 'learning_rate: 0.5\n' >theirs.yaml
usage_error "theirs.yaml:1: unknown key learning_rate (did you mean lr?)" -- "${given[@]}" --config theirs.yaml
expect_exit 66 env PACELINE_LEARNING_RATE=0.5 "$paceline" "${given[@]}"
expect_error "PACELINE_LEARNING_RATE is not known" "did you mean PACELINE_LR?"
for word in --version -V version; do
    expect_exit 0 "$paceline" $word
    expect_text "paceline "
done

# ---- an option of another kind says where it stands ----
printf 'seed: 3\nhidden: 16\n' >kind.yaml
usage_error "kind.yaml:2: hidden is for --model rnn, not for logreg" -- "${given[@]}" --model logreg --config kind.yaml
expect_exit 64 env PACELINE_FACTORS=4 "$paceline" "${given[@]}" --model logreg
expect_error "environment variable PACELINE_FACTORS is for --model fm, not for logreg"
usage_error "--hidden is for --model rnn" -- "${given[@]}" --model logreg --hidden 8

# ---- nobody asks for 0 and gets something else ----
for option in lr epochs batch; do
    usage_error "option --$option 0: must be above 0" -- "${given[@]}" --model logreg --$option 0
done
usage_error "--hidden 0" "above 0" -- "${given[@]}" --model rnn --hidden 0
printf 'lr: 0.0\n' >zero.yaml
usage_error "zero.yaml:1: lr: 0.0: must be above 0" -- "${given[@]}" --config zero.yaml

# ---- options that mean nothing here ----
usage_error "--classes 5 is for --variant shapes" -- gen images -o x --variant quality --classes 5

# ---- files of others ----
run gen clicks -o clicks.tsv --rows 300
gzip -k clicks.tsv
run gen clicks -o clicks.svm --rows 5 --format svmlight
run gen reviews -o texts.jsonl --rows 5
head -c 3000 /dev/urandom >noise
printf '\x89PNG\r\n\x1a\n and more' >picture.png
: >empty
# looks_like FILE TEXT...
looks_like()
{
    expect_exit 65 "$paceline" inspect "$1"
    expect_no_output
    expect_error "paceline: error: $1: neither a data set nor a run, checkpoint or model" "looks like ${*:2}"
}
looks_like clicks.tsv "a click log"
looks_like clicks.tsv.gz "a click log"
looks_like clicks.svm "rows in svmlight format"
looks_like texts.jsonl "JSON lines"
looks_like noise "binary data"
looks_like picture.png "a picture"
looks_like empty "nothing: it is empty"
looks_like kind.yaml "a text"

# ---- errors on standard input name the line ----
run prep clicks clicks.tsv -o data --holdout 0.1
run train --data data --model logreg --run run
run gen reviews -o reviews.jsonl --rows 200
run prep reviews reviews.jsonl -o texts
run train --data texts --model logreg --run read
{ head -n 30 clicks.tsv && echo "no row" && head -n 3 clicks.tsv; } >bad.tsv
{ head -n 3 texts.jsonl && echo '{no' && cat texts.jsonl; } >bad.jsonl
# piped CODE FILE WORDS...
piped()
{
    local code=0

    "$paceline" "${@:3}" <"$2" >out 2>err || code=$?
    expect_equal "exit code of $*" $code "$1"
}
piped 65 bad.tsv predict --run run - --format criteo
expect_error "standard input:31: "
piped 65 bad.tsv prep clicks - --format criteo -o none
expect_error "standard input:31: "
piped 65 bad.jsonl predict --run read -
expect_error "standard input:4: "
piped 65 bad.jsonl prep reviews - --format jsonl -o none
expect_error "standard input:4: "

# ---- a header is no text ----
printf 'text,stars\nnot bad,5\n' >columns.csv
usage_error 'columns.csv: has no column "reviewText"' "--text-field" "--format lines" -- predict --run read columns.csv
run predict --run read columns.csv --format csv --text-field text
expect_equal "lines" "$(wc -l <out)" 1
run predict --run read columns.csv --format lines
expect_equal "lines" "$(wc -l <out)" 2

usage_error "--top is for pictures" -- predict --run run clicks.tsv --top 3
usage_error "--text-field is for texts" -- predict --run run clicks.tsv --text-field text

# ---- one of something, and nothing ----
run train --data data --model logreg --run single --steps 1 --epochs 1 --batch 1M
expect_text "1 (1 epoch)"
expect_error " 1 step of "
run inspect single
! grep -nE '[a-z_]$|[a-z_] +(,|$)' out | grep -qE 'waits_for|staleness' || fail "inspect prints a name without a value"
: >empty
expect_exit 65 "$paceline" prep clicks empty -o none
expect_error "empty: it is empty: no rows"

# ---- a reader that has left ----
# unread CODE WORDS...: its standard output is a pipe that nobody reads. It ends with that code, in silence: 141 is
# SIGPIPE, as other programs do; but what is left in files is done.
unread()
{
    {
        trap '' PIPE
        while echo 2>/dev/null; do :; done
        trap - PIPE
        "$paceline" "${@:2}" 2>err
        echo $? >code
    } | :
    expect_equal "exit code of ${*:2} without a reader" "$(cat code)" "$1"
    : >out
    expect_no_error
}
unread 141 --help
unread 141 train --help
unread 141 --version
unread 141 inspect run
unread 141 inspect data --json
unread 141 eval --run run --data data --quiet
unread 141 predict --run run clicks.tsv --quiet
unread 141 gen clicks -o - --rows 3000 --quiet
unread 141 prep reviews reviews.jsonl --map
unread 0 gen clicks -o unread.tsv --rows 3000 --quiet
unread 0 prep clicks unread.tsv -o unread_data --quiet
unread 0 merge unread_data -o unread.h5 --quiet
unread 0 train --data unread_data --model logreg --run unread_run --quiet
unread 0 train --data unread_data --model logreg --run unread_json --quiet --json
unread 0 predict --run run clicks.tsv -o unread.txt --quiet
[ -e unread.h5 ] && [ -e unread_json/summary.json ] && [ -s unread.txt ] || fail "what nobody heard of is not there"
# Nor does it matter to a job that nobody reads its messages.
{
    trap '' PIPE
    while echo 2>/dev/null; do :; done
    trap - PIPE
    "$paceline" train --data data --model logreg --run unheard 2>&1
    echo $? >code
} | :
expect_equal "exit code of a job whose messages nobody reads" "$(cat code)" 0
[ -e unheard/summary.json ] || fail "a job ended because nobody read its messages"

# ---- rows of one class ----
for label in "0 negative" "1 positive"; do
    printf '%s 3:1\n' "${label% *}" "${label% *}" >one.svm
    run prep clicks one.svm --format svmlight -o one --force
    expect_error "warning: all training rows are ${label#* }: look at the labels"
done
printf '1 3:1\n0 4:1\n' >two.svm
run prep clicks two.svm --format svmlight -o two --quiet
expect_no_error

# ---- what may not be read is not called missing ----
if [ "$(id -u)" -eq 0 ] && command -v setpriv >/dev/null; then
    chmod 711 "$work"
    cp "$paceline" program
    chmod 755 program
    nobody=(setpriv --reuid=65534 --regid=65534 --clear-groups "$work/program")
    mkdir open && chmod 777 open
    cp -r data locked && cp -r run locked_run
    mkdir behind && cp -r data behind/data
    chmod 000 locked locked_run behind
    chmod a+r clicks.tsv
    # denied PATH WORDS...
    denied()
    {
        expect_exit 66 "${nobody[@]}" "${@:2}"
        expect_error "$1" "Permission denied"
        ! grep -qE "no such|not exist|missing|neither" err || fail "it is called missing"
    }
    for path in locked behind/data; do
        denied $path train --data $path --model logreg --run open/run
        denied $path inspect $path
        denied $path merge $path -o open/merged.h5
    done
    denied locked_run inspect locked_run
    denied locked_run predict --run locked_run clicks.tsv
    denied locked_run eval --run locked_run --data data
    denied locked_run prep clicks clicks.tsv --like locked_run -o open/like
    # What is there and may not be written to is not said to be made.
    mkdir -m 755 kept
    for more in --dry-run "--workers 2"; do
        # shellcheck disable=SC2086 # words
        expect_exit 74 "${nobody[@]}" train --data data --model logreg --run kept $more
        expect_error "kept: cannot be written to: Permission denied"
        # shellcheck disable=SC2086 # words
        expect_exit 74 "${nobody[@]}" train --data data --model logreg --run kept/new $more
        expect_error "kept/new: cannot be made: ./kept: Permission denied"
    done
else
    echo "permissions: skipped, only root can become somebody else"
fi
