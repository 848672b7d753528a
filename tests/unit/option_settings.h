/*
 * option_settings.h - a table of options of every kind, and a place to parse them in. Include it behind <cmocka.h>.
 */
#ifndef UNIT_OPTION_SETTINGS_H
#define UNIT_OPTION_SETTINGS_H

#include <inttypes.h>
#include <paceline/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
    int64_t batch;
    int64_t shift;
    uint64_t memory;
    double lr;
    const char *run;
    const char *like;
    int schedule;
    bool exact;
    bool hashed;
    pace_texts test;
    pace_texts words;
    int64_t profile;
    const char *dashboard;
} settings;

static const pace_option table[] = {
    {"batch", 'b', PACE_OPT_INT, offsetof(settings, batch), "512", "N", "rows in a step", .min = 1,
     .max = 1e9},
    {"shift", 0, PACE_OPT_INT, offsetof(settings, shift), NULL, "N", .help = "moves by N"},
    {"memory", 0, PACE_OPT_SIZE, offsetof(settings, memory), "1G", "BYTES", .help = "limit of memory"},
    {"lr", 0, PACE_OPT_REAL, offsetof(settings, lr), "0.1", "X", "learning rate", .min = -1, .max = 1e6,
     .group = "Training"},
    {"run", 'o', PACE_OPT_TEXT, offsetof(settings, run), NULL, "DIR", "run directory", .required = true},
    {"like", 0, PACE_OPT_TEXT, offsetof(settings, like), "other", "DIR", .help = "take it from there"},
    {"schedule", 0, PACE_OPT_CHOICE, offsetof(settings, schedule), "constant", "NAME", "course of the rate",
     .choices = "constant|linear|off"},
    {"exact", 0, PACE_OPT_FLAG, offsetof(settings, exact), NULL, .help = "one update per step"},
    {"hashed", 0, PACE_OPT_FLAG, offsetof(settings, hashed), "true", .help = "hash the ids"},
    {"test", 0, PACE_OPT_LIST, offsetof(settings, test), NULL, "FILE", .help = "test rows"},
    {"words", 0, PACE_OPT_LIST, offsetof(settings, words), "a:b", "WORD", .help = "some words"},
    {"profile", 0, PACE_OPT_INT, offsetof(settings, profile), "0", "STEPS", "look at so many", .min = 0,
     .max = 1e9, .implied = "100"},
    {"dashboard", 0, PACE_OPT_TEXT, offsetof(settings, dashboard), NULL, "ADDRESS", .help = "show it there",
     .implied = "127.0.0.1"},
    {0},
};

typedef struct shared {
    bool json;
} shared;

static const pace_option shared_table[] = {
    {"json", 0, PACE_OPT_FLAG, offsetof(shared, json), NULL, .help = "as JSON"},
    {0},
};

static const pace_option other_table[] = {
    {"rows", 0, PACE_OPT_INT, 0, NULL, "N", .help = "rows"},
    {0},
};

typedef struct fixture {
    char directory[64];
    char file[96];
    char errors[2048], warnings[2048];
    pace_log log;
    settings settings;
    shared shared;
    bool help;
    pace_texts positional;
    pace_options *options;
} fixture;

static inline void collect(void *user, pace_level level, const char *text)
{
    fixture *f = user;
    char *into = level == PACE_ERROR ? f->errors : f->warnings;
    size_t used = strlen(into);

    snprintf(into + used, sizeof f->errors - used, "%s\n", text);
}

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    strcpy(f->directory, "/tmp/paceline-options-XXXXXX");
    if (!mkdtemp(f->directory))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/a.yaml", f->directory);
    f->log = (pace_log){collect, f};
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture *f = *state;

    pace_options_free(f->options);
    unlink(f->file);
    rmdir(f->directory);
    free(f);
    unsetenv("PACELINE_BATCH");
    unsetenv("PACELINE_TEST");
    unsetenv("PACELINE_CONFIG");
    return 0;
}

/* Parses the words of `line` (separated by blanks) from a fresh start. */
static inline pace_status parse(fixture *f, const char *line)
{
    char copy[512], *words[64], *rest = copy;
    int count = 0;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word; (word = strsep(&rest, " "));) {
        if (*word)
            words[count++] = word;
    }
    f->errors[0] = f->warnings[0] = '\0';
    pace_options_free(f->options);
    f->options = pace_options_create(table, &f->settings, &f->log);
    assert_non_null(f->options);
    assert_int_equal(pace_options_add(f->options, shared_table, &f->shared), PACE_OK);
    assert_int_equal(pace_options_add(f->options, other_table, NULL), PACE_OK);
    return pace_options_parse(f->options, count, words, &f->help, &f->positional);
}

static inline void write_config(const fixture *f, const char *text)
{
    FILE *file = fopen(f->file, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static inline pace_status parse_config(fixture *f, const char *yaml, const char *line)
{
    char words[512];

    write_config(f, yaml);
    snprintf(words, sizeof words, "--config %s %s", f->file, line);
    return parse(f, words);
}

static inline void assert_ok(const fixture *f, pace_status status)
{
    if (status)
        print_error("%s", f->errors);
    assert_int_equal(status, PACE_OK);
    assert_string_equal(f->errors, "");
}

/* Exactly one message, and it contains all of the texts (up to a NULL). */
static inline void assert_refused(fixture *f, pace_status status, ...)
{
    va_list texts;

    assert_int_equal(status, PACE_USAGE);
    const char *end = strchr(f->errors, '\n');

    assert_true(end && end[1] == '\0');
    va_start(texts, status);
    for (const char *text; (text = va_arg(texts, const char *));) {
        if (!strstr(f->errors, text))
            fail_msg("\"%s\" is not in: %s", text, f->errors);
    }
    va_end(texts);
}

#define OPTIONS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

#endif
