#include "base/locale.h"
#include "files/file.h"
#include "options/internal.h"

#include <assert.h>
#include <ctype.h>
#include <paceline/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define VARIABLE_PREFIX "PACELINE_"

/* Where a value came from, in order of precedence. */
typedef enum value_source { FROM_DEFAULT, FROM_FILE, FROM_VARIABLE, FROM_FLAG } value_source;

typedef struct row_state {
    value_source source;
    int line; /* of the key in the --config file */
} row_state;

/* A table, the struct that it describes (NULL: names that are only known) and what happened to each row. */
typedef struct option_part {
    const pace_option *table;
    char *config;
    row_state *states;
} option_part;

typedef struct common {
    const char *config;
    bool help;
} common;

struct pace_options {
    const pace_log *log;
    common common;
    pace_hint_fn *hint; /* may be NULL */
    const void *hint_user;
    pace_refusal_fn *refuse_wordless;               /* may be NULL */
    const char *file;                               /* of --config, once it is read */
    option_part parts[PACE_OPTIONS_TABLES_MAX + 1]; /* parts[0] is pace_common_options */
    size_t part_count;
    void **owned; /* everything that is freed with the options */
    size_t owned_count, owned_room;
};

/* A row of one of the parts. */
typedef struct option_slot {
    const pace_option *row; /* NULL: not found */
    void *field;
    row_state *state;
} option_slot;

/* Says in messages where a value stands. */
typedef struct value_place {
    value_source source;
    const char *file;
    int line;
} value_place;

/* One option on the command line; a NULL value belongs to --flag, "false" to --no-flag. */
typedef struct assignment {
    option_slot slot;
    const char *value;
} assignment;

const pace_option pace_common_options[] = {
    {"config", 0, PACE_OPT_TEXT, offsetof(common, config), NULL, "FILE",
     .help = "YAML file of \"name: value\" lines; PACELINE_NAME variables and options override it",
     .group = "Common options"},
    {"help", 'h', PACE_OPT_FLAG, offsetof(common, help), NULL, .help = "this text"},
    {0},
};

/* ---- memory ---- */

static pace_status out_of_memory(const pace_options *options)
{
    return pace_fail(options->log, PACE_FAILED, "out of memory");
}

/* Takes over `memory`, also on failure. NULL when out of memory. */
static void *own(pace_options *options, void *memory)
{
    if (!memory)
        return NULL;
    if (options->owned_count == options->owned_room) {
        size_t room = options->owned_room ? 2 * options->owned_room : 16;
        void **grown = realloc(options->owned, room * sizeof *grown);

        if (!grown) {
            free(memory);
            return NULL;
        }
        options->owned = grown;
        options->owned_room = room;
    }
    options->owned[options->owned_count++] = memory;
    return memory;
}

/* Room doubles whenever the count is a power of two; the arrays before stay owned until the end. */
static pace_status append_text(pace_options *options, pace_texts *texts, const char *text)
{
    if ((texts->count & (texts->count - 1)) == 0) {
        size_t room = texts->count ? 2 * texts->count : 1;
        const char **items = own(options, malloc(room * sizeof *items));

        if (!items)
            return out_of_memory(options);
        if (texts->count)
            memcpy(items, texts->items, texts->count * sizeof *items);
        texts->items = items;
    }
    char *copy = own(options, strdup(text));

    if (!copy)
        return out_of_memory(options);
    texts->items[texts->count++] = copy;
    return PACE_OK;
}

/* Appends the items of "a:b:c". */
static pace_status append_split(pace_options *options, pace_texts *texts, const char *text)
{
    char *copy = strdup(text);
    char *rest = copy;
    pace_status status = PACE_OK;

    if (!copy)
        return out_of_memory(options);
    for (char *item; !status && (item = strsep(&rest, ":"));) {
        if (*item)
            status = append_text(options, texts, item);
    }
    free(copy);
    return status;
}

/* ---- tables ---- */

static option_slot slot_at(const option_part *part, size_t index)
{
    const pace_option *row = &part->table[index];

    return (option_slot){row, part->config + row->offset, &part->states[index]};
}

static option_slot find_name(const pace_options *options, size_t first_part, const char *name)
{
    for (size_t p = first_part; p < options->part_count; p++) {
        const option_part *part = &options->parts[p];

        for (size_t i = 0; part->config && part->table[i].name; i++) {
            if (strcmp(part->table[i].name, name) == 0)
                return slot_at(part, i);
        }
    }
    return (option_slot){0};
}

