/* What the options mean for this input: settled before anything is decoded. */
#include "prep/images/images.h"
#include "prep/options.h"
#include "saved/saved.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MIN 8
#define GIGABYTE 1e9

/* --- --like --- */

static pace_status check_kind(const pace__encoding *encoding, const char *path, const pace_log *log)
{
    return encoding->kind == PACE__IMAGE
               ? PACE_OK
               : pace_fail(log, PACE_USAGE, "--like %s: is not about pictures", path);
}

/* A model on pictures, of whatever kind, has encoding and names in its file. */
static pace_status adopt_model(pace__images *job, const pace_log *log)
{
    pace__model_file file;
    pace_status status = pace__model_file_open(job->config->common.like, &file, log);

    if (status)
        return status;
    status = pace__saved_encoding(&file, &job->encoding, log);
    if (!status)
        status = check_kind(&job->encoding, job->config->common.like, log);
    if (!status)
        status = pace__saved_class_names(&file, &job->encoding, &job->like, log);
    pace__model_file_close(&file);
    return status;
}

static pace_status adopt_set(pace__images *job, const pace_log *log)
{
    pace__store store;
    pace_status status = pace__store_open(job->config->common.like, &store, log);

    if (status)
        return status;
    job->encoding = store.info.encoding;
    pace__store_close(&store);
    status = check_kind(&job->encoding, job->config->common.like, log);
    return status ? status
                  : pace__class_names_read(job->config->common.like, &job->encoding, log, &job->like);
}

/* Options that ask for something else than --like has. */
static pace_status check_like(const pace__images *job, const pace_log *log)
{
    const pace_prep_images_config *config = job->config;
    const pace__encoding *encoding = &job->encoding;
    uint32_t channels = config->channels == PACE_CHANNELS_GREY ? 1 : 3;

    if (config->size != 0 && (config->size != encoding->height || config->size != encoding->width))
        return pace_fail(log, PACE_USAGE, "--size %" PRId64 " contradicts --like %s, which has %u x %u",
                         config->size, config->common.like, encoding->width, encoding->height);
    if (config->channels != PACE_CHANNELS_AUTO && channels != encoding->channels)
        return pace_fail(log, PACE_USAGE, "--channels %s contradicts --like %s",
                         config->channels == PACE_CHANNELS_GREY ? "grey" : "rgb", config->common.like);
    if (config->fit != PACE_FIT_CROP && config->fit != encoding->fit)
        return pace_fail(log, PACE_USAGE, "--fit %s contradicts --like %s, which has %s",
                         pace__fit_names[config->fit], config->common.like, pace__fit_names[encoding->fit]);
    return PACE_OK;
}

static pace_status settle_encoding(pace__images *job, const pace_log *log)
{
    const pace_prep_images_config *config = job->config;
    pace_status status = PACE_OK;

    if (config->size != 0 && config->size < SIZE_MIN)
        return pace_fail(log, PACE_USAGE, "--size %" PRId64 ": at least %d pixels are needed", config->size,
                         SIZE_MIN);
    if (config->common.like) {
        status = pace__was_store(config->common.like) ? adopt_set(job, log) : adopt_model(job, log);
        return status ? status : check_like(job, log);
    }
    job->encoding = (pace__encoding){.kind = PACE__IMAGE,
                                     .height = (uint32_t)config->size,
                                     .width = (uint32_t)config->size,
                                     .channels = config->channels == PACE_CHANNELS_GREY  ? 1
                                                 : config->channels == PACE_CHANNELS_RGB ? 3
                                                                                         : 0,
                                     .fit = config->fit};
    return PACE_OK;
}

/* --- files --- */

typedef struct located {
    char *path; /* without links and dots */
    const pace__picture_source *source;
} located;

/* A folder comes right before what is in it: a slash sorts before all else. */
static int rank_of(char byte)
{
    return byte == '\0' ? 0 : byte == '/' ? 1 : (unsigned char)byte + 2;
}

