#!/bin/bash
# Training on several processes as a user runs it: every mode computes what one process does, and counts what it does.
source "$(dirname "$0")/lib.sh"
source "$(dirname "$0")/cluster.sh"

# list NAME FILE: the numbers of a JSON array, one a line.
list()
{
    tr -d ' \n' <"$2" | sed -n "s/.*\"$1\":\[\([^]]*\)\].*/\1/p" | tr ',' '\n'
}

run gen clicks -o clicks.svm --format svmlight --rows 4000 --seed 6
grep -qE ':[0-9]*\.[0-9]' clicks.svm || fail "svmlight rows without values"
run prep clicks clicks.svm -o svm --holdout 0.1

# ---- the same model, whatever the number of processes ----
train data local --exact --steps 200
expect_equal "samples" "$(json_number samples)" "$(rows_of 200)"
train data w1p0 --steps 200 --mode ps-sync
train data w1p2 --steps 200 --ps 2
train data w1all --steps 200 --mode allreduce
for name in w1p0 w1p2 w1all; do
    expect_same_bytes $name local
done
train data w2p0 --steps 200 --mode ps-sync --workers 2
train data w2p1 --steps 200 --workers 2 --ps 1
train data w2p3 --steps 200 --workers 2 --ps 3
train data w2all --steps 200 --workers 2
for name in w2p1 w2p3 w2all; do
    expect_same_bytes $name w2p0
done
train data w4p2 --steps 200 --workers 4 --ps 2
train data w4all --steps 200 --workers 4
expect_same_bytes w4all w4p2
for name in w2p0 w4p2; do
    expect_near $name local
    expect_equal "samples of $name" "$(json_number samples $name.json)" "$(rows_of 200)"
    is_true "($(json_number logloss $name.json) - $(json_number logloss local.json)) ^ 2 < 1e-12" ||
        fail "log-loss of $name"
done
# Gradients that travel as bf16: fewer bytes for the server, nearly the same model, the same bytes for any number of servers.
train data narrow1 --steps 200 --workers 2 --ps 1 --wire bf16
train data narrow2 --steps 200 --workers 2 --ps 2 --wire bf16
expect_same_bytes narrow2 narrow1
cmp -s narrow1/model.safetensors w2p1/model.safetensors && fail "--wire bf16 has rounded nothing"
is_true "$(json_number bytes_received narrow1.json) < 0.8 * $(json_number bytes_received w2p1.json)" || fail "bytes of --wire bf16"
is_true "($(json_number logloss narrow1.json) - $(json_number logloss w2p1.json)) ^ 2 < 1e-6" || fail "log-loss of --wire bf16"
usage_error "--wire is for ps-sync" -- train --data data --run none --model logreg --wire bf16
for optimizer in ftrl adam; do # unit/test_exchange has all of them
    words=(--optimizer "$optimizer" --l1 1e-4 --l2 1e-3 --steps 130)
    train data one_$optimizer --exact "${words[@]}"
    train data two_$optimizer "${words[@]}" --workers 2 --ps 2
    expect_near two_$optimizer one_$optimizer
done
train data two_schedule --workers 2 --steps 130 --optimizer momentum --schedule cosine --warmup 20 --seed 9
train data one_schedule --exact --steps 130 --optimizer momentum --schedule cosine --warmup 20 --seed 9
expect_near two_schedule one_schedule
train svm svm_one --exact --epochs 2
train svm svm_two --epochs 2 --workers 2 --ps 1
train svm svm_all --epochs 2 --workers 3
expect_near svm_two svm_one
expect_near svm_all svm_one

# ---- what a run leaves ----
# The mode follows from the roles.
expect_equal "mode of --workers 2" "$(json_text mode w2all.json)" allreduce
expect_equal "mode of --ps 1" "$(json_text mode w2p1.json)" ps-sync
expect_equal "mode of --ps 2 alone" "$(json_text mode w1p2.json)" ps-sync
expect_equal "mode of one process" "$(json_text mode local.json)" local
train data full --workers 2 --ps 4 --evaluator --eval-every 20
expect_object
cmp -s out full/summary.json || fail "train --json differs from summary.json"
for name in model mode workers ps batch epochs steps samples seconds samples_per_second restarts bytes_sent \
    bytes_received bottleneck test model_sha256 accuracy precision recall f1 auc logloss n null_accuracy roles servers \
    imbalance staleness evaluations_skipped rows_computed rows_computed_twice workers_lost checkpoints \
    checkpoint_stall_s; do
    expect_text "\"$name\":"