static option_slot find_letter(const pace_options *options, char letter)
{
    for (size_t p = 0; p < options->part_count; p++) {
        const option_part *part = &options->parts[p];

        for (size_t i = 0; part->config && part->table[i].name; i++) {
            if (part->table[i].letter == letter)
                return slot_at(part, i);
        }
    }
    return (option_slot){0};
}

static bool known_elsewhere(const pace_options *options, const char *name)
{
    for (size_t p = 0; p < options->part_count; p++) {
        for (const pace_option *row = options->parts[p].table; row->name; row++) {
            if (strcmp(row->name, name) == 0)
                return true;
        }
    }
    /* Set for the command of prep --on-part, which may be another paceline, and for the ranks of a job. */
    return strcmp(name, "part") == 0 || strcmp(name, "relay") == 0;
}

/* What `word` is called here: written differently, or another tool's name; NULL: nobody knows. */
static const char *translate(const pace_options *options, size_t first_part, const char *word)
{
    char plain[PACE_OPTION_NAME_MAX];
    const char *ours;

    pace__plain_name(word, plain);
    option_slot slot = find_name(options, first_part, plain);

    for (int turn = 0; !slot.row && (ours = pace__synonym(plain, turn)); turn++)
        slot = find_name(options, first_part, ours);
    return slot.row ? slot.row->name : NULL;
}

/* The name that was meant, perhaps; NULL: none is like it. */
static const char *nearest_name(const pace_options *options, size_t first_part, const char *word)
{
    const char *best = translate(options, first_part, word);
    pace__nearest nearest = {.word = word};

    if (best)
        return best;

    for (size_t p = first_part; p < options->part_count; p++) {
        if (!options->parts[p].config)
            continue;
        for (const pace_option *row = options->parts[p].table; row->name; row++) {
            if (pace__nearest_offer(&nearest, row->name))
                best = row->name;
        }
    }
    return best;
}

/* Bugs in a table show on its first use, not when a user happens to touch the row. */
static void check_row(const pace_options *options, const pace_option *row)
{
    assert(strlen(row->name) < PACE_OPTION_NAME_MAX);
    assert(row->kind != PACE_OPT_CHOICE || row->choices);
    assert(!row->implied || (row->kind != PACE_OPT_FLAG && row->kind != PACE_OPT_LIST));
    assert(row->min <= row->max);
    assert(!find_name(options, 0, row->name).row);
    assert(!row->letter || !find_letter(options, row->letter).row);
    (void)options;
    (void)row;
}

static size_t field_size(pace_option_kind kind)
{
    static const size_t sizes[] = {
        [PACE_OPT_FLAG] = sizeof(bool),       [PACE_OPT_INT] = sizeof(int64_t),
        [PACE_OPT_SIZE] = sizeof(uint64_t),   [PACE_OPT_REAL] = sizeof(double),
        [PACE_OPT_TEXT] = sizeof(char *),     [PACE_OPT_CHOICE] = sizeof(int),
        [PACE_OPT_LIST] = sizeof(pace_texts),
    };

    return sizes[kind];
}

static pace_status set_default(pace_options *options, const pace_option *row, void *field)
{
    char why[PACE_WHY_MAX];

    memset(field, 0, field_size(row->kind));
    if (!row->fallback)
        return PACE_OK;
    if (row->kind == PACE_OPT_LIST)
        return append_split(options, field, row->fallback);
    bool valid = pace__value_parse(row, row->fallback, field, why);

    assert(valid && "a default must be a valid value");
    (void)valid;
    return PACE_OK;
}

void pace__options_parts(const pace_option_table *tables, const void *config,
                         pace_option_part parts[PACE_OPTIONS_TABLES_MAX])
{
    size_t count = 0;

    for (; tables->rows; tables++) {
        assert(count + 1 < PACE_OPTIONS_TABLES_MAX);
        parts[count++] = (pace_option_part){tables->rows, (const char *)config + tables->offset};
    }
    parts[count] = (pace_option_part){0};
}

void pace__options_reset(const pace_option *table, void *config)
{
    for (; table->name; table++) {
        assert(table->kind != PACE_OPT_LIST);
        set_default(NULL, table, (char *)config + table->offset);
    }
}