static int by_place(const void *left, const void *right)
{
    const char *a = ((const located *)left)->path, *b = ((const located *)right)->path;

    while (*a && *a == *b)
        a++, b++;
    return rank_of(*a) - rank_of(*b);
}

/* Whether one is in the other, or is the other. */
static bool holds(const char *outer, const char *inner)
{
    size_t size = strlen(outer);

    return strncmp(outer, inner, size) == 0 && (inner[size] == '/' || inner[size] == '\0');
}

static pace_status compare(const located *outer, const located *inner, const pace_log *log)
{
    if (outer->source->test != inner->source->test)
        return pace_fail(log, PACE_USAGE,
                         "%s: both an input and --test: a model must not be tested on its training pictures",
                         (inner->source->test ? inner : outer)->source->path);
    pace_say(log, PACE_WARN, "%s: given twice, also as %s: its pictures count twice", inner->source->path,
             outer->source->path);
    return PACE_OK;
}

/* Sorted, whatever lies in a folder comes right behind it, so that one pass finds it. */
static pace_status check_overlap(const pace__picture_sources *sources, const pace_log *log)
{
    located *all = calloc(sources->count + 1, sizeof *all);
    pace_status status = all ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    size_t count = 0, outer = 0;

    for (size_t i = 0; all && i < sources->count; i++) {
        char *path = realpath(sources->items[i].path, NULL);

        if (path) /* what is gone by now is told by whoever opens it */
            all[count++] = (located){path, &sources->items[i]};
    }
    if (count > 0)
        qsort(all, count, sizeof *all, by_place);
    for (size_t i = 1; i < count && !status; i++) {
        if (holds(all[outer].path, all[i].path))
            status = compare(&all[outer], &all[i], log);
        else
            outer = i;
    }
    for (size_t i = 0; i < count; i++)
        free(all[i].path);
    free(all);
    return status;
}

static pace_status check_sources(const pace__images *job, const pace_log *log)
{
    const pace__picture_sources *sources = &job->sources;
    const pace_prep_images_config *config = job->config;

    for (size_t i = sources->count - sources->tests; i < sources->count; i++) {
        const pace__picture_source *test = &sources->items[i];

        if (test->own_test && (config->common.holdout > 0 || config->common.test.count > 0))
            return pace_fail(log, PACE_USAGE,
                             "%s is a test set already: leave out --%s, or name the training files alone",
                             test->path, config->common.holdout > 0 ? "holdout" : "test");
    }
    return check_overlap(sources, log);
}

pace_status pace__images_settle(void *prep, const pace_log *log)
{
    pace__images *job = prep;
    const pace_prep_images_config *config = job->config;
    pace_status status = settle_encoding(job, log);

    if (!status)
        status = pace__pictures_find(&config->common.inputs, &config->common.test, config->format, log,
                                     &job->sources);
    if (!status && job->sources.format != PACE_IMAGES_CSV && (config->path_field || config->label_field))
        status = pace_fail(log, PACE_USAGE, "--%s: only csv files have columns with names",
                           config->path_field ? "path-field" : "label-field");
    return status ? status : check_sources(job, log);
}

/* --- the list, and what follows from it --- */

static pace_status pulse(void *user, uint64_t pictures)
{
    pace__images *job = user;
    pace_field fields[] = {PACE_TEXT("phase", "list"), PACE_INT("done", pictures), PACE_INT("total", 0),
                           PACE_TEXT("unit", "pictures")};

    pace_registry_emit(job->prep.registry, "progress", fields, 4);
    return pace__rank_pulse(&job->rank);
}

