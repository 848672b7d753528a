/* Products of bf16: every way that this CPU can go, and tiles in C, against the plain one. Needs no other part of the
 * library than base and math. */
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "bf16_ways.h"
#include "thinned.h"

#define GUARD 12345.0f /* around results: stays as it is */

/* --- numbers --- */

static float number(void)
{
    return (float)rand() / (float)RAND_MAX * 4 - 2;
}

static float *floats(size_t count)
{
    float *them = malloc((count ? count : 1) * sizeof *them);

    assert_non_null(them);
    for (size_t i = 0; i < count; i++)
        them[i] = number();
    return them;
}

/* As large as asked for: what reads more is seen by the address sanitizer. */
static pace__bf16 *halves(size_t count)
{
    pace__bf16 *them = malloc((count ? count : 1) * sizeof *them);

    assert_non_null(them);
    for (size_t i = 0; i < count; i++)
        them[i] = 0x7fc0; /* no number: whoever uses what was not packed has none */
    return them;
}

static void test_rounds_to_the_nearest(void **state)
{
    const struct {
        float from, to;
    } cases[] = {
        {1, 1},
        {0x1.01p0f, 0x1p0f},          /* a tie: to even */
        {0x1.03p0f, 0x1.04p0f},       /* a tie: to even */
        {0x1.010002p0f, 0x1.02p0f},   /* above a tie */
        {-0x1.030002p0f, -0x1.04p0f}, /* of either sign */
        {FLT_MAX, INFINITY},
        {-INFINITY, -INFINITY},
        {FLT_MIN, FLT_MIN},
        {FLT_MIN / 2, 0},
    };
    const pace__bf16_kernels *ways[WAYS_MAX];
    size_t count = find_ways(ways), cases_count = sizeof cases / sizeof *cases;

    (void)state;
    for (size_t i = 0; i < cases_count; i++)
        assert_true(pace__bf16_widen(pace__bf16_round(cases[i].from)) == cases[i].to);
    assert_true(isnan(pace__bf16_widen(pace__bf16_round(NAN))));
    for (size_t way = 0; way < count; way++)
        print_message("way %s\n", ways[way]->name);
    for (size_t way = 0; way < count; way++) {
        pace__bf16 to[PACE__BF16_INNER];
        const float none = NAN;

        for (size_t i = 0; i < cases_count; i++) {
            ways[way]->narrow(&cases[i].from, 0, 1, 1, to, 0);
            assert_int_equal(to[0], pace__bf16_round(cases[i].from));
        }
        ways[way]->narrow(&none, 0, 1, 1, to, 0);
        assert_int_equal(to[0], pace__bf16_round(NAN));
    }
}

/* --- packing --- */

static void check_packing(const pace__bf16_kernels *plain, const pace__bf16_kernels *way, size_t rows,
                          size_t columns)
{
    size_t from_stride = columns + 3, stride = pace__bf16_padded(columns) + 8;
    size_t panels_size = pace__bf16_panels(rows, columns);
    float *from = floats(rows * from_stride);
    pace__bf16 *narrow[2] = {halves(rows * stride), halves(rows * stride)};
    pace__bf16 *panels[3] = {halves(panels_size), halves(panels_size), halves(panels_size)};

    plain->narrow(from, from_stride, rows, columns, narrow[0], stride);
    way->narrow(from, from_stride, rows, columns, narrow[1], stride);
    assert_memory_equal(narrow[0], narrow[1], rows * stride * sizeof *narrow[0]);
    plain->pair(narrow[0], stride, rows, columns, panels[0]);
    way->pair(narrow[0], stride, rows, columns, panels[1]);
    pace__bf16_pack(from, from_stride, 1, rows, columns, panels[2]);
    assert_memory_equal(panels[0], panels[1], panels_size * sizeof *panels[0]);
    assert_memory_equal(panels[0], panels[2], panels_size * sizeof *panels[0]);
    free(from);
    for (int i = 0; i < 3; i++)
        free(panels[i]);
    free(narrow[0]);
    free(narrow[1]);
}

