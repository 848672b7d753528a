/* What the options mean for this input, settled before anything is read. */
#include "prep/clicks/clicks.h"
#include "prep/common.h"
#include "prep/options.h"
#include "saved/saved.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FEW_BYTES (4 << 20) /* of inputs with so few rows that most ids do not occur in them */

/* --- inputs --- */

/* Of all files together; UINT64_MAX if one of them cannot tell. */
static uint64_t bytes_of(const pace_texts *paths)
{
    uint64_t bytes = 0;
    struct stat info;

    for (size_t i = 0; i < paths->count; i++) {
        if (stat(paths->items[i], &info) != 0 || !S_ISREG(info.st_mode))
            return UINT64_MAX;
        bytes += (uint64_t)info.st_size;
    }
    return bytes;
}

/* Ids of few rows, whatever they are packed into: a byte of a packed file is no more than some bytes of text. */
static bool has_few_ids(const pace_prep_common *config)
{
    return bytes_of(&config->inputs) < FEW_BYTES && bytes_of(&config->test) < FEW_BYTES;
}

static pace_status detect_format(pace__clicks *job, const pace_log *log)
{
    const pace_prep_clicks_config *config = job->config;

    job->format = config->format;
    for (size_t i = 0; job->format == PACE_FORMAT_AUTO && i < config->common.inputs.count; i++) {
        const char *path = config->common.inputs.items[i];
        pace_status status = pace__clicks_detect_sheet(job, path, log, &job->format);

        if (!status && job->format == PACE_FORMAT_AUTO)
            status = pace__input_detect(path, &job->format, log);
        if (status)
            return status;
    }
    if (job->format == PACE_FORMAT_AUTO && bytes_of(&config->common.inputs) == 0)
        return pace_fail(log, PACE_BAD_DATA, "%s: it is empty: no rows", config->common.inputs.items[0]);
    if (job->format == PACE_FORMAT_AUTO && config->label_field)
        return pace_fail(
            log, PACE_USAGE,
            "%s: does not begin with a header of different names, one of them '%s', and rows of as many "
            "cells: --format csv, or tsv, says what is wrong",
            config->common.inputs.items[0], config->label_field);
    if (job->format == PACE_FORMAT_AUTO)
        return pace_fail(
            log, PACE_USAGE,
            "%s: cannot tell the format%s: say --format criteo, svmlight or tfrecord; or csv or tsv, which "
            "have a header, and --label-field for the name of the label's column",
            config->common.inputs.items[0],
            strcmp(config->common.inputs.items[0], "-") == 0 ? " of standard input"
                                                             : " from its first bytes");
    return PACE_OK;
}

static pace_status refuse_other(const pace__clicks *job, const char *what, const pace_log *log)
{
    bool pictures = pace__has_classes(&job->encoding);

    return pace_fail(log, PACE_USAGE, "%s: a %s of %s: use prep %s", job->config->common.like, what,
                     pictures ? "pictures" : "texts", pictures ? "images" : "reviews");
}

static bool is_clicks(const pace__encoding *encoding)
{
    return encoding->kind == PACE__CRITEO || encoding->kind == PACE__NUMBERED ||
           encoding->kind == PACE__SHEET;
}

/* --- encoding and ids --- */

/* Encoding and numbering of an older data set or model. */
static pace_status adopt(pace__clicks *job, const pace_log *log)
{
    const char *like = job->config->common.like;
    uint64_t *original = NULL;
    uint32_t count = 0;
    pace__store store;
    pace__saved model = {0};
    pace_status status;

    if (pace__was_store(like)) {
        status = pace__store_open(like, &store, log);
        if (status)
            return status;
        job->encoding = store.info.encoding;
        count = store.info.ids_seen;
        status = is_clicks(&job->encoding) ? pace__store_read_ids(&store, &original, log)
                                           : refuse_other(job, "data set", log);
        pace__store_close(&store);
    } else {
        status = pace__saved_open(like, log, &model);
        job->encoding = model.encoding;
        count = model.model.count;
        original = model.model.ids;
        model.model.ids = NULL;
        pace__saved_close(&model);
        if (!status && !is_clicks(&job->encoding))
            status = refuse_other(job, "model", log);
    }
    if (!status)
        status = pace__idmap_create(job->encoding.features, job->config->common.memory / 4, false, log,
                                    &job->idmap);
    if (!status)
        status = pace__idmap_adopt(job->idmap, original, count);
    free(original);
    return status;
}

static const char *const kind_names[] = {
    [PACE__CRITEO] = "criteo", [PACE__NUMBERED] = "numbered", [PACE__SHEET] = "table"};

