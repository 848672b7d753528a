#include "model/linear/logreg.h"

#include "base/memory.h"

#include <assert.h>

/* Ids that share a cache line belong to the same thread: 16 parameters are whole lines at any width. */
#define GROUP_BITS 4
/* A column whose ids span more parameters than this does not stay in the nearer caches. */
#define COLD_SPAN 32768

/* The same for a model and for its views, whose bits are to agree. */
static void choose_kernels(pace__logreg *model, bool has_values, bool plain)
{
    bool suits = model->columns > 0 && model->columns <= PACE__FAST_COLUMNS_MAX && !has_values &&
                 model->optim.kind == PACE_ADAGRAD && !model->optim.lazy;

    model->fast = suits && !plain;
    model->kernels = pace__logreg_of(plain ? PACE_KERNELS_PLAIN : pace_kernels_in_use());
}

pace_status pace__logreg_init(pace__logreg *model, uint32_t ids, uint32_t columns, bool has_values,
                              const pace__optim *optim, bool plain, const pace_log *log)
{
    *model = (pace__logreg){.ids = ids, .columns = columns, .optim = *optim};
    choose_kernels(model, has_values, plain);
    model->parameters = pace__pages_alloc(pace__logreg_bytes(model));
    if (!model->parameters)
        return pace_fail(log, PACE_FAILED,
                         "out of memory: %u weights with their optimiser state need %zu bytes", ids,
                         pace__logreg_bytes(model));
    for (size_t id = 0; id <= ids; id++)
        pace__optim_init(optim, model->parameters + id * optim->width);
    pace__optim_init(optim, model->bias);
    return PACE_OK;
}

void pace__logreg_release(pace__logreg *model)
{
    if (model->parameters)
        pace__pages_free(model->parameters, pace__logreg_bytes(model));
    model->parameters = NULL;
}

size_t pace__logreg_bytes(const pace__logreg *model)
{
    return ((size_t)model->ids + 1) * model->optim.width * sizeof(float);
}

void pace__logreg_put_bias(const pace__logreg *model, float *parameters)
{
    memcpy(parameters + (size_t)model->ids * model->optim.width, model->bias,
           model->optim.width * sizeof(float));
}

void pace__logreg_take_bias(pace__logreg *model)
{
    float *last = model->parameters + (size_t)model->ids * model->optim.width;

    memcpy(model->bias, last, model->optim.width * sizeof(float));
    pace__optim_init(&model->optim, last);
}

void pace__logreg_view_init(pace__logreg *view, uint32_t columns, bool has_values, const pace__optim *optim,
                            bool plain)
{
    *view = (pace__logreg){.columns = columns, .optim = *optim};
    choose_kernels(view, has_values, plain);
    view->optim.width = 1;
    view->optim.lazy = false;
    view->optim.squares = 0;
}

void pace__logreg_view_set(pace__logreg *view, float *weights, uint32_t count)
{
    weights[count] = 0;
    view->parameters = weights;
    view->ids = count;
    view->bias[0] = weights[0];
}

void pace__logreg_look_ahead(pace__logreg *model, const pace__rows *rows)
{
    for (uint32_t column = 0; model->fast && column < model->columns; column++) {
        uint32_t low = UINT32_MAX, high = 0;

        for (size_t row = 0; row < rows->rows; row++) {
            uint32_t id = rows->ids[row * model->columns + column];

            low = id < low ? id : low;
            high = id > high ? id : high;
        }
        model->cold[column] = rows->rows > 0 && high - low > COLD_SPAN;
    }
}

static uint32_t cost_of(const pace__logreg *model, uint32_t column)
{
    return model->fast && model->cold[column] ? 2 : 1;
}