static pace_status add_part(pace_options *options, const pace_option *table, void *config)
{
    size_t rows = 0;
    pace_status status = PACE_OK;

    assert(options->part_count < sizeof options->parts / sizeof *options->parts);
    for (; config && table[rows].name && !status; rows++) {
        check_row(options, &table[rows]);
        status = set_default(options, &table[rows], (char *)config + table[rows].offset);
    }
    if (status)
        return status;
    row_state *states = own(options, calloc(rows + 1, sizeof *states));

    if (!states)
        return out_of_memory(options);
    options->parts[options->part_count++] = (option_part){table, config, states};
    return PACE_OK;
}

pace_options *pace_options_create(const pace_option *table, void *config, const pace_log *log)
{
    PACE__C_LOCALE();
    pace_options *options = calloc(1, sizeof *options);

    if (!options)
        return NULL;
    options->log = log;
    if (add_part(options, pace_common_options, &options->common) || add_part(options, table, config)) {
        pace_options_free(options);
        return NULL;
    }
    return options;
}

pace_status pace_options_add(pace_options *options, const pace_option *table, void *config)
{
    PACE__C_LOCALE();
    return add_part(options, table, config);
}

void pace_options_free(pace_options *options)
{
    if (!options)
        return;
    for (size_t i = options->owned_count; i > 0; i--)
        free(options->owned[i - 1]);
    free(options->owned);
    free(options);
}

void pace_options_hint(pace_options *options, pace_hint_fn *hint, const void *user)
{
    options->hint = hint;
    options->hint_user = user;
}

void pace_options_need_word(pace_options *options, pace_refusal_fn *refuse)
{
    options->refuse_wordless = refuse;
}

bool pace_options_given(const pace_options *options, const char *name)
{
    option_slot slot = find_name(options, 0, name);

    return slot.row && slot.state->source != FROM_DEFAULT;
}

/* ---- one value ---- */

static void variable_name(const pace_option *row, char name[PACE_OPTION_NAME_MAX + sizeof VARIABLE_PREFIX])
{
    char *walk = stpcpy(name, VARIABLE_PREFIX);

    for (const char *from = row->name; *from; from++)
        *walk++ = *from == '-' ? '_' : (char)toupper((unsigned char)*from);
    *walk = '\0';
}

void pace_options_place(const pace_options *options, const char *name, char text[PACE_OPTION_PLACE_MAX])
{
    char variable[PACE_OPTION_NAME_MAX + sizeof VARIABLE_PREFIX];
    option_slot slot = find_name(options, 0, name);
    value_source source = slot.row ? slot.state->source : FROM_DEFAULT;

    snprintf(text, PACE_OPTION_PLACE_MAX, "--%s", name);
    if (source == FROM_FILE)
        snprintf(text, PACE_OPTION_PLACE_MAX, "%s:%d: %s", options->file, slot.state->line, name);
    if (source == FROM_VARIABLE) {
        variable_name(slot.row, variable);
        snprintf(text, PACE_OPTION_PLACE_MAX, "environment variable %s", variable);
    }
}

static pace_status bad_value(const pace_options *options, const value_place *place, const pace_option *row,
                             const char *text, const char *why)
{
    char variable[PACE_OPTION_NAME_MAX + sizeof VARIABLE_PREFIX];

    switch (place->source) {
    case FROM_FILE:
        return pace_fail(options->log, PACE_USAGE, "%s:%d: %s: %.200s: %s", place->file, place->line,
                         row->name, text, why);
    case FROM_VARIABLE:
        variable_name(row, variable);
        return pace_fail(options->log, PACE_USAGE, "environment variable %s=%.200s: %s", variable, text, why);
    default:
        return pace_fail(options->log, PACE_USAGE, "option --%s %.200s: %s", row->name, text, why);
    }
}

/* Lists grow while values come from the same source; the first value of a stronger one replaces them. */
static pace_status set_list(pace_options *options, const option_slot *slot, const value_place *place,
                            const char *text)
{
    pace_texts *texts = slot->field;

    if (slot->state->source != place->source)
        *texts = (pace_texts){0};
    slot->state->source = place->source;
    return place->source == FROM_VARIABLE ? append_split(options, texts, text)
                                          : append_text(options, texts, text);
}

