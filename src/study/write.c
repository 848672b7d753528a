#include "study/write.h"

#include "series/listing.h"
#include "study/page.h"
#include "study/table.h"

#include <stdlib.h>

/* The figures of all sections. */
typedef struct all_figures {
    const pace__figures *of;
    size_t count;
} all_figures;

static pace_status put_markdown(FILE *out, const void *user, const pace_log *log)
{
    const all_figures *figures = user;

    (void)log;
    fprintf(out,
            "# Study %s\n\nMedians of up to %d run%s, \xc2\xb1 the larger of the distances to the lowest and "
            "the highest.\n\n",
            figures->of->study->name, figures->of->study->repeat, figures->of->study->repeat == 1 ? "" : "s");
    for (size_t i = 0; i < figures->count; i++)
        pace__table_put_markdown(out, &figures->of[i]);
    return PACE_OK;
}

/* Sections have columns of their own: a blank line, and a heading. */
static pace_status put_csv(FILE *out, const void *user, const pace_log *log)
{
    const all_figures *figures = user;

    (void)log;
    for (size_t i = 0; i < figures->count; i++) {
        if (i)
            fputc('\n', out);
        pace__table_put_csv(out, &figures->of[i]);
    }
    return PACE_OK;
}

static pace_status put_json(FILE *out, const void *user, const pace_log *log)
{
    const all_figures *figures = user;
    char *text = pace__table_json(figures->of, figures->count);

    if (!text)
        return pace_fail(log, PACE_FAILED, "out of memory");
    fprintf(out, "%s\n", text);
    free(text);
    return PACE_OK;
}

static pace_status put_text(FILE *out, const void *user, const pace_log *log)
{
    const all_figures *figures = user;

    (void)log;
    for (size_t i = 0; i < figures->count; i++) {
        if (i)
            fputc('\n', out);
        pace__table_put_text(out, &figures->of[i]);
    }
    return PACE_OK;
}

static pace_status put_page(FILE *out, const void *user, const pace_log *log)
{
    const all_figures *figures = user;

    return pace__study_page(out, figures->of, figures->count, log);
}

pace_status pace__study_write(const pace__study *study, const pace__figures *figures, const pace_log *log)
{
    static const struct {
        const char *name;
        pace__put_fn *put;
    } files[] = {{"table.md", put_markdown},
                 {"table.csv", put_csv},
                 {"table.json", put_json},
                 {"report.html", put_page}};
    all_figures all = {figures, study->section_count};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < sizeof files / sizeof *files && !status; i++)
        status = pace__put_in_file(study->directory, files[i].name, files[i].put, &all, log);
    return status;
}

char *pace__study_text(const pace__figures *figures, size_t count)
{
    all_figures all = {figures, count};
    char *text;
    size_t size;

    return pace__put_in_memory(put_text, &all, NULL, &text, &size) == PACE_OK ? text : NULL;
}
