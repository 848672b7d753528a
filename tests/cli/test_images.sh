#!/bin/bash
# prep images as a user runs it, in one process. Several: test_cluster_images.sh.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# bytes NUMBER...: as bytes on standard output.
bytes()
{
    printf "$(printf '\\x%02x' "$@")"
}

# ---- folders ----
run gen images -o photos --rows 120 --classes 3 --size 48 --seed 2 --quiet
run prep images photos -o data --holdout 0.25 --size 32
expect_text "training rows        90" "test rows            30" "classes              3" "32 x 32 rgb" "pictures/s"
expect_error "120 pictures of 3 classes"
expect_equal "classes" "$(tr '\n' ' ' <data/classes.txt)" "$(ls photos | tr '\n' ' ')"
expect_equal "names" "$(wc -l <data/images.txt)" 120
expect_equal "a name" "$(head -n 1 data/images.txt)" "$(find photos -name '*.jpg' | LC_ALL=C sort | head -n 1)"
run inspect data
run prep images photos -o again --holdout 0.25 --size 32 --threads 3 --json --quiet
expect_object
expect_no_error
for name in train_rows test_rows bad_rows classes height width channels turned bytes_read bytes_written ranks processes \
    seconds images_per_second megabytes_per_second skew; do
    expect_text "\"$name\":"
done
expect_equal "rows" "$(json_number train_rows)" 90
expect_equal "bytes" "$(json_number bytes_read)" "$(cat photos/*/*.jpg | wc -c)"
expect_equal "the sets of threads" "$(prints again)" "$(prints data)"
run prep images photos -o again --holdout 0.25 --size 32 --seed 5 --force --quiet
[ "$(prints again)" != "$(prints data)" ] || fail "another seed gives the same set"

# ---- IDX ----
mkdir idx
{
    bytes 0 0 8 3 0 0 0 6 0 0 0 8 0 0 0 8
    head -c 384 /dev/zero
} >idx/train-images-idx3-ubyte
bytes 0 0 8 1 0 0 0 6 4 9 4 9 4 9 >idx/train-labels-idx1-ubyte
{
    bytes 0 0 8 3 0 0 0 1 0 0 0 8 0 0 0 8
    head -c 64 /dev/zero
} >idx/t10k-images-idx3-ubyte
bytes 0 0 8 1 0 0 0 1 9 >idx/t10k-labels-idx1-ubyte
gzip idx/t*
run prep images idx -o idxset --json
expect_error "t10k-images-idx3-ubyte.gz: its pictures become the test set"
expect_equal "rows of IDX" "$(json_number train_rows) $(json_number test_rows)" "6 1"
expect_equal "size of IDX" "$(json_number height) $(json_number width) $(json_number channels)" "8 8 1"
expect_equal "classes of IDX" "$(tr '\n' ' ' <idxset/classes.txt)" "4 9 "
expect_equal "files" "$(ls -A idxset | wc -l)" 11
run prep images idx/train-*.gz -o idxfiles --size 16 --channels rgb --holdout 0.34 --json --quiet
expect_equal "rows of IDX files" "$(json_number train_rows) $(json_number test_rows)" "4 2"
expect_equal "size" "$(json_number height) $(json_number channels)" "16 3"
usage_error "is a test set already" -- prep images idx -o none --holdout 0.5 --quiet
usage_error "its labels are missing" -- prep images idx/train-images-idx3-ubyte.gz -o none --quiet

# ---- CIFAR ----
mkdir cifar
for label in 3 1 3 0; do
    bytes $label
    head -c 3072 /dev/zero
done >cifar/data_batch_1.bin
run prep images cifar -o cifarset --json --quiet
expect_equal "rows of CIFAR" "$(json_number train_rows) $(json_number classes) $(json_number channels)" "4 3 3"
printf '%s\n' airplane automobile bird cat deer dog frog horse ship truck >cifar/batches.meta.txt
run prep images cifar -o cifarset --json --quiet --force
expect_equal "classes of CIFAR" "$(json_number classes)" 10
cp cifar/data_batch_1.bin mine
usage_error "mine: cannot tell its format" -- prep images mine -o none
run prep images mine --format cifar -o mineset --json --quiet
expect_equal "rows of another name" "$(json_number train_rows)" 4
truncate -s -1 mine
expect_exit 65 "$paceline" prep images mine --format cifar -o none
expect_error "mine: its size is no multiple of 3073"
expect_nothing none

