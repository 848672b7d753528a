#!/bin/bash
# Somebody writes to a data set while it trains: nothing crashes, and no other rows are trained on in silence.
# shellcheck source=lib.sh
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 4000 --seed 5 --quiet
run prep clicks clicks.tsv -o data --parts 2 --quiet

# begin RUN THREADS: training that goes on for longer than this test.
begin()
{
    start_job "$paceline" train --data data --model logreg --run "$work/$1" --threads "$2" --epochs 1000000 --log-every 20
    wait_for trains "$1"
}

for threads in 1 2; do
    # ---- other bytes in rows that were compared long ago ----
    cp -r data kept
    begin changed$threads $threads
    head -c 4096 /dev/zero | timeout 30 dd of=data/part-00001.h5 bs=4096 seek=20 conv=notrunc status=none || fail "the writer waits"
    end_job 65
    expect_error "data/part-00001.h5: damaged: "
    rm -r data
    mv kept data

    # ---- a file that becomes short ----
    cp -r data kept
    begin cut$threads $threads
    head -c 100000 kept/part-00000.h5 >short
    timeout 30 cp short data/part-00000.h5 || fail "the writer waits"
    end_job 65 74
    expect_error "data/part-00000.h5"
    rm -r data
    mv kept data
done

# ---- a new data set of the same name: the job goes on with the rows that it has ----
run train --data data --model logreg --run before --threads 2 --epochs 5 --json
sum=$(json_text model_sha256)
begin renamed 2
mv data old
kill -TERM "$job"
end_job 75
mv old data

# ---- files that are open for writing, and therefore not mapped: the same model ----
exec 8<>data/part-00000.h5 9<>data/part-00001.h5
run train --data data --model logreg --run open --threads 1 --epochs 5 --json
exec 8>&- 9>&-
expect_equal "the model" "$(json_text model_sha256)" "$sum"
