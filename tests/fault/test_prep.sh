#!/bin/bash
# prep, killed at random moments: tests/fault/test_prep.sh PROGRAM
#
# FAULT_SEED repeats the moments.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

seed=${FAULT_SEED:-$((SRANDOM % 32768))}
echo "seed $seed"
RANDOM=$seed
kills=8

# strike WORDS...: prep, killed at a random moment of the time that it takes. False: it was faster.
strike()
{
    start_job "$paceline" prep clicks clicks.tsv -o set --quiet "$@"
    sleep "$(awk -v of="$takes" -v draw=$RANDOM 'BEGIN { printf "%.3f", of * draw / 32768 }')"
    kill -KILL $job 2>/dev/null
    wait $job 2>/dev/null
    [ $? -eq 137 ]
}

run gen clicks -o old.tsv --rows 3000 --seed 4
run gen clicks -o clicks.tsv --rows 150000 --seed 5
run prep clicks old.tsv -o old
begun=$EPOCHREALTIME
run prep clicks clicks.tsv -o whole
takes=$(seconds_between "$begun" "$EPOCHREALTIME")
wanted=$(prints whole)

# Nothing was there: nothing is there, and the next one is as if nothing had happened.
hits=0 halves=0
for ((i = 0; hits < kills && i < 5 * kills; i++)); do
    strike || { rm -rf set; continue; }
    hits=$((hits + 1))
    if [ -e set ]; then # it died behind its last act
        expect_equal "kill $hits: a set that is there" "$(prints set)" "$wanted"
        rm -rf set
    else
        [ ! -e .set.partial ] || halves=$((halves + 1))
        "$paceline" inspect set >out 2>err && fail "kill $hits: inspect finds a data set"
        "$paceline" train --data set --run "$work/run" >out 2>err && fail "kill $hits: train finds a data set"
    fi
    [ $((hits % 3)) -eq 0 ] || continue # several deaths after each other, too
    run prep clicks clicks.tsv -o set
    expect_equal "kill $hits: the next one" "$(prints set)" "$wanted"
    expect_equal "kill $hits: what is left beside it" "$(find . -maxdepth 1 -name '.*set*')" ""
    rm -rf set
done
[ $hits -eq $kills ] || fail "only $hits of $i kills hit; prep takes $takes s"
[ $halves -gt 0 ] || fail "no kill hit a prep that had begun to write; it takes $takes s"

# An old set stays whole until the new one is.
before=$(prints old)
hits=0
cp -a old set
for ((i = 0; hits < kills && i < 5 * kills; i++)); do
    if strike --force; then
        hits=$((hits + 1))
        [ -d set ] || fail "kill $hits: the old set is gone"
        found=$(prints set)
        [ "$found" = "$before" ] || [ "$found" = "$wanted" ] || fail "kill $hits: neither the old set nor the new one"
        run inspect set
    fi
    [ "$(prints set)" = "$before" ] || { rm -rf set && cp -a old set; }
done
[ $hits -eq $kills ] || fail "only $hits of $i kills hit; prep takes $takes s"
run prep clicks clicks.tsv -o set --force
expect_equal "the new set" "$(prints set)" "$wanted"
expect_equal "what is left beside it" "$(find . -maxdepth 1 -name '.*set*')" ""