# ---- TFRecord: three grey pictures of 8 x 8, with the labels 1, 6 and 11 ----
base64 -d >three.tfrecord <<'END'
hwAAAAAAAAC4b1fmCoQBClEKCWltYWdlX3JhdxJECkIKQAkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJCQkJ
CQkJCQkJCQkJCQkJCQkKDwoGaGVpZ2h0EgUaAwoBCAoOCgV3aWR0aBIFGgMKAQgKDgoFbGFiZWwSBRoDCgEBFu3h/4cAAAAAAAAAuG9X5gqEAQpR
CglpbWFnZV9yYXcSRApCCkAxMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExMTExCg8K
BmhlaWdodBIFGgMKAQgKDgoFd2lkdGgSBRoDCgEICg4KBWxhYmVsEgUaAwoBBkyA8vCHAAAAAAAAALhvV+YKhAEKUQoJaW1hZ2VfcmF3EkQKQgpA
WVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWVlZWQoPCgZoZWlnaHQSBRoDCgEICg4K
BXdpZHRoEgUaAwoBCAoOCgVsYWJlbBIFGgMKAQsvG2uZ
END
run prep images three.tfrecord -o records --size 8 --json --quiet --parts 1
expect_equal "rows of TFRecords" "$(json_number train_rows) $(json_number channels)" "3 1"
expect_equal "classes of TFRecords" "$(tr '\n' ' ' <records/classes.txt)" "1 6 11 "
expect_equal "a name of TFRecords" "$(tail -n 1 records/images.txt)" "three.tfrecord#2"
gzip -k three.tfrecord
run prep images three.tfrecord.gz -o zipped --size 8 --quiet --parts 1
bytes 1 2 3 4 | dd of=three.tfrecord bs=1 seek=200 conv=notrunc 2>/dev/null
run prep images three.tfrecord -o records --size 8 --force --json
expect_error "three.tfrecord#1: the checksum of its data is wrong: damaged: left out"
expect_equal "bad records" "$(json_number bad_rows) $(json_number train_rows)" "1 2"
truncate -s -5 three.tfrecord
expect_exit 65 "$paceline" prep images three.tfrecord -o none
expect_error "the file ends within it"

# ---- like another set ----
mkdir -p today/"$(head -n 1 data/classes.txt)"
cp "$(head -n 1 data/images.txt)" today/"$(head -n 1 data/classes.txt)"/1.JPG
run prep images today -o todayset --like data --json --quiet
expect_equal "like" "$(json_number classes) $(json_number height) $(json_number train_rows)" "3 32 1"
mkdir today/unicorn
cp "$(head -n 1 data/images.txt)" today/unicorn
expect_exit 65 "$paceline" prep images today -o none --like data
expect_error "\"unicorn\""
usage_error "--size 16 contradicts --like" -- prep images today -o none --like data --size 16

# ---- corrupt pictures ----
class=$(ls photos | head -n 1)
echo "no picture" >"photos/$class/a.jpg"
: >"photos/$class/b.png"
head -c 700 "$(tail -n 1 data/images.txt)" >"photos/$class/c.jpeg"
echo notes >"photos/$class/notes.txt"
mkdir "photos/$class/d.jpg" # called a picture
run prep images photos -o bad --size 32 --threads 1
expect_text "bad pictures         4 left out" "training rows        120"
expect_error "a.jpg: " "b.png: empty: left out" "c.jpeg: " "d.jpg: is a directory" "1 files were passed over"
run prep images photos -o bad4 --size 32 --threads 4 --quiet
expect_equal "the sets with bad pictures" "$(prints bad4)" "$(prints bad)"
run inspect bad
expect_exit 65 "$paceline" prep images photos -o none --max-bad-rows 2
expect_error "more than 2 pictures are bad" "--max-bad-rows"
expect_nothing none

# ---- what is refused ----
usage_error "no input" -- prep images -o none
usage_error "--output is missing" -- prep images photos
usage_error "--size 4097" "out of range" -- prep images photos -o none --size 4097
usage_error "--size 7" -- prep images photos -o none --size 7
usage_error "--fit" "did you mean crop?" -- prep images photos -o none --fit corp
usage_error "--holdout and --test" -- prep images photos -o none --holdout 0.1 --test idx
usage_error "already holds a data set" -- prep images photos -o data --quiet
usage_error "both an input and --test" -- prep images photos -o none --test photos
expect_exit 66 "$paceline" prep images nowhere -o none
expect_error "nowhere"
expect_nothing none

# ---- stopped and killed ----
start()
{
    rm -f started
    : >hold
    start_job "$paceline" prep images photos -o "$1" --size 32 --on-part 'echo >started; while [ -e hold ]; do sleep 0.02; done'
    wait_for test -e started
}

start stopped
kill -INT "$job"
end_job 75
expect_error "interrupted: nothing was kept"
expect_nothing stopped
start killed
kill -KILL "$job"
end_job 137
[ ! -e killed ] || fail "a killed prep has left a data set"
[ -e .killed.partial ] || fail "there was nothing to clean up"
rm hold
run prep images photos -o killed --size 32 --quiet
expect_equal "the set after a kill" "$(prints killed)" "$(prints bad)"
expect_nothing none
[ ! -e .killed.partial ] || fail ".killed.partial is left"

# ---- a full disk ----
if [ "$(id -u)" -eq 0 ] && mkdir small && mount -t tmpfs -o size=256k none small 2>/dev/null; then
    got=0
    "$paceline" prep images photos -o small/set --size 160 --parts 1 >out 2>err || got=$?
    left=$(ls -A small)
    umount small
    [ $got -eq 74 ] || fail "exit code $got on a full disk"
    expect_error "error:"
    [ -z "$left" ] || fail "a full disk has $left"
fi
