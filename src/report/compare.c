#include "report/compare.h"

#include <stdlib.h>
#include <string.h>

static bool is_left_out(const char *name)
{
    static const char *const names[] = {"run", "force", "resume", "dry-run"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        if (strcmp(name, names[i]) == 0)
            return true;
    }
    return false;
}

static bool differs(pace__history *const *runs, size_t run_count, const char *name)
{
    const char *first = pace__history_setting(runs[0], name);

    for (size_t i = 1; i < run_count; i++) {
        const char *other = pace__history_setting(runs[i], name);

        if (!first != !other || (first && strcmp(first, other) != 0))
            return true;
    }
    return false;
}

/* Has a run before this one told of it? */
static bool is_known(pace__history *const *runs, size_t run, const char *name)
{
    for (size_t i = 0; i < run; i++) {
        if (pace__history_setting(runs[i], name))
            return true;
    }
    return false;
}

/* Adds those that differ, or those that do not; only counts them where there is no room. */
static size_t add(pace__history *const *runs, size_t run_count, bool wanted, pace__compared *rows)
{
    size_t count = 0;

    for (size_t run = 0; run < run_count; run++) {
        for (size_t i = 0; i < runs[run]->setting_count; i++) {
            const char *name = runs[run]->settings[i].name;

            if (is_left_out(name) || is_known(runs, run, name) || differs(runs, run_count, name) != wanted)
                continue;
            if (rows)
                rows[count] = (pace__compared){name, wanted};
            count++;
        }
    }
    return count;
}

pace__compared *pace__compare_settings(pace__history *const *runs, size_t run_count, size_t *count)
{
    size_t most = add(runs, run_count, true, NULL) + add(runs, run_count, false, NULL);
    pace__compared *rows = most ? malloc(most * sizeof *rows) : NULL;

    *count = 0;
    if (rows) {
        *count = add(runs, run_count, true, rows);
        *count += add(runs, run_count, false, rows + *count);
    }
    return rows;
}
