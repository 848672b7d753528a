#include "data/guess/guess.h"

#include "data/guess/sample.h"
#include "data/input/shown.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Each code occurs so often, more or less. */
#define CODE_ROWS 10
/* So many rows must there be before it means something that all values are different. */
#define ROWS_TELLING 50

#define UNNAMED (-1) /* a column's kind as long as nobody has said it */

typedef struct guess {
    const pace__sheet_wish *wish;
    const char *path;
    const pace_log *log;
    pace__sheet_names names;
    int kinds[PACE__SHEET_COLUMNS_MAX];
    pace__sheet_sample sample;
    uint64_t *scratch; /* (rows) */
} guess;

/* --- what was said --- */

static uint32_t column_named(const guess *self, const char *name, size_t size)
{
    for (uint32_t i = 0; i < self->names.count; i++) {
        if (strlen(self->names.names[i]) == size && memcmp(self->names.names[i], name, size) == 0)
            return i;
    }
    return PACE__SHEET_NONE;
}

static pace_status set_kind(guess *self, const char *name, size_t size, pace__column_kind kind,
                            const char *option)
{
    uint32_t column = column_named(self, name, size);
    char text[PACE__SHOWN_MAX * 4 + 1], hint[64];

    snprintf(text, sizeof text, "%.*s", (int)(size < sizeof text ? size : sizeof text - 1), name);
    snprintf(hint, sizeof hint, " (%s)", option);
    if (column == PACE__SHEET_NONE)
        return pace__sheet_no_column(self->path, text, &self->names, hint, self->log);
    if (self->kinds[column] != UNNAMED && self->kinds[column] != (int)kind)
        return pace_fail(self->log, PACE_USAGE, "%s: column '%s' is named as something else, too", option,
                         text);
    self->kinds[column] = (int)kind;
    return PACE_OK;
}

/* An item is a name, or, if there is no such column, names with commas between. */
static pace_status take_item(guess *self, const char *item, pace__column_kind kind, const char *option)
{
    pace_status status = PACE_OK;

    if (column_named(self, item, strlen(item)) != PACE__SHEET_NONE)
        return set_kind(self, item, strlen(item), kind, option);
    for (const char *at = item, *end; !status && at; at = *end ? end + 1 : NULL) {
        end = at + strcspn(at, ",");
        status = set_kind(self, at, (size_t)(end - at), kind, option);
    }
    return status;
}

static pace_status take_list(guess *self, const pace_texts *items, pace__column_kind kind, const char *option)
{
    pace_status status = PACE_OK;

    for (size_t i = 0; items && i < items->count && !status; i++)
        status = take_item(self, items->items[i], kind, option);
    return status;
}

static pace_status take_wish(guess *self)
{
    const pace__sheet_wish *wish = self->wish;
    const char *label = wish->label ? wish->label : PACE__LABEL_FIELD;

    for (uint32_t i = 0; i < self->names.count; i++)
        self->kinds[i] = self->names.names[i][0] ? UNNAMED : PACE__COLUMN_IGNORED;
    if (column_named(self, label, strlen(label)) == PACE__SHEET_NONE)
        return pace__sheet_no_column(self->path, label, &self->names, ": name the label's with --label-field",
                                     self->log);
    pace_status status = set_kind(self, label, strlen(label), PACE__COLUMN_LABEL, "--label-field");

    if (!status)
        status = take_list(self, wish->numbers, PACE__COLUMN_NUMBER, "--numeric-fields");
    if (!status)
        status = take_list(self, wish->categories, PACE__COLUMN_CATEGORY, "--category-fields");
    if (!status)
        status = take_list(self, wish->ignored, PACE__COLUMN_IGNORED, "--ignore-fields");
    return status;
}

/* --- what the rows say --- */

static pace__column_kind kind_of(const pace__sheet_facts *facts)
{
    bool codes =
        facts->whole && facts->different <= PACE__CODES_MAX && facts->values >= CODE_ROWS * facts->different;

    return facts->numbers && (!codes || facts->different <= 2) ? PACE__COLUMN_NUMBER : PACE__COLUMN_CATEGORY;
}