static bool is_choice(const pace_option *row, const char *text)
{
    char word[PACE_OPTION_NAME_MAX];
    bool found = false;

    for (int i = 0; row->kind == PACE_OPT_CHOICE && !found && pace__choice_word(row->choices, i, word); i++)
        found = strcmp(word, text) == 0;
    return found;
}

/* Of an option that may stand without a value, the words of a flag: that value, or "false" if it can be chosen, or the default. */
static const char *spoken_value(const pace_option *row, const char *text)
{
    bool on;

    if (!row->implied || !pace__flag_word(text, &on))
        return text;
    return on ? row->implied : is_choice(row, "false") ? "false" : row->fallback;
}

static pace_status set_value(pace_options *options, const option_slot *slot, const value_place *place,
                             const char *text)
{
    char why[PACE_WHY_MAX];

    if (slot->row->kind == PACE_OPT_LIST)
        return set_list(options, slot, place, text);
    text = spoken_value(slot->row, text);
    if (!text) { /* the default is nothing */
        memset(slot->field, 0, field_size(slot->row->kind));
        slot->state->source = place->source;
        return PACE_OK;
    }
    char *copy = own(options, strdup(text));

    if (!copy)
        return out_of_memory(options);
    if (!pace__value_parse(slot->row, copy, slot->field, why))
        return bad_value(options, place, slot->row, text, why);
    if (slot->row->not_zero && pace__value_is_default(slot->row, slot->field))
        return bad_value(options, place, slot->row, text, "must be above 0; without the option it is chosen");
    slot->state->source = place->source;
    return PACE_OK;
}

/* ---- the file ---- */

typedef struct file_state {
    pace_options *options;
    const char *path;
    option_slot slot;
} file_state;

static pace_status take_key(void *user, const char *key, bool sequence, int line)
{
    file_state *file = user;
    const pace_log *log = file->options->log;

    file->slot = find_name(file->options, 1, key);
    if (!file->slot.row) {
        const char *nearest = nearest_name(file->options, 1, key);

        return pace_fail(log, PACE_USAGE, "%s:%d: unknown key %.200s%s%s%s", file->path, line, key,
                         nearest ? " (did you mean " : "", nearest ? nearest : "", nearest ? "?)" : "");
    }
    if (file->slot.state->line)
        return pace_fail(log, PACE_USAGE, "%s:%d: %s is given twice, first in line %d", file->path, line, key,
                         file->slot.state->line);
    if (sequence && file->slot.row->kind != PACE_OPT_LIST)
        return pace_fail(log, PACE_USAGE, "%s:%d: %s takes one value, not a list", file->path, line, key);
    file->slot.state->line = line;
    if (sequence) {
        *(pace_texts *)file->slot.field = (pace_texts){0};
        file->slot.state->source = FROM_FILE;
    }
    return PACE_OK;
}

/* null is what write_yaml writes for "no text": it takes a default away and counts as not given; and for a number that
 * was left open. */
static pace_status take_null(const file_state *file, int line)
{
    if (file->slot.row->kind == PACE_OPT_TEXT)
        *(const char **)file->slot.field = NULL;
    else if (file->slot.row->kind == PACE_OPT_LIST && file->slot.state->source == FROM_DEFAULT)
        *(pace_texts *)file->slot.field = (pace_texts){0};
    else if (!file->slot.row->not_zero)
        return pace_fail(file->options->log, PACE_USAGE, "%s:%d: %s has no value", file->path, line,
                         file->slot.row->name);
    return PACE_OK;
}

static pace_status take_value(void *user, const char *text, int line)
{
    file_state *file = user;
    value_place place = {FROM_FILE, file->path, line};

    if (!text)
        return take_null(file, line);
    return set_value(file->options, &file->slot, &place, text);
}

pace_status pace__options_read(pace_options *options, const char *path)
{
    file_state state = {.options = options, .path = path};
    pace__yaml_target target = {take_key, take_value, &state};

    options->file = own(options, strdup(path));
    if (!options->file)
        return out_of_memory(options);
    return pace__yaml_read(path, &target, options->log);
}

/* ---- the environment ---- */

/* "eval-every" for "EVAL_EVERY=100", and where its value starts. */
static bool split_variable(const char *variable, char name[PACE_OPTION_NAME_MAX], const char **value)
{
    size_t length = strcspn(variable, "=");

    if (length == 0 || length >= PACE_OPTION_NAME_MAX || variable[length] != '=')
        return false;
    for (size_t i = 0; i < length; i++)
        name[i] = variable[i] == '_' ? '-' : (char)tolower((unsigned char)variable[i]);
    name[length] = '\0';
    *value = variable + length + 1;
    return true;
}

