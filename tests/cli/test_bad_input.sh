#!/bin/bash
# Bad input of every kind: the right exit code, a message that says where, no crash, nothing left behind.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

seconds_max=60 # for anything that is waited for

# The HDF5 library does not free everything after an error. Only sanitizer builds read this.
echo "leak:libhdf5" >leaks_of_others
export LSAN_OPTIONS="suppressions=$work/leaks_of_others:print_suppressions=0"

# A hang is a failure too: exit code 124.
bounded=(timeout -k 5 "$seconds_max" "$paceline")

: >out
: >err

listing()
{
    (shopt -s globstar dotglob nullglob && printf '%s\n' **)
}

# refused CODE TEXT... -- WORDS...: the program fails with that code and one message, which holds the texts, and leaves
# everything as it was.
refused()
{
    local texts words before

    split_texts "${@:2}"
    before=$(listing)
    expect_exit "$1" "${bounded[@]}" "${words[@]}"
    expect_no_output
    expect_error "paceline: error: " "${texts[@]}"
    [ "$(listing)" = "$before" ] || fail "something was left behind: $(diff <(echo "$before") <(listing))"
}

# survives WORDS...: nobody knows what it should say, but it ends with 0 or 65.
survives()
{
    local got=0

    "${bounded[@]}" "$@" >out 2>err </dev/null || got=$?
    [ $got -eq 0 ] || [ $got -eq 65 ] || fail "exit code $got: $*"
    [ $got -eq 0 ] || expect_error "paceline: error: "
    last_code=$got
}

run()
{
    expect_exit 0 "${bounded[@]}" "$@"
}