static pace__scale steps_of(const guess *self, uint32_t column)
{
    const pace__sheet_sample *sample = &self->sample;
    double *values = (double *)self->scratch;
    size_t count = 0;

    for (size_t row = 0; row < sample->rows; row++) {
        double number = sample->cells[row * sample->columns + column].number;

        if (!isnan(number))
            values[count++] = number;
    }
    return pace__scale_for(values, count);
}

/* Every row has another value: an id, a text, a moment. */
static bool never_again(const guess *self, uint32_t column)
{
    pace__sheet_facts facts = pace__sheet_facts_of(&self->sample, column, self->scratch);

    return facts.values >= ROWS_TELLING && facts.different == facts.values &&
           (self->kinds[column] == PACE__COLUMN_CATEGORY || (facts.whole && facts.rising));
}

static pace_status make_table(guess *self, pace__sheet *sheet)
{
    pace__sheet_column columns[PACE__SHEET_COLUMNS_MAX];
    size_t count = 0;

    for (uint32_t i = 0; i < self->names.count; i++) {
        pace__column_kind kind = (pace__column_kind)self->kinds[i];

        if (!self->names.names[i][0])
            continue;
        columns[count] = (pace__sheet_column){.name = self->names.names[i], .kind = kind};
        if (kind == PACE__COLUMN_NUMBER)
            columns[count].steps = steps_of(self, i);
        count++;
    }
    return pace__sheet_make(columns, count, self->path, sheet, self->log);
}

/* --- what comes out of it --- */

/* In the order of the header. */
static pace__listed columns_of(const guess *self, pace__column_kind kind)
{
    pace__listed found = {.count = 0};

    for (uint32_t i = 0; i < self->names.count; i++) {
        if (self->kinds[i] == (int)kind)
            pace__list_name(&found, self->names.names[i][0] ? self->names.names[i] : "(without a name)");
    }
    return found;
}

static uint32_t label_column(const guess *self)
{
    uint32_t column = 0;

    while (self->kinds[column] != PACE__COLUMN_LABEL)
        column++;
    return column;
}

/* The different texts of the label, the first two that there are, in order: "0/1". */
static void name_classes(const guess *self, char *text, size_t size)
{
    pace__shown classes[2] = {{""}, {""}};
    const pace__sheet_sample *sample = &self->sample;
    uint32_t column = label_column(self);
    int count = 0;

    for (size_t row = 0; row < sample->rows && count < 2; row++) {
        const pace__sheet_cell *cell = &sample->cells[row * sample->columns + column];
        pace__shown shown = pace__show(cell->text, cell->size);

        if (cell->size > 0 && (count == 0 || strcmp(shown.text, classes[0].text) != 0))
            classes[count++] = shown;
    }
    bool turned = count == 2 && strcmp(classes[0].text, classes[1].text) > 0;

    snprintf(text, size, "%s%s%s", classes[turned].text, count == 2 ? "/" : "", classes[!turned].text);
}

static void say_columns(const guess *self)
{
    static const struct {
        pace__column_kind kind;
        const char *name;
    } kinds[] = {{PACE__COLUMN_NUMBER, "numeric"},
                 {PACE__COLUMN_CATEGORY, "categories"},
                 {PACE__COLUMN_IGNORED, "ignored"}};
    const char *label = self->names.names[label_column(self)];
    char text[PACE_LOG_TEXT_MAX], classes[2 * sizeof(pace__shown) + 2];
    size_t used;

    name_classes(self, classes, sizeof classes);
    used =
        (size_t)snprintf(text, sizeof text, "label: %s (%s)", pace__show(label, strlen(label)).text, classes);
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && used < sizeof text; i++) {
        pace__listed names = columns_of(self, kinds[i].kind);

        if (names.count > 0)
            used += (size_t)snprintf(text + used, sizeof text - used, "; %zu %s: %s", names.count,
                                     kinds[i].name, names.text);
    }
    pace_say(self->log, PACE_INFO, "%s", text);
}

