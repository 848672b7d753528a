/*
 * Any bytes as the table of a study of convergence: refused with one message of one line, or epochs of which all are above 0;
 * what is said between them lies between the least and the most.
 */
#include "plan/converge.h"

#include "fuzzing.h"

#include <math.h>
#include <paceline/train.h>

static void check_between(const pace__convergence *found)
{
    double least = INFINITY, most = 0;

    for (size_t i = 0; i < found->count; i++) {
        assert(found->points[i].epochs > 0 && found->points[i].mode != PACE_MODE_AUTO);
        least = fmin(least, found->points[i].epochs);
        most = fmax(most, found->points[i].epochs);
    }
    for (int mode = PACE_MODE_LOCAL; mode <= PACE_MODE_LOCAL_SGD; mode++) {
        for (uint64_t batch = 1; batch < 100000; batch *= 3) {
            pace__setup setup = {.mode = mode, .workers = 1 + (int)(batch % 7), .batch = batch};
            double epochs = pace__epochs_to_loss(found, &setup, batch & 1);

            assert(isnan(epochs) || (epochs >= least * 0.999 && epochs <= most * 1.001));
        }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static pace__convergence found;
    char *text = malloc(size + 1);
    int messages = 0;
    pace_log log = {check_message, &messages};

    if (!text)
        return 0;
    if (size > 0)
        memcpy(text, bytes, size);
    text[size] = '\0';
    pace_status status = pace__convergence_parse(text, "input", &log, &found);

    assert(status == PACE_OK || status == PACE_BAD_DATA);
    assert(messages == (status != PACE_OK));
    if (!status)
        check_between(&found);
    free(text);
    return 0;
}
