# The front door: installs what is missing, then lets CMake and Ninja do the work. `make help` lists the targets.

PREFIX ?= /usr/local
DESTDIR ?=
FUZZ_SECONDS ?= 60
FUZZ_RUNS ?= 0
FUZZ_TARGETS ?=
ATTACK ?=
KERNELS ?= plain v3
DEMO_ROWS ?= 1000000
CMAKE_FLAGS ?=
JOBS ?= $(shell nproc)

# Tests of several processes wait more than they compute: twice as many of them as there are cores. Sanitizers compute more,
# and still wait for processes, disks and deadlines: half as many more.
CTEST = tests/scratch ctest --output-on-failure --no-tests=error -j $(shell expr 2 '*' $(JOBS))
CTEST_BUSY = tests/scratch ctest --output-on-failure --no-tests=error -j $(shell expr '(' 3 '*' $(JOBS) + 1 ')' / 2)
# ThreadSanitizer cannot start where the kernel places memory too randomly; where allowed, ask it not to.
STILL = $(shell setarch -R true 2>/dev/null && echo setarch -R)

.DEFAULT_GOAL := build
.PHONY: build program demo test test-all check-all kernels bench install asan tsan mpich arm64 amx attack slurm tensorboard fuzz lint format clean help setup setup-dev
.NOTPARALLEL:

# Ninja runs CMake again by itself when a CMake file changed; only new flags need a hand.
configure = test -f $(2)/build.ninja -a -z '$(CMAKE_FLAGS)' || cmake --preset $(1) $(CMAKE_FLAGS)

build: setup ## build the program, the library and the tests into build/ (the default)
	@$(call configure,release,build)
	@ninja -C build

program: setup
	@$(call configure,release,build)
	@ninja -C build paceline

demo: program ## generate DEMO_ROWS clicks, some reviews and pictures, prepare, train and score them under demo/
	@tools/demo build/paceline demo $(DEMO_ROWS)

test: build ## run the tests, all but the long ones (two minutes and a half on two cores)
	@$(CTEST) --test-dir build -LE long

test-all: build ## run the long tests, too: a short fault matrix, hosts in network namespaces, slow disks, lint
	@$(CTEST) --test-dir build

check-all: ## everything that can be tried here: all tests, attacks, benchmarks, fuzzing, and as root Slurm (two hours)
	@$(MAKE) test-all
	@$(MAKE) attack
	@$(MAKE) bench
	@$(MAKE) fuzz
	@[ "$$(id -u)" -ne 0 ] || $(MAKE) slurm

# Tests of what chooses between kernels, or computes with what was chosen; by the beginnings of their names.
CHOOSERS := cnn|conv|criteo|embeddings|eval_images|fm|idmap|jsonl|kernels|keys|linear_text|logreg|mobilenet|model|picture
CHOOSERS := $(CHOOSERS)|predict|prep|reader|reviews|rnn|scorer|slice|store|sums|svmlight|tfrecord|tokens|train|words

kernels: build ## run the tests of what has several kernels once more, with those of KERNELS (plain, v3)
	@for set in $(KERNELS); do echo "kernels $$set"; PACELINE_KERNELS=$$set $(CTEST_BUSY) --test-dir build -R '^unit/test_($(CHOOSERS))' || exit; done

