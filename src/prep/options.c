#include "prep/options.h"

#include "data/store/store.h"
#include "options/internal.h"
#include "ranks/ranks.h"
#include "threads/thread.h"

#define FIELD(name) offsetof(pace_prep_common, name)

const pace_option pace__prep_input_options[] = {
    {"output", 'o', PACE_OPT_TEXT, FIELD(output), NULL, "DIR", "data set directory to write",
     .mark = PACE_MARK_SURFACE, .group = "Input and output"},
    {"test", 0, PACE_OPT_LIST, FIELD(test), NULL, "IN",
     "rows of this input become the test set (may be repeated)", .mark = PACE_MARK_DATA},
    {"holdout", 0, PACE_OPT_REAL, FIELD(holdout), "0", "FRACTION",
     "this fraction of the rows, chosen at random, becomes the test set", .min = 0, .max = 0.999999,
     .mark = PACE_MARK_DATA},
    {"validation", 0, PACE_OPT_REAL, FIELD(validation), "0", "FRACTION",
     "this fraction of the rows, others than the test set, becomes a set to stop and choose by; like "
     "--holdout it is one of all input rows: 0.1 and 0.1 leave 0.8 to train on",
     .min = 0, .max = 0.999999, .late = true, .mark = PACE_MARK_DATA},
    {"like", 0, PACE_OPT_TEXT, FIELD(like), NULL, "DIR|RUN",
     "take the encoding (features, words, sizes, classes) from this data set or run, so that its model can "
     "score the new set",
     .mark = PACE_MARK_DATA},
    {"force", 0, PACE_OPT_FLAG, FIELD(force), "false", NULL, "replace an existing data set",
     .mark = PACE_MARK_SURFACE},
    {0},
};

const pace_option pace__prep_work_options[] = {
    {"seed", 0, PACE_OPT_INT, FIELD(seed), "1", "S", "of the shuffle and the hold-out",
     .mark = PACE_MARK_DATA, .group = "Shuffle and parts"},
    {"parts", 0, PACE_OPT_INT, FIELD(parts), "8", "N", "files to write", .min = 1, .max = PACE__PARTS_MAX,
     .mark = PACE_MARK_DATA},
    {"on-part", 0, PACE_OPT_TEXT, FIELD(on_part), NULL, "CMD",
     "shell command to run on each finished part, before the data set appears under its name; its path is in "
     "$PACELINE_PART",
     .mark = PACE_MARK_LAYOUT},
    {"processes", 'n', PACE_OPT_INT, FIELD(processes), "1", "N",
     "processes to start through mpirun, at most 16 for each core; the result is the same for any number",
     .min = 1, .max = PACE__RANKS_MAX, .mark = PACE_MARK_LAYOUT, .group = "Resources"},
    {"threads", 0, PACE_OPT_INT, FIELD(threads), "0", "T",
     "of each process; 0: one per core, or one in each of several processes; the result is the same for any "
     "number",
     .min = 0, .max = PACE_THREADS_MAX, .mark = PACE_MARK_PROCESS},
    {"mpirun", 0, PACE_OPT_TEXT, FIELD(mpirun), NULL, "CMD",
     "what starts the processes, if not the mpirun of this build", .mark = PACE_MARK_SURFACE},
    {0},
};

/* --- in words --- */

static const pace_option inputs_row[] = {
    {"inputs", 0, PACE_OPT_LIST, FIELD(inputs), NULL, .mark = PACE_MARK_DATA}, {0}};

char *pace__prep_words(const pace_option_table *tables, const pace_prep_common *config)
{
    pace_option_part parts[PACE_OPTIONS_TABLES_MAX + 1];
    size_t count = 0;

    pace__options_parts(tables, config, parts);
    while (parts[count].table)
        count++;
    parts[count] = (pace_option_part){inputs_row, config};
    parts[count + 1] = (pace_option_part){0};
    return pace__options_marked(parts, PACE_MARK_BIT(PACE_MARK_DATA) | PACE_MARK_BIT(PACE_MARK_LAYOUT));
}

char *pace__prep_command(const char *verb, const pace_option_table *tables, const pace_prep_common *decided)
{
    pace_option_part parts[PACE_OPTIONS_TABLES_MAX];

    pace__options_parts(tables, decided, parts);
    return pace__options_command(verb, &decided->inputs, parts, PACE_MARK_BIT(PACE_MARK_DATA));
}
