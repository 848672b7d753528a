#include "plan/converge.h"

#include "files/file.h"
#include "job/job.h"
#include "options/internal.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SAME 1e-6

/* --- reading --- */

static double number_of(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    return cJSON_IsNumber(item) && item->valuedouble > 0 ? item->valuedouble : NAN;
}

static int mode_of(const char *word)
{
    char other[PACE_OPTION_NAME_MAX];

    for (int mode = PACE_MODE_LOCAL; word && pace__choice_word(pace__mode_names, mode, other); mode++) {
        if (strcmp(word, other) == 0)
            return mode;
    }
    return PACE_MODE_AUTO;
}

/* One that never came to the threshold says nothing of how long it takes. */
static void take_row(const cJSON *row, pace__convergence *made)
{
    pace__convergence_point point = {
        .mode = mode_of(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(row, "mode"))),
        .workers = number_of(row, "workers"),
        .batch = number_of(row, "batch"),
        .epochs = number_of(cJSON_GetObjectItemCaseSensitive(row, "epochs_to_threshold"), "median")};

    if (point.mode != PACE_MODE_AUTO && isfinite(point.workers * point.batch * point.epochs) &&
        made->count < PACE__CONVERGENCE_POINTS)
        made->points[made->count++] = point;
}

static void take_section(const cJSON *section, pace__convergence *made)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(section, "kind"));
    const cJSON *row;

    if (!kind || strcmp(kind, "converge") != 0 || made->count > 0)
        return;
    made->loss = number_of(section, "threshold");
    cJSON_ArrayForEach(row, cJSON_GetObjectItemCaseSensitive(section, "rows")) take_row(row, made);
}

pace_status pace__convergence_parse(const char *text, const char *path, const pace_log *log,
                                    pace__convergence *made)
{
    cJSON *object = cJSON_Parse(text);
    const cJSON *section;

    *made = (pace__convergence){.loss = NAN};
    cJSON_ArrayForEach(section, cJSON_GetObjectItemCaseSensitive(object, "sections"))
        take_section(section, made);
    cJSON_Delete(object);
    if (made->count > 0 && isfinite(made->loss))
        return PACE_OK;
    return pace_fail(
        log, PACE_BAD_DATA,
        "%s: it does not say how many epochs a loss takes: it has to be what paceline study converge "
        "leaves, with runs that came to the threshold",
        path);
}

pace_status pace__convergence_read(const char *directory, const pace_log *log, pace__convergence *made)
{
    char *path = pace__format("%s/table.json", directory), *text;
    size_t size;
    pace_status status =
        path ? pace__read_file(path, PACE__CONVERGENCE_BYTES, &text, &size, log) : PACE_FAILED;

    if (!status) {
        status = pace__convergence_parse(text, path, log, made);
        free(text);
    }
    free(path);
    return status;
}

/* --- asking --- */

/* What learns alike. */
static int class_of(int mode, double workers, bool by_columns)
{
    bool alone = mode == PACE_MODE_LOCAL || (mode == PACE_MODE_LOCAL_SGD && workers <= 1);

    if (alone)
        return by_columns ? PACE_MODE_LOCAL : PACE_MODE_ALLREDUCE;
    return workers <= 1 || mode == PACE_MODE_PS_SYNC ? PACE_MODE_ALLREDUCE : mode;
}

static bool is_same(double left, double right)
{
    return fabs(left - right) <= SAME * fabs(right);
}

/* Points of the same x are taken together, by their mean. */
typedef struct side {
    double x, epochs;
    int count;
} side;

static void add(side *nearest, double x, double epochs)
{
    nearest->epochs = (nearest->epochs * nearest->count + epochs) / (nearest->count + 1);
    nearest->x = x;
    nearest->count++;
}

static void offer(side *nearest, double x, double epochs, bool is_nearer)
{
    if (nearest->count == 0 || is_nearer)
        *nearest = (side){0};
    else if (!is_same(x, nearest->x))
        return;
    add(nearest, x, epochs);
}

static double between(const side *below, const side *above, double at)
{
    if (below->count == 0 || above->count == 0)
        return NAN;
    if (is_same(below->x, above->x))
        return below->epochs;
    double part = log(at / below->x) / log(above->x / below->x);

    double epochs = exp((1 - part) * log(below->epochs) + part * log(above->epochs));

    return fmin(fmax(epochs, fmin(below->epochs, above->epochs)), fmax(below->epochs, above->epochs));
}

double pace__epochs_to_loss(const pace__convergence *found, const pace__setup *setup, bool by_columns)
{
    int class = class_of(setup->mode, setup->workers, by_columns && !setup->exact);
    bool by_batch = class == PACE_MODE_ALLREDUCE || class == PACE_MODE_LOCAL;
    double batch = (double)setup->batch, at = by_batch ? batch : setup->workers;
    side below = {0}, above = {0};

    for (size_t i = 0; i < found->count; i++) {
        const pace__convergence_point *point = &found->points[i];
        double x = by_batch ? point->batch : point->workers;
        int theirs = class_of(point->mode, point->workers, by_columns);
        bool one = !by_batch && theirs == PACE_MODE_ALLREDUCE && point->workers <= 1;

        if ((theirs != class && !one) || (!by_batch && !is_same(point->batch, batch)))
            continue;
        if (x <= at * (1 + SAME))
            offer(&below, x, point->epochs, x > below.x * (1 + SAME));
        if (x >= at * (1 - SAME))
            offer(&above, x, point->epochs, x < above.x * (1 - SAME));
    }
    return between(&below, &above, at);
}
