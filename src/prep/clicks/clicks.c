#include "prep/clicks/clicks.h"

#include "base/clock.h"
#include "base/once.h"
#include "model/linear/linear_file.h"
#include "prep/common.h"
#include "prep/options.h"
#include "threads/thread.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define FIELD(name) offsetof(pace_prep_clicks_config, name)

static const pace_option own_options[] = {
    {"format", 0, PACE_OPT_CHOICE, FIELD(format), "auto", "F",
     "format of the input; auto: told from the first bytes", "auto|criteo|svmlight|tfrecord", .group = ""},
    {"features", 0, PACE_OPT_INT, FIELD(features), "0", "N",
     "size of the id space; 0: 33762578 if ids are hashed, else the largest id + 1", .min = 0,
     .max = 9007199254740992.0, .group = "Features"},
    {"hash", 0, PACE_OPT_CHOICE, FIELD(hash), "auto", "on|off",
     "hash ids into the id space; auto: criteo on, others off", "auto|on|off"},
    {"numeric", 0, PACE_OPT_CHOICE, FIELD(numeric), "bins", "T",
     "criteo integers: a weight per logarithmic bin, or one weight times the logarithm", "bins|values"},
    {0},
};

static const pace_option limits[] = {PACE__PREP_LIMITS(134217728, " to stay within; at least 128M", "0")};

const pace_option_table pace_prep_clicks_tables[] = {
    {pace__prep_input_options, 0}, {own_options, 0}, {pace__prep_work_options, 0}, {limits, 0}, {0}};

/* --- settling the options --- */

static bool all_empty(const pace_texts *paths)
{
    struct stat info;

    for (size_t i = 0; i < paths->count; i++) {
        if (stat(paths->items[i], &info) != 0 || !S_ISREG(info.st_mode) || info.st_size > 0)
            return false;
    }
    return true;
}

static pace_status detect_format(pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;

    job->format = config->format;
    for (size_t i = 0; job->format == PACE_FORMAT_AUTO && i < config->common.inputs.count; i++) {
        pace_status status = pace__input_detect(config->common.inputs.items[i], &job->format, job->log);

        if (status)
            return status;
    }
    if (job->format == PACE_FORMAT_AUTO && all_empty(&config->common.inputs))
        return pace_fail(job->log, PACE_BAD_DATA, "%s: empty: no rows", config->common.inputs.items[0]);
    if (job->format == PACE_FORMAT_AUTO)
        return pace_fail(job->log, PACE_USAGE,
                         "%s: cannot tell the format%s: say --format criteo, svmlight or tfrecord",
                         config->common.inputs.items[0],
                         strcmp(config->common.inputs.items[0], "-") == 0 ? " of standard input"
                                                                          : " from its first bytes");
    return PACE_OK;
}

static pace_status refuse_other(const pace__clicks *job, const char *what)
{
    bool pictures = pace__has_classes(&job->encoding);

    return pace_fail(job->log, PACE_USAGE, "%s: a %s of %s: use prep %s", job->config->common.like, what,
                     pictures ? "pictures" : "texts", pictures ? "images" : "reviews");
}

static bool is_clicks(const pace__encoding *encoding)
{
    return encoding->kind == PACE__CRITEO || encoding->kind == PACE__NUMBERED;
}

/* Encoding and numbering of an older data set or model. */
static pace_status adopt(pace__clicks *job)
{
    const char *like = job->config->common.like;
    uint64_t *original = NULL;
    uint32_t count = 0;
    pace__store store;
    pace__linear model = {0};
    pace_status status;

    if (pace__is_store(like)) {
        status = pace__store_open(like, &store, job->log);
        if (status)
            return status;
        job->encoding = store.info.encoding;
        count = store.info.ids_seen;
        status = is_clicks(&job->encoding) ? pace__store_read_ids(&store, &original, job->log)
                                           : refuse_other(job, "data set");
        pace__store_close(&store);
    } else {
        status = pace__linear_read(like, &model, job->log);
        job->encoding = model.encoding;
        count = model.count;
        original = model.ids;
        model.ids = NULL;
        pace__linear_release(&model);
        if (!status && !is_clicks(&job->encoding))
            status = refuse_other(job, "model");
    }
    if (!status)
        status =
            pace__idmap_create(job->encoding.features, job->config->common.memory / 4, job->log, &job->idmap);
    if (!status)
        status = pace__idmap_adopt(job->idmap, original, count);
    free(original);
    return status;
}

