/* sections.c - from the options of a study to its sections. */
#include "study/presets.h"
#include "study/study.h"

#include "files/file.h"
#include "launch/cluster.h"
#include "series/command.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <paceline/inspect.h>
#include <paceline/prep.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 128

/* Sections point to it; it lives as long as the study. NULL when out of memory, or if it is NULL. */
static const char *own(pace__study *study, char *text)
{
    char **longer = text ? realloc(study->owned, (study->owned_count + 1) * sizeof *longer) : NULL;

    if (!longer) {
        free(text);
        return NULL;
    }
    study->owned = longer;
    study->owned[study->owned_count++] = text;
    return text;
}

void pace__study_release(pace__study *study)
{
    for (size_t i = 0; i < study->section_count; i++) {
        pace_options_free(study->sections[i].options);
        free(study->sections[i].cells);
        free(study->sections[i].expected_rows_s);
        free(study->sections[i].foretold);
    }
    for (size_t i = 0; i < study->owned_count; i++)
        free(study->owned[i]);
    free(study->owned);
    free(study->results);
    pace__ledger_close(&study->ledger);
}

char *pace__study_path(const pace__study *study, const char *name)
{
    return pace__format("%s/%s", study->directory, name);
}

/* --- what there is room for --- */

static pace_status check_slots(const pace__section *section, const char *hosts, int slots,
                               const pace_log *log)
{
    char words[PACE__CELL_TEXT];

    for (size_t i = 0; hosts && i < section->count; i++) {
        const pace__cell_of *cell = &section->cells[i];
        int64_t processes = cell->workers + (cell->ps > 0 ? cell->ps : 0);

        if (processes > slots && cell->mode != PACE_MODE_LOCAL)
            return pace_fail(log, PACE_USAGE,
                             "%s: %lld processes, and %s has %d slots; ask for fewer --workers or --ps",
                             pace__cell_words(cell, false, words), (long long)processes, hosts, slots);
    }
    return PACE_OK;
}

/* --- its matrix --- */

static pace_status read_axes(const char *const texts[PACE__AXES], const pace_log *log, pace__matrix *matrix)
{
    pace_status status = PACE_OK;

    for (int i = 0; i < PACE__AXES && !status; i++) {
        if (texts[i])
            status = pace__axis_read((pace__study_axis)i, texts[i], log, &matrix->axis[i]);
    }
    return status;
}

static pace_status count_rows(const char *data, const pace_log *log, int64_t *rows)
{
    char *json;
    pace_status status = pace_inspect(&(pace_inspect_config){.path = data}, log, &json);

    if (status)
        return status;
    cJSON *object = cJSON_Parse(json);
    const cJSON *count =
        cJSON_GetObjectItemCaseSensitive(cJSON_GetObjectItemCaseSensitive(object, "train"), "rows");

    *rows = cJSON_IsNumber(count) ? (int64_t)count->valuedouble : 0;
    cJSON_Delete(object);
    free(json);
    return *rows > 0 ? PACE_OK : pace_fail(log, PACE_USAGE, "%s: is no data set with training rows", data);
}

/* What was said behind "--" is that of every cell, and known of it: results are kept, shown and compared by what cells are. */
static pace_status take_balance(const pace__section *section, const char *axis, const pace_log *log,
                                pace__matrix *matrix)
{
    const char *word = section->base.cluster.balance;

    if (section->kind == PACE__PREP || strcmp(word, pace__balance_names[0]) == 0)
        return PACE_OK;
    if (axis || section->kind == PACE__BALANCE)
        return pace_fail(log, PACE_USAGE,
                         "--balance %s behind --: this study has cells of several; say which in front of it",
                         word);
    return pace__axis_read(PACE__AXIS_BALANCE, word, log, &matrix->axis[PACE__AXIS_BALANCE]);
}

/* What the model takes, where neither the matrix nor its options say anything. */
static void take_model(const pace__section *section, pace__matrix *matrix)
{
    pace_train_config usual;

    pace_train_defaults(section->base.model, &usual);
    matrix->batch_usual = section->base.length.batch ? section->base.length.batch : usual.length.batch;
    matrix->network = section->base.model == PACE_MODEL_RNN || section->base.model == PACE_MODEL_CNN;
}

/* Each worker of the largest cell has its share of the data set. */
static pace_status share_rows(const pace__section *section, const pace_log *log, pace__matrix *matrix)
{
    int64_t rows, workers = pace__matrix_workers_max(matrix);
    pace_status status = count_rows(section->data, log, &rows);

    if (!status)
        matrix->rows = rows > workers ? rows / workers : 1;
    return status;
}