/* Cold columns cost about twice a warm one: the split evens that out, at the borders of groups. */
pace__stripe pace__logreg_stripe(const pace__logreg *model, unsigned index, unsigned count)
{
    pace__stripe stripe = {.index = index, .count = count};
    uint32_t whole = 0, done = 0;

    for (uint32_t column = 0; column < model->columns; column++)
        whole += cost_of(model, column);
    for (uint32_t column = 0; column < model->columns; column++) {
        bool border = (column + 1) % PACE__GROUP_COLUMNS == 0 || column + 1 == model->columns;

        done += cost_of(model, column);
        if (border && done * count <= whole * index)
            stripe.column_first = column + 1;
        if (border && done * count <= whole * (index + 1))
            stripe.column_last = column + 1;
    }
    for (uint32_t column = stripe.column_first; model->fast && column < stripe.column_last; column++) {
        if (model->cold[column])
            stripe.cold[stripe.cold_count++] = (uint8_t)column;
    }
    return stripe;
}

/* --- plain kernels --- */

/* The entries of a row that may belong to the stripe; owns() decides where rows have no columns. */
static void entry_range(const pace__rows *rows, size_t row, const pace__stripe *stripe, uint64_t *first,
                        uint64_t *last)
{
    uint64_t start = pace__row_start(rows, row);

    *first = rows->columns ? start + stripe->column_first : start;
    *last = rows->columns ? start + stripe->column_last : rows->start[row + 1];
}

static bool owns(const pace__rows *rows, const pace__stripe *stripe, uint32_t id)
{
    return rows->columns || stripe->count == 1 || (id >> GROUP_BITS) % stripe->count == stripe->index;
}

static int64_t quantise(float product)
{
    product = fminf(fmaxf(product, -PACE__PRODUCT_MAX), PACE__PRODUCT_MAX);
    return llrintf(product * (1 / PACE__DOT_UNIT));
}

static int64_t dot_of_groups(const pace__logreg *model, const pace__rows *rows, size_t row,
                             const pace__stripe *stripe)
{
    const uint32_t *ids = rows->ids + row * rows->columns;
    int64_t sum = 0;

    for (uint32_t column = stripe->column_first; column < stripe->column_last;
         column += PACE__GROUP_COLUMNS) {
        uint32_t left = stripe->column_last - column;
        float group = pace__group_sum(model->parameters, model->optim.width, ids + column,
                                      left < PACE__GROUP_COLUMNS ? left : PACE__GROUP_COLUMNS);

        sum += quantise(fminf(fmaxf(group, -PACE__GROUP_MAX), PACE__GROUP_MAX));
    }
    return sum;
}

static void dots_by_group(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                          const pace__stripe *stripe, int64_t *dots)
{
    for (size_t i = 0; i < count; i++)
        dots[i] = dot_of_groups(model, rows, first + i, stripe);
}

static void catch_up_row(pace__logreg *model, const pace__rows *rows, size_t row, const pace__stripe *stripe,
                         uint64_t now)
{
    uint64_t at, last;

    entry_range(rows, row, stripe, &at, &last);
    for (; at < last; at++) {
        if (owns(rows, stripe, rows->ids[at]) && rows->ids[at] != model->ids)
            pace__optim_catch_up(&model->optim,
                                 model->parameters + (size_t)rows->ids[at] * model->optim.width, now);
    }
}

static int64_t dot_of_row(const pace__logreg *model, const pace__rows *rows, size_t row,
                          const pace__stripe *stripe)
{
    unsigned width = model->optim.width;
    uint64_t at, last;
    int64_t sum = 0;

    entry_range(rows, row, stripe, &at, &last);
    for (; at < last; at++) {
        uint32_t id = rows->ids[at];

        if (!owns(rows, stripe, id))
            continue;
        float weight = model->parameters[(size_t)id * width];

        sum += quantise(rows->values ? weight * rows->values[at] : weight);
    }
    return sum;
}

void pace__logreg_dots(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                       const pace__stripe *stripe, uint64_t now, int64_t *dots)
{
    float limit = rows->columns && !rows->values ? PACE__GROUP_MAX : PACE__PRODUCT_MAX;
    int64_t bias = stripe->index == 0 ? quantise(fminf(fmaxf(model->bias[0], -limit), limit)) : 0;

    if (model->fast) {
        model->kernels->dots(model, rows, first, count, stripe, dots);
    } else {
        for (size_t i = 0; i < count; i++) {
            if (model->optim.lazy)
                catch_up_row(model, rows, first + i, stripe, now);
            dots[i] = rows->columns && !rows->values ? dot_of_groups(model, rows, first + i, stripe)
                                                     : dot_of_row(model, rows, first + i, stripe);
        }
    }
    for (size_t i = 0; i < count; i++)
        dots[i] += bias;
}

