#include "prep/options.h"

#include "data/store/store.h"
#include "options/internal.h"
#include "ranks/ranks.h"
#include "threads/thread.h"

#include <stdlib.h>
#include <string.h>

#define FIELD(name) offsetof(pace_prep_common, name)

const pace_option pace__prep_input_options[] = {
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "DIR", "data set directory to write",
     .group = "Input and output"},
    {"test", 0, PACE_OPT_LIST, FIELD(test), NULL, "IN",
     "rows of this input become the test set (may be repeated)"},
    {"holdout", 0, PACE_OPT_REAL, FIELD(holdout), "0", "FRACTION",
     "this fraction of the rows, chosen at random, becomes the test set", .min = 0, .max = 0.999999},
    {"like", 0, PACE_OPT_TEXT, FIELD(like), NULL, "DIR|RUN",
     "take the encoding (features, words, sizes, classes) from this data set or run, so that its model can "
     "score the new set"},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing data set"},
    {0},
};

const pace_option pace__prep_work_options[] = {
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of the shuffle and the hold-out",
     .group = "Shuffle and parts"},
    {"parts", 0, PACE_OPT_INT, FIELD(parts), "8", "N", "files to write", .min = 1, .max = PACE__PARTS_MAX},
    {"on-part", 0, PACE_OPT_TEXT, FIELD(on_part), NULL, "CMD",
     "shell command to run on each finished part, before the data set appears under its name; its path is in "
     "$PACELINE_PART"},
    {"processes", 'n', PACE_OPT_INT, FIELD(processes), "1", "N",
     "processes to start through mpirun; the result is the same for any number", .min = 1,
     .max = PACE__RANKS_MAX, .group = "Resources"},
    {"threads", 0, PACE_OPT_INT, FIELD(threads), "0", "T",
     "of each process; 0: one per core, or one in each of several processes; the result is the same for any "
     "number",
     .min = 0, .max = PACE_THREADS_MAX},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build"},
    {0},
};

/* --- the words that ranks compare --- */

/* The result is the same for any of these. */
static bool may_differ(const char *name)
{
    return strcmp(name, "threads") == 0 || strcmp(name, "memory") == 0 || strcmp(name, "mpirun") == 0;
}

/* Blanks separate words. */
static void print_text(FILE *out, const char *text)
{
    for (; text && *text; text++) {
        if (*text == ' ' || *text == '%')
            fprintf(out, "%%%02x", (unsigned)*text);
        else
            fputc(*text, out);
    }
}

static void print_list(FILE *out, const char *name, const pace_texts *texts)
{
    fprintf(out, "%s=", name);
    for (size_t i = 0; i < texts->count; i++) {
        print_text(out, texts->items[i]);
        fputs(i + 1 < texts->count ? "," : "", out);
    }
    fputc(' ', out);
}

static void print_option(FILE *out, const pace_option *row, const void *field)
{
    char value[PACE_VALUE_TEXT_MAX];

    if (row->kind == PACE_OPT_LIST) {
        print_list(out, row->name, field);
        return;
    }
    fprintf(out, "%s=", row->name);
    if (row->kind == PACE_OPT_TEXT) {
        print_text(out, *(const char *const *)field);
    } else {
        pace__value_print(row, field, value);
        fputs(value, out);
    }
    fputc(' ', out);
}

char *pace__prep_words(const pace_option_table *tables, const pace_prep_common *config)
{
    char *text = NULL;
    size_t size;
    FILE *out = open_memstream(&text, &size);

    if (!out)
        return NULL;
    for (; tables->rows; tables++) {
        for (const pace_option *row = tables->rows; row->name; row++) {
            if (!may_differ(row->name))
                print_option(out, row, (const char *)config + tables->offset + row->offset);
        }
    }
    print_list(out, "inputs", &config->inputs);
    if (fclose(out) == 0)
        return text;
    free(text);
    return NULL;
}