static pace_status make_cells(pace__section *section, const char *const axes[PACE__AXES], int64_t rows,
                              const char *hosts, bool data_is_there, const pace_log *log)
{
    pace__matrix matrix = {.kind = section->kind, .rows = rows};
    pace_status status = read_axes(axes, log, &matrix);

    if (!status)
        status = take_balance(section, axes[PACE__AXIS_BALANCE], log, &matrix);
    if (!status)
        status = pace__hosts_room(hosts, log, &matrix.slots);
    section->slots = matrix.slots;
    if (!status && section->kind != PACE__PREP)
        take_model(section, &matrix);
    if (!status && section->kind == PACE__WEAK && rows == 0 && data_is_there)
        status = share_rows(section, log, &matrix);
    if (!status)
        status = pace__matrix_cells(&matrix, log, &section->cells, &section->count);
    if (!status)
        status = check_slots(section, hosts, matrix.slots, log);
    if (status)
        return status;
    section->expected_rows_s = malloc(section->count * sizeof *section->expected_rows_s);
    section->foretold = calloc(section->count, sizeof *section->foretold);
    if (!section->expected_rows_s || !section->foretold)
        return pace_fail(log, PACE_FAILED, "out of memory");
    for (size_t i = 0; i < section->count; i++)
        section->expected_rows_s[i] = section->foretold[i].rows_s = NAN;
    return PACE_OK;
}

/* --- a kind --- */

/* "--data=DIR" and so on, and then what was given behind "--". */
static pace_status parse_train(pace__study *study, pace__section *section, const char *model,
                               const char *hosts, const pace_texts *more, const pace_log *log)
{
    const char *words[WORDS_MAX + 8];
    size_t count = 0;

    if (more->count > WORDS_MAX)
        return pace_fail(log, PACE_USAGE, "%zu words behind --: there is room for %d", more->count,
                         WORDS_MAX);
    words[count++] = own(study, pace__format("--data=%s", section->data));
    words[count++] = own(study, pace__format("--run=%s/runs", study->directory));
    words[count++] = own(study, pace__format("--model=%s", model));
    if (hosts)
        words[count++] = own(study, pace__format("--hosts=%s", hosts));
    for (size_t i = 0; i < count; i++) {
        if (!words[i])
            return pace_fail(log, PACE_FAILED, "out of memory");
    }
    for (size_t i = 0; i < more->count; i++)
        words[count++] = more->items[i];
    words[count] = NULL;
    return pace__command_read(words, pace_study_options, log, &section->base, &section->options);
}

/* By what the model is made for. */
static const char *prep_of(const char *model)
{
    return strcmp(model, "rnn") == 0   ? "prep reviews"
           : strcmp(model, "cnn") == 0 ? "prep images"
                                       : "prep clicks";
}

/* Options of prep are read here, too, so that what is wrong with them is said once and not by every cell. */
static pace_status check_prep(const pace__section *section, const pace_log *log)
{
    union {
        pace_prep_clicks_config clicks;
        pace_prep_reviews_config reviews;
        pace_prep_images_config images;
    } config = {0};
    const pace_option_table *tables = strcmp(section->prep, "prep reviews") == 0  ? pace_prep_reviews_tables
                                      : strcmp(section->prep, "prep images") == 0 ? pace_prep_images_tables
                                                                                  : pace_prep_clicks_tables;
    const char *words[WORDS_MAX + 1] = {"--output=it"};
    pace_options *options = pace_options_create(tables->rows, (char *)&config + tables->offset, log);
    pace_status status = options ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
    size_t count = 1;
    bool help;

    if (!status && section->words.count > WORDS_MAX - 1)
        status = pace_fail(log, PACE_USAGE, "%zu words behind --: there is room for %d", section->words.count,
                           WORDS_MAX - 1);
    for (tables++; tables->rows && !status; tables++)
        status = pace_options_add(options, tables->rows, (char *)&config + tables->offset);
    for (size_t i = 0; i < section->words.count && !status; i++)
        words[count++] = section->words.items[i];
    if (!status) /* variables of the study's own options are known */
        status = pace_options_add(options, pace_study_options, NULL);
    if (!status)
        status = pace_options_parse(options, (int)count, (char **)(uintptr_t)words, &help, NULL);
    pace_options_free(options);
    if (!status && !pace__exists(section->data))
        status = pace_fail(log, PACE_NO_INPUT, "%s: there is no such file", section->data);
    return status;
}