# flip FILE BYTE: inverts some of its bits.
flip()
{
    local value

    value=$(od -An -tu1 -j "$2" -N 1 "$1")
    printf "\\x$(printf %x $((value ^ 0x55)))" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# fill FILE FIRST COUNT: overwrites bytes with 0xff.
fill()
{
    head -c "$3" /dev/zero | tr '\0' '\377' | dd of="$1" bs=1 seek="$2" conv=notrunc status=none
}

# expect_end PID CODE
expect_end()
{
    local got=0

    wait_for has_ended "$1"
    wait "$1" || got=$?
    [ $got -eq "$2" ] || fail "exit code $got instead of $2"
}

bytes_of()
{
    stat -c %s "$1"
}

run gen clicks -o good.tsv --rows 400
run gen clicks -o good.svm --rows 400 --format svmlight
run gen clicks -o good.tfrecord --rows 400 --format tfrecord
head -n 3 good.tsv >three.tsv
row=$(head -n 1 good.tsv)

# ---- criteo rows ----
bad=
# bad_criteo TEXT...: the row in $bad, as the fourth, is refused, and the message holds its place and the texts.
bad_criteo()
{
    { cat three.tsv && printf '%s\n' "$bad" && cat three.tsv; } >bad.tsv
    refused 65 "bad.tsv:4: " "$@" -- prep clicks bad.tsv -o set
    gzip -c bad.tsv >bad.gz
    refused 65 "bad.gz:4: " "$@" -- prep clicks bad.gz -o set
    refused 65 "bad.tsv:4: " "$@" -- prep clicks good.tsv -o set --test bad.tsv
    rm bad.gz
}
bad=$'0\t1\t2' bad_criteo "3 tab-separated columns" 40
bad="$row"$'\textra' bad_criteo "41 tab-separated columns" 40
bad=${row#*$'\t'} bad_criteo "39 tab-separated columns" 40
bad=$'\t'${row#*$'\t'} bad_criteo label empty
bad=$'2\t'${row#*$'\t'} bad_criteo 'label "2"'
bad=$'-1\t'${row#*$'\t'} bad_criteo 'label "-1"'
rest=$(printf '%s' "$row" | cut -f 3-)
bad=$'0\t12x\t'"$rest" bad_criteo I1 '"12x"' integer
bad=$'0\t1.5\t'"$rest" bad_criteo I1 '"1.5"'
bad=$'0\t-\t'"$rest" bad_criteo I1 '"-"'
bad=$'0\t9223372036854775808\t'"$rest" bad_criteo I1 '"9223372036854775808"'
{ cat three.tsv && printf '%s' "$row" | tr '\t' '\0' && printf '\n'; } >nul.tsv
refused 65 "nul.tsv:4: " NUL -- prep clicks nul.tsv -o set
expect_exit 65 "${bounded[@]}" prep clicks - -o set --format criteo <nul.tsv

# ---- svmlight rows ----
# bad_svmlight TEXT...: likewise, as the second.
bad_svmlight()
{
    printf '1 1:1\n%b\n0 1:1\n' "$bad" >bad.svm
    refused 65 "bad.svm:2: " "$@" -- prep clicks bad.svm -o set
}
for value in nan inf -inf NaN 1e39 0x10 1,5 1.5.2 '' --1; do
    bad="0 2:$value" bad_svmlight "2:$value" number
done
for label in 2 0.5 -2 yes 1x; do
    bad="$label 2:1" bad_svmlight "label \"$label\""
done
bad='2:1 3:1' bad_svmlight "label is missing" "2:1"
for entry in -3:1 :1 a:1 7 1.5:1 99999999999999999999:1; do
    bad="0 $entry" bad_svmlight "\"$entry\"" id:value
done
for id in 9007199254740992 9999999999999999; do
    bad="0 $id:1" bad_svmlight "$id" 9007199254740992
done
bad='0 2:1\0' bad_svmlight NUL
printf '1 1:1\n0 5:1\n' >ids.svm
refused 65 "ids.svm:2: " "5:1" "not below 5" -- prep clicks ids.svm -o set --features 5
run prep clicks ids.svm -o set --features 6
rm -r set

# ---- bad rows that are allowed ----
printf '1 1:1\n0 x:1\n1 2:1\n0 2:y\n' >some_bad.svm
run prep clicks some_bad.svm -o set --max-bad-rows 2 --json
expect_text '"bad_rows":2' '"train_rows":2'
expect_error "some_bad.svm:2: " "some_bad.svm:4: " skipped
rm -r set
refused 65 "some_bad.svm:4: " "2:y" "1 skipped" -- prep clicks some_bad.svm -o set --max-bad-rows 1 --threads 1
for i in $(seq 200); do echo "rubbish $i"; done >>some_bad.svm
run prep clicks some_bad.svm -o set --max-bad-rows 1000 --json
expect_text '"bad_rows":202'
[ "$(wc -l <err)" -lt 50 ] || fail "every bad row is shown"
rm -r set

# ---- TFRecord ----
second=$(($(od -An -tu8 -N 8 good.tfrecord) + 16)) # where the second record starts
cp good.tfrecord bad.tfrecord
flip bad.tfrecord $((second + 8))
refused 65 bad.tfrecord "byte $second" checksum length -- prep clicks bad.tfrecord -o set
cp good.tfrecord bad.tfrecord
flip bad.tfrecord $second
refused 65 bad.tfrecord "byte $second" checksum length -- prep clicks bad.tfrecord -o set
cp good.tfrecord bad.tfrecord
flip bad.tfrecord $((second + 30))
refused 65 bad.tfrecord "byte $second" checksum data -- prep clicks bad.tfrecord -o set
run prep clicks bad.tfrecord -o set --max-bad-rows 1 --json
expect_text '"bad_rows":1' '"train_rows":399'
rm -r set
for size in $((second + 1)) $((second + 12)) $((second + 50)); do
    head -c $size good.tfrecord >bad.tfrecord
    refused 65 bad.tfrecord "byte $second" ends -- prep clicks bad.tfrecord -o set
done
head -c 5 good.tfrecord >bad.tfrecord
refused 65 bad.tfrecord "byte 0" ends -- prep clicks bad.tfrecord -o set --format tfrecord
refused 65 three.tsv "byte 0" TFRecord -- prep clicks three.tsv -o set --format tfrecord

# ---- compressed files ----
gzip -c good.tsv >good.gz
for size in 3 15 1000 $(($(bytes_of good.gz) - 3)); do
    head -c "$size" good.gz >bad.gz
    refused 65 bad.gz "gzip data is cut short" "byte $size" -- prep clicks bad.gz -o set
done
cp good.gz bad.gz
flip bad.gz $(($(bytes_of good.gz) - 6)) # within the checksum
refused 65 bad.gz "gzip data is damaged" checksum -- prep clicks bad.gz -o set
cp good.gz bad.gz
fill bad.gz 5000 300
refused 65 bad.gz -- prep clicks bad.gz -o set
{ cat good.gz && echo more; } >bad.gz
refused 65 bad.gz "no gzip member" -- prep clicks bad.gz -o set
if command -v zstd >/dev/null; then
    zstd -q good.tsv -o good.zst
    for size in 7 1000 $(($(bytes_of good.zst) - 3)); do
        head -c "$size" good.zst >bad.zst
        refused 65 bad.zst "zstd data is cut short" "byte $size" -- prep clicks bad.zst -o set
    done
    cp good.zst bad.zst
    fill bad.zst 5000 300
    refused 65 bad.zst "zstd data is damaged" -- prep clicks bad.zst -o set
else
    echo "zstd is not installed: skipped"
fi

# ---- huge lines, empty files, what is no file ----
{ cat three.tsv && head -c 17000000 /dev/zero | tr '\0' x && echo && cat three.tsv; } >huge.tsv
tail -n +4 huge.tsv >huge
refused 65 "huge: " "line 1" 16777216 -- prep clicks huge -o set --format criteo
{ head -n 1 huge && printf '1 1:1\n'; } >huge.svm # nothing but the long line may be wrong: threads race
refused 65 "huge.svm: " "line 1" 16777216 -- prep clicks huge.svm -o set --format svmlight
refused 65 huge.tsv "line 4" 16777216 -- prep clicks huge.tsv -o set
gzip -1 -c huge.tsv >huge.gz
refused 65 huge.gz "line 4" 16777216 -- prep clicks huge.gz -o set
rm huge huge.svm huge.tsv huge.gz
: >empty
printf '\n\n\r\n\n' >blank
for format in criteo svmlight; do
    refused 65 "empty: " "no rows" -- prep clicks empty -o set --format $format
    refused 65 "blank: " "no rows" -- prep clicks blank -o set --format $format
done
refused 65 "empty: " "no rows" -- prep clicks empty -o set --format tfrecord
run prep clicks empty three.tsv blank -o set --format criteo --json # others have rows
expect_text '"train_rows":3'
rm -r set
printf 'hello world\n' >words
refused 64 "words: " "--format" -- prep clicks words -o set
mkdir directory
for format in auto criteo; do
    refused 66 "directory: is a directory" -- prep clicks directory -o set --format $format
    refused 66 "missing: " "No such file" -- prep clicks missing -o set --format $format
    refused 66 "missing: " "No such file" -- prep clicks three.tsv missing -o set --format $format
    refused 66 "missing: " "No such file" -- prep clicks three.tsv -o set --test missing --format $format
done
if [ "$(id -u)" -ne 0 ]; then
    cp three.tsv secret.tsv
    chmod 000 secret.tsv
    refused 66 "secret.tsv: " "Permission denied" -- prep clicks secret.tsv -o set
    rm -f secret.tsv
else
    echo "unreadable file: skipped, root can read everything"
fi

# ---- options and sizes ----
refused 64 "--featurs" "did you mean --features?" -- prep clicks three.tsv -o set --featurs 100
refused 64 "--max-bad-row" "did you mean --max-bad-rows?" -- prep clicks three.tsv -o set --max-bad-row 1
refused 64 "--format" "critoe" "did you mean criteo?" -- prep clicks three.tsv -o set --format critoe
refused 64 "--holdout 1" "out of range" -- prep clicks three.tsv -o set --holdout 1
refused 64 "--parts 0" "between 1 and" -- prep clicks three.tsv -o set --parts 0
refused 64 "--features 9007199254740993" "9007199254740992" -- prep clicks ids.svm -o set --features 9007199254740993
refused 64 "--memory 1k" "128M" -- prep clicks three.tsv -o set --memory 1k
refused 64 "--holdout" "--test" -- prep clicks three.tsv -o set --holdout 0.1 --test good.tsv
refused 64 "--hash off" -- prep clicks three.tsv -o set --hash off
refused 64 "--features 5" -- prep clicks three.tsv -o set --features 5
head -n 1 good.tsv >one.tsv
refused 64 "--holdout 0.5" "1 rows" -- prep clicks one.tsv -o set --holdout 0.5
for words in "--parts 16" "--threads 16" "--parts 7 --threads 5 --holdout 0.34"; do
    read -ra options <<<"$words"
    run prep clicks three.tsv -o set "${options[@]}" --json
    expect_text '"bad_rows":0'
    run train --data set --run run --threads 4 --batch 1 --epochs 2
    run eval --run run --data set --set train
    rm -r set run
done

# The command that made a set is kept in it, however long it is.
name=$(printf 'a%.0s' $(seq 200)).tsv
cp one.tsv "$name"
many=()
for i in $(seq 400); do
    many+=("$name")
done
"${bounded[@]}" prep clicks "${many[@]}" -o set --json >out 2>err || fail "prep of 400 files with long names"
expect_text '"train_rows":400'
run inspect set
[ "$(bytes_of out)" -gt 80000 ] || fail "the command is not kept"
rm -r set "$name"

# ---- where a data set may be written ----
run prep clicks three.tsv -o set
cp -r set before
refused 64 "set: already holds a data set" "--force" -- prep clicks good.tsv -o set
diff -r set before || fail "a refused prep changed the data set"
refused 65 "bad.tsv:4" -- prep clicks bad.tsv -o set --force
diff -r set before || fail "a failed prep --force changed the data set"
run prep clicks good.tsv -o set --force --json
expect_text '"train_rows":400'
[ ! -e .set.old ] && [ ! -e .set.partial ] || fail "prep --force left something behind"
rm -r set before
echo "years of work" >directory/thesis
refused 64 "directory: " "not a data set" -- prep clicks three.tsv -o directory
refused 64 "directory: " "not a data set" -- prep clicks three.tsv -o directory --force
[ "$(cat directory/thesis)" = "years of work" ] || fail "someone's file was changed"
refused 64 "three.tsv: " "not a directory" -- prep clicks good.tsv -o three.tsv --force
refused 74 "three.tsv: " "there is a file of that name" -- prep clicks good.tsv -o three.tsv/set
refused 64 name -- prep clicks three.tsv -o ''
mkdir hollow
(cd hollow && refused 64 name -- prep clicks ../three.tsv -o .) || exit 1
rmdir hollow
run prep clicks three.tsv -o new/and/deep
rm -r new
refused 74 "/proc/" -- prep clicks three.tsv -o /proc/paceline-set
refused 74 "missing/rows.tsv: " "No such file" -- gen clicks -o missing/rows.tsv --rows 10
refused 64 "directory: " -- gen clicks -o directory --rows 10
refused 64 "three.tsv: exists" "--force" -- gen clicks -o three.tsv --rows 10
refused 74 "/proc/" -- gen clicks -o /proc/paceline-rows --rows 10

# ---- prep that is killed, interrupted, or not alone ----
mkfifo pipe
# start_prep: a prep that has read some rows and waits for more, which come through descriptor 9.
start_prep()
{
    exec 9<>pipe
    "$paceline" prep clicks pipe -o set --format criteo >prep.out 2>prep.err 9>&- &
    child=$!
    cat good.tsv >&9
    wait_for test -d .set.partial
}
start_prep
kill -KILL $child
expect_end $child 137
exec 9>&-
[ ! -e set ] || fail "a killed prep left a data set"
refused 66 ".set.partial: not a data set" -- train --data .set.partial --run run
refused 65 ".set.partial: " -- inspect .set.partial
run prep clicks three.tsv -o set
expect_error ".set.partial" "left behind"
[ ! -e .set.partial ] || fail "what a killed prep left behind is still there"
run inspect set
rm -r set

for signal in INT TERM; do
    start_prep
    kill -$signal $child
    exec 9>&-
    expect_end $child 75
    [ ! -e set ] && [ ! -e .set.partial ] || fail "SIG$signal: prep left something behind"
    grep -q "interrupted" prep.err || fail "SIG$signal: prep does not say why it ended"
done

start_prep
refused 1 "set: another prep" -- prep clicks three.tsv -o set
exec 9>&-
expect_end $child 0
run inspect set --json
expect_text '"rows":' 400
rm -r set pipe prep.out prep.err

# ---- damaged data sets ----
run prep clicks good.tsv -o whole --holdout 0.2 --parts 3 --features 5000
run prep clicks good.svm -o other --holdout 0.2 --parts 3
run train --data whole --run model
# refused_set CODE TEXT...: by everyone who reads the data set `set`.
refused_set()
{
    refused "$@" -- train --data set --run run
    refused "$@" -- eval --run model --data set
    refused "$@" -- prep clicks three.tsv -o like --like set
    refused "$@" -- inspect set
}
for part in 0 1; do
    size=$(bytes_of whole/part-0000$part.h5)
    for length in 0 1 8 100 1000 5000 $((size - 1)); do
        rm -rf set && cp -r whole set
        truncate -s "$length" set/part-0000$part.h5
        refused_set 65 "set/part-0000$part.h5: "
    done
done
rm -rf set && cp -r whole set && rm set/part-00002.h5
refused_set 66 "set/part-00002.h5: " "No such file"
rm -rf set && cp -r whole set && rm set/part-00000.h5
refused 66 "set: not a data set" -- train --data set --run run
refused 66 "set: not a data set" -- eval --run model --data set
rm -rf set && cp -r whole set && rm set/ids.h5
refused_set 66 "set/ids.h5: "
rm -rf set && cp -r whole set && truncate -s 1000 set/ids.h5
refused_set 65 "set/ids.h5: "
rm -rf set && cp -r whole set && cp other/ids.h5 set
refused_set 65 "set/ids.h5: "
rm -rf set && cp -r whole set && cp other/part-00001.h5 set
refused_set 65 "set/part-00001.h5: "
rm -rf set && cp -r whole set && cp set/part-00001.h5 set/part-00002.h5
refused_set 65 "set/part-00002.h5: " "part 1"
sort -r good.tsv >sorted.tsv # the same rows and ids in another set
run prep clicks sorted.tsv -o sorted --holdout 0.2 --parts 3 --features 5000
rm -rf set && cp -r whole set && cp sorted/part-00001.h5 set
refused_set 65 "set/part-00001.h5: " "another data set"
rm -rf set && cp -r whole set && echo text >set/part-00001.h5
refused_set 65 "set/part-00001.h5: "
found=0
for from in whole other; do
    for offset in 0 4 9 13 20 30 44 50 60 90 100 140 200 260 300 400 500 700 900 1100 1500 2000 2500 3000 4000; do
        rm -rf set && cp -r $from set
        flip set/part-00000.h5 $offset
        survives eval --run model --data set
        found=$((found + (last_code == 65)))
        rm -rf run
        survives train --data set --run run
    done
done
rm -rf run
[ $found -ge 25 ] || fail "only $found of 50 flipped bytes were noticed by eval" # all of `other`: it does not fit the model
for offset in 0 44 48 100; do
    rm -rf set && cp -r whole set
    flip set/part-00001.h5 $offset
    survives inspect set
done
# From the middle on all ones: labels, ids or what leads to them.
rm -rf set && cp -r whole set
fill set/part-00001.h5 $((size / 2)) $((size / 4))
expect_exit 65 "${bounded[@]}" train --data set --run run
expect_error "set/part-00001.h5: damaged"
[ ! -e run/model.safetensors ] && [ ! -e run/summary.json ] || fail "a failed run has a model"
rm -rf run set sorted sorted.tsv

# ---- damaged models ----
size=$(bytes_of model/model.safetensors)
for length in 0 4 8 100 1000 $((size - 1)); do
    head -c "$length" model/model.safetensors >cut.safetensors
    for words in "eval --data whole --run" "predict three.tsv --run" inspect "prep clicks three.tsv -o like --like"; do
        read -ra options <<<"$words"
        refused 65 "cut.safetensors: " -- "${options[@]}" cut.safetensors
    done
done
{ cat model/model.safetensors && echo; } >long.safetensors
refused 65 "long.safetensors: " -- eval --run long.safetensors --data whole
header=$(od -An -tu8 -N 8 model/model.safetensors)
for offset in 0 1 2 7 8 $(seq 9 7 $((header + 7))); do
    cp model/model.safetensors flipped.safetensors
    flip flipped.safetensors "$offset"
    survives eval --run flipped.safetensors --data whole
done
for offset in 0 1 2 7 8; do
    cp model/model.safetensors flipped.safetensors
    flip flipped.safetensors $offset
    refused 65 "flipped.safetensors: " -- eval --run flipped.safetensors --data whole
done
cp model/model.safetensors flipped.safetensors
fill flipped.safetensors $((size - 100)) 90
refused 65 "flipped.safetensors: " -- eval --run flipped.safetensors --data whole
rm ./*.safetensors
refused 66 "missing" -- eval --run missing --data whole
refused 66 "whole/model.safetensors" -- eval --run whole --data whole
refused 66 "model: not a data set" -- eval --run model --data model
refused 65 "three.tsv: " -- eval --run three.tsv --data whole

# ---- data that does not fit the model ----
run prep clicks good.tsv -o larger --holdout 0.2 --features 6000
run train --data other --run other_model
refused 65 "5000 features" "6000" "--like" -- eval --run model --data larger
refused 65 Criteo "--like" -- eval --run model --data other
refused 65 Criteo "--like" -- eval --run other_model --data whole
refused 64 "other was made from" criteo -- prep clicks three.tsv -o like --like other
refused 64 "--features 7000" "5000" -- prep clicks three.tsv -o like --like model --features 7000
refused 64 "other_model: " "criteo" -- predict --run other_model three.tsv
refused 65 "good.svm:1: " -- predict --run model good.svm
refused 65 "good.tfrecord:1: " -- predict --run model good.tfrecord
run prep clicks good.tsv -o values --holdout 0.2 --features 5000 --numeric values
refused 65 "--like" -- eval --run model --data values
rm -r larger values

# ---- predict ----
refused 66 "missing: " -- predict --run model missing
refused 66 "directory: is a directory" -- predict --run model directory
refused 65 "bad.tsv:4: " -- predict --run model bad.tsv -o lines
refused 74 "missing/lines: " -- predict --run model three.tsv -o missing/lines
refused 64 "directory: " -- predict --run model three.tsv -o directory
refused 74 "/dev/full: " "No space" -- predict --run model three.tsv -o /dev/full
echo "old lines" >lines
refused 65 "bad.tsv:4: " -- predict --run model bad.tsv -o lines --force
[ "$(cat lines)" = "old lines" ] || fail "a failed predict changed its output file"
cp three.tsv copy.tsv
refused 64 "copy.tsv: " "what is read" -- predict --run model copy.tsv -o copy.tsv --force
cmp -s copy.tsv three.tsv || fail "predict destroyed its input"
ln -s lines link
refused 64 "link: is a link to a file" -- predict --run model three.tsv -o link --force
[ -L link ] && [ "$(cat lines)" = "old lines" ] || fail "predict wrote through a link, or replaced it"
run predict --run model bad.tsv -o lines --max-bad-rows 1 --force
expect_error "bad.tsv:4: " skipped
[ "$(wc -l <lines)" -eq 6 ] || fail "predict --max-bad-rows left out the wrong rows"
rm lines link copy.tsv

# ---- train ----
refused 66 "missing" -- train --data missing --run run
refused 66 "good.tsv: not a data set" -- train --data good.tsv --run run
refused 64 "directory: " "no run" -- train --data whole --run directory
refused 64 "directory: " "no run" -- train --data whole --run directory --force
refused 64 "three.tsv: " "not a directory" -- train --data whole --run three.tsv
refused 64 "model: already holds a run" "--force" -- train --data whole --run model
refused 66 "run: no run to resume" -- train --data whole --run run --resume
refused 64 "--force" "--resume" -- train --data whole --run model --resume --force
refused 64 "--early-stop" "--eval-every" -- train --data whole --run run --early-stop 2
refused 64 "--lr -1" "out of range" -- train --data whole --run run --lr -1
refused 64 "--lr nan" -- train --data whole --run run --lr nan
refused 64 "--epochs -1" -- train --data whole --run run --epochs=-1
refused 64 "--optimzer" "did you mean --optimizer?" -- train --data whole --run run --optimzer sgd
refused 64 "name is empty" -- train --data whole --run ''
for lr in 1000 50000; do
    for optimizer in adagrad sgd; do
        expect_exit 1 "${bounded[@]}" train --data whole --run run --lr $lr --optimizer $optimizer --epochs 20
        expect_no_output
        expect_error "paceline: error: " "--lr" $lr
        [ ! -e run/model.safetensors ] && [ ! -e run/summary.json ] || fail "a diverged run has a model"
        rm -r run
    done
done

# Checkpoints: a damaged one is passed over for the one before it; without a whole one nothing is resumed.
words=(--data whole --batch 64)
run train "${words[@]}" --run whole_run --steps 8
run train "${words[@]}" --run run --steps 6 --checkpoint-every 2
for file in manifest.json part-00000-of-00001.safetensors; do
    rm -rf resumed && cp -r run resumed
    truncate -s 200 resumed/checkpoints/step-000000000006.0001/$file
    run train "${words[@]}" --run resumed --resume --steps 8
    expect_error "warning: resumed/checkpoints/step-000000000006.0001/$file" \
        "resuming from resumed/checkpoints/step-000000000004.0001"
    cmp -s whole_run/model.safetensors resumed/model.safetensors || fail "the model differs after damage"
done
rm -rf resumed && cp -r run resumed
run train "${words[@]}" --run resumed --resume --steps 6
expect_error "resumed: the run has finished"
diff -r run resumed || fail "a finished run was changed"
truncate -s 200 resumed/checkpoints/*/part-*
for file in config.yaml metrics.jsonl model.safetensors summary.json checkpoints; do
    cp -r resumed/$file before_$file
done
refused 65 "step-000000000006.0001/part-00000-of-00001" "step-000000000004.0001/part-00000-of-00001" \
    "resumed/checkpoints: none of its 2 checkpoints is usable" "--force" -- \
    train "${words[@]}" --run resumed --resume --steps 8
for file in config.yaml metrics.jsonl model.safetensors summary.json checkpoints; do
    diff -r resumed/$file before_$file || fail "$file was changed, but nothing could be resumed"
    rm -r before_$file
done
rm -r resumed/checkpoints/*
refused 65 "resumed/checkpoints: " "there was one of step 6" "--force" -- \
    train "${words[@]}" --run resumed --resume --steps 8
# As if killed before its first checkpoint.
rm -r resumed
run train "${words[@]}" --run resumed --steps 8
sed -i 's/"done"/"running"/' resumed/state.json
sed -i 's/"checkpoint": 8/"checkpoint": null/' resumed/state.json
rm -r resumed/summary.json resumed/model.safetensors resumed/checkpoints/*
run train "${words[@]}" --run resumed --resume --steps 8
expect_error "warning: resumed: " "begins at step 0"
cmp -s whole_run/model.safetensors resumed/model.safetensors || fail "the model of a run that began again differs"
for file in state.json checkpoints/step-000000000006.0001/manifest.json; do
    rm -rf resumed && cp -r run resumed
    for length in 0 20 60; do # a state that is not ours to guess; a manifest that is no checkpoint's
        truncate -s $length resumed/$file
        survives train "${words[@]}" --run resumed --resume --steps 8
    done
done
rm -r run resumed whole_run

# ---- inspect ----
refused 65 "directory: " -- inspect directory
refused 65 "three.tsv: " -- inspect three.tsv
refused 65 "empty: " -- inspect empty
cp whole/part-00000.h5 alone.h5
refused 65 "alone.h5: " -- inspect alone.h5

# ---- full and read-only file systems ----
mkdir small
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=2m tmpfs small 2>/dev/null; then
    trap 'umount "$work/small"; rm -rf "$work"' EXIT
    run gen clicks -o many.tsv --rows 20000
    refused 74 "small/many.tsv: " "No space" -- gen clicks -o small/many.tsv --rows 20000
    for space in 0 1000 1400 1700 1900 2030; do # KiB taken: it fills up at different moments
        head -c ${space}K /dev/zero >small/taken
        refused 74 "small/.set.partial/" "No space" -- prep clicks many.tsv -o small/set
    done
    run prep clicks many.tsv -o many
    # No room for anything: the model is lost.
    expect_exit 74 "${bounded[@]}" train --data many --run small/run --checkpoint-every 10
    expect_no_output
    expect_error "paceline: error: " "small/run/" "No space"
    expect_equal "errors" "$(grep -c '^paceline: error: ' err)" 1
    [ ! -e small/run/model.safetensors ] && [ ! -e small/run/summary.json ] || fail "a failed run has a model"
    [ -z "$(find small -name '*.tmp')" ] || fail "temporary files are left"
    rm -r small/run small/taken
    # Room for the model, but not for a checkpoint, which is larger: training goes on.
    words=(--data many --optimizer adam --l2 1e-6 --log-every 1000)
    run train "${words[@]}" --run roomy --checkpoint-every 10
    model=$(bytes_of roomy/model.safetensors)
    part=$(bytes_of roomy/checkpoints/step-000000000040.0001/part-00000-of-00001.safetensors)
    head -c $((2097152 - (model + part) / 2)) /dev/zero >small/taken
    run train "${words[@]}" --run small/run --checkpoint-every 10 --json
    expect_equal "checkpoints without room" "$(json_number checkpoints)" 0
    expect_error "warning: no checkpoint of step 10: small/run/checkpoints/step-000000000010.0001/" "No space" \
        "training goes on, and there is none before it" "no checkpoint of step 40"
    ! grep -q "error" err || fail "a checkpoint that cannot be written is an error"
    cmp -s roomy/model.safetensors small/run/model.safetensors || fail "the model without checkpoints differs"
    expect_equal "what is left of the checkpoints" "$(find small/run/checkpoints -mindepth 1)" ""
    rm -r small/run
    # A run that is to stop must be saved.
    "$paceline" train "${words[@]}" --run small/run --epochs 1000000 >out 2>err &
    child=$!
    wait_for grep -qs '"kind":"step"' small/run/metrics.jsonl
    kill -INT $child
    expect_end $child 74
    expect_error "paceline: error: no checkpoint of step" "the state could not be saved: small/run/checkpoints/" \
        "No space" "there is none before it"
    expect_equal "words on it" "$(grep -c "No space" err)" 1
    expect_equal "what is left of the checkpoints" "$(find small/run/checkpoints -mindepth 1)" ""
    rm -r small/run small/taken roomy
    head -c 1900K /dev/zero >small/taken
    refused 74 "small/lines: " "No space" -- predict --run model many.tsv -o small/lines
    mount -o remount,ro small
else
    echo "full disk: skipped, only root can mount a small file system"
    chmod 555 small
fi
refused 74 "small/many.tsv: " -- gen clicks -o small/many.tsv --rows 10
refused 74 "small/" -- prep clicks three.tsv -o small/set
refused 74 "small/" -- train --data whole --run small/run
refused 74 "small/lines: " -- predict --run model three.tsv -o small/lines
