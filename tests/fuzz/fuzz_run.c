/*
 * A run directory of which one file has other bytes: inspected, and gone on with by --resume. Either is refused with
 * a message, or works. The first byte says which file; its highest bit asks for the training, which takes longer.
 * The rest is the file.
 *
 * With PACE_FUZZ_SEEDS=DIR in the environment the files as they are become the seeds.
 */
#include "inject/inject.h"
#include "job/job.h"

#include "stage.h"

#include <paceline/inspect.h>

static const char *const names[] = {"state.json", "summary.json", "metrics.jsonl",     "rows",
                                    "faults",     "config.yaml",  "model.safetensors", "cluster.json"};

#define NAMES (sizeof names / sizeof *names)

typedef struct kept {
    char *path, *bytes;
    size_t size;
} kept;

static char *the_run;
static kept files[NAMES];

static const char *const words[] = {"--model=logreg", "--batch=4",   "--steps=6", "--checkpoint-every=3",
                                    "--log-every=1",  "--no-resume", NULL};
static const char *const again[] = {"--model=logreg", "--batch=4", "--steps=6", "--checkpoint-every=3",
                                    "--log-every=1",  "--resume",  NULL};

static void free_files(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        free(files[i].path);
        free(files[i].bytes);
    }
    free(the_run);
}

static void make_run(void)
{
    const char *seeds = getenv("PACE_FUZZ_SEEDS");

    make_set(SET_NUMBERED);
    the_run = pace__format("%s/run", scratch());
    assert(train(words, SET_NUMBERED, the_run, &aloud) == PACE_OK);
    for (size_t i = 0; i < NAMES; i++) {
        kept *file = &files[i];
        char *seed = pace__format("%s/%s", seeds, names[i]);

        file->path = pace__format("%s/%s", the_run, names[i]);
        if (pace__exists(file->path))
            assert(pace__read_file(file->path, 1 << 20, &file->bytes, &file->size, &aloud) == PACE_OK);
        if (seeds && file->bytes && file->size < 10000) {
            char *both = malloc(file->size + 1);

            both[0] = (char)(i | (file->size < 2000 ? 128 : 0));
            memcpy(both + 1, file->bytes, file->size);
            put_file(seed, both, file->size + 1);
            free(both);
        }
        free(seed);
    }
    atexit(free_files);
}

static void restore(void)
{
    for (size_t i = 0; i < NAMES; i++) {
        if (files[i].bytes)
            put_file(files[i].path, files[i].bytes, files[i].size);
        else
            unlink(files[i].path);
    }
}

static void inspect(void)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace_inspect_config config = {.path = the_run, .top = 3};
    char *json = NULL;
    pace_status status = pace_inspect(&config, &log, &json);

    assert(errors == (status != PACE_OK) && (status || json));
    free(json);
}

static void read_state(void)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace__runstate state;
    pace_train_config config = {.run = the_run};
    pace_train_result result;
    pace__faults faults;
    pace__cluster cluster = {1, 0, false};
    pace_status status = pace__runstate_read(the_run, &log, &state);

    assert((status == PACE_OK || status == PACE_BAD_DATA) && errors == (status != PACE_OK));
    errors = 0;
    status = pace__job_read_result(&config, &log, &result);
    assert((status == PACE_OK || status == PACE_BAD_DATA) && errors == (status != PACE_OK));
    errors = 0;
    status =
        pace__faults_open(&faults, "kill:chief@step=9,stall:chief=1s@step=9", &cluster, 0, the_run, &log);
    assert((status == PACE_OK || status == PACE_BAD_DATA) && errors == (status != PACE_OK));
    pace__faults_close(&faults);
    (void)pace__row_count_all(the_run);
}

static void go_back(uint64_t step)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace__rundir *run = NULL;
    pace_status status = pace__rundir_open(the_run, PACE__RUN_RESUME, &log, &run);

    if (!status)
        status = pace__rundir_go_back(run, step);
    assert((status == PACE_OK || status == PACE_BAD_DATA) && errors == (status != PACE_OK));
    pace__rundir_close(run);
}

static void go_on(void)
{
    int errors = 0;
    pace_log log = {check_message, &errors};
    pace_status status = train(again, SET_NUMBERED, the_run, &log);

    assert(status != PACE_BUG && (errors > 0) == (status != PACE_OK));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice;

    if (!the_run)
        make_run();
    take(&data, &size, &choice, sizeof choice);
    unsigned which = (choice & 127u) % NAMES;

    restore();
    put_file(files[which].path, data, size);
    inspect();
    read_state();
    go_back(3);
    if (choice & 128) {
        restore();
        put_file(files[which].path, data, size);
        go_on();
    }
    return 0;
}
