#!/bin/bash
# Tables with a header, as people have them: prep clicks --format csv or tsv, train, predict, inspect.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

# ---- eight odd columns, trained on without a script in between ----
# make_table ROWS SEED: an id, quotes with line ends in them, missing values, a constant, a date, a float, a truth, a text.
make_table()
{
    awk -v rows="$1" -v seed="$2" 'BEGIN {
        srand(seed)
        printf "\xef\xbb\xbfid,city,income,constant,day,share,member,note,sold\r\n"
        split("Ulm|\"Bad \"\"Orb\"\", Hessen\"|\"Frank-\nfurt\"||K\xc3\xb6ln", city, "|")
        for (i = 0; i < rows; i++) {
            c = 1 + int(5 * rand()); income = int(exp(3 * rand()) * 100); share = rand(); member = rand() < 0.3
            score = (c - 3) / 2 + 3 * (share - 0.5) + member - 0.3
            printf "%d,%s,%s,7,2026-%02d-%02d,%s,%s,%s,%s\r\n", 100000 + i, city[c], rand() < 0.1 ? "NA" : income,
                1 + int(12 * rand()), 1 + int(28 * rand()), rand() < 0.1 ? "" : share, member ? "true" : "false",
                rand() < 0.5 ? "" : "\"said: \"\"" int(1000 * rand()) "\"\"\"",
                rand() < 1 / (1 + exp(-3 * score)) ? "yes" : "no"
        }
    }'
}
make_table 6000 1 >cars.csv
make_table 500 2 >today.csv

run prep clicks cars.csv -o data --label-field sold --holdout 0.2 --json
expect_object
expect_equal "training rows" "$(json_number train_rows)" 4800
expect_error "label: sold (no/yes); 4 numeric: id, income, constant, share; 4 categories: city, day, member, note" \
    "all values in its first 6000 rows are different in id: " "--ignore-fields"
run train --data data --model logreg --run run --json
is_true "$(json_number auc) > 0.8" || fail "nothing was learned: AUC $(json_number auc)"

# ---- the same bytes for any number of threads and processes, packed files and pipes ----
wanted=$(prints data)
same_set()
{
    expect_equal "the set of $1" "$(prints "$1")" "$wanted"
}
prepare=(prep clicks --label-field sold --holdout 0.2)
run "${prepare[@]}" cars.csv -o one --threads 1
same_set one
run "${prepare[@]}" cars.csv -o three --threads 3 --format csv
same_set three
run "${prepare[@]}" cars.csv -o two -n 2
same_set two
gzip -c cars.csv >cars.csv.gz
run "${prepare[@]}" cars.csv.gz -o packed
expect_equal "rows" "$(prints packed | wc -l)" "$(prints data | wc -l)"
"$paceline" "${prepare[@]}" - --format csv -o piped <cars.csv >out 2>err || fail "prep from a pipe"
expect_error "label: sold (no/yes)"
for other in packed piped; do # they have other commands, and so other bytes
    run train --data $other --model logreg --run "run_$other" --json
    expect_equal "the model from $other" "$(json_text model_sha256)" "$(json_text model_sha256 run/summary.json)"
done
expect_exit 64 "$paceline" "${prepare[@]}" - --format csv -o none -n 2
expect_error "can be read by one process only"
expect_nothing none

# The same table with tabs, and nothing to quote.
tr -d '"\n' <cars.csv | tr '\r,' '\n\t' | sed 's/Orb\t/Orb/' >cars.tsv
run "${prepare[@]}" cars.tsv -o tabs --threads 3
run "${prepare[@]}" cars.tsv -o tabs2 -n 2
expect_equal "tsv by two processes" "$(prints tabs2)" "$(prints tabs)"
run train --data tabs --model fm --run tabs_fm --epochs 2

# ---- another day: columns in another order, with a new one, without an old one ----
run prep clicks today.csv --like run -o today
run eval --run run --data today --json
is_true "$(json_number auc) > 0.8" || fail "another day's rows are not understood"
printf 'sold,new,share,city\nyes,1,0.75,Ulm\nno,2,0.25,Ulm\n' >few.csv
run prep clicks few.csv --like data -o few
expect_error "few.csv: 6 columns not there, so missing in every row: " "few.csv: 1 column not known, so left out: new"
run eval --run run --data few
expect_exit 64 "$paceline" prep clicks few.csv --like data -o none --numeric-fields share
expect_error "what columns are comes from --like data"
run gen clicks -o clicks.tsv --rows 10
expect_exit 64 "$paceline" prep clicks clicks.tsv --like data -o none
expect_error "data was made from table rows, but the input is criteo"

