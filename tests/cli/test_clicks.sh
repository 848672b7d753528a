#!/bin/bash
# The clicks job as a user runs it, from raw rows to a scored model: gen, prep, train, eval, predict, inspect.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

seconds_max=60 # for anything that is waited for

# run WORDS...: the program succeeds; its output is in out and err afterwards.
run()
{
    expect_exit 0 "$paceline" "$@"
}

# expect_equal WHAT FOUND WANTED
expect_equal()
{
    [ "$2" = "$3" ] || fail "$1: $2 instead of $3"
}

# model_of DATA WORDS...: trains in a run directory of its own and prints the model's SHA-256.
model_of()
{
    rm -rf run_of_model
    expect_exit 0 "$paceline" train --data "$1" --model logreg --run run_of_model --json "${@:2}"
    json_text model_sha256
}

# ---- gen: the same seed gives the same bytes, in three formats ----
rows=6000
for format in criteo svmlight tfrecord; do
    run gen clicks -o "$format.1" --rows $rows --seed 5 --format $format --json
    expect_object
    expect_equal "$format rows" "$(json_number rows)" $rows
    expect_equal "$format bytes" "$(json_number bytes)" "$(stat -c %s "$format.1")"
    null_logloss=$(json_number null_logloss)
    is_true "$(json_number best_logloss) < $null_logloss && $null_logloss < 0.69" || fail "no signal in $format"
    run gen clicks -o "$format.2" --rows $rows --seed 5 --format $format --threads 3
    cmp -s "$format.1" "$format.2" || fail "$format: the same seed gave other bytes"
    run gen clicks -o "$format.2" --rows $rows --seed 6 --format $format --force
    ! cmp -s "$format.1" "$format.2" || fail "$format: another seed gave the same bytes"
done
mv criteo.1 clicks.tsv
mv criteo.2 later.tsv
mv svmlight.1 clicks.svm
mv tfrecord.1 clicks.tfrecord
rm svmlight.2 tfrecord.2
expect_equal "criteo lines" "$(wc -l <clicks.tsv)" $rows
expect_equal "criteo columns" "$(head -n 1 clicks.tsv | tr -cd '\t' | wc -c)" 39
expect_exit 64 "$paceline" gen clicks -o clicks.tsv --rows 1
expect_error "clicks.tsv" "--force"
"$paceline" gen clicks -o - --rows $rows --seed 5 --quiet >piped 2>err || fail "gen to standard output"
cmp -s piped clicks.tsv || fail "gen to standard output gave other bytes"