static void warn_of_ids(const guess *self)
{
    pace__listed names = {.count = 0};

    for (uint32_t i = 0; i < self->names.count; i++) {
        if (self->kinds[i] <= PACE__COLUMN_CATEGORY && never_again(self, i))
            pace__list_name(&names, self->names.names[i]);
    }
    if (names.count > 0)
        pace_say(
            self->log, PACE_WARN,
            "%s: all values in its first %zu rows are different in %s: what is learned of them says little "
            "of other rows; --ignore-fields leaves columns out",
            self->path, self->sample.rows, names.text);
}

/* --- all of it --- */

static pace_status look_at_rows(guess *self, char separator, const char *bytes, size_t size, bool complete)
{
    size_t begin = self->names.size;
    pace_status status = pace__sheet_sample_take(self->names.count, separator, bytes + begin, size - begin,
                                                 complete, self->log, &self->sample);

    if (status)
        return status;
    self->scratch = malloc((self->sample.rows + 1) * sizeof *self->scratch);
    if (!self->scratch)
        return pace_fail(self->log, PACE_FAILED, "out of memory for the first rows of a table");
    for (uint32_t i = 0; i < self->names.count; i++) {
        pace__sheet_facts facts = pace__sheet_facts_of(&self->sample, i, self->scratch);

        if (self->kinds[i] == UNNAMED)
            self->kinds[i] = (int)kind_of(&facts);
    }
    return PACE_OK;
}

pace_status pace__sheet_guess(const pace__sheet_wish *wish, char separator, const char *path,
                              const char *bytes, size_t size, bool complete, const pace_log *log,
                              pace__sheet *sheet)
{
    guess self = {.wish = wish, .path = path, .log = log};
    pace_status status = pace__sheet_names_read(separator, path, bytes, size, complete, log, &self.names);

    if (!status && self.names.count == 0)
        status = pace_fail(log, PACE_BAD_DATA, "%s: it is empty: no header", path);
    if (!status)
        status = take_wish(&self);
    if (!status)
        status = look_at_rows(&self, separator, bytes, size, complete);
    if (!status)
        status = make_table(&self, sheet);
    if (!status) {
        say_columns(&self);
        warn_of_ids(&self);
    }
    free(self.scratch);
    pace__sheet_sample_release(&self.sample);
    pace__sheet_names_release(&self.names);
    return status;
}

/* --- is it a table? --- */

static bool is_number(const char *name)
{
    double value;

    return pace__sheet_number(name, strlen(name), &value);
}

/* Names of several columns, all different, none of them a number, and one the label's. */
static bool are_names(const pace__sheet_names *names, const char *label)
{
    bool labelled = false;

    for (uint32_t i = 0; i < names->count; i++) {
        labelled |= strcmp(names->names[i], label) == 0;
        if (is_number(names->names[i]) && names->names[i][0])
            return false;
        for (uint32_t j = 0; j < i; j++) {
            if (strcmp(names->names[i], names->names[j]) == 0)
                return false;
        }
    }
    return labelled && names->count > 1;
}

bool pace__sheet_is_certain(const char *label, char separator, const char *bytes, size_t size, bool complete)
{
    pace__sheet_names names;
    pace__sheet_sample sample = {0};

    if (pace__sheet_names_read(separator, "", bytes, size, complete, NULL, &names))
        return false;
    bool certain = are_names(&names, label ? label : PACE__LABEL_FIELD) &&
                   !pace__sheet_sample_take(names.count, separator, bytes + names.size, size - names.size,
                                            complete, NULL, &sample) &&
                   (sample.rows > 0 || (complete && names.size == size));

    pace__sheet_sample_release(&sample);
    pace__sheet_names_release(&names);
    return certain;
}
