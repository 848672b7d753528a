#include "model/defaults.h"

#include <math.h>

#define RATE_USUAL   0.07
#define RATE_MAX     0.3
#define RATE_ENTRIES 2.0 /* times the entries of a row */

/* Short rows, so many for each parameter from which on another pass teaches more than it harms; rows of all passes together. */
#define ENTRIES_OF_SHORT 20
#define ROWS_OF_EACH     10
#define ROWS_OF_ALL      500000
#define EPOCHS_MAX       10

double pace__sparse_rate(const pace__dataset *data)
{
    if (data->rows == 0 || data->entries == 0 || data->has_values)
        return RATE_USUAL;
    double rate = RATE_ENTRIES * (double)data->rows / (double)data->entries;

    /* Two digits: a rate is read, and typed again. */
    return fmin(RATE_MAX, fmax(RATE_USUAL, round(rate * 100) / 100));
}

int64_t pace__sparse_epochs(const pace__dataset *data)
{
    if (data->rows == 0 || data->entries > ENTRIES_OF_SHORT * data->rows ||
        data->rows < ROWS_OF_EACH * (uint64_t)data->ids)
        return 1;
    uint64_t passes = ROWS_OF_ALL / data->rows;

    return passes < 1 ? 1 : passes > EPOCHS_MAX ? EPOCHS_MAX : (int64_t)passes;
}
