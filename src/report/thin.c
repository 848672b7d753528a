#include "report/thin.h"

#include <assert.h>
#include <math.h>

#define NOWHERE ((size_t)-1)

typedef struct extremes {
    size_t lowest, highest; /* NOWHERE: there is no finite value */
} extremes;

static extremes find_extremes(const double *values, size_t first, size_t end)
{
    extremes found = {NOWHERE, NOWHERE};

    for (size_t i = first; i < end; i++) {
        if (!isfinite(values[i]))
            continue;
        if (found.lowest == NOWHERE || values[i] < values[found.lowest])
            found.lowest = i;
        if (found.highest == NOWHERE || values[i] > values[found.highest])
            found.highest = i;
    }
    return found;
}

static size_t keep_finite(const double *values, size_t first, size_t end, size_t *kept)
{
    size_t count = 0;

    for (size_t i = first; i < end; i++) {
        if (isfinite(values[i]))
            kept[count++] = i;
    }
    return count;
}

static size_t keep_extremes(const double *values, size_t first, size_t end, size_t *kept)
{
    extremes found = find_extremes(values, first, end);
    size_t count = 0;

    if (found.lowest == NOWHERE)
        return 0;
    kept[count++] = found.lowest < found.highest ? found.lowest : found.highest;
    if (found.lowest != found.highest)
        kept[count++] = found.lowest < found.highest ? found.highest : found.lowest;
    return count;
}

size_t pace__thin(const double *values, size_t count, size_t most, size_t *kept)
{
    assert(most >= 4);
    if (count <= most)
        return keep_finite(values, 0, count, kept);
    size_t stretches = (most - 2) / 2, inner = count - 2, taken = keep_finite(values, 0, 1, kept);

    for (size_t i = 0; i < stretches; i++) {
        size_t first = 1 + inner * i / stretches, end = 1 + inner * (i + 1) / stretches;

        taken += keep_extremes(values, first, end, kept + taken);
    }
    taken += keep_finite(values, count - 1, count, kept + taken);
    assert(taken <= most);
    return taken;
}