# ---- prep ----
run prep clicks clicks.tsv -o data --holdout 0.1 --threads 1 --json
expect_object
expect_equal "training rows" "$(json_number train_rows)" $((rows * 9 / 10))
expect_equal "test rows" "$(json_number test_rows)" $((rows / 10))
expect_equal "bad rows" "$(json_number bad_rows)" 0
expect_equal "bytes read" "$(json_number bytes_read)" "$(stat -c %s clicks.tsv)"
expect_equal "files" "$(echo data/*)" "$(echo data/checksums.json data/ids.h5 data/part-0000{0,1,2,3,4,5,6,7}.h5)"
run prep clicks clicks.tsv -o data3 --holdout 0.1 --threads 3
for file in data/*; do
    cmp -s "$file" "data3/${file#data/}" || fail "$file differs between 1 and 3 threads"
done
run prep clicks clicks.tsv -o odd --holdout 0.0333 --parts 3 --json
expect_equal "odd hold-out" "$(json_number test_rows)" 200
expect_equal "three parts" "$(echo odd/part-*)" "$(echo odd/part-0000{0,1,2}.h5)"

# The same rows in other wrappings give the same model.
model=$(model_of data)
[ ${#model} -eq 64 ] || fail "no SHA-256 of the model: $model"
gzip -c clicks.tsv >clicks.tsv.gz
run prep clicks clicks.tsv.gz -o data_gz --holdout 0.1
expect_equal "model from gzip" "$(model_of data_gz)" "$model"
{ head -n 1000 clicks.tsv | gzip -c && tail -n +1001 clicks.tsv | gzip -c; } >members.gz
run prep clicks members.gz -o data_members --holdout 0.1
expect_equal "model from two gzip members" "$(model_of data_members)" "$model"
if command -v zstd >/dev/null; then
    zstd -q clicks.tsv -o clicks.tsv.zst
    run prep clicks clicks.tsv.zst -o data_zst --holdout 0.1
    expect_equal "model from zstd" "$(model_of data_zst)" "$model"
else
    echo "zstd is not installed: skipped"
fi
"$paceline" prep clicks - -o data_stdin --format criteo --holdout 0.1 <clicks.tsv >out 2>err || fail "prep from standard input"
expect_equal "model from standard input" "$(model_of data_stdin)" "$model"
"$paceline" prep clicks - -o data_stdin --format criteo --holdout 0.1 --force <clicks.tsv.gz >out 2>err ||
    fail "prep of gzip from standard input"
expect_equal "model from gzip on standard input" "$(model_of data_stdin)" "$model"
head -c -1 clicks.tsv >unterminated.tsv
run prep clicks unterminated.tsv -o data_unterminated --holdout 0.1
expect_equal "model without the last newline" "$(model_of data_unterminated)" "$model"
expect_exit 64 "$paceline" prep clicks - -o nothing
expect_error "standard input" "--format"

# Several files, and a test set of its own.
head -n 2500 clicks.tsv >first.tsv
tail -n +2501 clicks.tsv | gzip -c >second.gz
run prep clicks first.tsv second.gz -o several --test later.tsv --json
expect_equal "rows of several files" "$(json_number train_rows)" $rows
expect_equal "rows of --test" "$(json_number test_rows)" $rows
run prep clicks first.tsv -o twice --test later.tsv --test second.gz --json
expect_equal "rows of two --test" "$(json_number test_rows)" $((rows + rows - 2500))
touch parts_seen
run prep clicks first.tsv -o on_part --parts 3 --on-part 'test -s "$PACELINE_PART" && echo "$PACELINE_PART" >>parts_seen'
expect_equal "calls of --on-part" "$(grep -c 'part-0000[0-2].h5' parts_seen)" 3

# ---- train ----
run train --data data --model logreg --run run1 --json
expect_object
for name in model mode workers ps batch epochs steps samples seconds samples_per_second restarts bytes_sent \
    bytes_received bottleneck test model_sha256 accuracy precision recall f1 auc logloss n null_accuracy; do
    expect_text "\"$name\":"
done
cmp -s out run1/summary.json || fail "train --json differs from summary.json"
expect_equal "model" "$(json_text model)" logreg
expect_equal "mode" "$(json_text mode)" local
expect_equal "workers" "$(json_number workers)" 1
expect_equal "samples" "$(json_number samples)" $((rows * 9 / 10))
expect_equal "n" "$(json_number n)" $((rows / 10))
is_true "$(json_number logloss) < $(json_number null_logloss)" || fail "the log-loss is not below that of the mean"
is_true "$(json_number auc) > 0.6" || fail "AUC $(json_number auc)"
expect_equal "model_sha256" "$(json_text model_sha256)" "$(sha256sum run1/model.safetensors | cut -d ' ' -f 1)"
for name in config.yaml metrics.jsonl summary.json model.safetensors checkpoints logs/paceline.log; do
    [ -e "run1/$name" ] || fail "run1/$name is missing"
done
[ -s run1/metrics.jsonl ] || fail "metrics.jsonl is empty"
! grep -qv '^{.*}$' run1/metrics.jsonl || fail "metrics.jsonl has a line that is no object"
! grep -aq "$work" run1/model.safetensors || fail "the model holds a path"
for threads in 1 2 3; do
    expect_equal "model by $threads threads" "$(model_of data --threads $threads)" "$model"
done
exact=$(model_of data --threads 1 --exact --batch 1000)
[ "$exact" != "$model" ] || fail "--exact changes nothing"
expect_equal "exact model by 3 threads" "$(model_of data --threads 3 --exact --batch 1000)" "$exact"
for rule in "sgd --lr 0.005" "momentum --lr 0.0005" ftrl adam; do
    read -ra words <<<"$rule"
    model_of data --optimizer "${words[@]}" >sha
    is_true "$(json_number logloss) < $(json_number null_logloss)" || fail "$rule: the log-loss is not below the mean's"
done
for format in svm tfrecord; do
    run prep clicks clicks.$format -o data_$format --holdout 0.1 --json
    expect_equal "$format training rows" "$(json_number train_rows)" $((rows * 9 / 10))
    one=$(model_of data_$format --threads 1)
    is_true "$(json_number logloss) < $(json_number null_logloss)" || fail "$format: the log-loss is not below the mean's"
    expect_equal "$format model by 3 threads" "$(model_of data_$format --threads 3)" "$one"
done
run prep clicks first.tsv -o untested
run train --data untested --run run_untested --json
expect_text '"test": null'
run train --data data --run run_dry --dry-run --json
expect_object
[ ! -e run_dry ] || fail "--dry-run made a run directory"

# ---- eval ----
run eval --run run1 --data data --json
expect_object
expect_equal "eval --json" "$(tr -d ' \n' <out)" "$(sed -n 's/^ *"test": \({.*}\),$/\1/p' run1/summary.json | tr -d ' ')"
run eval --run run1/model.safetensors --data data
expect_text log-loss AUC accuracy precision recall
run eval --run run1 --data data --set train --json
expect_equal "training rows scored" "$(json_number n)" $((rows * 9 / 10))

# ---- --like: rows that come later, encoded as the model expects ----
# expect_same_scores: out and scores agree but for the order of the sums.
expect_same_scores()
{
    for name in n tp fp tn fn accuracy; do
        expect_equal "$name with $1" "$(json_number $name)" "$(json_number $name scores)"
    done
    for name in logloss auc mean_predicted; do
        is_true "($(json_number $name) - $(json_number $name scores)) ^ 2 < 1e-16" ||
            fail "$name with $1: $(json_number $name) instead of $(json_number $name scores)"
    done
}
run prep clicks clicks.tsv -o together --test later.tsv
run train --data together --run run_together
run eval --run run_together --data together --json
cp out scores
expect_equal "rows scored" "$(json_number n scores)" $rows
for like in together run_together run_together/model.safetensors; do
    run prep clicks later.tsv -o later --like $like --force
    run eval --run run_together --data later --json
    expect_same_scores "--like $like"
done
run prep clicks clicks.svm -o svm_first
run train --data svm_first --run run_svm
run prep clicks clicks.tfrecord -o tfrecord_like --like run_svm
run eval --run run_svm --data tfrecord_like --json
expect_equal "rows of another format scored" "$(json_number n)" $rows

# ---- predict ----
# expect_probabilities ROWS FILE: one number in (0, 1) per line.
expect_probabilities()
{
    expect_equal "lines of $2" "$(wc -l <"$2")" "$1"
    awk '!/^[0-9.e-]+$/ || $1 <= 0 || $1 >= 1 { exit 1 }' "$2" || fail "$2: a line is no probability"
}
run train --data data --run run_long --epochs 3
expect_exit 0 "$paceline" predict --run run_long clicks.tsv
expect_no_error
cp out predictions
expect_probabilities $rows predictions
mean=$(awk '{ sum += $1 } END { print sum / NR }' predictions)
clicked=$(cut -f 1 clicks.tsv | awk '{ sum += $1 } END { print sum / NR }')
is_true "($mean - $clicked) ^ 2 < 0.03 ^ 2" || fail "mean prediction $mean, mean label $clicked"
paste predictions <(cut -f 1 clicks.tsv) | awk '
    { sum[$2] += $1; count[$2]++ }
    END { exit !(sum[1] / count[1] > sum[0] / count[0] + 0.02) }' || fail "clicked rows are not predicted higher"
"$paceline" predict --run run_long - <clicks.tsv >piped 2>err || fail "predict from standard input"
cmp -s piped predictions || fail "predict from standard input differs"
"$paceline" predict --run run_long - <clicks.tsv.gz >piped 2>err || fail "predict of gzip from standard input"
cmp -s piped predictions || fail "predict of gzip from standard input differs"
cut -f 2- clicks.tsv >unlabelled.tsv
expect_exit 0 "$paceline" predict --run run_long unlabelled.tsv
cmp -s out predictions || fail "rows without label are predicted differently"
expect_exit 0 "$paceline" predict --run run_long first.tsv second.gz
cmp -s out predictions || fail "predict of two files differs"
run predict --run run_long clicks.tsv -o predictions.txt --json
expect_object
expect_equal "rows predicted" "$(json_number rows)" $rows
cmp -s predictions.txt predictions || fail "predict --output differs"
expect_exit 0 "$paceline" predict --run run_svm clicks.svm
cp out predictions
expect_probabilities $rows predictions
sed 's/^[^ ]* //' clicks.svm >unlabelled.svm
expect_exit 0 "$paceline" predict --run run_svm --format svmlight unlabelled.svm
cmp -s out predictions || fail "svmlight rows without label are predicted differently"
expect_exit 0 "$paceline" predict --run run_svm clicks.tfrecord
expect_probabilities $rows out
# What predict says of the test rows is what eval scores.
run eval --run run_together --data together --json
cp out scores
expect_exit 0 "$paceline" predict --run run_together later.tsv
mean=$(awk '{ sum += $1 } END { printf "%.9f\n", sum / NR }' out)
is_true "($mean - $(json_number mean_predicted scores)) ^ 2 < 1e-10" || fail "predict and eval differ: $mean"

# ---- a small svmlight file in the manner of a9a: 14 binary features a row, labels -1 and +1 ----
# awk's own generator differs between awks.
awk 'BEGIN {
    for (row = 0; row < 800; row++) {
        label = row % 3 == 0
        line = label ? "+1" : "-1"
        for (group = 0; group < 14; group++) {
            state = (state * 1103515245 + 12345) % 2147483648
            pick = int(state / 65536) % 8
            if (group == 4) pick = label ? pick % 2 : 2 + pick % 6
            line = line " " group * 9 + pick + 1 ":1"
        }
        print line
    }
}' >tiny.svm
run prep clicks tiny.svm -o tiny --holdout 0.25 --json
expect_equal "tiny test rows" "$(json_number test_rows)" 200
expect_equal "tiny features" "$(json_number features)" $((13 * 9 + 8 + 1))
run train --data tiny --run run_tiny --epochs 5 --json
is_true "$(json_number accuracy) > 0.97 && $(json_number auc) > 0.99" || fail "tiny: accuracy $(json_number accuracy)"
is_true "$(json_number null_accuracy) < 0.75" || fail "tiny: null accuracy"
expect_exit 0 "$paceline" predict --run run_tiny tiny.svm
paste out tiny.svm | awk '($1 > 0.5) != ($2 > 0) { wrong++ } END { exit wrong > 20 }' || fail "tiny: predictions are wrong"

# ---- configuration: defaults < file < environment < options ----
printf 'rows: 10\nseed: 5\n' >gen.yaml
run gen clicks -o ten --config gen.yaml
expect_equal "rows by the file" "$(wc -l <ten)" 10
PACELINE_ROWS=20 run gen clicks -o twenty --config gen.yaml
expect_equal "rows by the environment" "$(wc -l <twenty)" 20
PACELINE_ROWS=20 run gen clicks -o thirty --config gen.yaml --rows 30
expect_equal "rows by the option" "$(wc -l <thirty)" 30
cmp -s thirty <(head -n 30 clicks.tsv) || fail "the seed of the file was not used"
PACELINE_CONFIG=gen.yaml run gen clicks -o eleven --rows 11
cmp -s eleven <(head -n 11 clicks.tsv) || fail "PACELINE_CONFIG was not used"
run train --config run1/config.yaml --run run_again --json
expect_equal "model by run1's configuration" "$(json_text model_sha256)" "$model"
printf 'data: data\nepochs: 2\n' >train.yaml
PACELINE_EPOCHS=3 run train --config train.yaml --run run_env --json
expect_equal "epochs" "$(json_number epochs)" 3

# ---- interrupt and resume ----
"$paceline" train --data data --run stopped --epochs 1000000 --checkpoint-every 20 >out 2>err &
child=$!
deadline=$((SECONDS + seconds_max))
until compgen -G 'stopped/checkpoints/step-*/manifest.json' >/dev/null; do
    kill -0 $child 2>/dev/null || fail "train ended by itself"
    [ $SECONDS -lt $deadline ] || { kill -KILL $child; fail "no checkpoint after $seconds_max s"; }
    sleep 0.02