static pace_status check_like(const pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;
    bool criteo = job->encoding.kind == PACE__CRITEO;

    if (criteo != (job->format == PACE_FORMAT_CRITEO))
        return pace_fail(job->log, PACE_USAGE, "%s was made from %s rows, but the input is %s",
                         config->common.like, criteo ? "criteo" : "numbered",
                         criteo ? "not criteo" : "criteo");
    if (config->features != 0 && (uint64_t)config->features != job->encoding.features)
        return pace_fail(job->log, PACE_USAGE,
                         "--features %" PRId64 " contradicts --like %s, which has %" PRIu64, config->features,
                         config->common.like, job->encoding.features);
    return PACE_OK;
}

static pace_status choose_encoding(pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;
    bool hashed =
        config->hash == PACE_HASH_ON || (config->hash == PACE_HASH_AUTO && job->format == PACE_FORMAT_CRITEO);
    uint64_t features = config->features == 0 && hashed ? PACE__FEATURES_DEFAULT : (uint64_t)config->features;

    if (job->format == PACE_FORMAT_CRITEO) {
        if (!hashed)
            return pace_fail(job->log, PACE_USAGE,
                             "--hash off: criteo categories are texts and must be hashed");
        return pace__encoding_criteo(features, config->numeric, &job->encoding, job->log);
    }
    job->encoding = (pace__encoding){.kind = PACE__NUMBERED, .hashed = hashed, .features = features};
    return PACE_OK;
}

static pace_status settle(pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;

    if (!config->common.output)
        return pace_fail(job->log, PACE_USAGE, "--output is missing: the data set directory to write");
    if (config->common.holdout > 0 && config->common.test.count > 0)
        return pace_fail(job->log, PACE_USAGE, PACE__TWO_TEST_SETS);
    pace_status status =
        pace__prep_check_files(config->common.inputs.items, config->common.inputs.count,
                               config->common.test.items, config->common.test.count, job->log);

    if (!status)
        status = detect_format(job);
    if (status)
        return status;
    job->threads = config->common.threads ? (int)config->common.threads : pace__cores();
    job->like = config->common.like != NULL;
    status = job->like ? adopt(job) : choose_encoding(job);
    if (!status && job->like)
        status = check_like(job);
    else if (!status)
        status = pace__idmap_create(job->encoding.features, config->common.memory / 4, job->log, &job->idmap);
    job->has_values = job->encoding.kind == PACE__NUMBERED || job->encoding.numeric == PACE_NUMERIC_VALUES;
    if (!status && job->encoding.kind == PACE__CRITEO)
        job->packing = pace__packing_of(&job->encoding);
    return status;
}

/* --- the command, as far as it decides the bytes --- */

