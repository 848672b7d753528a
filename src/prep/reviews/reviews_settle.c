/* What the options mean for this input, settled before anything is read. */
#include "data/text/rating.h"
#include "prep/options.h"
#include "prep/reviews/reviews.h"
#include "saved/saved.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The defaults of options that --like settles otherwise: another value was asked for. */
#define VOCAB_DEFAULT     10000
#define STOPWORDS_DEFAULT "english"

/* --- ratings --- */

static pace_status parse_rating(const char *option, const char *text, const pace_log *log, double *rating)
{
    return pace__rating_parse(text, strlen(text), rating)
               ? PACE_OK
               : pace_fail(log, PACE_USAGE, "--%s %s: not a rating", option, text);
}

static pace_status settle_ratings(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;
    pace_status status = PACE_OK;

    job->positive = NAN;
    if (strcmp(config->positive, "auto") != 0)
        status = parse_rating("positive", config->positive, log, &job->positive);
    if (!status && config->drop.count > PACE__DROPS_MAX)
        status = pace_fail(log, PACE_USAGE, "--drop: at most %d values are possible", PACE__DROPS_MAX);
    for (size_t i = 0; i < config->drop.count && !status; i++)
        status = parse_rating("drop", config->drop.items[i], log, &job->drop[job->drop_count++]);
    return status;
}

/* --- files --- */

static pace_status settle_files(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;
    const pace_texts *words[] = {&config->common.inputs, &config->common.test};
    pace_status status = PACE_OK;

    if (config->common.inputs.count == 0)
        return pace_fail(log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    for (int stream = 0; stream < PACE__STREAMS && !status; stream++) {
        job->options[stream] = (pace__review_options){
            .format = config->format, .text_field = config->text_field, .label_field = config->label_field};
        if (words[stream]->count > 0)
            status = pace__review_files_find(words[stream], &job->options[stream], log, &job->files[stream]);
    }
    const pace__review_files *inputs = &job->files[PACE__INPUTS], *tests = &job->files[PACE__TESTS];

    if (!status)
        status = pace__prep_check_files((const char *const *)inputs->paths, inputs->count,
                                        (const char *const *)tests->paths, tests->count,
                                        config->common.processes, log);
    return status;
}

/* --- stop words --- */

/* Those of a list that are no negations, in an array of its own. */
static pace_status keep_negations(pace__reviews *job, const pace_log *log)
{
    pace__word *kept = malloc((job->stop_count + 1) * sizeof *kept);
    uint32_t count = 0;

    if (!kept)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (uint32_t i = 0; i < job->stop_count; i++) {
        if (!pace__is_negation(job->stops[i].text, job->stops[i].size))
            kept[count++] = job->stops[i];
    }
    job->stops = job->kept_stops = kept;
    job->stop_count = count;
    return PACE_OK;
}

static pace_status settle_stops(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;

    if (strcmp(config->stopwords, "none") == 0)
        return PACE_OK;
    if (strcmp(config->stopwords, "english") == 0) {
        job->stops = pace__english_stops(config->keep_negations, &job->stop_count);
        return PACE_OK;
    }
    pace_status status = pace__stops_read(config->stopwords, log, &job->own_stops, &job->own_stop_count);

    if (status)
        return status;
    job->stops = job->own_stops;
    job->stop_count = job->own_stop_count;
    return config->keep_negations ? keep_negations(job, log) : PACE_OK;
}

/* --- encoding and vocabulary --- */

/* A model on texts, of whatever kind, has both in its file. */
static pace_status adopt_model(pace__reviews *job, const pace_log *log)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(job->config->common.like, &file, log);

    if (status)
        return status;
    if (!pace__safetensors_find(file.tensors, "vocabulary"))
        status = pace_fail(log, PACE_USAGE, "%s: not a model on texts: it has no vocabulary", file.path);
    if (!status)
        status = pace__saved_encoding(&file, &job->encoding, log);
    if (!status && job->encoding.kind != PACE__TEXT)
        status = pace_fail(log, PACE_BAD_DATA, "%s: has a vocabulary, but an encoding of clicks", file.path);
    if (!status)
        status = pace__saved_vocabulary(&file, &job->encoding, &job->vocabulary, log);
    pace__model_file_close(&file);
    return status;
}

static pace_status adopt_set(pace__reviews *job, const pace_log *log)
{
    const char *like = job->config->common.like;
    pace__store store;
    pace_status status = pace__store_open(like, &store, log);

    if (status)
        return status;
    job->encoding = store.info.encoding;
    if (isnan(job->positive))
        job->positive = store.info.positive;
    if (job->encoding.kind != PACE__TEXT)
        status = pace_fail(log, PACE_USAGE, "%s: a data set of %s, not of texts", like,
                           pace__has_classes(&job->encoding) ? "pictures" : "clicks");
    else
        status = pace__vocabulary_read(like, &job->encoding, log, &job->vocabulary);
    pace__store_close(&store);
    return status;
}