static void test_packs_alike(void **state)
{
    const pace__bf16_kernels *ways[WAYS_MAX];
    size_t count = find_ways(ways);

    (void)state;
    for (size_t way = 0; way < count; way++) {
        for (size_t rows = 1; rows < 70; rows += 1 + rows / 5) {
            for (size_t columns = 1; columns < 70; columns += 1 + columns / 5)
                check_packing(pace__bf16_of(PACE__BF16_PLAIN), ways[way], rows, columns);
        }
    }
}

/* --- products --- */

typedef struct shape {
    size_t rows, columns, inner, segments;
    bool blocked; /* a panel's columns are a plane of their own */
    int start;    /* 0: none, 1: one row for all, 2: the result itself, 3: rows somewhere else */
    size_t also;  /* the inner dimension of another product that is added; 0: none */
} shape;

/* Everything that a product reads; both ways write to results of their own. */
typedef struct fixture {
    pace__bf16_product product;
    pace__bf16 *a, *panels;
    size_t *offsets;
    float *row, *result[2];
    size_t result_size;
    pace__bf16_product also;
    pace__bf16 *also_a, *also_panels;
} fixture;

static void set_results(fixture *self, const shape *s)
{
    size_t panels = (s->columns + 15) / 16;
    pace__bf16_product *p = &self->product;

    p->result_stride = s->blocked ? 16 : panels * 16 + 4;
    p->result_panel = s->blocked ? s->rows * 16 + 32 : 16;
    self->result_size = panels * p->result_panel + s->rows * p->result_stride;
    self->result[0] = malloc(self->result_size * sizeof(float));
    for (size_t i = 0; i < self->result_size; i++)
        self->result[0][i] = GUARD;
    self->row = floats(s->rows * panels * 16);
    for (size_t row = 0; row < s->rows; row++) {
        for (size_t column = 0; column < s->columns; column++)
            self->result[0][row * p->result_stride + column / 16 * p->result_panel + column % 16] = number();
    }
    self->result[1] = malloc(self->result_size * sizeof(float));
    memcpy(self->result[1], self->result[0], self->result_size * sizeof(float));
}

/* a as rows, or turned by the way; its padding has numbers that count for nothing. */
static void set_a(fixture *self, const shape *s, const pace__bf16_kernels *outer)
{
    size_t padded = pace__bf16_padded(s->inner), segments = s->segments ? s->segments : 1;

    if (outer) {
        float *from = floats(s->inner * s->rows);
        pace__bf16 *narrow = halves(s->inner * pace__bf16_padded(s->rows));

        outer->narrow(from, s->rows, s->inner, s->rows, narrow, pace__bf16_padded(s->rows));
        self->a = halves(pace__bf16_turned(s->inner, s->rows));
        outer->turn(narrow, pace__bf16_padded(s->rows), s->inner, s->rows, self->a);
        free(narrow);
        free(from);
    } else {
        self->a = halves(s->rows * segments * padded);
        for (size_t i = 0; i < s->rows * segments * padded; i++)
            self->a[i] = pace__bf16_round(number());
    }
    self->offsets = malloc(segments * sizeof *self->offsets);
    for (size_t i = 0; i < segments; i++)
        self->offsets[i] = (segments - 1 - i) * padded;
}

static void set_also(fixture *self, const shape *s)
{
    size_t stride = pace__bf16_padded(s->also);
    float *b = floats(s->also * s->columns);

    self->also_a = halves(s->rows * stride);
    for (size_t i = 0; i < s->rows * stride; i++)
        self->also_a[i] = pace__bf16_round(number());
    self->also_panels = halves(pace__bf16_panels(s->also, s->columns));
    pace__bf16_pack(b, s->columns, 1, s->also, s->columns, self->also_panels);
    free(b);
    self->also = (pace__bf16_product){.rows = s->rows,
                                      .columns = s->columns,
                                      .a = self->also_a,
                                      .a_stride = stride,
                                      .inner = s->also,
                                      .panels = self->also_panels};
    self->product.also = s->also ? &self->also : NULL;
}

