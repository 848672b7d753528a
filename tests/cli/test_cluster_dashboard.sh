#!/bin/bash
# train --dashboard: the live page of a run, its figures, who may look, and that it cannot harm the run.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 20k
run prep clicks clicks.tsv -o data --holdout 0.1
words=(train --data data --model logreg)

# ask PORT PATH [HEADER]: the answer goes to $work/answer.
ask()
{
    exec 5<>"/dev/tcp/127.0.0.1/$1" || return 1
    printf 'GET %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n' "$2" "${3:+$3$'\r\n'}" >&5
    timeout "$seconds_max" cat <&5 | tr -d '\r' >"$work/answer"
    exec 5>&-
}

# answers PORT PATH CODE [HEADER]
answers()
{
    ask "$1" "$2" "${4:-}" || fail "nobody listens on port $1"
    expect_equal "$2" "$(sed -n '1s/HTTP[^ ]* \([0-9]*\).*/\1/p' "$work/answer")" "$3"
}

# serve_job WORDS...: starts it; its port is $port. What an earlier job has said is gone before.
serve_job()
{
    : >"$work/err"
    start_job "$paceline" "$@"
    wait_for said_port
}

said_port()
{
    port=$(sed -n 's#^dashboard: http://[^/]*:\([0-9]*\)/.*#\1#p' "$work/err")
    [ -n "$port" ]
}

# figure NAME: of the last answer.
figure()
{
    sed -n "s/^paceline_$1 //p" "$work/answer"
}

shows()
{
    ask "$port" /metrics && [ "$(figure "$1")" = "$2" ]
}

# ---- one process ----
serve_job "${words[@]}" --run "$work/alone" --epochs 100000 --log-every 1000 --dashboard 0
wait_for trains "$work/alone"
wait_for shows 'run_standing{standing="running"}' 1
answers "$port" /healthz 200
answers "$port" / 200
grep -q '</html>' answer || fail "the page has no end"
answers "$port" /nothing 404
expect_equal "dashboard in config.yaml" "$(sed -n 's/^dashboard: //p' alone/config.yaml)" '"0"'

# The port is taken: nothing has begun, and an earlier job goes on.
expect_exit 74 "$paceline" "${words[@]}" --run "$work/second" --dashboard "$port"
expect_error "cannot listen on 127.0.0.1:$port: Address already in use"
[ ! -e second ] || fail "a run was made that cannot be watched"
usage_error "--dashboard node1:80: must be a numeric address" -- "${words[@]}" --run "$work/second" --dashboard node1:80
kill -0 "$job" || fail "the first job has ended"

# A reader of events hears how it ends.
exec 6<>"/dev/tcp/127.0.0.1/$port"
printf 'GET /events HTTP/1.1\r\nHost: localhost\r\n\r\n' >&6
kill -INT "$job"
end_job 75
timeout "$seconds_max" cat <&6 >events
exec 6>&-
grep -q 'event: series' events || fail "no course of the run in: $(cat events)"
grep -q '"standing":"interrupted"' events || fail "how it ended is not among the events"
grep -q 'event: end' events || fail "the events have no end"

# ---- nobody is shown a run without its token ----
serve_job "${words[@]}" --run "$work/open" --epochs 100000 --log-every 1000 --dashboard 0.0.0.0:0
wait_for trains "$work/open"
token=$(sed -n 's/.*?token=\([0-9a-f]*\).*/\1/p' err)
expect_equal "length of the token" ${#token} 32
for path in / /events /metrics /healthz /nothing "/metrics?token=" "/metrics?token=${token%?}"; do
    answers "$port" "$path" 403
done
answers "$port" "/metrics?token=$token" 200
answers "$port" /healthz 200 "Authorization: Bearer $token"
! grep -rqF "$token" open || fail "the token is in a file of the run"
kill -INT "$job"
end_job 75

# ---- several processes: the page outlives them, and its figures are those of the records ----
serve_job "${words[@]}" --run "$work/many" --workers 2 --ps 1 --batch 100 --epochs 100000 --log-every 100 --checkpoint-every 500 \
    --dashboard 127.0.0.1:0
wait_for test -e many/state.json
wait_for trains "$work/many"
kill -KILL "$(rank_of "$work/many" 2)"
wait_for shows restarts_total 1
kill -0 "$job" || fail "the job did not outlive its server"

# Nothing is recorded while the chief is stopped.
samples()
{
    [ "$(grep -c '"kind":"sample".*"role":"worker1"' many/metrics.jsonl)" -gt "$1" ]
}
wait_for samples $(($(grep -c '"kind":"sample".*"role":"worker1"' many/metrics.jsonl) + 2))
chief=$(rank_of "$work/many" 0)
kill -STOP "$chief"
wait_for grep -q '^State:.T' "/proc/$chief/status"
# newest KIND ROLE NAME: of the records.
newest()
{
    grep "\"kind\":\"$1\"" many/metrics.jsonl | grep "$2" | tail -n 1 | sed -n "s/.*\"$3\":\([-+.0-9e]*\).*/\1/p"
}
wait_for shows step "$(newest step loss step)"
wait_for shows 'role_rows_total{role="worker1"}' "$(newest sample '"role":"worker1"' rows)"
sent=$(newest flow '"role":"worker1","peer":"ps0"' bytes_sent)
expect_equal "bytes in /metrics" "$(figure 'role_exchange_sent_bytes_total{role="worker1"}')" "$sent"
is_true "$(figure loss) == $(newest step loss loss)" || fail "another loss in /metrics"
run top many --json
of_worker1=$(sed 's/.*{"role":"worker1"//; s/{"role".*//' out)
expect_equal "rows in top" "$(sed -n 's/.*"rows":\([0-9]*\).*/\1/p' <<<"$of_worker1")" "$(newest sample '"role":"worker1"' rows)"
expect_equal "bytes in top" "$(sed -n 's/.*"bytes_sent":\([0-9]*\).*/\1/p' <<<"$of_worker1")" "$sent"
is_true "$(json_number loss) == $(newest step loss loss)" || fail "another loss in top"
kill -CONT "$chief"
kill -INT "$job"
end_job 75

# ---- options ----
run train --help
expect_text "--dashboard [ADDR:PORT]"
expect_exit 66 "$paceline" train --data nowhere --run "$work/none" --dashboard --quiet
expect_exit 0 "$paceline" "${words[@]}" --run "$work/json" --dashboard 0 --json
expect_object
run train --data data --model logreg --run "$work/dry" --dashboard --dry-run
! grep -q dashboard err || fail "a dry run serves nothing"
echo passed
