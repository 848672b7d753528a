/* Tables: whether an input is one, and what its columns are, settled before anything is read. */
#include "data/formats/sheet_rows.h"
#include "data/guess/guess.h"
#include "data/input/input_files.h"
#include "prep/clicks/clicks.h"

#include <stdlib.h>
#include <string.h>

/* The first bytes of an input. */
typedef struct beginning {
    const char *path, *bytes;
    size_t size;
    bool complete;
    char *own; /* what is to be freed of it */
} beginning;

static pace_status read_regular(const char *path, const pace_log *log, beginning *found)
{
    *found = (beginning){.path = path, .own = malloc(PACE__GUESS_BYTES)};
    pace_status status = found->own
                             ? pace__input_read_head(path, found->own, PACE__GUESS_BYTES, &found->size, log)
                             : pace_fail(log, PACE_FAILED, "out of memory");

    found->bytes = found->own;
    found->complete = found->size < PACE__GUESS_BYTES;
    return status;
}

/* What can be read once is opened for good; its first chunk is kept for the job. */
static pace_status read_once(pace__clicks *job, const char *path, const pace_log *log, beginning *found)
{
    const pace_texts *inputs = &job->config->common.inputs;
    pace__chunk *first = &job->first;

    if (job->config->common.processes > 1 || job->prep.many)
        return pace_fail(
            log, PACE_USAGE,
            "%s: several processes cannot all see its first rows, which tell what its columns are: give "
            "--like, a file, or leave --processes out",
            pace__is_standard_input(path) ? "standard input" : path);
    pace_status status =
        pace__input_open(inputs->items, inputs->count, pace__boundary_of(job->format), log, &job->early);

    if (status)
        return status;
    pace__input_watch(job->early, (pace__watch){pace__prep_look_around, &job->prep});
    status = pace__input_next(job->early, first);
    if (status)
        return status;
    job->first_size = first->size;
    bool cut = first->size >= PACE__GUESS_BYTES; /* as for a file: else it is all there is, whole rows */

    *found = (beginning){.path = pace__is_standard_input(path) ? "standard input" : path,
                         .bytes = first->data,
                         .size = cut ? PACE__GUESS_BYTES : first->size,
                         .complete = !cut};
    return PACE_OK;
}

/* The first input that is not empty. */
static pace_status first_input(const pace_texts *inputs, const pace_log *log, const char **path,
                               pace__input_facts *facts)
{
    *path = inputs->items[0];
    pace_status status = pace__input_check(*path, facts, log);

    for (size_t i = 1; i < inputs->count && !status && facts->regular && facts->bytes == 0; i++) {
        *path = inputs->items[i];
        status = pace__input_check(*path, facts, log);
    }
    return status;
}

pace_status pace__clicks_choose_columns(pace__clicks *job, const pace_log *log)
{
    const pace_prep_clicks_config *config = job->config;
    const pace__sheet_wish wish = {config->label_field, &config->numeric_fields, &config->category_fields,
                                   &config->ignore_fields};
    const char *path;
    pace__input_facts facts = {0};
    beginning found = {.own = NULL};
    pace__sheet sheet;
    pace_status status = first_input(&config->common.inputs, log, &path, &facts);

    if (!status)
        status = facts.regular ? read_regular(path, log, &found) : read_once(job, path, log, &found);
    if (!status)
        status = pace__sheet_guess(&wish, pace__sheet_separator(job->format == PACE_FORMAT_TSV), found.path,
                                   found.bytes, found.size, found.complete, log, &sheet);
    free(found.own);
    if (status)
        return status;
    return pace__encoding_sheet((uint64_t)config->features, config->numeric, &sheet, &job->encoding, log);
}

pace_status pace__clicks_detect_sheet(const pace__clicks *job, const char *path, const pace_log *log,
                                      int *format)
{
    static const int formats[] = {PACE_FORMAT_TSV, PACE_FORMAT_CSV};
    pace__input_facts facts;
    beginning found = {.own = NULL};

    if (job->like)
        return job->encoding.kind == PACE__SHEET
                   ? pace__sheet_format_of(&job->encoding.sheet, path, log, format)
                   : PACE_OK;
    pace_status status = pace__input_check(path, &facts, log);

    if (status || !facts.regular)
        return status;
    status = read_regular(path, log, &found);
    for (size_t i = 0; i < 2 && !status && *format == PACE_FORMAT_AUTO; i++) {
        if (pace__sheet_is_certain(job->config->label_field,
                                   pace__sheet_separator(formats[i] == PACE_FORMAT_TSV), found.bytes,
                                   found.size, found.complete))
            *format = formats[i];
    }
    free(found.own);
    return status;
}