static void make(fixture *self, const shape *s, const pace__bf16_kernels *outer)
{
    size_t segments = s->segments ? s->segments : 1, padded = pace__bf16_padded(s->inner);
    pace__bf16_product *p = &self->product;

    *p = (pace__bf16_product){
        .rows = s->rows, .columns = s->columns, .inner = s->inner, .segments = s->segments};
    self->panels = halves(pace__bf16_panels(padded * segments, s->columns));
    float *b = floats(padded * segments * s->columns);

    for (size_t i = 0; i < padded * segments; i++) {
        for (size_t column = 0; column < s->columns && i % padded >= s->inner; column++)
            b[i * s->columns + column] = 0;
    }
    pace__bf16_pack(b, s->columns, 1, padded * segments, s->columns, self->panels);
    free(b);
    set_a(self, s, outer);
    set_results(self, s);
    set_also(self, s);
    p->a = self->a;
    p->a_stride = segments * padded;
    p->offsets = s->segments ? self->offsets : NULL;
    p->panels = self->panels;
}

static void run(fixture *self, const shape *s, const pace__bf16_kernels *way, bool outer, int which)
{
    pace__bf16_product p = self->product;

    p.result = self->result[which];
    if (s->start) {
        p.start = s->start == 2 ? p.result : self->row;
        p.start_stride = s->start == 2 ? p.result_stride : s->start == 1 ? 0 : (p.columns + 15) / 16 * 16;
        p.start_panel = s->start == 2 ? p.result_panel : 16;
    }
    way->begin();
    /* Twice, where that gives the same: one product leaves nothing behind for the next. */
    for (int i = 0; i < (s->start == 2 ? 1 : 2); i++) {
        if (outer)
            way->outer(&p);
        else
            way->product(&p);
    }
    way->end();
}

/* Sums of n numbers of at most 4, in any order: each addition and product is off by half a unit of a partial sum at most. */
static void compare(const fixture *self, const shape *s, const char *name)
{
    double terms = (double)s->inner * (double)(s->segments ? s->segments : 1) + (double)s->also + 1;
    double bound = terms * terms * 4 * FLT_EPSILON / 2;

    for (size_t i = 0; i < self->result_size; i++) {
        if (fabs((double)self->result[0][i] - self->result[1][i]) <= bound)
            continue;
        fail_msg("%s: %zu x %zu x %zu + %zu, %zu segments, start %d, blocked %d: number %zu is %g, not %g",
                 name, s->rows, s->columns, s->inner, s->also, s->segments, s->start, s->blocked, i,
                 self->result[1][i], self->result[0][i]);
    }
}

static void clear(fixture *self)
{
    free(self->a);
    free(self->panels);
    free(self->offsets);
    free(self->row);
    free(self->also_a);
    free(self->also_panels);
    free(self->result[0]);
    free(self->result[1]);
}

static void check_product(const pace__bf16_kernels *way, const shape *s)
{
    fixture self;

    make(&self, s, NULL);
    run(&self, s, pace__bf16_of(PACE__BF16_PLAIN), false, 0);
    run(&self, s, way, false, 1);
    compare(&self, s, way->name);
    clear(&self);
}

static void check_outer(const pace__bf16_kernels *way, const shape *s, unsigned seed)
{
    const pace__bf16_kernels *plain = pace__bf16_of(PACE__BF16_PLAIN);
    fixture one, other;

    /* The same numbers for both, in either's layout. */
    srand(seed);
    make(&one, s, plain);
    srand(seed);
    make(&other, s, way);
    run(&one, s, plain, true, 0);
    run(&other, s, way, true, 1);
    memcpy(other.result[0], one.result[0], one.result_size * sizeof(float));
    compare(&other, s, way->name);
    clear(&one);
    clear(&other);
}

