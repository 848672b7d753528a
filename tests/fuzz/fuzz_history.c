/*
 * A run directory as those see it who only look: one of its files has these bytes (the first byte says which), and comes in
 * two pieces, cut where the second byte says, as if it were being written. What was seen is in order and finite where it is
 * promised, and a verdict on it gives all seconds away.
 */
#include "history/history.h"
#include "run/rundir.h"
#include "verdict/facts.h"

#include "fuzzing.h"

#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

static const char *const names[] = {"metrics.jsonl", "config.yaml", "cluster.json", "summary.json",
                                    "state.json"};

#define NAMES (sizeof names / sizeof *names)

static const char *make_run(void)
{
    static char run[128];
    char path[160];

    if (!run[0]) {
        snprintf(run, sizeof run, "%s/run", scratch());
        mkdir(run, 0700);
        snprintf(path, sizeof path, "%s/logs", run);
        mkdir(path, 0700);
        snprintf(path, sizeof path, "%s/logs/paceline.log", run);
        put_file(path, "", 0);
    }
    return run;
}

static void check_role(const pace__history *history, const pace__seen_role *role)
{
    for (size_t i = 0; i < role->count; i++) {
        const pace__sample *sample = &role->samples[i];

        assert(i == 0 || sample->t >= role->samples[i - 1].t);
        assert(sample->waits_for >= -1 && sample->waits_for < (int)history->role_count);
        assert(isfinite(sample->seconds) && sample->rows >= 0);
        assert(pace__sample_since(sample, i ? sample - 1 : NULL).compute_s >= 0);
    }
    for (size_t i = 0; i < role->dealings_count; i++)
        assert(role->dealings[i].peer >= 0 && role->dealings[i].peer < (int)history->role_count);
}

static void check(const pace__history *history)
{
    pace__verdict verdict;
    char line[2 * PACE__VERDICT_TEXT];

    for (size_t i = 0; i < history->role_count; i++)
        check_role(history, &history->roles[i]);
    for (size_t i = 1; i < history->step_count; i++)
        assert(history->step[i].t >= history->step[i - 1].t);
    pace__verdict_from(history, history->last_t / 2, &verdict);
    pace__verdict_from(history, 0, &verdict);
    pace__verdict_line(&verdict, line);
    assert(pace__standing_name(history->standing));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    const char *run = make_run();
    char path[160];
    pace__history *history;

    if (size < 2)
        return 0;
    size_t cut = (size - 2) * bytes[1] / 255;

    for (size_t i = 0; i < NAMES; i++) {
        snprintf(path, sizeof path, "%s/%s", run, names[i]);
        unlink(path);
    }
    snprintf(path, sizeof path, "%s/%s", run, names[bytes[0] % NAMES]);
    put_file(path, (const char *)bytes + 2, cut);
    assert(pace__history_open(run, NULL, &history) == PACE_OK);
    check(history);
    put_file(path, (const char *)bytes + 2, size - 2);
    pace__history_update(history);
    check(history);
    pace__history_close(history);
    return 0;
}
