#!/bin/bash
# prep reviews and merge as a user runs them, in one process. Several: test_cluster_reviews.sh.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen reviews -o reviews.jsonl --rows 6000 --seed 3

# ---- a first set ----
run prep reviews reviews.jsonl -o data --holdout 0.1
expect_text "training rows        5,400" "test rows            600" "vocabulary           10,003" "MB/s" "skew"
expect_error "ratings of 4 and more are positive"
run inspect data
run prep reviews reviews.jsonl -o again --holdout 0.1 --threads 1 --json --quiet
expect_object
expect_no_error
for name in train_rows test_rows train_positives test_positives bad_rows dropped duplicates words stop_words distinct_words \
    vocabulary stored_words unknown_words unknown_rate cut_texts empty_texts bytes_read bytes_written bytes_spilled \
    word_bytes ranks processes positive positive_rate seconds map_seconds reduce_seconds write_seconds \
    megabytes_per_second skew rows_skew phases rank_bytes rank_rows too_long_words; do
    expect_text "\"$name\":"
done
expect_equal "rows" "$(json_number train_rows)" 5400
expect_equal "bytes" "$(json_number bytes_read)" "$(stat -c %s reviews.jsonl)"
expect_equal "the sets" "$(prints again)" "$(prints data)"
run prep reviews reviews.jsonl -o again --holdout 0.1 --threads 3 --memory 128M --force --quiet
expect_equal "the sets of 1 and 3 threads" "$(prints again)" "$(prints data)"
run prep reviews reviews.jsonl -o other --holdout 0.1 --seed 2 --quiet
[ "$(prints other)" != "$(prints data)" ] || fail "another seed gives the same set"
cmp -s other/vocabulary.txt data/vocabulary.txt || fail "another seed gives another vocabulary"

# Compressed, in pieces, or from a pipe: the same words, and the same number of rows.
gzip -k reviews.jsonl
run prep reviews reviews.jsonl.gz -o zipped --holdout 0.1 --quiet
cmp -s zipped/vocabulary.txt data/vocabulary.txt || fail "gzip changes the vocabulary"
"$paceline" prep reviews - --format jsonl -o piped --holdout 0.1 --quiet --json <reviews.jsonl >out 2>err ||
    fail "prep of standard input"
expect_equal "rows of a pipe" "$(json_number train_rows)" 5400
cmp -s piped/vocabulary.txt data/vocabulary.txt || fail "a pipe changes the vocabulary"

# ---- formats ----
printf 'good film\nfine film\n' >good
printf 'bad film\n' >bad
run prep reviews good=1 bad=0 -o lines --stopwords none --json
expect_equal "rows of lines" "$(json_number train_rows)" 3
expect_equal "positives of lines" "$(json_number train_positives)" 2
expect_equal "threshold" "$(json_number positive)" 1
printf 'label,text\n1,"good, ""very"" good\nfilm"\n0,bad film\n' >table.csv
run prep reviews table.csv --text-field text --label-field label -o csv --stopwords none --json
expect_equal "rows of csv" "$(json_number train_rows)" 2
expect_equal "words of csv" "$(json_number words)" 6
printf 'text\tlabel\ngood film\t1\nbad film\t0\n' >table.tsv
run prep reviews table.tsv --text-field text --label-field label -o tsv --json
expect_equal "rows of tsv" "$(json_number train_rows)" 2
printf '1\tgood film\n0\tbad film\n' >labels
run prep reviews labels --format tab -o tab --json
expect_equal "rows of tab" "$(json_number train_rows)" 2
mkdir -p folder/pos folder/neg
echo "good film" >folder/pos/1.txt
echo "bad film" >folder/neg/1.txt
run prep reviews folder -o folderset --json
expect_equal "rows of a folder" "$(json_number train_rows)" 2
expect_equal "positives of a folder" "$(json_number train_positives)" 1

# ---- like another set ----
run prep reviews good=1 -o like --like data --positive 1 --json
expect_equal "vocabulary" "$(json_number vocabulary)" 10003
cmp -s like/vocabulary.txt data/vocabulary.txt || fail "--like has another vocabulary"

# ---- filters: map and reduce count what prep counts ----
head -n 3000 reviews.jsonl >a.jsonl
tail -n +3001 reviews.jsonl >b.jsonl
"$paceline" prep reviews a.jsonl --map >a.counts 2>err || fail "--map of a file"
"$paceline" prep reviews --map --format jsonl <b.jsonl >b.counts 2>err || fail "--map of standard input"
LC_ALL=C sort a.counts b.counts | "$paceline" prep reviews --reduce >counts 2>err || fail "--reduce"
expect_equal "distinct words" "$(wc -l <counts)" "$(cut -f1 a.counts b.counts | LC_ALL=C sort -u | wc -l)"
run prep reviews reviews.jsonl -o counted --vocabulary counts --holdout 0.1 --quiet
cmp -s counted/vocabulary.txt data/vocabulary.txt || fail "map, sort and reduce give another vocabulary"
printf 'word 3\n' | "$paceline" prep reviews --reduce >out 2>err && fail "--reduce takes a line without a tab"
expect_error "line" "1"

