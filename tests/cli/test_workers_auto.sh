#!/bin/bash
# paceline train --workers auto: what it chooses is said, saved and kept; what cannot be asked falls back to one process.
source "$(dirname "$0")/lib.sh"
cd "$work" || exit 1

run gen clicks -o clicks.tsv --rows 300
run prep clicks clicks.tsv -o data --holdout 0.1
echo "localhost slots=3" >hosts
words=(train --data data --model logreg --workers auto)

# saved NAME RUN: the value in its config.yaml
saved()
{
    sed -n "s/^$1: \"\?\([^\"]*\)\"\?$/\1/p" "$2/config.yaml"
}

# ---- one line says what and why; what was chosen is saved as if it had been given ----
run "${words[@]}" --run one
expect_equal "lines" "$(grep -c -- '--workers auto: --mode' err)" 1
expect_error "rows/s are expected"
[[ $(saved workers one) =~ ^[1-9][0-9]*$ ]] || fail "workers: $(saved workers one)"
case $(saved mode one) in local | allreduce | ps-sync) ;; *) fail "mode $(saved mode one)" ;; esac

# ---- validation rows that are taken are rows to stop by ----
run prep clicks clicks.tsv -o plain
run train --data plain --model logreg --workers auto --validation 0.2 --early-stop 1 --eval-every 1 --run stops --dry-run
expect_error "--workers auto: --mode"
expect_exit 64 "$paceline" "${words[@]}" --validation 0.001 --run none
expect_error "leaves none to validate on"
[[ $(<err) != *"training for some seconds"* ]] || fail "seconds were spent on what cannot be"

# ---- a run that goes on keeps it, whatever would be chosen now ----
run train --data data --model logreg --run two --workers 2 --mode ps-sync --ps 0 --epochs 1 --steps 3 --schedule constant
run "${words[@]}" --run two --epochs 1 --steps 6 --schedule constant --resume
expect_error "as two has begun: --mode ps-sync --workers 2"
expect_equal "workers" "$(saved workers two)" 2
expect_equal "ps" "$(saved ps two)" 0

# ---- the mode that was asked for is the mode; on hosts as many as they have room for ----
run "${words[@]}" --mode ps-async --hosts hosts --run three --dry-run --json
expect_object
expect_error "--mode ps-async --workers"
expect_exit 64 "$paceline" "${words[@]}" --mode ps-async --ps 3 --hosts hosts --run none
expect_error "these are 4 processes, and hosts has 3 slots"
run "${words[@]}" --mode local --run four
expect_equal "workers" "$(saved workers four)" 1

# ---- between several hosts the network is measured first; what cannot be is assumed ----
printf 'localhost slots=2\n127.0.0.1\n' >several
TMPDIR=$work/nowhere run "${words[@]}" --hosts several --mpirun "$work/no-mpirun" --run six
expect_error "the network between the hosts of several is not measured, but assumed" "no-mpirun" "as few processes as there may be"

# ---- nothing can be learned: one process, and a line that says so ----
TMPDIR=$work/nowhere run "${words[@]}" --hosts hosts --run five
expect_error "as few processes as there may be, since nothing is known" "nowhere"
expect_equal "mode" "$(saved mode five)" local
expect_equal "hosts" "$(saved hosts five)" null

# ---- what is wrong is said once, before seconds are spent on it ----
usage_error "already holds a run" -- "${words[@]}" --run one
usage_error "unknown option --worker" -- train --data data --worker auto --run none
usage_error "--workers 0" "or the word auto" -- train --data data --workers 0 --run none
usage_error "--workers many" "or the word auto" -- train --data data --workers many --run none
expect_exit 66 "$paceline" train --data missing --workers auto --run none
expect_exit 64 env OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_RANK=0 "$paceline" "${words[@]}" --run none
expect_error "how many of these 2 are workers"
[ ! -e none ] || fail "something is left"
run train --help
expect_text "auto: as many as"

echo "test_workers_auto: passed"
