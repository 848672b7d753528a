#include "model/defaults.h"

#include <math.h>

#define RATE_USUAL   0.07
#define RATE_MAX     0.3
#define RATE_ENTRIES 2.0 /* times the entries of a row */

#define PAIRS_MIN     0.03
#define PAIRS_MAX     0.15
#define PAIRS_ENTRIES 1.0

/* Short rows, so many for each parameter from which on another pass teaches more than it harms; rows of all passes together. */
#define ENTRIES_OF_SHORT 20
#define ROWS_OF_EACH     10
#define ROWS_OF_ALL      500000
#define EPOCHS_MAX       10

/* What rows of texts have room for where 100 words cut few of them, and passes over them. */
#define WORDS_OF_SHORT  100
#define TEXT_EPOCHS     3
#define LONG_EPOCHS     4
#define LONG_EPOCHS_MAX 8
#define LONG_STEPS      64

#define PICTURE_EPOCHS     10
#define PICTURE_EPOCHS_MAX 40
#define PICTURE_STEPS      256

/* `share` / entries of a row, within limits. Two digits: a rate is read, and typed again. */
static double rate_of(const pace__dataset *data, double share, double least, double most)
{
    if (data->rows == 0 || data->entries == 0 || data->has_values)
        return RATE_USUAL;
    double rate = share * (double)data->rows / (double)data->entries;

    return fmin(most, fmax(least, round(rate * 100) / 100));
}

double pace__sparse_rate(const pace__dataset *data)
{
    return rate_of(data, RATE_ENTRIES, RATE_USUAL, RATE_MAX);
}

double pace__pairs_rate(const pace__dataset *data)
{
    return rate_of(data, PAIRS_ENTRIES, PAIRS_MIN, PAIRS_MAX);
}

int64_t pace__sparse_epochs(const pace__dataset *data)
{
    if (data->rows == 0 || data->entries > ENTRIES_OF_SHORT * data->rows ||
        data->rows < ROWS_OF_EACH * (uint64_t)data->ids)
        return 1;
    uint64_t passes = ROWS_OF_ALL / data->rows;

    return passes < 1 ? 1 : passes > EPOCHS_MAX ? EPOCHS_MAX : (int64_t)passes;
}

bool pace__long_texts(const pace__dataset *data)
{
    return data->kind == PACE__ROWS_TEXT && data->columns > WORDS_OF_SHORT;
}

/* `least` passes, and more, up to `most`, until there are so many steps. */
static int64_t passes_of(const pace__dataset *data, int64_t batch, uint64_t steps, int64_t least,
                         int64_t most)
{
    if (data->rows == 0)
        return least;
    uint64_t passes = (steps * (uint64_t)batch + data->rows - 1) / data->rows;

    return passes < (uint64_t)least ? least : passes > (uint64_t)most ? most : (int64_t)passes;
}

int64_t pace__text_epochs(const pace__dataset *data, int64_t batch)
{
    return pace__long_texts(data) ? passes_of(data, batch, LONG_STEPS, LONG_EPOCHS, LONG_EPOCHS_MAX)
                                  : TEXT_EPOCHS;
}

int64_t pace__picture_epochs(const pace__dataset *data, int64_t batch)
{
    return passes_of(data, batch, PICTURE_STEPS, PICTURE_EPOCHS, PICTURE_EPOCHS_MAX);
}
