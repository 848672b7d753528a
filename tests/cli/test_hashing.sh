#!/bin/bash
# The reference in docs/hashing.md gives the ids that the program gives: rows of the generator, and odd ones. It needs Python 3
# (and of categories longer than 8 bytes a package of hashes, so there are none here: unit/test_hashing has them).
docs=$(cd "$(dirname "$0")/../../docs" && pwd)
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

if ! python3 -c 'import sys; sys.exit(sys.version_info < (3, 9))' 2>/dev/null; then
    echo "no Python of 3.9 or later: nothing is compared"
    exit 0
fi
sed -n '/^```python$/,/^```$/p' "$docs/hashing.md" | sed '1d;$d' >reference.py
cat >compare.py <<'END'
import reference, sys

numeric, features = sys.argv[1], int(sys.argv[2])
base = reference.bases(features, numeric)
names = ["I%d" % i for i in range(1, 14)] + ["C%d" % i for i in range(1, 27)]
told = 0
for row, line in zip(open("rows.tsv", "rb"), open("told")):
    entries = reference.criteo(row, features, numeric)
    mine = {"%s+%d" % (names[c], i - base[c]) for c, (i, value) in enumerate(entries)}
    theirs = set(line.rstrip("\n").split("\t")[1::2])
    told += len(theirs)
    if theirs - mine:
        sys.exit("%s: the program has %s" % (row, theirs - mine))
print(told)
END

# Odd ones: numbers at all borders, categories of every length up to 8.
run gen clicks -o rows.tsv --rows 300
awk 'BEGIN {
    srand(7)
    count = split(",-9223372036854775808,-4,-3,-2,-1,0,1,2,3,4,60,61,99,100000,16777147,16777148,9223372036854775807", number, ",")
    for (i = 0; i < 300; i++) {
        row = i % 2
        for (c = 0; c < 13; c++) row = row "\t" number[1 + int(rand() * count)]
        for (c = 0; c < 26; c++) row = row "\t" substr("Aa0fq zx", 1, int(rand() * 9))
        print row
    }
}' >>rows.tsv

# What the model has seen is told by name; all of it has some weight.
for numeric in bins values; do
    for features in 64 100000 33762578; do
        run prep clicks rows.tsv -o data --format criteo --numeric $numeric --features $features --force
        run train --data data --model logreg --run run --force --quiet
        run predict --run run rows.tsv --explain 39 -o told --force
        python3 compare.py $numeric $features >told.names 2>err || fail "--numeric $numeric --features $features"
        is_true "$(cat told.names) > 600 * 20" || fail "only $(cat told.names) names"
    done
done