# ---- merge ----
run merge data -o all.h5 --json
expect_equal "merged rows" "$(json_number train_rows)" 5400
expect_equal "sets" "$(json_number sets)" 8
usage_error "all.h5" "--force" -- merge data -o all.h5
run merge data -o all.h5 --sets 3 --force
expect_exit 66 "$paceline" merge nowhere -o none.h5
usage_error "one data set" -- merge data other -o none.h5
mkfifo pipe.h5 # devices and the like are not replaced
usage_error "pipe.h5" "no plain file" -- merge data -o pipe.h5 --force
[ -p pipe.h5 ] || fail "merge has replaced a pipe"
# A disk that is full, in the middle and when the last bytes are written.
for kilobytes in 4 600; do
    (
        ulimit -f $kilobytes
        trap '' XFSZ
        expect_exit 74 "$paceline" merge data -o full.h5
    ) || exit 1
    [ ! -e full.h5 ] || fail "merge has left half a file"
done
[ -z "$(find . -maxdepth 1 -name '*.tmp')" ] || fail "merge has left a temporary file"

# ---- what is refused ----
usage_error "no input" -- prep reviews -o none
usage_error "--output" -- prep reviews reviews.jsonl
usage_error "each has one thread" -- prep reviews reviews.jsonl -o none -n 2 --threads 2
usage_error "standard input" -- prep reviews - --format jsonl -o none -n 2
usage_error "--holdout and --test" -- prep reviews a.jsonl --test b.jsonl --holdout 0.1 -o none
usage_error "tested on its training rows" -- prep reviews a.jsonl --test a.jsonl -o none
usage_error "--positive many" -- prep reviews a.jsonl --positive many -o none
usage_error "filters" -- prep reviews a.jsonl --map -o none
usage_error "--text-field" -- prep reviews table.tsv -o none
usage_error "already holds a data set" -- prep reviews a.jsonl -o data
expect_exit 66 "$paceline" prep reviews missing.jsonl -o none
expect_exit 66 "$paceline" prep reviews a.jsonl --vocabulary missing -o none
expect_exit 66 "$paceline" prep reviews a.jsonl --stopwords missing -o none
expect_exit 66 "$paceline" prep reviews a.jsonl --like missing -o none
mkdir kept
echo mine >kept/notes
cp data/* kept
usage_error "holds notes" -- prep reviews a.jsonl -o kept --force

# ---- bad data: file, line and reason ----
{ head -n 10 a.jsonl && printf '{"reviewText": "no rating"}\n{"broken\n{"reviewText": "bad \xff byte", "overall": 3}\n' &&
    printf '{"reviewText": "what?", "overall": "none"}\n{"reviewText": "  ", "overall": 3}\n'; } >broken.jsonl
expect_exit 65 "$paceline" prep reviews broken.jsonl -o none --threads 1
expect_error "broken.jsonl:11:" "overall"
expect_nothing none
expect_exit 65 "$paceline" prep reviews broken.jsonl -o none --max-bad-rows 4
expect_nothing none
run prep reviews broken.jsonl -o none --max-bad-rows 5 --json
expect_equal "bad rows" "$(json_number bad_rows)" 5
expect_equal "good rows" "$(json_number train_rows)" 10
expect_error "broken.jsonl:12:" "broken.jsonl:13:" "broken.jsonl:14:" "broken.jsonl:15:"
rm -r none
head -c 20000 reviews.jsonl.gz >cut.gz
expect_exit 65 "$paceline" prep reviews cut.gz -o none
expect_error "cut.gz"
expect_nothing none
awk 'BEGIN { printf "{\"overall\": 5, \"reviewText\": \""; for (i = 0; i < 2000000; i++) printf "w%d ", i % 50000; print "\"}" }' >long.jsonl
run prep reviews long.jsonl a.jsonl -o long --json --memory 128M
expect_equal "rows beside a very long one" "$(json_number train_rows)" 3001

# ---- stopped, and failed ----
# hold: a command that waits until it is told not to.
: >hold
start_job "$paceline" prep reviews reviews.jsonl -o stopped --on-part 'echo >started; while [ -e hold ]; do sleep 0.02; done'
wait_for test -e started
kill -INT "$job"
end_job 75
expect_error "interrupted: nothing was kept"
expect_nothing stopped
rm hold
expect_exit 1 "$paceline" prep reviews reviews.jsonl -o none --on-part 'exit 7'
expect_error "exit code 7"
expect_nothing none
run prep reviews reviews.jsonl -o parts --on-part 'echo "$PACELINE_PART" >>finished'
expect_equal "finished parts" "$(sort -u finished | wc -l)" 8

# Killed: what is left does not look like a data set, and the next one removes it.
: >hold
rm -f started
start_job "$paceline" prep reviews reviews.jsonl -o killed --on-part 'echo >started; while [ -e hold ]; do sleep 0.02; done'
wait_for test -e started
kill -KILL "$job"
end_job 137
rm hold
[ ! -e killed ] || fail "a killed prep has left a data set"
run prep reviews reviews.jsonl -o killed --holdout 0.1
expect_error "removing what an interrupted prep left behind"
expect_equal "the set after a kill" "$(prints killed)" "$(prints data)"

# A file that may not grow is a full disk.
(
    ulimit -f 200
    trap '' XFSZ
    "$paceline" prep reviews reviews.jsonl -o full >out 2>err
    [ $? -eq 74 ] || exit 1
) || fail "a full disk is not an input/output error"
expect_error "full" "File too large"
expect_nothing full

# ---- help ----
run prep reviews --help
expect_text "--vocab N" "10000" "--length L" "--stopwords" "hadoop" "-n, --processes"
run merge --help
expect_text "--sets N"
