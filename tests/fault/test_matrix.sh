#!/bin/bash
# A few of the kills that tests/attack/kills.sh tries: tests/fault/test_matrix.sh PROGRAM
#
# FAULT_SEED repeats the random ones.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"

seed=${FAULT_SEED:-$((SRANDOM % 32768))}
echo "seed $seed"
RANDOM=$seed
make_data

# try MODE ROLE MOMENT KIND [DELAY]: a kill from outside that comes too late is repeated.
try()
{
    local turn

    for turn in 1 2 3 4 5; do
        echo "$* ($turn)"
        kill_once "$1" "$2" "$3" "$4" $(((${5:-0} + 37 * (turn - 1)) % 100)) && return
    done
    fail "$*: $turn kills came too late"
}

try allreduce chief middle exact
try allreduce worker1 end exact
try sync worker1 checkpoint exact
try sync chief eval exact
try sync-ps ps0 checkpoint exact
try sync-ps chief end exact
try async chief checkpoint exact
try async worker1 first exact
try async-ps worker1 middle exact
try async-ps evaluator eval exact
try ssp-ps worker1 start exact
try ssp-ps ps0 middle exact
try merging worker1 middle exact
try merging chief checkpoint exact
try merging worker1 checkpoint exact
try merging chief end exact
try rnn worker1 middle exact
try rnn-merging worker1 middle exact
try rnn-merging chief checkpoint exact
try ngrams-merging worker1 middle exact
try rnn-ps ps0 checkpoint exact
try cnn worker1 middle exact
try cnn-ps ps0 checkpoint exact
draws=0
while [ $draws -lt 3 ]; do
    draw_kill
    is_possible "$mode" "$role" "$moment" || continue
    [ "$moment" != checkpoint ] || continue # a matter of milliseconds: exact kills have them, and `make attack`
    try "$mode" "$role" "$moment" outside "$delay"
    draws=$((draws + 1))
done