done
kill -INT $child
while kill -0 $child 2>/dev/null; do
    [ $SECONDS -lt $deadline ] || { kill -KILL $child; fail "still running $seconds_max s after the start"; }
    sleep 0.02
done
got=0
wait $child || got=$?
expect_equal "exit code after SIGINT" $got 75
expect_error "interrupted after step" "--resume"
[ ! -e stopped/summary.json ] || fail "an interrupted run has a summary"
[ ! -e stopped/model.safetensors ] || fail "an interrupted run has a model"
step=$(sed -n 's/.*interrupted after step \([0-9]*\).*/\1/p' err)
checkpoint=$(printf 'stopped/checkpoints/step-%012d.0001' "$step")
[ -s "$checkpoint/manifest.json" ] || fail "$checkpoint is missing"
expect_equal "checkpoints kept" "$(find stopped/checkpoints -name 'step-*' | wc -l)" 2

run inspect "$checkpoint"
expect_text "what         checkpoint" "whole        yes" optimizer part-00000-of-00001.safetensors
grep -qE '^bytes +[0-9.]+ (KiB|MiB)$' out || fail "bytes have no unit"
grep -qE '^seconds +[0-9.]+ s$' out || fail "seconds have no unit"
run inspect "$checkpoint/part-00000-of-00001.safetensors"
expect_text "checkpoint part"
run inspect stopped --json
expect_object
expect_text $'"finished":\tfalse' $'"ending":\t"interrupted"'
expect_equal "newest checkpoint" "$(grep -c "\"$checkpoint\"" out)" 1

