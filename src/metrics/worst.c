#include "metrics/worst.h"

#include <string.h>

static bool is_worse(const pace__mistake *one, const pace__mistake *other)
{
    return one->probability > other->probability ||
           (one->probability == other->probability && one->row < other->row);
}

static void add(pace__worst *self, const pace__mistake *mistake)
{
    size_t at = self->count;

    self->total++;
    while (at > 0 && is_worse(mistake, &self->items[at - 1]))
        at--;
    if (at == PACE_EVAL_WORST)
        return;
    if (self->count < PACE_EVAL_WORST)
        self->count++;
    memmove(self->items + at + 1, self->items + at, (self->count - at - 1) * sizeof *self->items);
    self->items[at] = *mistake;
}

pace_status pace__worst_add(void *user, const pace__mistake *mistake, const pace__rows *rows, size_t at)
{
    (void)rows;
    (void)at;
    add(user, mistake);
    return PACE_OK;
}
