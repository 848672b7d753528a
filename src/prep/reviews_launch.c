/* Several processes: started through mpirun, whose rank 0 says what came out of it. */
#include "launch/launch.h"
#include "prep/reviews.h"

#include <stdlib.h>
#include <string.h>

#define FIRST_CONTACT_S 60.0
#define NOTHING_KEPT    "; nothing was kept"

/* --- the result, as records --- */

#define RESULT(name) offsetof(pace_prep_reviews_result, name)

static const struct {
    const char *name;
    size_t at;
} result_counts[] = {
    {"train_rows", RESULT(train_rows)},
    {"test_rows", RESULT(test_rows)},
    {"train_positives", RESULT(train_positives)},
    {"test_positives", RESULT(test_positives)},
    {"bad_rows", RESULT(bad_rows)},
    {"dropped", RESULT(dropped)},
    {"duplicates", RESULT(duplicates)},
    {"words", RESULT(words)},
    {"stop_words", RESULT(stop_words)},
    {"distinct", RESULT(distinct)},
    {"vocabulary", RESULT(vocabulary)},
    {"stored", RESULT(stored)},
    {"unknown", RESULT(unknown)},
    {"cut", RESULT(cut)},
    {"empty", RESULT(empty)},
    {"too_long", RESULT(too_long)},
    {"bytes_read", RESULT(bytes_read)},
    {"bytes_written", RESULT(bytes_written)},
    {"bytes_spilled", RESULT(bytes_spilled)},
    {"word_bytes", RESULT(word_bytes)},
    {"ranks", RESULT(ranks)},
    {"processes", RESULT(processes)},
};

static const struct {
    const char *name;
    size_t at;
} result_reals[] = {
    {"positive", RESULT(positive)},
    {"seconds", RESULT(seconds)},
};

#define COUNTS (sizeof result_counts / sizeof *result_counts)
#define REALS  (sizeof result_reals / sizeof *result_reals)

void pace__reviews_emit_result(pace_registry *registry, const pace_prep_reviews_result *result)
{
    pace_field fields[COUNTS + REALS];

    for (size_t i = 0; i < COUNTS; i++)
        fields[i] =
            PACE_INT(result_counts[i].name, *(const uint64_t *)((const char *)result + result_counts[i].at));
    for (size_t i = 0; i < REALS; i++)
        fields[COUNTS + i] =
            PACE_REAL(result_reals[i].name, *(const double *)((const char *)result + result_reals[i].at));
    pace_registry_emit(registry, "prepared", fields, COUNTS + REALS);
    for (uint64_t rank = 0; rank < result->ranks && result->processes > 1; rank++) {
        pace_field share[] = {PACE_INT("rank", rank), PACE_INT("bytes", result->rank_bytes[rank]),
                              PACE_INT("rows", result->rank_rows[rank])};

        pace_registry_emit(registry, "prepared rank", share, 3);
    }
}

static uint64_t count_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_INT ? (uint64_t)field->value.integer : 0;
}

static double real_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_REAL ? field->value.real : 0;
}

static void take_phase(pace_prep_reviews_result *result, const pace_record *record)
{
    const pace_field *phase = pace_record_find(record, "phase");

    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        if (phase && phase->type == PACE_FIELD_TEXT &&
            strcmp(phase->value.text, pace_prep_phase_names[i]) == 0)
            result->phases[i] = (pace_prep_phase){.seconds = real_of(record, "seconds"),
                                                  .rows = count_of(record, "rows"),
                                                  .bytes = count_of(record, "bytes"),
                                                  .skew = real_of(record, "skew")};
    }
}

static void take_rank(pace_prep_reviews_result *result, const pace_record *record)
{
    uint64_t rank = count_of(record, "rank");

    if (rank >= PACE_PREP_RANKS_MAX)
        return;
    result->rank_bytes[rank] = count_of(record, "bytes");
    result->rank_rows[rank] = count_of(record, "rows");
}

