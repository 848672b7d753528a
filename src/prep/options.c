#include "prep/options.h"

#include "data/store/store.h"
#include "ranks/ranks.h"
#include "threads/thread.h"

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
