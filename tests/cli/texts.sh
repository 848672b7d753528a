# Texts for the tests that train on them. Use, behind lib.sh: source "$(dirname "$0")/texts.sh"
# shellcheck disable=SC2154 # $work is set in lib.sh

# make_texts FILE ROWS SEED: lines of LABEL<TAB>TEXT. A text is positive if it has more words with an odd number than with
# an even one, so that a model on single words can learn it, and so can one that reads them in their order.
make_texts()
{
    awk -v rows="$2" -v seed="$3" '
        function below(n) {
            seed = (seed * 1103515 + 12345) % 2147483648
            return int(seed / 65536) % n
        }
        BEGIN {
            for (i = 0; i < rows; i++) {
                text = ""
                balance = 0
                words = 1 + below(11)
                for (k = 0; k < words; k++) {
                    word = below(30)
                    balance += word % 2 ? 1 : -1
                    text = text " word" word
                }
                print (balance > 0) "\t" text
            }
        }' >"$1"
}

# words_of MODEL: sets model, the words of a small one that learns within seconds.
words_of()
{
    case $1 in
    rnn) model=(--model rnn --embed 8 --hidden 8 --lr 0.03) ;;
    logreg) model=(--model logreg --ngram 1) ;;
    esac
}

# train RUN WORDS...: on $work/data; what it prints as JSON stays in RUN.json.
train()
{
    run train --data "$work/data" --run "$work/$1" --batch 50 --json "${model[@]}" "${@:2}"
    cp out "$1.json"
}

sha()
{
    json_text model_sha256 "$1.json"
}

# expect_same RUN RUN: the same bytes.
expect_same()
{
    cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "the models of $1 and $2 differ"
    expect_equal "model_sha256 of $1" "$(sha "$1")" "$(sha "$2")"
}

# stopped_run_goes_on STEPS: a job of two workers that is stopped ends, that many steps later, as if it had not been.
stopped_run_goes_on()
{
    local step

    start_job "$paceline" train --data "$work/data" --run "$work/stopped" --batch 50 "${model[@]}" --schedule constant \
        --log-every 5 --epochs 1000000 --workers 2
    wait_for trains stopped
    kill -INT "$job"
    end_job 75
    expect_error "interrupted after step" "--resume"
    wait_for nothing_runs "$work/stopped"
    step=$(sed -n 's/.*interrupted after step \([0-9]*\) of.*/\1/p' err)
    train stopped --schedule constant --steps $((step + $1)) --workers 2 --resume
    train onward --schedule constant --steps $((step + $1)) --workers 2
    expect_same stopped onward
}

# expect_learned RUN: much better than guessing.
expect_learned()
{
    is_true "$(json_number logloss "$1.json") < 0.7 * $(json_number null_logloss "$1.json")" ||
        fail "$1: log-loss $(json_number logloss "$1.json"), by guessing $(json_number null_logloss "$1.json")"
    is_true "$(json_number accuracy "$1.json") > $(json_number null_accuracy "$1.json") + 0.2" ||
        fail "$1: accuracy $(json_number accuracy "$1.json"), by guessing $(json_number null_accuracy "$1.json")"
}

# expect_same_losses RUN RUN: those of all steps, but for the order of the sums. Both have --log-every 1.
expect_same_losses()
{
    local name

    for name in "$1" "$2"; do
        sed -n 's/.*"kind":"step".*"step":\([0-9]*\),.*"loss":\([^,]*\),.*/\1 \2/p' "$name/metrics.jsonl" >"$name.losses"
    done
    paste -d ' ' "$1.losses" "$2.losses" | awk -v steps="$(json_number steps "$1.json")" '
        NF != 4 || $1 != NR || $3 != NR || ($2 - $4) ^ 2 > 1e-6 { print "step " $0; exit 1 }
        END { if (NR != steps) exit 1 }' >differs || fail "$1 and $2 have other losses: $(cat differs)"
}