bench: build ## run the benchmarks of bench/
	@if [ -x bench/run ]; then bench/run; else set -e; for script in bench/*.sh; do bash $$script; done; fi

install: build ## install the program, library and headers to DESTDIR/PREFIX
	@DESTDIR='$(DESTDIR)' cmake --install build --prefix '$(PREFIX)'

# What this leaves out, `make test-all` has. Lint, the lab and benchmarks (which are not built) are not about memory; damaged checkpoints and recoveries are
# read and made by unit tests, too; of jobs over MPI there are a synchronous and a resumed one, and unit tests have what
# the others do with ranks that are threads; losses are numbers that take long.
CHECKED_ELSEWHERE = ^lint/|^lab/|^fault/test_damage|^cli/test_(benchmarks|precision_images|profile|top|train_images)$$|^unit/test_localsgd_losses$$
CHECKED_ELSEWHERE := $(CHECKED_ELSEWHERE)|^cli/test_cluster_(backups|balance|clicks|dashboard|faults|images|local_sgd|local_steps|profile|recovery|reviews|stage|train_images|train_reviews)$$

asan: setup ## build with the address and undefined-behaviour sanitizers and run the tests
	@$(call configure,asan,build-asan)
	@ninja -C build-asan
	@$(CTEST_BUSY) --test-dir build-asan -E '$(CHECKED_ELSEWHERE)'

# Besides unit tests that are not built for it (tests/CMakeLists.txt), it leaves out what unit tests start the same threads
# for: most of the command line. `make test-all` has all of them.
THREADS_ELSEWHERE = ^lint/|^lab/
THREADS_ELSEWHERE := $(THREADS_ELSEWHERE)|^cli/test_(bad_input|benchmarks|clicks|damaged_files|events|files|fm|messages|plan|precision_images|predict_images|profile|report|resume|reviews|run_directory|study|top|tune|train_images|train_reviews|worst)$$|^unit/test_train_frozen$$

tsan: setup ## build with the thread sanitizer and run the tests
	@$(call configure,tsan,build-tsan)
	@ninja -C build-tsan
	@TSAN_OPTIONS=suppressions=$(CURDIR)/tests/tsan.suppressions $(STILL) $(CTEST_BUSY) --test-dir build-tsan -E '$(THREADS_ELSEWHERE)'

# Of preps and models that are dealt out, MPI sees the same messages: with Open MPI all of them are tried, here some.
mpich: setup-dev ## build with MPICH instead of Open MPI and run the tests of many processes
	@$(call configure,mpich,build-mpich)
	@ninja -C build-mpich processes
	@$(CTEST) --test-dir build-mpich -R '^(mpi/|cli/test_cluster)' -E 'cluster_(dashboard|images|kernels|local_steps|profile|train_images|train_reviews)$$'

arm64: setup ## build for arm64 and run the unit tests in a Debian for it, by qemu (root; Debian's debootstrap, qemu-user-static, gcc-aarch64-linux-gnu)
	@CMAKE_FLAGS='$(CMAKE_FLAGS)' JOBS='$(JOBS)' tests/arm64/run

amx: build ## run the tests of AMX's kernels in an emulator of a CPU that has it (root; Debian's debootstrap; the network)
	@tests/extra/amx build/tests/test_bf16

attack: build ## kill processes, damage files, plant links, set limits, thousands of times (about 30 minutes; ATTACK='--only kills --seed 7')
	@tests/attack/run build/paceline $(ATTACK)

slurm: build ## run a job under a private Slurm on this machine (root; Debian's slurm-wlm and munge)
	@tests/slurm/run build/paceline

tensorboard: build ## read event files back with TensorBoard's own code, installed for that from the Python index
	@tests/extra/tensorboard build/paceline

fuzz: setup-dev ## search for crashing inputs, FUZZ_SECONDS (or FUZZ_RUNS executions) with each of FUZZ_TARGETS (all)
	@$(call configure,fuzz,build-fuzz)
	@tools/fuzz build-fuzz $(FUZZ_SECONDS) $(FUZZ_RUNS) $(FUZZ_TARGETS)

lint: setup-dev ## check layers, headers, formatting and shell scripts
	@failed=0; for check in tests/lint/*; do bash $$check || failed=1; done; exit $$failed

format: setup-dev ## format the C files in place
	@bash tests/lint/format --fix

clean: ## remove all build directories and demo/
	rm -rf build build-asan build-tsan build-fuzz build-mpich build-arm64 build-amx build-ci demo

setup:
	@tools/setup

setup-dev:
	@tools/setup --dev

help: ## this list
	@sed -nE 's/^([a-z0-9-]+):.*## (.*)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 18
	@echo
	@echo 'Variables: PREFIX=$(PREFIX) DESTDIR=$(DESTDIR) DEMO_ROWS=$(DEMO_ROWS) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_RUNS=$(FUZZ_RUNS) KERNELS="$(KERNELS)" ATTACK=$(ATTACK) JOBS=$(JOBS) CMAKE_FLAGS=$(CMAKE_FLAGS)'