static void test_multiplies_like_plain(void **state)
{
    const size_t sizes[] = {1, 2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 50, 64, 65, 100};
    const size_t count = sizeof sizes / sizeof *sizes;
    const pace__bf16_kernels *ways[WAYS_MAX];
    size_t ways_count = find_ways(ways);
    unsigned seed = 1;

    (void)state;
    for (size_t way = 0; way < ways_count; way++) {
        for (size_t i = 0; i < count * count * count; i += THINNED(7), seed++) {
            shape s = {.rows = sizes[i % count],
                       .columns = sizes[i / count % count],
                       .inner = sizes[i / count / count],
                       .blocked = i & 1,
                       .start = (int)(i % 4)};

            check_outer(ways[way], &s, seed);
            s.segments = i / 4 % 4;
            s.also = i / 16 % 2 * sizes[i % 13];
            check_product(ways[way], &s);
        }
    }
}

/* --- sums of rows --- */

static void test_sums_rows_alike(void **state)
{
    enum { ROWS = 50, STRIDE = 160 };
    const pace__bf16_kernels *ways[WAYS_MAX], *plain = pace__bf16_of(PACE__BF16_PLAIN);
    size_t ways_count = find_ways(ways);
    pace__bf16 *from = halves(ROWS * STRIDE);
    uint32_t list[2 * ROWS];

    (void)state;
    for (size_t i = 0; i < ROWS * STRIDE; i++)
        from[i] = pace__bf16_round(number());
    for (uint32_t i = 0; i < 2 * ROWS; i++)
        list[i] = i * 7 % ROWS;
    for (size_t way = 0; way < ways_count; way++) {
        for (size_t count = 16; count <= STRIDE; count += 16) {
            for (size_t listed = 0; listed <= 2 * ROWS; listed += 1 + listed / 2) {
                float expected[STRIDE + 1] = {[0 ... STRIDE] = GUARD}, found[STRIDE + 1];

                memcpy(found, expected, sizeof found);
                plain->sum_rows(from, STRIDE, list, listed, expected, count);
                ways[way]->sum_rows(from, STRIDE, list, listed, found, count);
                assert_memory_equal(found, expected, sizeof found);
            }
        }
    }
    free(from);
}

/* --- which way --- */

static void test_chooses_a_way(void **state)
{
    const unsigned v4 = PACE__CPU_AVX512F, pairs = v4 | PACE__CPU_AVX512BF16,
                   tiles = pairs | PACE__CPU_AMX_TILE | PACE__CPU_AMX_BF16;
    pace__bf16_way way = PACE__BF16_WAYS;

    (void)state;
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_PLAIN, tiles, NULL, &way), PACE_OK);
    assert_int_equal(way, PACE__BF16_PLAIN);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_V4, pairs, NULL, &way), PACE_OK);
    assert_int_equal(way, PACE__BF16_PAIRS);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_V4, pairs | PACE__CPU_AMX_TILE, NULL, &way), PACE_OK);
    assert_int_equal(way, PACE__BF16_PAIRS);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_V4, tiles, NULL, &way), PACE_OK);
    assert_int_equal(way, PACE__BF16_TILES);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_V4, v4, NULL, &way), PACE_USAGE);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_V3, tiles, NULL, &way), PACE_USAGE);
    assert_int_equal(pace__bf16_choose(PACE_KERNELS_NEON, PACE__CPU_NEON, NULL, &way), PACE_USAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rounds_to_the_nearest), cmocka_unit_test(test_packs_alike),
        cmocka_unit_test(test_multiplies_like_plain), cmocka_unit_test(test_sums_rows_alike),
        cmocka_unit_test(test_chooses_a_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
