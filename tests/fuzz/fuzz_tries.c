/*
 * Any lines as --try: refused with one message, or a range or values that the option takes, from which candidates are made that
 * lie within them. The first byte says which model is trained.
 */
#include "tune/candidates.h"

#include "fuzzing.h"

#include <stdlib.h>

#define LINES_MAX (PACE__TRIES_MAX + 2)

static size_t split(char *text, const char *lines[LINES_MAX])
{
    size_t count = 0;

    for (char *line; count < LINES_MAX && (line = strsep(&text, "\n"));)
        lines[count++] = line;
    return count;
}

static void check_number(const pace__try *try, const char *text)
{
    double value = strtod(text, NULL);

    assert(value >= try->low && value <= try->high);
}

static void check_candidate(const pace__tries *tries, const pace__candidate *candidate, int model)
{
    char words[PACE__CANDIDATE_TEXT];
    pace_train_config config = {.model = model};

    for (size_t i = 0; i < tries->count; i++) {
        if (tries->of[i].count == 0)
            check_number(&tries->of[i], pace__candidate_value(candidate, i));
    }
    pace__candidate_apply(tries, candidate, &config);
    pace__candidate_changes(tries, candidate, &config);
    assert(strlen(pace__candidate_words(tries, candidate, words)) < sizeof words);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t choice;
    int errors = 0, model;
    pace_log log = {check_message, &errors};
    const char *lines[LINES_MAX];
    pace__tries tries;
    pace__candidate candidate;

    take(&data, &size, &choice, 1);
    model = choice % (PACE_MODEL_FM + 1);
    char *text = strndup((const char *)data, size);

    assert(text);
    pace_status status = pace__tries_read(&(pace_texts){lines, split(text, lines)}, model, &log, &tries);

    assert(status == PACE_OK || status == PACE_USAGE);
    assert(errors == (status != PACE_OK));
    for (uint64_t place = 0; place < 8 && !status; place++) {
        pace__candidate_sample(&tries, 1, place, &candidate);
        check_candidate(&tries, &candidate, model);
        if (place < pace__grid_size(&tries)) {
            pace__candidate_on_grid(&tries, place, &candidate);
            check_candidate(&tries, &candidate, model);
        }
    }
    pace__tries_release(&tries);
    free(text);
    return 0;
}
