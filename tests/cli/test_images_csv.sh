#!/bin/bash
# prep images from a csv file that lists pictures: the same set as from folders, whatever the order and quotes.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen images -o photos --rows 120 --classes 3 --size 48 --seed 2 --quiet
mkdir lists "photos/with, \"quotes\""
class=$(ls photos | head -n 1)
for picture in $(find "photos/$class" -name '*.jpg' | head -n 5); do
    mv "$picture" "photos/with, \"quotes\""
done

# list FOLDER: a row for each picture, absolute or from FOLDER on.
list()
{
    find photos -name '*.jpg' | LC_ALL=C sort | awk -v folder="$1" -v class_of_quotes="$class" -F/ '{
        class = $2 ~ /quotes/ ? class_of_quotes : $2
        gsub(/"/, "\"\"")
        printf "%s,\"%s%s\"\r\n", class, folder, $0
    }'
}
{ printf '\xef\xbb\xbflabel,path\r\n' && list "$work/"; } >absolute.csv
{ printf '\n label, path\n\n' && list ../; } >lists/relative.csv
{ echo label,path && list ""; } | gzip >here.csv.gz

run prep images absolute.csv -o data --holdout 0.25 --size 32 --json
expect_object
expect_error "120 pictures of 3 classes"
expect_equal "rows" "$(json_number train_rows) $(json_number test_rows) $(json_number bad_rows)" "90 30 0"
expect_equal "classes" "$(tr '\n' ' ' <data/classes.txt)" "$(find photos -mindepth 1 -maxdepth 1 ! -name 'with*' -printf '%f\n' | LC_ALL=C sort | tr '\n' ' ')"
expect_equal "a name" "$(head -n 1 data/images.txt)" "$work/$(find photos -name '*.jpg' | LC_ALL=C sort | head -n 1)"
run prep images here.csv.gz -o packed --holdout 0.25 --size 32 --threads 3 --quiet
expect_equal "names from a packed file" "$(sed "s:^:$work/:" packed/images.txt)" "$(cat data/images.txt)"
# The same command, in another folder, with other paths to the same pictures: the same rows.
cp absolute.csv list.csv
mv lists/relative.csv lists/list.csv
run prep images list.csv -o plain --holdout 0.25 --size 32 --quiet
(cd lists && expect_exit 0 "$paceline" prep images list.csv -o plain --holdout 0.25 --size 32 --quiet) || exit 1
for part in plain/part-*.h5; do
    cmp -s "$part" "lists/$part" || fail "$part differs"
done
expect_equal "relative names" "$(sed 's/.*photos/photos/' lists/plain/images.txt)" "$(sed 's/.*photos/photos/' data/images.txt)"
run prep images absolute.csv -o two --holdout 0.25 --size 32 -n 2 --quiet
expect_equal "the set of two processes" "$(prints two)" "$(prints data)"
run prep images lists/list.csv --like data -o like --test here.csv.gz --quiet --json
expect_equal "rows with tests" "$(json_number train_rows) $(json_number test_rows)" "120 120"

# ---- columns by other names; missing pictures are named ----
printf 'id,image,breed\n1,photos/none.jpg,a\n' >breeds.csv
list "" | awk -F, 'NR % 2 { print NR "," substr($0, index($0, ",") + 1) "," $1 }' | tr -d '\r' >>breeds.csv
run prep images breeds.csv -o breeds --path-field image --label-field breed --json
expect_error "photos/none.jpg: "
expect_equal "pictures that are not there" "$(json_number bad_rows)" 1
usage_error "breeds.csv: no column 'path'; the header has: id, image, breed: name that of the paths" -- \
    prep images breeds.csv -o none --quiet
usage_error "--path-field: only csv files have columns" -- prep images photos -o none --path-field image --quiet
usage_error "photos: is a directory: name the csv file" -- prep images photos -o none --format csv --quiet

# ---- what is wrong with a row ----
refused()
{
    printf '%s' "$2" >bad.csv
    expect_exit 65 "$paceline" prep images bad.csv -o none --quiet
    expect_error "$1"
    expect_nothing none
}
refused "bad.csv:3: the row has another number of columns than the header" $'path,label\na.jpg,b\nc.jpg\n'
refused "bad.csv:2: the row has an empty path" $'path,label\n,b\n'
refused "bad.csv:4: the class is empty" $'path,label\n"a\n.jpg",b\nc.jpg,\n'
refused "bad.csv:2: the row has a quote that is not closed" $'path,label\n"a.jpg,b\n'
refused "bad.csv: there are no pictures" $'path,label\n'
refused "all pictures are of one class" $'path,label\na.jpg,b\nc.jpg,b\n'