double pace__logreg_gradient(const pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                             const int64_t *dots, float *gradient)
{
    assert(count <= PACE__BLOCK_ROWS);
    return model->kernels->gradient(rows, first, count, dots, gradient);
}

static double block_gradient(const pace__rows *rows, size_t first, size_t count, const int64_t *dots,
                             float *gradient)
{
    float loss[PACE__BLOCK_ROWS] = {0};

    for (size_t i = 0; i < count; i++) {
        float z = (float)dots[i] * PACE__DOT_UNIT, label = rows->label[first + i];
        float small = pace__exp_negative(-fabsf(z)), above = 1 / (1 + small); /* never overflows */

        gradient[i] = (z >= 0 ? above : small * above) - label;
        loss[i] = pace__log1p_unit(small) + ((z > 0 ? z : 0) - label * z);
    }
    return pace__block_sum(loss);
}

static void update_row(pace__logreg *model, const pace__rows *rows, size_t row, const pace__stripe *stripe,
                       float gradient)
{
    unsigned width = model->optim.width;
    uint64_t at, last;

    entry_range(rows, row, stripe, &at, &last);
    for (; at < last; at++) {
        uint32_t id = rows->ids[at];

        if (!owns(rows, stripe, id) || id == model->ids)
            continue;
        float *parameter = model->parameters + (size_t)id * width;

        pace__optim_update(&model->optim, parameter, rows->values ? gradient * rows->values[at] : gradient);
    }
}

static void update_rows(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                        const pace__stripe *stripe, const float *gradient)
{
    for (size_t i = 0; i < count; i++)
        update_row(model, rows, first + i, stripe, gradient[i]);
    for (size_t i = 0; stripe->index == 0 && i < count; i++)
        pace__optim_update(&model->optim, model->bias, gradient[i]);
}

void pace__logreg_update(pace__logreg *model, const pace__rows *rows, size_t first, size_t count,
                         const pace__stripe *stripe, const float *gradient)
{
    (model->fast ? model->kernels->adagrad : update_rows)(model, rows, first, count, stripe, gradient);
}

const pace__logreg_kernels pace__logreg_plain = {
    .dots = dots_by_group, .adagrad = update_rows, .gradient = block_gradient};

/* --- the exact rule --- */

pace_status pace__gradients_init(pace__gradients *gradients, const pace__logreg *model, float *sums,
                                 uint64_t batch, uint32_t row_entries_max, const pace_log *log)
{
    size_t most = (size_t)model->ids + 1;

    if (row_entries_max > 0 && batch < most / row_entries_max)
        most = batch * row_entries_max;
    *gradients = (pace__gradients){.sums = sums, .list_max = most};
    gradients->marks_bytes = ((size_t)model->ids / 64 + 1) * sizeof *gradients->marks;
    gradients->marks = pace__pages_alloc(gradients->marks_bytes);
    gradients->list = pace__pages_alloc((most + 1) * sizeof *gradients->list);
    if (!gradients->marks || !gradients->list)
        return pace_fail(log, PACE_FAILED, "out of memory for the gradients of a step");
    return PACE_OK;
}

void pace__gradients_release(pace__gradients *gradients)
{
    pace__pages_free(gradients->list, (gradients->list_max + 1) * sizeof *gradients->list);
    pace__pages_free(gradients->marks, gradients->marks_bytes);
    *gradients = (pace__gradients){0};
}

/* Which ids are new cannot be foreseen, so there is no branch: list[count] is written in any case. */
static inline void add_gradient(pace__gradients *gradients, uint32_t id, float value)
{
    uint64_t marks = gradients->marks[id / 64], bit = UINT64_C(1) << (id % 64);

    gradients->list[gradients->count] = id;
    gradients->count += !(marks & bit);
    gradients->marks[id / 64] = marks | bit;
    gradients->sums[id] += value;
}

/* Rows ahead of the one being added whose sums, of cold columns, are fetched; and parameters ahead of the one that is
 * updated. */