static void take_record(void *user, const pace_record *record)
{
    pace_prep_reviews_result *result = user;

    if (strcmp(record->kind, "phase") == 0)
        take_phase(result, record);
    if (strcmp(record->kind, "prepared rank") == 0)
        take_rank(result, record);
    if (strcmp(record->kind, "prepared") != 0)
        return;
    for (size_t i = 0; i < COUNTS; i++) {
        const pace_field *field = pace_record_find(record, result_counts[i].name);

        if (field && field->type == PACE_FIELD_INT)
            *(uint64_t *)((char *)result + result_counts[i].at) = (uint64_t)field->value.integer;
    }
    for (size_t i = 0; i < REALS; i++) {
        const pace_field *field = pace_record_find(record, result_reals[i].name);

        if (field && field->type == PACE_FIELD_REAL)
            *(double *)((char *)result + result_reals[i].at) = field->value.real;
    }
}

/* --- the ranks' command --- */

/* "prep --option ..." becomes "prep reviews --option ... -- input ...". */
static pace_status complete_words(const pace_texts *inputs, char ***words, const pace_log *log)
{
    size_t count = 0;

    while ((*words)[count])
        count++;
    char **longer = realloc(*words, (count + inputs->count + 3) * sizeof *longer);

    if (!longer)
        return pace_fail(log, PACE_FAILED, "out of memory");
    *words = longer;
    memmove(longer + 3, longer + 2, (count - 2) * sizeof *longer);
    longer[2] = strdup("reviews");
    longer[count + 1] = strdup("--");
    bool complete = longer[2] && longer[count + 1];

    for (size_t i = 0; i < inputs->count; i++) {
        longer[count + 2 + i] = strdup(inputs->items[i]);
        complete = complete && longer[count + 2 + i];
    }
    longer[count + 2 + inputs->count] = NULL;
    return complete ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

static pace_status make_words(const pace_prep_reviews_config *config, const pace_log *log, char ***words)
{
    pace_prep_reviews_config ranks = *config;

    ranks.mpirun = NULL;
    pace_status status = pace__launch_command("prep", pace_prep_reviews_options, &ranks, log, words);

    return status ? status : complete_words(&config->inputs, words, log);
}

/* --- all of it --- */

/* Errors are held back: what a killed job leaves is removed before the last words. */
typedef struct held {
    const pace_log *to;
    char text[PACE_LOG_TEXT_MAX];
} held;

static void hold_error(void *user, pace_level level, const char *text)
{
    held *self = user;

    if (level == PACE_ERROR)
        snprintf(self->text, sizeof self->text, "%s", text);
    else
        pace_say(self->to, level, "%s", text);
}

/* `made`: rank 0 has said so; the trouble came behind that. */
static void say_why(const pace_prep_reviews_config *config, pace_status status, bool made, const char *text,
                    const pace_log *log)
{
    bool nothing = pace__staging_sweep(config->output, log) && !made;

    if (status == PACE_INTERRUPTED && nothing)
        pace_say(log, PACE_ERROR, PACE__PREP_INTERRUPTED);
    else
        pace_say(log, PACE_ERROR, "%s%s",
                 *text                        ? text
                 : status == PACE_INTERRUPTED ? "interrupted"
                                              : "the processes have failed without saying why",
                 nothing && !strstr(text, NOTHING_KEPT) ? NOTHING_KEPT : "");
}

pace_status pace__reviews_launch(const pace_prep_reviews_config *config, const pace_log *log,
                                 pace_registry *registry, pace_prep_reviews_result *result)
{
    held errors = {.to = log};
    pace_log held_log = {hold_error, &errors};
    pace_sink sink = {take_record, result};
    pace_registry *own = registry ? NULL : pace_registry_create(), *used = registry ? registry : own;
    char **words = NULL;
    pace_status status =
        used ? make_words(config, log, &words) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status) {
        pace__launch_plan plan = {.cluster = {.workers = (int)config->processes},
                                  .words = words,
                                  .launcher = config->mpirun,
                                  .first_contact_s = FIRST_CONTACT_S,
                                  .stop = config->stop};

        pace_registry_attach(used, &sink);
        status = pace__launch(&plan, &held_log, used);
        pace_registry_detach(used, &sink);
        if (status)
            say_why(config, status, result->ranks > 0, errors.text, log);
        if (!status && result->ranks == 0)
            status = pace_fail(log, PACE_BUG, "the job is done, but has not said what came out of it");
    }
    pace_options_free_words(words);
    pace_registry_free(own);
    return status;
}
