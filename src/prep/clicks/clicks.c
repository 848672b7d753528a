#include "prep/clicks/clicks.h"

#include "base/locale.h"

#include "prep/options.h"
#include "prep/start.h"
#include "threads/thread.h"

#include <stdlib.h>

#define FIELD(name) offsetof(pace_prep_clicks_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from the first bytes", "auto|criteo|svmlight|tfrecord|csv|tsv",
     .mark = PACE_MARK_DATA, .group = ""},
    {"features", 0, PACE_OPT_INT, FIELD(features), "0", "N",
     "size of the id space; 0: 33762578 if ids are hashed, else the largest id + 1", .min = 0,
     .max = 9007199254740992.0, .mark = PACE_MARK_DATA, .group = "Features"},
    {"hash", 0, PACE_OPT_CHOICE, FIELD(hash), "auto", "on|off",
     "hash ids into the id space; auto: criteo and tables on, others off", "auto|on|off",
     .mark = PACE_MARK_DATA},
    {"numeric", 0, PACE_OPT_CHOICE, FIELD(numeric), "bins", "T",
     "numbers of criteo and tables: a weight per logarithmic bin, or one weight times the logarithm",
     "bins|values", .mark = PACE_MARK_DATA},
    {"label-field", 0, PACE_OPT_TEXT, FIELD(label_field), NULL, "COLUMN",
     "csv, tsv: the label's column; its cells are 0 and 1, -1 and 1, no and yes, or false and true",
     .usual = "label, or as in --like", .mark = PACE_MARK_DATA, .group = "Tables with a header"},
    {"numeric-fields", 0, PACE_OPT_LIST, FIELD(numeric_fields), NULL, "A,B",
     "csv, tsv: columns that are numbers (may be repeated; a name with a comma in it is given alone); what "
     "is not "
     "named is told from the first rows",
     .mark = PACE_MARK_DATA},
    {"category-fields", 0, PACE_OPT_LIST, FIELD(category_fields), NULL, "A,B",
     "csv, tsv: columns whose texts are categories", .mark = PACE_MARK_DATA},
    {"ignore-fields", 0, PACE_OPT_LIST, FIELD(ignore_fields), NULL, "A,B", "csv, tsv: columns to leave out",
     .mark = PACE_MARK_DATA},
    {0},
};

static const pace_option limits[] = {PACE__PREP_LIMITS(134217728, " to stay within; at least 128M", "0")};

const pace_option_table pace_prep_clicks_tables[] = {
    {pace__prep_input_options, 0}, {own_options, 0}, {pace__prep_work_options, 0}, {limits, 0}, {0}};

/* --- processes and threads --- */

static pace_status run_rank(void *prep, pace__link *link, void *result)
{
    pace__clicks *job = prep;
    int64_t threads = job->config->common.threads;

    job->threads = threads ? (int)threads : job->prep.many ? 1 : pace__cores();
    return pace__clicks_run(job, link, result);
}

/* --- all of it --- */

#define RESULT(name) offsetof(pace_prep_clicks_result, name)

static const pace__result_field result_fields[] = {
    {"train_rows", RESULT(train_rows)},
    {"test_rows", RESULT(test_rows)},
    {"validation_rows", RESULT(validation_rows)},
    {"bad_rows", RESULT(bad_rows)},
    {"bytes_read", RESULT(bytes_read)},
    {"bytes_written", RESULT(bytes_written)},
    {"bytes_spilled", RESULT(bytes_spilled)},
    {"features", RESULT(features)},
    {"features_seen", RESULT(features_seen)},
    {"unseen_entries", RESULT(unseen_entries)},
    {"ranks", RESULT(ranks)},
    {"processes", RESULT(processes)},
    {"positive_rate", RESULT(positive_rate), .real = true},
    {"parse_seconds", RESULT(parse_seconds), .real = true},
    {"write_seconds", RESULT(write_seconds), .real = true},
    {"skew", RESULT(skew), .real = true},
    {0},
};

static const pace__prep_kind kind = {
    .verb = "prep clicks",
    .tables = pace_prep_clicks_tables,
    .config_bytes = sizeof(pace_prep_clicks_config),
    .fields = result_fields,
    .result_bytes = sizeof(pace_prep_clicks_result),
    .elsewhere_at = RESULT(elsewhere),
    .seconds_at = RESULT(seconds),
    .ranks_at = RESULT(ranks),
    .settle = pace__clicks_settle,
    .run_rank = run_rank,
};

static void release(pace__clicks *job)
{
    for (uint32_t i = 0; job->parts && i < job->info.parts; i++)
        pace__part_close(&job->parts[i]);
    for (int stream = 0; stream < PACE__STREAMS; stream++)
        pace__spills_close(&job->spills[stream]);
    pace__prep_job_release(&job->prep);
    pace__input_close(job->early);
    pace__chunk_release(&job->first);
    free(job->direct);
    pace__idmap_free(job->idmap);
    free(job->part_entry);
    free(job->parts);
    free(job->info.command);
    free(job->all);
    free(job);
}

pace_status pace_prep_clicks(const pace_prep_clicks_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_clicks_result *result)
{
    PACE__C_LOCALE();
    pace__clicks *job = calloc(1, sizeof *job);

    if (!job)
        return pace_fail(log, PACE_FAILED, "out of memory");
    job->config = config;
    pace__prep_job_init(&job->prep, &kind, job, &config->common, log, registry);
    pace_status status = pace__prep_run(&job->prep, result);

    release(job);
    return status;
}
