#include "report/roles.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Samples that are closer than that tell nothing of a rate. */
#define RATE_SECONDS_MIN 0.25

/* --- all together --- */

pace__sample pace__role_total(const pace__seen_role *role)
{
    pace__sample total = {.waits_for = -1, .waited_for = -1};

    for (size_t i = 0; i < role->count; i++) {
        pace__sample since = pace__sample_since(&role->samples[i], i ? &role->samples[i - 1] : NULL);

#define ADD(member) total.member += since.member
        ADD(seconds);
        ADD(data_s);
        ADD(compute_s);
        ADD(communicate_s);
        ADD(still_s);
        ADD(save_s);
        ADD(wait_s);
        ADD(user_s);
        ADD(system_s);
        ADD(delay_s);
        ADD(rows);
        ADD(minor_faults);
        ADD(major_faults);
        ADD(read_bytes);
        ADD(write_bytes);
        ADD(net_sent_bytes);
        ADD(net_received_bytes);
        ADD(own_sent_bytes);
        ADD(own_received_bytes);
        ADD(requests);
        ADD(looks);
        ADD(pushes);
        ADD(stale_pushes);
#undef ADD
        total.rss_max_bytes = fmax(total.rss_max_bytes, since.rss_max_bytes);
        total.rss_bytes = since.rss_bytes;
        total.waits_for = since.waits_for;
        total.waited_for = since.waited_for;
        total.t = since.t;
        total.start = since.start;
    }
    return total;
}

/* --- who is shown --- */

typedef struct rated {
    size_t role;
    double cpu_s;
} rated;

/* The most first; of equal ones in the order of roles. */
static int by_cpu(const void *left, const void *right)
{
    const rated *a = left, *b = right;

    if (a->cpu_s != b->cpu_s)
        return a->cpu_s > b->cpu_s ? -1 : 1;
    return a->role < b->role ? -1 : a->role > b->role;
}

static int by_place(const void *left, const void *right)
{
    size_t a = *(const size_t *)left, b = *(const size_t *)right;

    return a < b ? -1 : a > b;
}

/* The chief is never left out: what steps and checkpoints tell is of its clock. */
static double rating_of(const pace__seen_role *role)
{
    pace__sample total = pace__role_total(role);

    return strcmp(role->name, "chief") == 0 ? INFINITY : total.user_s + total.system_s;
}

size_t pace__shown_roles(const pace__history *history, size_t shown[PACE__SHOWN_ROLES])
{
    size_t all = history->role_count, count = all < PACE__SHOWN_ROLES ? all : PACE__SHOWN_ROLES;
    rated *ratings = all > PACE__SHOWN_ROLES ? calloc(all, sizeof *ratings) : NULL;

    for (size_t i = 0; i < count; i++)
        shown[i] = i;
    if (!ratings) /* there are few; or there is no memory, and the first ones do */
        return count;
    for (size_t i = 0; i < all; i++)
        ratings[i] = (rated){i, rating_of(&history->roles[i])};
    qsort(ratings, all, sizeof *ratings, by_cpu);
    for (size_t i = 0; i < count; i++)
        shown[i] = ratings[i].role;
    qsort(shown, count, sizeof *shown, by_place);
    free(ratings);
    return count;
}

/* --- lines --- */

static double amount_of(const pace__sample *since, pace__measure measure)
{
    switch (measure) {
    case PACE__MEASURE_CPU:
        return since->user_s + since->system_s;
    case PACE__MEASURE_NETWORK:
        return since->own_sent_bytes + since->own_received_bytes;
    case PACE__MEASURE_DISK:
        return since->read_bytes + since->write_bytes;
    case PACE__MEASURE_INTERFACE:
        return since->net_sent_bytes + since->net_received_bytes;
    case PACE__MEASURE_ROWS:
        return since->rows;
    case PACE__MEASURE_ROW_WORK:
        return since->data_s + since->compute_s;
    case PACE__MEASURE_MEMORY:
    case PACE__MEASURES:
        break;
    }
    return since->rss_bytes;
}