static const char *const titles[PACE__STUDY_KINDS] = {
    [PACE__SCALING] = "Strong scaling: the same work by more workers",
    [PACE__WEAK] = "Weak scaling: the same work for each worker",
    [PACE__BATCH] = "Batch sizes: the same rows in larger steps",
    [PACE__MODES] = "Modes: time, accuracy and resources",
    [PACE__BALANCE] = "Balance: equal shares, and shares by speed",
    [PACE__PREP] = "Preparing data by more processes",
    [PACE__SERVERS] = "Servers: parameters on more processes of their own",
    [PACE__CONVERGE] = "Convergence: loss against epochs and against time",
    [PACE__COST] = "Cost: time against money",
};

static pace_status check_options(const pace_study_config *config, pace__study_kind kind, const pace_log *log)
{
    if (!config->data)
        return pace_fail(log, PACE_USAGE, "--data is missing: %s",
                         kind == PACE__PREP ? "what prep is to read" : "a data set made by paceline prep");
    if (kind == PACE__COST && !config->prices)
        return pace_fail(
            log, PACE_USAGE,
            "--prices is missing: a file with a machine type a line, as in: small 0.085 USD slots=2");
    if (kind != PACE__COST && config->prices)
        return pace_fail(log, PACE_USAGE, "--prices is for study cost");
    if (kind == PACE__PREP &&
        (config->hosts || config->mode || config->ps || config->batch || config->balance))
        return pace_fail(log, PACE_USAGE,
                         "study prep varies --workers alone, which are processes of prep here");
    return PACE_OK;
}

pace_status pace__study_of_kind(pace__study *study, const pace_study_config *config, pace__study_kind kind,
                                const pace_log *log)
{
    const char *const axes[PACE__AXES] = {config->mode, config->workers, config->ps, config->batch,
                                          config->balance};
    pace__section *section = &study->sections[0];
    pace_status status = check_options(config, kind, log);

    if (status)
        return status;
    study->section_count = 1;
    *section = (pace__section){.name = pace__study_kind_names[kind],
                               .title = titles[kind],
                               .kind = kind,
                               .data = config->data,
                               .threshold = config->threshold};
    if (config->prices)
        status = pace__prices_read(config->prices, log, &study->prices);
    if (!status && kind == PACE__PREP) {
        section->prep = prep_of(config->model);
        section->words = config->words;
        status = check_prep(section, log);
    } else if (!status) {
        status = parse_train(study, section, config->model, config->hosts, &config->words, log);
    }
    return status ? status : make_cells(section, axes, config->rows, config->hosts, true, log);
}

/* --- a preset --- */

/* They live as long as the study. */
static pace_status take_words(pace__study *study, const pace__preset_section *from, const pace_log *log,
                              pace_texts *words)
{
    char *list = calloc(PACE__PRESET_WORDS_MAX, sizeof(char *));

    *words = (pace_texts){.items = (const char **)(uintptr_t)own(study, list)};
    for (; words->items && words->count < PACE__PRESET_WORDS_MAX && from->words[words->count];
         words->count++) {
        words->items[words->count] = own(study, pace__preset_word(study, from->words[words->count]));
        if (!words->items[words->count])
            return pace_fail(log, PACE_FAILED, "out of memory");
    }
    return words->items ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

static pace_status take_section(pace__study *study, const pace__preset_section *from, const char *hosts,
                                const pace_log *log)
{
    pace__section *section = &study->sections[study->section_count++];
    pace_texts words;
    pace_status status = take_words(study, from, log, &words);

    if (status)
        return status;
    *section = (pace__section){.name = from->name,
                               .title = from->title,
                               .about = from->about,
                               .kind = from->kind,
                               .data = own(study, pace__study_path(study, from->data)),
                               .prep = from->prep,
                               .threshold = from->threshold,
                               .published = from->published,
                               .published_count = from->published_count};
    if (!section->data)
        return pace_fail(log, PACE_FAILED, "out of memory");
    section->words = words;
    if (!from->prep)
        status = parse_train(study, section, from->model, hosts, &words, log);
    return status ? status : make_cells(section, from->axes, from->rows, hosts, false, log);
}

pace_status pace__study_of_preset(pace__study *study, const pace_study_config *config, int preset,
                                  const pace_log *log)
{
    const pace__preset *from = &pace__presets[preset];
    pace_status status = PACE_OK;

    if (config->data || config->workers || config->ps || config->batch || config->mode || config->balance ||
        config->prices || config->rows || config->words.count)
        return pace_fail(log, PACE_USAGE,
                         "study %s makes its own data and has its own matrix: only --repeat, --hosts, -o and "
                         "--force can be said",
                         from->name);
    study->preset = preset;
    for (size_t i = 0; i < from->section_count && !status; i++)
        status = take_section(study, &from->sections[i], config->hosts, log);
    return status;
}