# ---- predict: with the label, without it, in another order, from a pipe ----
run predict --run run today.csv -o with
expect_equal "answers" "$(wc -l <with)" 500
printf 'city,id,member,share,income,constant,day,note\nUlm,100001,true,0.75,500,7,2026-01-02,\n' >a.csv
printf 'id\tcity\tincome\tconstant\tday\tshare\tmember\tnote\tsold\n100001\tUlm\t500\t7\t2026-01-02\t0.75\ttrue\t\t?\n' >b.tsv
run predict --run run a.csv -o a
run predict --run run b.tsv -o b
"$paceline" predict --run run - <a.csv >c 2>err || fail "predict from a pipe"
expect_equal "without label, with tabs" "$(cat b)" "$(cat a)"
expect_equal "from a pipe" "$(cat c)" "$(cat a)"
expect_no_error
expect_exit 64 "$paceline" predict --run run clicks.tsv --format criteo
expect_error "the model was trained on tables (csv or tsv); the input is criteo"
expect_exit 64 "$paceline" predict --run run clicks.tsv
expect_error "clicks.tsv: no column 'constant'; the header has: "

# ---- inspect: features by column ----
run inspect run --top 5 --json
expect_text '"kind":' '"table"' '"label":' '"sold"'
grep -qE '"feature":[[:space:]]*"(city|share|member|income|id|day|note)\+[0-9]+"' out || fail "features have no columns"
run inspect data
expect_text "table" "city"

# ---- columns as they are named ----
run prep clicks cars.csv -o named --label-field sold --ignore-fields id,note --category-fields constant \
    --numeric-fields income --numeric-fields share --numeric values
expect_error "2 numeric: income, share; 4 categories: city, constant, day, member; 2 ignored: id, note"
expect_exit 64 "$paceline" prep clicks cars.csv --format csv -o none
expect_error "cars.csv: no column 'label'; the header has: id, city, income, constant, day, share, member, note, sold"
expect_exit 64 "$paceline" prep clicks cars.csv -o none
expect_error "cars.csv: cannot tell the format" "--label-field"
expect_exit 64 "$paceline" prep clicks cars.csv -o none --label-field Sold
expect_error "cars.csv: does not begin with a header of different names, one of them 'Sold'" "--format csv"
expect_exit 64 "$paceline" prep clicks cars.csv -o none --label-field sold --ignore-fields di
expect_error "no column 'di'; the header has: " "(--ignore-fields)"
printf 'Größe,"Preis, €",\302\233weg,label\n1,2,3,0\n2,3,5,1\n' >umlauts.csv
run prep clicks umlauts.csv -o umlauts
expect_error 'Größe, "Preis, €", ??weg'
expect_exit 64 "$paceline" prep clicks umlauts.csv -o none --ignore-fields Gewicht
expect_error "no column 'Gewicht'; the header has: Größe, \"Preis, €\", "
expect_exit 64 "$paceline" prep clicks clicks.tsv -o none --format criteo --label-field sold
expect_error "--label-field: only tables have columns with names"
expect_nothing none

# ---- names with what JSON writes with a backslash: the model is read again ----
{ echo '"size ""in\cm""",label' && for i in {1..40}; do echo "$i,$((i % 2))"; done; } >quoted.csv
run prep clicks quoted.csv -o quoted
run train --data quoted --run quoted_run
run eval --run quoted_run --data quoted
run predict --run quoted_run quoted.csv --explain 1
grep -qF 'size "in\cm"+' out || fail "no name: $(head -n 1 out)"
run inspect quoted_run

# ---- bad rows: named by file and line ----
printf 'age,note,label\n1,,0\n2,"a\nb",1\nx,,1\n3,,maybe\n4,,1,5\n5,,1\n' >bad.csv
expect_exit 65 "$paceline" prep clicks bad.csv -o none --numeric-fields age
expect_error 'bad.csv:5: column "age": "x" is no number'
run prep clicks bad.csv -o some --numeric-fields age --max-bad-rows 3 --json
expect_equal "bad rows" "$(json_number bad_rows)" 3
expect_error 'bad.csv:6: label "maybe" is none of 0, 1, -1, no, yes, false, true' "bad.csv:7: 4 columns, but the header has 3"
printf 'age,label\n1,0\n2,"1\n' >open.csv
expect_exit 65 "$paceline" prep clicks open.csv -o none
expect_error "open.csv:3: the quote that is opened here is not closed"
: >empty.csv
expect_exit 65 "$paceline" prep clicks empty.csv -o none --format csv
expect_error "empty.csv: it is empty"
echo "age,label" >header.csv
expect_exit 65 "$paceline" prep clicks header.csv -o none
expect_error "header.csv: no rows"
expect_nothing none