static void warn_unknown_variable(const pace_options *options, const char *variable, const char *name)
{
    char hint[PACE_OPTION_NAME_MAX + sizeof VARIABLE_PREFIX] = "";
    const char *nearest = nearest_name(options, 1, name);

    if (nearest)
        variable_name(find_name(options, 1, nearest).row, hint);
    pace_say(options->log, PACE_WARN,
             "environment variable " VARIABLE_PREFIX "%.*s is not known and was ignored%s%s%s",
             (int)strcspn(variable, "="), variable, nearest ? " (did you mean " : "", hint,
             nearest ? "?)" : "");
}

static pace_status read_environment(pace_options *options)
{
    static const value_place place = {.source = FROM_VARIABLE};
    size_t prefix = strlen(VARIABLE_PREFIX);
    pace_status status = PACE_OK;

    for (char **entry = environ; entry && *entry && !status; entry++) {
        char name[PACE_OPTION_NAME_MAX];
        const char *variable = *entry + prefix, *value;

        if (strncmp(*entry, VARIABLE_PREFIX, prefix) != 0 || !split_variable(variable, name, &value) ||
            !*value)
            continue;
        option_slot slot = find_name(options, 1, name);

        if (slot.row)
            status = set_value(options, &slot, &place, value);
        else if (!known_elsewhere(options, name))
            warn_unknown_variable(options, variable, name);
    }
    return status;
}

/* ---- the command line ---- */

typedef struct command_line {
    pace_options *options;
    char **argv;
    int argc, next;
    assignment *assignments;
    size_t count;
    bool help;
    bool only_options;
    pace_texts positional;
} command_line;

/* "-" is a file name, "-5" and "-.5" are numbers, any other dash starts an option. */
static bool looks_like_option(const char *word)
{
    return word[0] == '-' && word[1] != '\0' && !isdigit((unsigned char)word[1]) && word[1] != '.';
}

static pace_status unknown_option(const pace_options *options, const char *word, const char *name)
{
    bool negated = strncmp(name, "no-", 3) == 0;
    const char *nearest = nearest_name(options, 0, name);

    if (!nearest && negated)
        nearest = nearest_name(options, 0, name + 3);
    else
        negated = false;
    return pace_fail(options->log, PACE_USAGE, "unknown option %.200s%s%s%s%s", word,
                     nearest ? negated ? " (did you mean --no-" : " (did you mean --" : "",
                     nearest ? nearest : "", nearest ? "?)" : "", nearest ? "" : "; --help lists them");
}

/* The value of a row that is no flag: what stood behind "=", else the next word. */
static pace_status take_word(command_line *words, const char *shown, const pace_option *row,
                             const char **value)
{
    const pace_log *log = words->options->log;

    if (*value)
        return PACE_OK;
    bool bare = words->next == words->argc || looks_like_option(words->argv[words->next]);

    if (bare && row->implied) {
        *value = row->implied;
        return PACE_OK;
    }
    if (words->next == words->argc)
        return pace_fail(log, PACE_USAGE, "option %s needs a value: %s", shown,
                         row->argument ? row->argument : row->help);
    const char *word = words->argv[words->next];

    if (looks_like_option(word))
        return pace_fail(log, PACE_USAGE,
                         "option %s needs a value, but an option follows: %.200s (if that is the value, "
                         "write --%s=%.200s)",
                         shown, word, row->name, word);
    *value = word;
    words->next++;
    return PACE_OK;
}

static pace_status assign(command_line *words, const char *shown, option_slot slot, const char *value)
{
    if (slot.row->kind != PACE_OPT_FLAG) {
        pace_status status = take_word(words, shown, slot.row, &value);

        if (status)
            return status;
    }
    if (slot.field == &words->options->common.help)
        words->help = true;
    words->assignments[words->count++] = (assignment){slot, value ? value : "true"};
    return PACE_OK;
}