#define SUMS_AHEAD       16
#define PARAMETERS_AHEAD 32

static void fetch_sums(const pace__gradients *gradients, const pace__rows *rows, size_t row,
                       const pace__stripe *stripe)
{
    const uint32_t *ids = rows->ids + row * rows->columns;

    for (uint32_t i = 0; row < rows->rows && i < stripe->cold_count; i++)
        __builtin_prefetch(gradients->sums + ids[stripe->cold[i]], 1);
}

void pace__logreg_accumulate(const pace__logreg *model, pace__gradients *gradients, const pace__rows *rows,
                             size_t first, size_t count, const pace__stripe *stripe, const float *gradient)
{
    /* Copies stay in registers: what is stored might change the originals, for all the compiler knows. */
    pace__gradients own = *gradients;
    const pace__rows all = *rows;
    const pace__stripe part = *stripe;
    const uint32_t unseen = model->ids;

    for (size_t i = 0; i < count; i++) {
        const float each = gradient[i];
        uint64_t at, last;

        fetch_sums(&own, &all, first + i + SUMS_AHEAD, &part);
        entry_range(&all, first + i, &part, &at, &last);
        for (; at < last; at++) {
            uint32_t id = all.ids[at];

            if (owns(&all, &part, id) && id != unseen)
                add_gradient(&own, id, all.values ? each * all.values[at] : each);
        }
        own.bias += each;
    }
    assert(own.count <= own.list_max);
    *gradients = own;
}

void pace__logreg_apply(pace__logreg *model, pace__gradients *gradients, const pace__stripe *stripe,
                        uint64_t rows_in_step)
{
    const pace__optim optim = model->optim; /* copies: see accumulate */
    const pace__gradients own = *gradients;
    float *parameters = model->parameters, scale = pace__optim_scale(&optim, rows_in_step);

    for (size_t i = 0; i < own.count; i++) {
        uint32_t id = own.list[i];

        if (i + PARAMETERS_AHEAD < own.count) {
            uint32_t later = own.list[i + PARAMETERS_AHEAD];

            __builtin_prefetch(parameters + (size_t)later * optim.width, 1);
            __builtin_prefetch(own.sums + later, 1);
        }
        pace__optim_update(&optim, parameters + (size_t)id * optim.width, own.sums[id] * scale);
        own.sums[id] = 0;
        own.marks[id / 64] = 0;
    }
    if (stripe->index == 0)
        pace__optim_update(&optim, model->bias, own.bias * scale);
    gradients->count = 0;
    gradients->bias = 0;
}

/* --- reading --- */

void pace__logreg_weights(const pace__logreg *model, uint64_t now, float *weight)
{
    for (size_t id = 0; id < model->ids; id++)
        weight[id] = pace__optim_weight(&model->optim, model->parameters + id * model->optim.width, now);
}

void pace__logreg_logits(const pace__logreg *model, uint64_t now, const pace__rows *rows, float *logits)
{
    unsigned width = model->optim.width;

    for (size_t row = 0; row < rows->rows; row++) {
        uint64_t at = pace__row_start(rows, row);
        uint64_t last = rows->columns ? at + rows->columns : rows->start[row + 1];
        double sum = model->bias[0];

        for (; at < last; at++) {
            float weight =
                pace__optim_weight(&model->optim, model->parameters + (size_t)rows->ids[at] * width, now);

            sum += rows->values ? (double)weight * rows->values[at] : weight;
        }
        logits[row] = (float)sum;
    }
}

double pace__linear_logit(const float *weight, float bias, const pace__rows *rows, size_t row)
{
    uint64_t at = pace__row_start(rows, row);
    uint64_t last = rows->columns ? at + rows->columns : rows->start[row + 1];
    double sum = bias;

    for (; at < last; at++)
        sum += rows->values ? (double)weight[rows->ids[at]] * rows->values[at] : weight[rows->ids[at]];
    return sum;
}

void pace__linear_logits(const float *weight, float bias, const pace__rows *rows, float *logits)
{
    for (size_t row = 0; row < rows->rows; row++)
        logits[row] = (float)pace__linear_logit(weight, bias, rows, row);
}
