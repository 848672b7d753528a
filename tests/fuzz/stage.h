/*
 * stage.h - data sets of every sort, as prep makes them of a few rows, and models that train makes of them: for fuzz
 * targets that damage what paceline has written, and read it as users do.
 *
 *     make_set(SET_TEXTS);                                     // once
 *     ... config.data = set_path(SET_TEXTS) ...
 *     train((const char *[]){"--model", "rnn", NULL}, SET_TEXTS, run);
 */
#ifndef FUZZ_STAGE_H
#define FUZZ_STAGE_H

#include "fuzzing.h"

#include <paceline/prep.h>
#include <paceline/train.h>

enum { SET_CRITEO, SET_NUMBERED, SET_TEXTS, SET_PICTURES, SETS };

#define SIDE     8 /* of a picture */
#define PICTURES 12

static inline void say_aloud(void *user, pace_level level, const char *text)
{
    (void)user;
    if (level <= PACE_WARN)
        fprintf(stderr, "%s\n", text);
}

static const pace_log aloud = {.write = say_aloud};

static inline const char *set_path(int set)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/set%d", scratch(), set);
    return path;
}

/* The raw file of a set. Pictures have another one, for their labels. */
static inline const char *raw_path(int set)
{
    static const char *const names[SETS] = {"criteo.tsv", "numbered.svm", "texts.jsonl",
                                            "train-images-idx3-ubyte"};
    static char path[128];

    snprintf(path, sizeof path, "%s/%s", scratch(), names[set]);
    return path;
}

static inline void write_rows(int set, FILE *file, int rows)
{
    static const char *const words[] = {"good", "not", "bad", "a", "book", "never"};

    for (int row = 0; row < rows; row++) {
        if (set == SET_TEXTS) {
            fprintf(file, "{\"reviewText\": \"%s %s %s\", \"overall\": %d}\n", words[row % 6],
                    words[row % 4 + 2], words[row % 5], 1 + row % 5);
            continue;
        }
        fprintf(file, "%d", row % 3 == 0);
        for (int i = 0; i < 39 && set == SET_CRITEO; i++)
            fprintf(file, i < 13 ? "\t%d" : "\t%08x", row * i % 2);
        for (int i = 0; i < 1 + row % 3 && set == SET_NUMBERED; i++)
            fprintf(file, " %d:%g", 1 + row % 3 + 3 * i, 0.5 + i);
        fprintf(file, "\n");
    }
}

static inline void write_pictures(const char *pictures, const char *labels)
{
    uint8_t bytes[16 + PICTURES * SIDE * SIDE] = {0, 0, 8, 3,    0, 0, 0, PICTURES,
                                                  0, 0, 0, SIDE, 0, 0, 0, SIDE};
    uint8_t classes[8 + PICTURES] = {0, 0, 8, 1, 0, 0, 0, PICTURES};

    for (int i = 0; i < PICTURES * SIDE * SIDE; i++)
        bytes[16 + i] = (uint8_t)(i * 37);
    for (int i = 0; i < PICTURES; i++)
        classes[8 + i] = (uint8_t)(i % 2);
    put_file(pictures, bytes, sizeof bytes);
    put_file(labels, classes, sizeof classes);
}

static inline const char *labels_path(void)
{
    static char path[128];

    snprintf(path, sizeof path, "%s/train-labels-idx1-ubyte", scratch());
    return path;
}

static inline void write_raw(int set, int rows)
{
    if (set == SET_PICTURES) {
        write_pictures(raw_path(set), labels_path());
        return;
    }
    FILE *file = fopen(raw_path(set), "w");

    assert(file);
    write_rows(set, file, rows);
    assert(fclose(file) == 0);
}

/* The raw file becomes a data set; `like`: as that model or data set says. */
static inline pace_status prepare(int set, const char *output, const char *like, const pace_log *log)
{
    const char *inputs[] = {raw_path(set), labels_path()};
    pace_prep_common common = {.inputs = {inputs, set == SET_PICTURES ? 2 : 1},
                               .output = output,
                               .like = like,
                               .force = true,
                               .holdout = like ? 0 : 0.25,
                               .threads = 1,
                               .processes = 1,
                               .memory = 128000000,
                               .parts = 1,
                               .seed = 1};

    if (set == SET_TEXTS) {
        pace_prep_reviews_config config = {.common = common,
                                           .text_field = "reviewText",
                                           .label_field = "overall",
                                           .positive = "auto",
                                           .vocab = like ? 20000 : 4,
                                           .length = like ? 200 : 5,
                                           .stopwords = like ? "english" : "none"};
        pace_prep_reviews_result result;

        return pace_prep_reviews(&config, log, NULL, &result);
    }
    if (set == SET_PICTURES) {
        pace_prep_images_config config = {.common = common};
        pace_prep_images_result result;

        return pace_prep_images(&config, log, NULL, &result);
    }
    pace_prep_clicks_config config = {.common = common, .features = set == SET_CRITEO && !like ? 5000 : 0};
    pace_prep_clicks_result result;

    return pace_prep_clicks(&config, log, NULL, &result);
}

static inline void make_set(int set)
{
    write_raw(set, 24);
    assert(prepare(set, set_path(set), NULL, &aloud) == PACE_OK);
}

/* `words` are options, up to a NULL; --data and --run come on top. */
static inline pace_status train(const char *const *words, int set, const char *run, const pace_log *log)
{
    static pace_train_config config;
    pace_model_options kinds[PACE_MODELS_MAX];
    char *argv[24], data[160], directory[160];
    int argc = 0;
    bool help;
    pace_texts positional;
    pace_train_result result;
    pace_options *options = pace_options_create(pace_train_options, &config, log);

    assert(options && pace_train_add_kinds(options, kinds) == PACE_OK);
    snprintf(data, sizeof data, "--data=%s", set_path(set));
    snprintf(directory, sizeof directory, "--run=%s", run);
    argv[argc++] = data;
    argv[argc++] = directory;
    argv[argc++] = (char[]){"--threads=1"};
    for (; *words; words++)
        argv[argc++] = (char *)(uintptr_t)*words;
    assert(pace_options_parse(options, argc, argv, &help, &positional) == PACE_OK);
    assert(pace_train_take_kind(&config, kinds, options, log) == PACE_OK);
    pace_status status = pace_train(&config, log, NULL, &result);

    pace_options_free(options);
    return status;
}

#endif