static pace_status take_long(command_line *words, const char *word)
{
    char name[PACE_OPTION_NAME_MAX];
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) - 2 : strlen(word) - 2;

    if (length == 0 || length >= sizeof name)
        return pace_fail(words->options->log, PACE_USAGE, "unknown option %.200s; --help lists them", word);
    memcpy(name, word + 2, length);
    name[length] = '\0';
    char shown[PACE_OPTION_NAME_MAX + 2];
    option_slot slot = find_name(words->options, 0, name);

    snprintf(shown, sizeof shown, "--%s", name);
    if (slot.row)
        return assign(words, shown, slot, equals ? equals + 1 : NULL);
    if (strncmp(name, "no-", 3) == 0 && !equals) {
        slot = find_name(words->options, 0, name + 3);
        if (slot.row && (slot.row->kind == PACE_OPT_FLAG || slot.row->implied))
            return assign(words, shown, slot, "false");
    }
    return unknown_option(words->options, shown, name);
}

static pace_status take_short(command_line *words, const char *word)
{
    option_slot slot = find_letter(words->options, word[1]);

    if (word[2] != '\0')
        return unknown_option(words->options, word, word + 1);
    if (!slot.row)
        return pace_fail(words->options->log, PACE_USAGE, "unknown option %s; --help lists them", word);
    return assign(words, word, slot, NULL);
}

static pace_status take_words(command_line *words)
{
    bool options_ended = false;
    pace_status status = PACE_OK;

    while (words->next < words->argc && !status && !words->help) {
        const char *word = words->argv[words->next++];

        if (options_ended || word[0] != '-' || word[1] == '\0')
            status = append_text(words->options, &words->positional, word);
        else if (strcmp(word, "--") == 0)
            options_ended = true;
        else
            status = word[1] == '-' ? take_long(words, word) : take_short(words, word);
    }
    return status;
}

/* The last --config, else PACELINE_CONFIG, else NULL. */
static const char *config_file_name(const command_line *words)
{
    const char *name = getenv(VARIABLE_PREFIX "CONFIG");

    for (size_t i = 0; i < words->count; i++) {
        if (words->assignments[i].slot.field == &words->options->common.config)
            name = words->assignments[i].value;
    }
    return name && *name ? name : NULL;
}

static pace_status apply_assignments(const command_line *words)
{
    static const value_place place = {.source = FROM_FLAG};
    pace_status status = PACE_OK;

    for (size_t i = 0; i < words->count && !status; i++)
        status = set_value(words->options, &words->assignments[i].slot, &place, words->assignments[i].value);
    return status;
}

static pace_status missing(const pace_options *options, const pace_option *row)
{
    char hint[PACE_HINT_MAX] = "";

    if (options->hint)
        options->hint(options->hint_user, row->name, hint);
    return pace_fail(options->log, PACE_USAGE, "option --%s %s is missing: %s%s%s", row->name,
                     row->argument ? row->argument : "VALUE", row->help, hint[0] ? "; " : "", hint);
}

static pace_status check_required(const pace_options *options)
{
    for (size_t p = 0; p < options->part_count; p++) {
        const option_part *part = &options->parts[p];

        for (size_t i = 0; part->config && part->table[i].name; i++) {
            const pace_option *row = &part->table[i];

            if (row->required && part->states[i].source == FROM_DEFAULT)
                return missing(options, row);
        }
    }
    return PACE_OK;
}

static pace_status parse_words(command_line *words)
{
    pace_status status = take_words(words);
    const char *config;

    if (status || words->help)
        return status;
    if (words->only_options && words->positional.count > 0)
        return pace_fail(words->options->log, PACE_USAGE,
                         "unexpected word %.200s: this verb takes only options", words->positional.items[0]);
    config = config_file_name(words);
    if (config)
        status = pace__options_read(words->options, config);
    if (!status)
        status = read_environment(words->options);
    if (!status)
        status = apply_assignments(words);
    if (!status && words->positional.count == 0 && words->options->refuse_wordless)
        status = words->options->refuse_wordless(words->options->log);
    return status ? status : check_required(words->options);
}

pace_status pace_options_parse(pace_options *options, int argc, char **argv, bool *help,
                               pace_texts *positional)
{
    PACE__C_LOCALE();
    command_line words = {.options = options, .argv = argv, .argc = argc, .only_options = !positional};

    words.assignments = calloc((size_t)argc + 1, sizeof *words.assignments);
    if (!words.assignments)
        return out_of_memory(options);
    pace_status status = parse_words(&words);

    free(words.assignments);
    if (status)
        return status;
    *help = words.help;
    if (positional)
        *positional = words.positional;
    return PACE_OK;
}