expect_exit 64 "$paceline" train --data data --run stopped --steps 1
expect_error stopped "--resume" "--force"
expect_exit 64 "$paceline" train --data data --run stopped --resume --lr 0.3
expect_error "other options"
expect_exit 64 "$paceline" train --data data --run stopped --resume --lr 0.3 --dry-run
expect_error "other options"
run train --data data --run stopped --resume --steps $((step + 37)) --dry-run
expect_error "would go on from stopped/checkpoints/step-"
run train --data data --run stopped --resume --steps $((step + 37)) --threads 3 --json
resumed=$(json_text model_sha256)
expect_error "goes on with --threads 3 (was one per core" "--steps $((step + 37)) (was "
expect_equal "steps" "$(json_number steps)" $((step + 37))
expect_equal "resumed model" "$resumed" "$(model_of data --steps $((step + 37)) --threads 2)"

# ---- a finished run has nothing left to do, and is no other job ----
run train --data data --run stopped --resume --steps $((step + 37)) --json
expect_error "nothing left to do"
expect_equal "the same model" "$(json_text model_sha256)" "$resumed"
expect_exit 64 "$paceline" train --data data --run stopped --resume --steps $((step + 37)) --optimizer ftrl --l2 0.5
expect_error "--optimizer ftrl" "was adagrad" "--force"
expect_no_output
run train --data data --run stopped --resume --steps $((step + 37)) --dry-run
expect_error "nothing left to do"

# ---- inspect ----
run inspect data
expect_text "data set" "5,400" "600" "33,762,578"
run inspect data --json
expect_object
run inspect data/part-00003.h5 --json
expect_object
expect_text '"part":'
run inspect run1 --json
expect_object
expect_text "$model" '"finished":' true
expect_text '"seconds":' '"samples_per_second":'
run inspect run1
grep -qE '^ +seconds +[0-9.]+ s$' out || fail "seconds have no unit"
! grep -E '^ +samples_per_second .*([0-9]{4}|e)' out || fail "a rate without separators"
run inspect run1/model.safetensors --top 3 --json
expect_object
expect_equal "heaviest features" "$(grep -c '"feature":' out)" 3