/* Leaves out where the set lies and how many threads made it: equal sets are equal bytes. */
static char *command_of(const pace__clicks *job)
{
    static const char *const formats[] = {"auto", "criteo", "svmlight", "tfrecord"};
    const pace_prep_clicks_config *config = job->config;
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    fprintf(out, "paceline prep clicks");
    for (size_t i = 0; i < config->common.inputs.count; i++)
        pace__print_word(out, " ", config->common.inputs.items[i]);
    fprintf(out, " --format %s --hash %s --features %" PRIu64, formats[job->format],
            job->encoding.kind == PACE__CRITEO || job->encoding.hashed ? "on" : "off",
            job->encoding.features);
    if (job->encoding.kind == PACE__CRITEO)
        fprintf(out, " --numeric %s", job->encoding.numeric == PACE_NUMERIC_BINS ? "bins" : "values");
    for (size_t i = 0; i < config->common.test.count; i++)
        pace__print_word(out, " --test ", config->common.test.items[i]);
    if (config->common.holdout > 0)
        fprintf(out, " --holdout %.17g", config->common.holdout);
    if (config->common.like)
        pace__print_word(out, " --like ", config->common.like);
    fprintf(out, " --parts %" PRId64 " --seed %" PRId64, config->common.parts, config->common.seed);
    if (fclose(out) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* --- the passes --- */

static uint64_t stream_rows(const pace__clicks *job, int stream)
{
    uint64_t rows = 0;

    for (uint32_t bucket = 0; job->spills[stream] && bucket < PACE__SPILL_BUCKETS; bucket++)
        rows += pace__spill_rows(job->spills[stream], bucket);
    return rows;
}

static void emit_phase(const pace__clicks *job, const char *phase, double seconds, uint64_t bytes)
{
    pace_field fields[] = {PACE_TEXT("phase", phase), PACE_REAL("seconds", seconds),
                           PACE_INT("rows", stream_rows(job, PACE__INPUTS) + stream_rows(job, PACE__TESTS)),
                           PACE_INT("bytes", bytes)};

    pace_registry_emit(job->registry, "phase", fields, 4);
}

/*
 * How the memory is shared out: a quarter for the id table (idmap.h may take as much again for ids beyond
 * it), a quarter for spilled rows that need not go to disk, and the rest for loading buckets, where the id
 * table's second quarter is not needed any more.
 */
static pace_status make_spill(pace__clicks *job, int stream, const char *name)
{
    size_t load = job->config->common.memory / 4 / (size_t)job->threads;
    size_t keep = stream == PACE__INPUTS ? job->config->common.memory / 4 : job->config->common.memory / 16;
    pace_status status =
        pace__spill_create(job->staging.directory, name, load, job->log, &job->spills[stream]);

    return status ? status : pace__spill_keep(job->spills[stream], keep);
}

static pace_status read_all(pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;
    pace_status status = make_spill(job, PACE__INPUTS, "spill");

    if (!status)
        status =
            pace__clicks_read(job, PACE__INPUTS, config->common.inputs.items, config->common.inputs.count, 0);
    if (!status && config->common.test.count > 0) {
        status = make_spill(job, PACE__TESTS, "spill-test");
        if (!status)
            status = pace__clicks_read(job, PACE__TESTS, config->common.test.items, config->common.test.count,
                                       (uint32_t)config->common.inputs.count);
    }
    return status;
}

/* What can be decided only when all rows have been seen. */
static pace_status plan(pace__clicks *job)
{
    const pace_prep_clicks_config *config = job->config;
    uint64_t rows = stream_rows(job, PACE__INPUTS), tests = stream_rows(job, PACE__TESTS);
    bool criteo = job->encoding.kind == PACE__CRITEO;

    if (rows == 0)
        return pace_fail(job->log, PACE_BAD_DATA, "%s%s: no rows", config->common.inputs.items[0],
                         config->common.inputs.count > 1 ? " and the other inputs" : "");
    pace_status status = pace__prep_held_out(config->common.holdout, rows, job->log, &job->held_out);

    if (status)
        return status;
    if (config->common.test.count > 0 && tests == 0)
        return pace_fail(job->log, PACE_BAD_DATA, "%s: no rows to test on", config->common.test.items[0]);
    if (job->encoding.features == 0)
        job->encoding.features = job->largest_id + 1;
    if (!job->like)
        status = pace__idmap_number(job->idmap, criteo ? job->encoding.column_base : NULL,
                                    criteo ? PACE__CRITEO_COLUMNS : 0);
    job->info = (pace__store_info){
        .encoding = job->encoding,
        .columns = criteo ? PACE__CRITEO_COLUMNS : 0,
        .has_values = criteo ? job->has_values : (bool)job->not_all_ones,
        .row_entries_max = (uint32_t)job->longest_row,
        .like = job->like,
        .parts = (uint32_t)config->common.parts,
        .seed = config->common.seed,
        .rows = {rows - job->held_out, tests + job->held_out},
        .command = command_of(job),
    };
    job->parts = calloc(job->info.parts, sizeof *job->parts);
    if (!status && (!job->parts || !job->info.command))
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    if (!status)
        job->info.ids_seen = pace__idmap_count(job->idmap);
    return status;
}

static pace_status finish(pace__clicks *job, pace_prep_clicks_result *result)
{
    pace_status status = PACE_OK;
    struct stat info;

    for (uint32_t i = 0; i < job->info.parts && !status; i++) {
        result->bytes_written += stat(job->parts[i].path, &info) == 0 ? (uint64_t)info.st_size : 0;
        if (job->config->common.on_part)
            status = pace__run_on_part(job->config->common.on_part, job->parts[i].path, NULL, NULL, job->log);
    }
    for (int stream = 0; stream < PACE__STREAMS; stream++) {
        if (job->spills[stream])
            result->bytes_spilled += pace__spill_bytes(job->spills[stream]);
        pace__spill_free(job->spills[stream]);
        job->spills[stream] = NULL;
    }
    return status ? status : pace__staging_commit(&job->staging, job->log);
}

static pace_status run(pace__clicks *job, pace_prep_clicks_result *result)
{
    uint64_t start_ns = pace__now_ns();
    pace_status status =
        pace__prep_begin(job->config->common.output, job->config->common.force, &job->staging, job->log);

    if (!status)
        pace_say(job->log, PACE_INFO,
                 "memory: at most %.2f GB; what does not fit goes to temporary files in %s",
                 (double)job->config->common.memory / 1e9, job->staging.directory);
    if (!status)
        status = read_all(job);
    result->parse_seconds = pace__seconds_since(start_ns);
    if (!status) {
        emit_phase(job, "read", result->parse_seconds, job->bytes_read);
        status = plan(job);
    }
    uint64_t write_ns = pace__now_ns();

    if (!status)
        status = pace__clicks_write(job);
    result->write_seconds = pace__seconds_since(write_ns);
    if (!status) {
        emit_phase(job, "shuffle and write", result->write_seconds, 0);
        status = finish(job, result);
    }
    if (status == PACE_INTERRUPTED)
        pace_say(job->log, PACE_ERROR, PACE__PREP_INTERRUPTED);
    result->seconds = pace__seconds_since(start_ns);
    result->train_rows = job->info.rows[PACE__TRAIN];
    result->test_rows = job->info.rows[PACE__TEST];
    result->bad_rows = job->bad_rows;
    result->bytes_read = job->bytes_read;
    result->features = job->encoding.features;
    result->features_seen = job->info.ids_seen;
    result->unseen_entries = job->unseen;
    result->positive_rate = result->train_rows ? (double)job->positives / (double)result->train_rows : 0;
    return status;
}

pace_status pace_prep_clicks(const pace_prep_clicks_config *config, const pace_log *log,
                             pace_registry *registry, pace_prep_clicks_result *result)
{
    pace__once once; /* threads may meet the same trouble */
    pace__clicks job = {.config = config, .log = &once.log, .registry = registry, .staging.lock = -1};
    pace_prep_clicks_result reached = {0};

    pace__once_init(&once, log);
    pace_status status = settle(&job);

    if (!status)
        status = run(&job, &reached);
    for (uint32_t i = 0; job.parts && i < job.info.parts; i++)
        pace__part_close(&job.parts[i]);
    for (int stream = 0; stream < PACE__STREAMS; stream++) {
        pace__spill_free(job.spills[stream]);
        free(job.part_entry[stream]);
    }
    pace__staging_abandon(&job.staging, log);
    pace__idmap_free(job.idmap);
    free(job.parts);
    free(job.info.command);
    if (!status)
        *result = reached;
    return status;
}