done
expect_equal "workers" "$(json_number workers)" 2
expect_equal "ps" "$(json_number ps)" 4
expect_equal "rows" "$(json_number samples)" "$train_rows"
expect_equal "rows computed" "$(json_number rows_computed)" "$train_rows"
expect_equal "rows computed twice" "$(json_number rows_computed_twice)" 0
sent=$(sed -n 's/^  "bytes_sent": \([0-9]*\),$/\1/p' out) # servers have members of that name too
expect_equal "bytes received" "$(sed -n 's/^  "bytes_received": \([0-9]*\),$/\1/p' out)" "$sent"
peers=$(sed -n 's/.*"kind":"peer".*"bytes_sent":\([0-9]*\).*/\1/p' full/metrics.jsonl |
    awk '{ sum += $1 } END { printf "%d", sum }')
expect_equal "bytes sent, by peer" "$peers" "$sent"
for name in bytes requests; do
    is_true "$(tr -d ' \n' <out | sed -n "s/.*\"imbalance\":{[^}]*\"$name\":\([0-9.]*\).*/\1/p") <= 1.10" ||
        fail "imbalance of $name over 4 servers"
done
roles=$(echo chief worker1 ps{0..3} evaluator)
for file in full/cluster.json full/summary.json; do
    found=$(grep -o '"role": "[a-z0-9]*"' $file | cut -d '"' -f 4 | head -n 7 | tr '\n' ' ')
    expect_equal "roles in $file" "$found" "$roles "
done
expect_equal "hosts in cluster.json" "$(grep -c "\"host\": \"$(hostname)\"" full/cluster.json)" 7
expect_equal "role records" "$(grep -c '"kind":"role"' full/metrics.jsonl)" 7
expect_equal "server records" "$(grep -c '"kind":"server"' full/metrics.jsonl)" 4
expect_equal "rows of the workers" "$(grep '"kind":"role"' full/metrics.jsonl | sed 's/.*"rows":\([0-9]*\).*/\1/' |
    awk '{ sum += $1 } END { print sum }')" "$train_rows"
! grep -qv '^{.*}$' full/metrics.jsonl || fail "metrics.jsonl has a line that is no object"
grep '"kind":"step"' full/metrics.jsonl | tail -n 1 >last
expect_equal "rows of the last step record" "$(json_number rows last)" "$train_rows"
run train --config full/config.yaml --run "$work/full_again" --json
expect_equal "model by full's configuration" "$(json_text model_sha256)" "$(sha full)"

# ---- the evaluator ----
# expect_evals RUN EVERY ROWS [MULTIPLE]: at multiples of EVERY (async: of MULTIPLE, as far as the shards had come) on ROWS
# rows, then at the end on all, as eval scores the run.
expect_evals()
{
    local steps evals

    steps=$(json_number steps "$1.json")
    sed -n 's/.*"kind":"eval".*"step":\([0-9]*\).*"n":\([0-9]*\).*/\1 \2/p' "$1/metrics.jsonl" >evals
    evals=$(wc -l <evals)
    [ "$evals" -ge 2 ] || fail "$1: the evaluator scored $evals times"
    head -n -1 evals | awk -v every="${4:-$2}" -v rows="$3" '$1 % every || $2 != rows { exit 1 }' ||
        fail "$1: evals at other steps: $(paste -s evals)"
    expect_equal "$1: last eval" "$(tail -n 1 evals)" "$steps $test_rows"
    expect_equal "$1: evals and skipped ones" $((evals - 1 + $(json_number evaluations_skipped "$1.json"))) \
        $(((steps - 1) / $2))
    run eval --run "$1" --data data --json
    for name in accuracy auc logloss n mean_predicted tp fp tn fn; do
        is_true "($(json_number $name) - ($(json_number $name "$1.json"))) ^ 2 < 1e-16" ||
            fail "$1: final $name $(json_number $name "$1.json"), eval says $(json_number $name)"
    done
}
expect_evals full 20 "$test_rows"
train data scored_all --workers 2 --evaluator --eval-every 30 --eval-rows 500 --steps 300
expect_evals scored_all 30 500
train data scored_async --mode ps-async --workers 2 --evaluator --eval-every 30 --steps 300
expect_evals scored_async 30 "$test_rows" 1
# A score of the evaluator is that of the workers at the same step.
train data scored --workers 2 --eval-every 20
grep '"kind":"eval"' scored/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*"logloss":\([^,]*\),.*/\1 \2/' >here
grep '"kind":"eval"' full/metrics.jsonl | sed 's/.*"step":\([0-9]*\).*"logloss":\([^,]*\),.*/\1 \2/' >there
awk 'NR == FNR { score[$1] = $2; next } !($1 in score) || (score[$1] - $2) ^ 2 > 1e-20 { exit 1 }' here there ||
    fail "the evaluator's scores differ: $(paste here there)"