/* Stop words that were asked for must be those of --like; they are not needed then. */
static pace_status check_stops(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;

    if (strcmp(config->stopwords, STOPWORDS_DEFAULT) == 0 && config->keep_negations)
        return PACE_OK;
    pace_status status = settle_stops(job, log);
    bool same = !status && job->stop_count == pace__vocabulary_stops(job->vocabulary);

    for (uint32_t i = 0; same && i < job->stop_count; i++) {
        const pace__word *stop = &job->stops[i];

        same = pace__vocabulary_find(job->vocabulary, pace__word_hash(stop->text, stop->size), stop->text,
                                     stop->size) == PACE__ID_STOP;
    }
    job->stops = NULL;
    job->stop_count = 0;
    if (status || same)
        return status;
    return pace_fail(log, PACE_USAGE, "--stopwords %s%s contradicts --like %s, which has other stop words",
                     config->stopwords, config->keep_negations ? "" : " --no-keep-negations",
                     config->common.like);
}

/* Options that ask for something else than --like has. */
static pace_status check_like(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;

    if (config->vocabulary)
        return pace_fail(log, PACE_USAGE, "--like and --vocabulary: the words can come from one of them");
    if (config->length && config->length != job->encoding.length)
        return pace_fail(log, PACE_USAGE, "--length %" PRId64 " contradicts --like %s, which has %u",
                         config->length, config->common.like, job->encoding.length);
    if (config->vocab != VOCAB_DEFAULT && config->vocab != (int64_t)job->encoding.features - PACE__ID_WORDS)
        return pace_fail(log, PACE_USAGE, "--vocab %" PRId64 " contradicts --like %s, which has %" PRIu64,
                         config->vocab, config->common.like, job->encoding.features - PACE__ID_WORDS);
    if (config->truncate != PACE_TRUNCATE_HEAD && config->truncate != job->encoding.truncate)
        return pace_fail(log, PACE_USAGE, "--truncate %s contradicts --like %s, which has %s",
                         pace__truncate_names[config->truncate], config->common.like,
                         pace__truncate_names[job->encoding.truncate]);
    if (config->pad == PACE_PAD_FRONT && !job->encoding.pad_front)
        return pace_fail(log, PACE_USAGE, "--pad front contradicts --like %s, which has end",
                         config->common.like);
    return check_stops(job, log);
}

static pace_status settle_encoding(pace__reviews *job, const pace_log *log)
{
    const pace_prep_reviews_config *config = job->config;
    pace_status status = PACE_OK;

    job->known = config->common.like || config->vocabulary;
    if (config->common.like) {
        status = pace__was_store(config->common.like) ? adopt_set(job, log) : adopt_model(job, log);
        return status ? status : check_like(job, log);
    }
    job->open_length = config->length == 0;
    job->encoding = (pace__encoding){.kind = PACE__TEXT,
                                     .length = config->length ? (uint32_t)config->length : PACE__ROOM_MAX,
                                     .truncate = config->truncate,
                                     .pad_front = config->pad == PACE_PAD_FRONT};
    status = settle_stops(job, log);
    if (!status && config->vocabulary)
        status = pace__words_read(config->vocabulary, (uint32_t)config->vocab, job->stops, job->stop_count,
                                  log, &job->vocabulary);
    return status;
}

pace_status pace__reviews_settle(void *prep, const pace_log *log)
{
    pace__reviews *job = prep;
    const pace_prep_reviews_config *config = job->config;

    if (config->common.processes > 1 && config->common.threads > 1)
        return pace_fail(log, PACE_USAGE,
                         "--processes %" PRId64 " and --threads %" PRId64
                         ": with several processes each has one thread",
                         config->common.processes, config->common.threads);
    pace_status status = settle_ratings(job, log);

    if (!status)
        status = settle_files(job, log);
    return status ? status : settle_encoding(job, log);
}

pace_status pace__reviews_settle_filter(pace__reviews *job, const pace_log *log)
{
    pace_status status = settle_ratings(job, log);

    if (!status)
        status = settle_files(job, log);
    return status ? status : settle_stops(job, log);
}

bool pace__reviews_drops(const pace__reviews *job, double rating)
{
    for (size_t i = 0; i < job->drop_count; i++) {
        if (rating == job->drop[i])
            return true;
    }
    return false;
}

double pace__reviews_threshold(const pace__reviews *job)
{
    return !isnan(job->positive) ? job->positive : job->from_1 ? 1 : PACE__POSITIVE_AUTO;
}

void pace__reviews_release(pace__reviews *job)
{
    for (int stream = 0; stream < PACE__STREAMS; stream++)
        pace__review_files_release(&job->files[stream]);
    free(job->kept_stops);
    pace__stops_free(job->own_stops, job->own_stop_count);
    pace__vocabulary_free(job->vocabulary);
    free(job->info.command);
}

/* --- the command, as far as it decides the bytes --- */

char *pace__reviews_command(const pace__reviews *job)
{
    pace_prep_reviews_config decided = *job->config;
    char positive[32];

    snprintf(positive, sizeof positive, "%.17g", pace__reviews_threshold(job));
    decided.format = job->options[PACE__INPUTS].format;
    decided.length = job->encoding.length;
    decided.positive = positive;
    return pace__prep_command("prep reviews", pace_prep_reviews_tables, &decided.common);
}
