# What the tests of profiles share. Use, behind lib.sh: source "$(dirname "$0")/traces.sh"
# shellcheck disable=SC2154 # $work is set in lib.sh

# check_trace RUN RANKS: every event stands in a line of its own; spans of a thread are in order and nest; every rank has a
# name and spans. What was found is in RUN.spans: rank, thread, name.
check_trace()
{
    gzip -dc "$1/profile/trace.json.gz" >"$work/trace.json" || fail "$1: the trace is not compressed as it should be"
    awk -v ranks="$2" '
        function member(name, text) {
            text = $0
            if (!sub(".*\"" name "\":", "", text)) return ""
            if (sub(/^"/, "", text)) sub(/".*/, "", text)
            else sub(/[},].*/, "", text)
            return text
        }
        function bad(why) { print "line " NR ": " why; failed = 1; exit 1 }
        NR == 1 && !/^\{"displayTimeUnit":"ms","traceEvents":\[$/ { bad("it does not begin as a trace") }
        /^\{"ph":"M","name":"process_name"/ { named[member("pid")] = 1 }
        /^\{"ph":"M","name":"thread_name"/ { threads[member("pid") "/" member("tid")] = 1 }
        /^\{"ph":"X"/ {
            track = member("pid") "/" member("tid")
            begin = member("ts") * 1000; end = begin + member("dur") * 1000
            if (!(track in threads)) bad("a thread without a name")
            if (track != last) { depth = 0; last = track; before = 0 }
            if (begin < before) bad("it begins before the one before")
            while (depth > 0 && ends[depth] <= begin + 0.5) depth--
            if (depth > 0 && end > ends[depth] + 0.5) bad("it ends behind the one that it lies in")
            ends[++depth] = end
            before = begin
            seen[member("pid")]++
            print member("pid") " " member("tid") " " member("name") >spans
        }
        { line = $0 }
        END {
            if (failed) exit 1
            if (line != "]}") bad("it has no end")
            for (rank = 0; rank < ranks; rank++)
                if (!named[rank] || !seen[rank]) { print "nothing of rank " rank; exit 1 }
            if (ranks in named) { print "more ranks than there are"; exit 1 }
        }' spans="$work/$1.spans" "$work/trace.json" >"$work/found" || fail "$1: trace: $(cat "$work/found")"
}

# expect_spans RUN RANK NAME...: it has such spans.
expect_spans()
{
    for name in "${@:3}"; do
        grep -qE "^$2 [0-9]+ $name\$" "$work/$1.spans" || fail "$1: rank $2 has no span \"$name\""
    done
}

# expect_ops NAME...: the table on standard output has a row for each.
expect_ops()
{
    for name in "$@"; do
        grep -qF "  $name " "$work/out" || fail "the table has no \"$name\""
    done
}