/* What was left open: by IDX and CIFAR, or by what is usual. */
static pace_status settle_shape(pace__images *job)
{
    const pace__picture_facts *facts = &job->pictures.facts;
    bool contained = facts->format == PACE_IMAGES_IDX || facts->format == PACE_IMAGES_CIFAR;
    pace__encoding *encoding = &job->encoding;

    if (encoding->channels == 0)
        encoding->channels = facts->grey ? 1 : 3;
    if (encoding->height != 0)
        return PACE_OK;
    if (contained && facts->height == 0)
        return pace_fail(job->rank.log, PACE_USAGE, "the files have pictures of different sizes: say --size");
    encoding->height = contained ? facts->height : PACE__IMAGE_SIZE_DEFAULT;
    encoding->width = contained ? facts->width : PACE__IMAGE_SIZE_DEFAULT;
    if (encoding->height < SIZE_MIN || encoding->width < SIZE_MIN ||
        encoding->height > PACE__PICTURE_SIDE_MAX || encoding->width > PACE__PICTURE_SIDE_MAX)
        return pace_fail(job->rank.log, PACE_USAGE,
                         "the pictures are %u x %u, but rows have sides from %d to %d: say --size",
                         encoding->width, encoding->height, SIZE_MIN, PACE__PICTURE_SIDE_MAX);
    return PACE_OK;
}

static pace_status settle_rows(pace__images *job, pace__image_word *word)
{
    const pace__picture_facts *facts = &job->pictures.facts;
    uint64_t tests = facts->count - facts->inputs;
    pace_status status = pace__prep_divide(&job->config->common, facts->inputs, job->rank.log, word->divided);

    memcpy(word->rows, word->divided, sizeof word->rows);
    word->rows[PACE__TEST] += tests;
    return status;
}

/* Of each class, how many pictures there are to train on. */
static pace_status count_classes(pace__images *job, const pace__class_names *names, pace__image_word *word)
{
    uint64_t *counts = calloc((size_t)names->count + 1, sizeof *counts);
    uint32_t without = 0, example = 0;
    pace_status status =
        counts ? PACE_OK
               : pace_fail(job->rank.log, PACE_FAILED, "out of memory for %u classes", names->count);

    for (uint64_t row = 0; row < pace__image_rows(job) && !status; row++) {
        int set;
        uint64_t place, number = pace__image_row(job, row, &set, &place);
        uint32_t class = pace__pictures_class(&job->pictures, number);

        word->positives[set] += class == 1;
        counts[class < names->count && set == PACE__TRAIN ? class : names->count]++;
        if (row % 65536 == 0)
            status = pace__rank_pulse(&job->rank);
    }
    for (uint32_t i = names->count; !status && i-- > 0;) {
        without += counts[i] == 0;
        example = counts[i] == 0 ? i : example;
    }
    if (without > 0 && !job->config->common.like)
        pace_say(job->rank.log, PACE_WARN, "%u of %u classes ha%s no pictures to train on: %s%s", without,
                 names->count, without == 1 ? "s" : "ve", names->items[example], without > 1 ? ", ..." : "");
    free(counts);
    return status;
}

static void say_plan(const pace__images *job, const pace__image_word *word)
{
    const pace__encoding *encoding = &word->encoding;
    const pace_log *log = job->rank.log;
    double row = (double)encoding->height * encoding->width * encoding->channels;
    double rows = (double)pace__image_rows(job);
    const pace__picture_sources *sources = &job->sources;

    for (size_t i = 0; i < sources->count; i++) {
        if (sources->items[i].own_test)
            pace_say(log, PACE_INFO, "%s: its pictures become the test set", sources->items[i].path);
    }
    pace_say(log, PACE_INFO,
             "%" PRIu64
             " pictures of %u classes become rows of %u x %u %s: %.3g GB on disk; memory: some 64 MiB "
             "for each of %d thread%s%s",
             pace__image_rows(job), encoding->classes, encoding->width, encoding->height,
             encoding->channels == 1 ? "grey" : "rgb", row * rows / GIGABYTE, job->threads,
             job->threads == 1 ? "" : "s", job->prep.many ? " in each process" : "");
}