# ---- asynchronous ----
train data sync --workers 2
for words in "ps-async --workers 2 --ps 1" "ps-async --workers 3 --ps 2" \
    "ps-ssp --staleness 0 --workers 2 --ps 2" "ps-ssp --staleness 2 --workers 2 --ps 1"; do
    read -ra words <<<"$words"
    rm -rf async
    train data async --mode "${words[@]}"
    expect_equal "mode" "$(json_text mode)" "${words[0]}"
    expect_equal "samples of ${words[*]}" "$(json_number samples)" "$train_rows"
    expect_equal "rows of ${words[*]}" "$(grep '"kind":"role"' async/metrics.jsonl | sed 's/.*"rows":\([0-9]*\).*/\1/' |
        awk '{ sum += $1 } END { print sum }')" "$train_rows"
    is_true "($(json_number logloss) - $(json_number logloss sync.json)) ^ 2 < 0.01 ^ 2" ||
        fail "${words[*]}: log-loss $(json_number logloss), synchronous $(json_number logloss sync.json)"
    list staleness out >staleness
    is_true "$(awk '{ sum += $1 } END { print sum }' staleness) > 0" || fail "${words[*]}: no staleness"
    [ "${words[1]-}" = --staleness ] || continue
    # At most the other parts of 2 N + 1 steps were applied between reading and pushing.
    is_true "$(wc -l <staleness) <= (2 * ${words[2]} + 1) * 2" ||
        fail "staleness beyond the bound: $(paste -s staleness)"
done
train data turns --mode ps-ssp --staleness 0 --ps 1 # one worker and no step ahead: the exact rule again
train data exact --exact
expect_near turns exact

# ---- dry runs, and hosts ----
train data dry --workers 2 --ps 2 --evaluator --dry-run
expect_object
expect_error "chief (rank 0, " "worker1 (rank 1, " "ps0 (rank 2, " "ps1 (rank 3, " "evaluator (rank 4, "
expect_error " MB" "holds" " kB"
train data dry --workers 3 --dry-run
# What it would reach, and one machine alone, once.
expect_error "expected" "--mode local"
[ "$(grep -c expected "$work/err")" -eq 1 ] || fail "what is expected is said more than once"
expect_error "worker2 (rank 2, " "a replica" " kB"
train data said --workers 2 --steps 20
expect_error "expected" "--mode local"
[ ! -e dry ] || fail "--dry-run made a run directory"
# However many there would be, one process tells it, and one on each host is started.
train data dry --workers 1000 --ps 200 --evaluator --batch 1000 --dry-run
expect_error "worker999 (rank 999, " "ps199 (rank 1199, " "evaluator (rank 1200, "
echo "localhost slots=3" >hosts
train data hosted --workers 2 --ps 1 --hosts hosts --steps 200
expect_same_bytes hosted w2p1
# Who goes where is what mpirun is told.
cat >launcher <<END
#!/bin/bash
echo "\$@" >>"$work/told"
exec $(command -v "$mpirun") "\$@"
END
chmod +x launcher
printf '# two names of one machine\n127.0.0.1 slots=2 roles=ps,evaluator\n\nlocalhost slots=2 roles=worker\n' >hosts
train data placed --workers 2 --ps 1 --evaluator --hosts hosts --mpirun "$work/launcher" --dry-run
found=$(grep -oE -- '(localhost|127.0.0.1):[0-9]' told | paste -s -d ' ')
expect_equal "placement of a dry run" "$found" "localhost:1 127.0.0.1:1"
expect_error "chief (rank 0, host localhost)" "worker1 (rank 1, host localhost)" "ps0 (rank 2, host 127.0.0.1)" \
    "evaluator (rank 3, host 127.0.0.1)"
rm told
train data placed --workers 2 --ps 1 --evaluator --hosts hosts --mpirun "$work/launcher" --steps 3
found=$(grep -oE -- '(localhost|127.0.0.1):[0-9]' told | paste -s -d ' ')
expect_equal "placement" "$found" "localhost:2 127.0.0.1:2"
# A data set that is not here is looked for where the job would be.
expect_exit 66 "$paceline" train --data nowhere --run dry --workers 2 --hosts hosts --mpirun "$work/launcher" --dry-run
expect_error "nowhere: is not on this machine" "chief (rank 0, " "nowhere: no such data set"

# ---- inside mpirun only the chief prints ----
expect_exit 0 "$mpirun" -n 3 "$paceline" train --data data --run "$work/inside" --batch 100 --workers 2 --ps 1 \
    --steps 200 --json
expect_object
cp out inside.json
expect_same_bytes inside w2p1
expect_exit 0 "$mpirun" -n 2 "$paceline" train --data data --run "$work/inside2" --batch 100 --workers 2 --steps 50
expect_equal "lines with the model" "$(grep -c sha256 out)" 1