/* What an amount is divided by: the time that it took, or the rows that it was for. */
static double amount_for(const pace__sample *since, pace__measure measure, double seconds)
{
    return measure == PACE__MEASURE_ROW_WORK ? since->rows : seconds;
}

size_t pace__role_line(const pace__seen_role *role, pace__measure measure, pace__point *points)
{
    const pace__sample *before = NULL;
    size_t count = 0;

    for (size_t i = 0; i < role->count; i++) {
        const pace__sample *sample = &role->samples[i];

        if (measure == PACE__MEASURE_MEMORY) {
            points[count++] = (pace__point){sample->t, sample->rss_bytes};
            continue;
        }
        if (!before || before->start != sample->start) {
            before = sample;
            continue;
        }
        double seconds = sample->t - before->t;

        if (seconds < RATE_SECONDS_MIN)
            continue;
        pace__sample since = pace__sample_since(sample, before);

        double whole = amount_for(&since, measure, seconds);

        if (whole > 0) /* whoever has no rows has done nothing for them */
            points[count++] = (pace__point){sample->t, amount_of(&since, measure) / whole};
        before = sample;
    }
    assert(count <= role->count);
    return count;
}

static bool is_shown(size_t role, const size_t *shown, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (shown[i] == role)
            return true;
    }
    return false;
}

typedef struct slot {
    double sum, points;
} slot;

static void add_line(const pace__seen_role *role, pace__measure measure, double last_t, pace__point *room,
                     slot slots[PACE__SPLIT_POINTS])
{
    size_t count = pace__role_line(role, measure, room);

    for (size_t i = 0; i < count; i++) {
        size_t at = last_t > 0 ? (size_t)(room[i].x / last_t * PACE__SPLIT_POINTS) : 0;

        at = at < PACE__SPLIT_POINTS ? at : PACE__SPLIT_POINTS - 1;
        slots[at].sum += room[i].y;
        slots[at].points++;
    }
}

size_t pace__others_line(const pace__history *history, const size_t *shown, size_t shown_count,
                         pace__measure measure, pace__point *points)
{
    slot slots[PACE__SPLIT_POINTS] = {0};
    size_t most = 0, count = 0;

    for (size_t i = 0; i < history->role_count; i++)
        most = history->roles[i].count > most ? history->roles[i].count : most;
    pace__point *room = malloc((most + 1) * sizeof *room);

    if (!room)
        return 0;
    for (size_t i = 0; i < history->role_count; i++) {
        if (!is_shown(i, shown, shown_count))
            add_line(&history->roles[i], measure, history->last_t, room, slots);
    }
    for (size_t i = 0; i < PACE__SPLIT_POINTS; i++) {
        if (slots[i].points > 0)
            points[count++] = (pace__point){history->last_t * ((double)i + 0.5) / PACE__SPLIT_POINTS,
                                            slots[i].sum / slots[i].points};
    }
    free(room);
    return count;
}

/* --- splits --- */

pace__split pace__split_of(const pace__sample *amount)
{
    double all_s =
        amount->data_s + amount->compute_s + amount->communicate_s + amount->still_s + amount->wait_s;
    double scale = all_s > 0 ? 1 / all_s : 0;

    return (pace__split){.t = amount->t,
                         .data = amount->data_s * scale,
                         .compute = amount->compute_s * scale,
                         .communicate = amount->communicate_s * scale,
                         .still = amount->still_s * scale,
                         .wait = amount->wait_s * scale};
}

size_t pace__role_splits(const pace__seen_role *role, pace__split *splits)
{
    size_t every = (role->count + PACE__SPLIT_POINTS - 1) / PACE__SPLIT_POINTS, count = 0;
    const pace__sample *before = NULL;

    for (size_t i = 0; i < role->count && count < PACE__SPLIT_POINTS; i++) {
        const pace__sample *sample = &role->samples[i];

        if ((i + 1) % every != 0 && i + 1 < role->count)
            continue;
        pace__sample since = pace__sample_since(sample, before);

        if (since.seconds > 0)
            splits[count++] = pace__split_of(&since);
        before = sample;
    }
    return count;
}