static int kind_of(int format)
{
    return format == PACE_FORMAT_CRITEO ? PACE__CRITEO
           : pace__is_sheet(format)     ? PACE__SHEET
                                        : PACE__NUMBERED;
}

static pace_status check_like(const pace__clicks *job, const pace_log *log)
{
    const pace_prep_clicks_config *config = job->config;
    int kind = job->encoding.kind, input = kind_of(job->format);

    if (kind != input)
        return pace_fail(log, PACE_USAGE, "%s was made from %s rows, but the input is %s",
                         config->common.like, kind_names[kind], kind_names[input]);
    if (config->numeric_fields.count + config->category_fields.count + config->ignore_fields.count > 0)
        return pace_fail(
            log, PACE_USAGE,
            "--numeric-fields, --category-fields and --ignore-fields: what columns are comes from --like %s",
            config->common.like);
    if (config->features != 0 && (uint64_t)config->features != job->encoding.features)
        return pace_fail(log, PACE_USAGE, "--features %" PRId64 " contradicts --like %s, which has %" PRIu64,
                         config->features, config->common.like, job->encoding.features);
    return PACE_OK;
}

static pace_status choose_encoding(pace__clicks *job, const pace_log *log)
{
    const pace_prep_clicks_config *config = job->config;
    bool hashed =
        config->hash == PACE_HASH_ON || (config->hash == PACE_HASH_AUTO && job->format == PACE_FORMAT_CRITEO);
    uint64_t features = config->features == 0 && hashed ? PACE__FEATURES_DEFAULT : (uint64_t)config->features;

    if (pace__is_sheet(job->format) && config->hash == PACE_HASH_OFF)
        return pace_fail(log, PACE_USAGE, "--hash off: categories of tables are texts and must be hashed");
    if (pace__is_sheet(job->format))
        return pace__clicks_choose_columns(job, log);
    if (job->format == PACE_FORMAT_CRITEO) {
        if (!hashed)
            return pace_fail(log, PACE_USAGE, "--hash off: criteo categories are texts and must be hashed");
        return pace__encoding_criteo(features, config->numeric, &job->encoding, log);
    }
    job->encoding = (pace__encoding){.kind = PACE__NUMBERED, .hashed = hashed, .features = features};
    return PACE_OK;
}

static pace_status check_fields(const pace__clicks *job, const pace_log *log)
{
    const pace_prep_clicks_config *config = job->config;
    size_t lists = config->numeric_fields.count + config->category_fields.count + config->ignore_fields.count;

    if (pace__is_sheet(job->format) || (lists == 0 && !config->label_field))
        return PACE_OK;
    return pace_fail(log, PACE_USAGE,
                     "--%s: only tables have columns with names: say --format csv or tsv if the input is one",
                     config->label_field             ? "label-field"
                     : config->numeric_fields.count  ? "numeric-fields"
                     : config->category_fields.count ? "category-fields"
                                                     : "ignore-fields");
}

pace_status pace__clicks_settle(void *prep, const pace_log *log)
{
    pace__clicks *job = prep;
    const pace_prep_common *config = &job->config->common;
    pace_status status =
        pace__prep_check_files(config->inputs.items, config->inputs.count, config->test.items,
                               config->test.count, config->processes, log);

    job->like = config->like != NULL;
    if (!status && job->like)
        status = adopt(job, log);
    if (!status)
        status = detect_format(job, log);
    if (!status)
        status = check_fields(job, log);
    if (status)
        return status;
    status = job->like ? check_like(job, log) : choose_encoding(job, log);
    if (!status && !job->like)
        status = pace__idmap_create(job->encoding.features, config->memory / 4, has_few_ids(config), log,
                                    &job->idmap);
    job->has_values = job->encoding.kind == PACE__NUMBERED || job->encoding.numeric == PACE_NUMERIC_VALUES;
    if (!status && pace__encoding_entries(&job->encoding) > 0)
        job->packing = pace__packing_of(&job->encoding);
    return status;
}

/* --- the command, as far as it decides the bytes --- */

char *pace__clicks_command(const pace__clicks *job)
{
    pace_prep_clicks_config decided = *job->config;
    bool hashed = job->encoding.hashed;

    decided.format = job->format;
    decided.hash = hashed ? PACE_HASH_ON : PACE_HASH_OFF;
    decided.features = (int64_t)job->encoding.features;
    decided.numeric = job->encoding.numeric;
    return pace__prep_command("prep clicks", pace_prep_clicks_tables, &decided.common);
}
