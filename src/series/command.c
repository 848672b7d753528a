#include "series/command.h"

#include "options/internal.h"
#include "series/child.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- from words --- */

static int count_words(const char *const *words)
{
    int count = 0;

    while (words[count])
        count++;
    return count;
}

pace_status pace__command_read(const char *const *words, const pace_option *ours, const pace_log *log,
                               pace_train_config *config, pace_options **options)
{
    pace_model_options kinds[PACE_MODELS_MAX];
    bool help;

    *options = pace_options_create(pace_train_options, config, log);
    pace_status status =
        *options ? pace_train_add_kinds(*options, kinds) : pace_fail(log, PACE_FAILED, "out of memory");

    if (!status)
        status = pace_options_add(*options, ours, NULL);
    if (!status)
        status = pace_options_parse(*options, count_words(words), (char **)(uintptr_t)words, &help, NULL);
    if (!status && help)
        status = pace_fail(log, PACE_USAGE, "--help behind -- is train's: paceline train --help has it");
    if (!status)
        status = pace_train_take_kind(config, kinds, *options, log);
    return status;
}

/* --- to words --- */

static void parts_of(const pace_train_config *config, pace_option_part parts[3])
{
    parts[0] = (pace_option_part){pace_train_options, config};
    parts[1] = (pace_option_part){pace_model_at(config->model)->options, &config->own};
    parts[2] = (pace_option_part){0};
}

char *pace__words_joined(const char *const *words, size_t count)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    for (size_t i = 0; out && i < count; i++)
        fprintf(out, "%s%s", i ? " " : "", words[i]);
    if (out && fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}

char *pace__command_line(const pace_train_config *config)
{
    pace_train_config base = *config;
    pace_option_part parts[3];
    char **words, *text;
    size_t count;

    base.run = base.data = NULL;
    parts_of(&base, parts);
    if (pace_options_to_words(parts, NULL, &words, &count))
        return NULL;
    text = pace__words_joined((const char *const *)words, count);
    pace_options_free_words(words);
    return text;
}

char *pace__command_paste(const pace_train_config *config)
{
    pace_option_part parts[3];
    char **words, *text;
    size_t count;

    parts_of(config, parts);
    if (pace_options_to_words(parts, NULL, &words, &count))
        return NULL;
    text = pace__shell_line("paceline train", words);
    pace_options_free_words(words);
    return text;
}

pace_status pace__command_words(const pace_train_config *config, const char *const *more, const pace_log *log,
                                char ***words)
{
    pace_option_part parts[3];

    parts_of(config, parts);
    return pace__child_words("train", parts, more, log, words);
}

/* --- would train take it? --- */

static void keep_error(void *user, pace_level level, const char *text)
{
    pace__foreseen *self = user;

    if (level == PACE_ERROR && !self->error[0])
        snprintf(self->error, sizeof self->error, "%s", text);
}

pace_log pace__foreseen_log(pace__foreseen *foreseen)
{
    return (pace_log){keep_error, foreseen};
}

static int64_t whole_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    return field && field->type == PACE_FIELD_INT ? field->value.integer : 0;
}

static void keep_record(void *user, const pace_record *record)
{
    pace__foreseen *self = user;
    const pace_field *rows_s = pace_record_find(record, "rows_per_s");

    if (strcmp(record->kind, "expected") == 0 && rows_s && rows_s->type == PACE_FIELD_REAL)
        self->rows_s = rows_s->value.real;
    if (strcmp(record->kind, "planned") == 0) {
        self->steps = whole_of(record, "steps");
        self->open_end = whole_of(record, "open_end") != 0;
        self->validation_rows = whole_of(record, "validation_rows");
    }
}

pace_status pace__command_foresee(const pace_train_config *config, const pace_log *log,
                                  pace__foreseen *foreseen)
{
    pace_train_config dry = *config;
    pace_log silent = pace__foreseen_log(foreseen);
    pace_sink sink = {keep_record, foreseen};
    pace_registry *registry = pace_registry_create();
    pace_train_result result;

    *foreseen = (pace__foreseen){.rows_s = NAN};
    if (!registry)
        return pace_fail(log, PACE_FAILED, "out of memory");
    dry.dry_run = true;
    pace_registry_attach(registry, &sink);
    pace_status status = pace_train(&dry, &silent, registry, &result);

    pace_registry_free(registry);
    return status;
}