/* The permutations of inputs and tests; the first of the inputs' are those that are set apart. */
static void settle_order(pace__images *job, const uint64_t divided[PACE__SETS])
{
    const pace__picture_facts *facts = &job->pictures.facts;
    uint64_t seed = (uint64_t)job->config->common.seed;

    memcpy(job->divided, divided, sizeof job->divided);
    job->order[0] = pace__order_make_blocks(facts->inputs, 1, seed, 0);
    job->order[1] = pace__order_make_blocks(facts->count - facts->inputs, 1, seed, 1);
}

uint64_t pace__image_rows(const pace__images *job)
{
    return job->pictures.facts.count;
}

int pace__image_set(const uint64_t rows[PACE__SETS], uint64_t row, uint64_t *place)
{
    int set = pace__prep_set_of(rows, row);

    *place = row - pace__prep_rows_before(rows, set);
    return set;
}

uint64_t pace__image_row(const pace__images *job, uint64_t row, int *set, uint64_t *place)
{
    uint64_t inputs = job->pictures.facts.inputs;
    uint64_t tests = job->pictures.facts.count - inputs, run;
    const uint64_t *divided = job->divided;
    const uint64_t rows[PACE__SETS] = {
        [PACE__TEST] = tests + divided[PACE__TEST], [PACE__VALIDATION] = divided[PACE__VALIDATION]};

    *set = pace__image_set(rows, row, place);
    if (row < tests)
        return inputs + pace__order_row(&job->order[1], row, &run);
    return pace__order_row(&job->order[0], row - tests, &run);
}

static pace_status settle_list(pace__images *job, const pace__class_names *names, pace__image_word *word)
{
    pace_status status = settle_shape(job);

    if (!status)
        status = settle_rows(job, word);
    if (status)
        return status;
    job->encoding.classes = names->count;
    job->encoding.class_names = pace__class_names_checksum(names);
    word->encoding = job->encoding;
    settle_order(job, word->divided);
    status = count_classes(job, names, word);
    if (!status)
        status = pace__class_names_write(job->prep.directory, names, job->rank.log);
    if (!status)
        say_plan(job, word);
    return status;
}

/* Rank 0 makes the list and reads it; the others read it when rank 0 has given the word. */
pace_status pace__images_list(pace__images *job, pace__image_word *word)
{
    const pace_log *log = job->rank.log;
    pace__class_names names = {0};
    pace__listing_plan plan = {.sources = &job->sources,
                               .directory = job->prep.directory,
                               .classes = job->config->common.like ? &job->like : NULL,
                               .path_field = job->config->path_field,
                               .label_field = job->config->label_field,
                               .tell_grey = job->encoding.channels == 0,
                               .pulse = pulse,
                               .user = job};
    pace_status status = PACE_OK;

    *word = (pace__image_word){0};
    if (job->rank.number == 0) {
        status = pace__pictures_list(&plan, log, &names);
        if (!status)
            status = pace__pictures_open(job->prep.directory, log, &job->pictures);
        if (!status)
            status = settle_list(job, &names, word);
        pace__class_names_release(&names);
    }
    if (!status)
        status = pace__ranks_share(job->rank.link, word, sizeof *word);
    if (!status && job->rank.number > 0) {
        status = pace__pictures_open(job->prep.directory, log, &job->pictures);
        if (!status)
            settle_order(job, word->divided);
        job->encoding = word->encoding;
    }
    return status;
}

/* --- the command, as far as it decides the bytes --- */

char *pace__images_command(const pace__images *job)
{
    pace_prep_images_config decided = *job->config;

    decided.format = job->sources.format;
    decided.fit = job->encoding.fit;
    decided.channels = job->encoding.channels == 1 ? PACE_CHANNELS_GREY : PACE_CHANNELS_RGB;
    return pace__prep_command("prep images", pace_prep_images_tables, &decided.common);
}
