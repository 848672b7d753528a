/* Compact numbers for ids, against a plain sort. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "prep/clicks/idmap.h"
#include "prep/clicks/memo.h"
#include "prep/clicks/ranks.h"
#include "threads/thread.h"

#include "support.h"

#define IDS       5000 /* different ones in a sample */
#define ADDITIONS 40000
#define SMALL     ((size_t)1 << 20) /* memory: ids from 262,144 on go to the hash table */
#define LARGE     ((size_t)64 << 20)

/* --- the naive version --- */

typedef struct counted {
    uint64_t id;
    uint32_t hits;
    uint32_t range;
} counted;

static int by_rule(const void *left, const void *right)
{
    const counted *a = left, *b = right;

    if (a->range != b->range)
        return a->range < b->range ? -1 : 1;
    if (a->hits != b->hits)
        return a->hits > b->hits ? -1 : 1;
    return a->id < b->id ? -1 : a->id > b->id;
}

/* Rows of a made-up input: which ids are added, and whether they count. */
typedef struct sample {
    uint64_t ids[IDS];
    uint32_t added[ADDITIONS];
    bool counts[ADDITIONS];
} sample;

static sample *make_sample(uint64_t space, uint64_t seed)
{
    sample *self = tiny_alloc(sizeof *self);
    pace__random random = pace__random_at(seed, 3);

    for (int i = 0; i < IDS; i++)
        self->ids[i] = pace__scale_to(pace__mix64(seed + (uint64_t)i), space);
    for (int i = 0; i < ADDITIONS; i++) {
        self->added[i] = (uint32_t)(IDS * pow(pace__random_unit(&random), 3));
        self->counts[i] = pace__random_below(&random, 8) == 0;
    }
    return self;
}

static int by_id(const void *left, const void *right)
{
    const counted *a = left, *b = right;

    return a->id < b->id ? -1 : a->id > b->id;
}

static uint32_t range_of(uint64_t id, const uint64_t *starts, size_t ranges)
{
    uint32_t range = 0;

    while (range + 1 < ranges && starts[range + 1] <= id)
        range++;
    return range;
}

/* What the numbering should be: returns how many ids there are. */
static size_t number_naively(const sample *from, const uint64_t *starts, size_t ranges, counted *result)
{
    counted *all = tiny_alloc(ADDITIONS * sizeof *all);
    size_t count = 0;

    for (int i = 0; i < ADDITIONS; i++)
        all[i] = (counted){from->ids[from->added[i]], from->counts[i], 0};
    qsort(all, ADDITIONS, sizeof *all, by_id);
    for (int i = 0; i < ADDITIONS; i++) {
        if (count > 0 && result[count - 1].id == all[i].id) {
            result[count - 1].hits += all[i].hits;
            continue;
        }
        result[count] = all[i];
        result[count++].range = ranges ? range_of(all[i].id, starts, ranges) : 0;
    }
    qsort(result, count, sizeof *result, by_rule);
    free(all);
    return count;
}

/* --- the map --- */

static pace__idmap *create(uint64_t features, size_t memory)
{
    pace__idmap *map = NULL;

    assert_ok(pace__idmap_create(features, memory, memory < LARGE, &said_log, &map));
    return map;
}

static pace_status add_noted(pace__idmap *map, pace__idmap_notes *notes, uint64_t id, bool counts)
{
    pace_status status = pace__idmap_add(map, notes, &id, 1);

    return status || !counts ? status : pace__idmap_count_hits(map, notes, &id, 1);
}

static void hand_in(pace__idmap *map, pace__idmap_notes *notes)
{
    assert_ok(pace__idmap_hand_in(map, notes));
    pace__idmap_free_notes(map, notes);
}

static pace_status add(pace__idmap *map, uint64_t id, bool counts)
{
    pace__idmap_notes *notes;

    assert_ok(pace__idmap_open_notes(map, &notes));
    pace_status status = add_noted(map, notes, id, counts);

    hand_in(map, notes);
    return status;
}

static uint32_t find(const pace__idmap *map, uint64_t id)
{
    uint32_t number = UINT32_MAX;
    size_t unknown = pace__idmap_find(map, &id, 1, &number);

    assert_int_equal(unknown, number == pace__idmap_count(map));
    return number;
}

typedef struct adding {
    pace__idmap *map;
    const sample *from;
    int threads;
} adding;

static pace_status add_some(void *arg, int thread)
{
    const adding *self = arg;
    pace__idmap_notes *notes;
    pace_status status = pace__idmap_open_notes(self->map, &notes);

    for (int i = thread; i < ADDITIONS && !status; i += self->threads)
        status = add_noted(self->map, notes, self->from->ids[self->from->added[i]], self->from->counts[i]);
    hand_in(self->map, notes);
    return status;
}

static pace__idmap *number(const sample *from, uint64_t features, size_t memory, int threads,
                           const uint64_t *starts, size_t ranges)
{
    adding self = {create(features, memory), from, threads};

    assert_ok(pace__team(threads, add_some, &self, &said_log));
    assert_ok(pace__idmap_number(self.map, starts, ranges));
    return self.map;
}

static void assert_numbered(const pace__idmap *map, const counted *expected, size_t count)
{
    assert_int_equal(pace__idmap_count(map), count);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(pace__idmap_original(map)[i], expected[i].id);
        assert_int_equal(find(map, expected[i].id), i);
    }
}

static void compare(uint64_t space, size_t memory, const uint64_t *starts, size_t ranges, uint64_t seed)
{
    static const int threads[] = {1, 2, 5};
    counted *expected = tiny_alloc(ADDITIONS * sizeof *expected);
    sample *from = make_sample(space, seed);
    size_t count = number_naively(from, starts, ranges, expected);

    for (size_t t = 0; t < 3; t++) {
        for (int known = 0; known < 2; known++) {
            pace__idmap *map = number(from, known ? space : 0, memory, threads[t], starts, ranges);

            assert_numbered(map, expected, count);
            pace__idmap_free(map);
        }
    }
    free(from);
    free(expected);
}

static void ids_are_numbered_by_frequency(void **state)
{
    (void)state;
    compare(100000, LARGE, NULL, 0, 1);
    compare(200, LARGE, NULL, 0, 2);
}

/* Ids above what the arrays hold. */
static void ids_of_any_size_are_numbered(void **state)
{
    (void)state;
    compare(UINT64_C(1) << 33, SMALL, NULL, 0, 4);
    compare(UINT64_C(1) << 53, LARGE, NULL, 0, 5);
}

static void ranges_come_first(void **state)
{
    static const uint64_t starts[] = {0, 1, 64, 128, 1000, 1000, 99999, 100000};
    static const uint64_t far[] = {0, 100000, 262144, 262145, 300000, 400000};

    (void)state;
    compare(100000, LARGE, starts, 7, 6);
    compare(400000, SMALL, far, 5, 7);
}

static void unseen_ids_share_one_number(void **state)
{
    static const uint64_t ids[] = {7, 64, 1000000, UINT64_C(1) << 40};
    static const uint64_t others[] = {
        0, 6, 8, 63, 65, 999999, 1000001, UINT64_C(1) << 41, (UINT64_C(1) << 53) - 1};
    pace__idmap *map = create(0, SMALL);

    (void)state;
    for (size_t i = 0; i < 4; i++)
        assert_ok(add(map, ids[i], false));
    assert_ok(pace__idmap_number(map, NULL, 0));
    assert_int_equal(pace__idmap_count(map), 4);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(find(map, ids[i]), i); /* none is counted: by id */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_int_equal(find(map, others[i]), 4);
    pace__idmap_free(map);
    pace__idmap_free(NULL);
}

static void only_counted_rows_decide_the_order(void **state)
{
    static const uint64_t shifts[] = {0, 5000000}; /* in the arrays, in the hash table */

    (void)state;
    for (size_t s = 0; s < 2; s++) {
        uint64_t often = shifts[s] + 10, once = shifts[s] + 20, twice = shifts[s] + 30;
        pace__idmap *map = create(0, SMALL);

        for (int i = 0; i < 100; i++)
            assert_ok(add(map, often, false));
        assert_ok(add(map, once, true));
        assert_ok(add(map, twice, true));
        assert_ok(add(map, twice, true));
        assert_ok(pace__idmap_number(map, NULL, 0));
        assert_int_equal(find(map, twice), 0);
        assert_int_equal(find(map, once), 1);
        assert_int_equal(find(map, often), 2);
        pace__idmap_free(map);
    }
}

static void no_ids_at_all(void **state)
{
    pace__idmap *map = create(100, LARGE);

    (void)state;
    assert_ok(pace__idmap_number(map, NULL, 0));
    assert_int_equal(pace__idmap_count(map), 0);
    assert_int_equal(find(map, 5), 0); /* "unseen" */
    pace__idmap_free(map);
}

static void the_last_id_of_the_space_fits(void **state)
{
    static const uint64_t spaces[] = {1, 63, 64, 65, 128, 1000};

    (void)state;
    for (size_t i = 0; i < 6; i++) {
        pace__idmap *map = create(spaces[i], LARGE);
        uint64_t id = spaces[i] - 1;

        assert_ok(add(map, id, true));
        assert_ok(pace__idmap_number(map, NULL, 0));
        assert_int_equal(find(map, id), 0);
        assert_int_equal(find(map, spaces[i]), 1); /* beyond the space: unseen */
        pace__idmap_free(map);
    }
}

static void a_numbering_can_be_adopted(void **state)
{
    sample *from = make_sample(UINT64_C(1) << 33, 8);
    pace__idmap *map = number(from, 0, SMALL, 1, NULL, 0);
    uint32_t count = pace__idmap_count(map);
    static const size_t memory[] = {SMALL, LARGE};

    (void)state;
    for (size_t m = 0; m < 2; m++) {
        pace__idmap *copy = create(UINT64_C(1) << 33, memory[m]);

        assert_ok(pace__idmap_adopt(copy, pace__idmap_original(map), count));
        assert_int_equal(pace__idmap_count(copy), count);
        assert_memory_equal(pace__idmap_original(copy), pace__idmap_original(map), count * sizeof(uint64_t));
        for (uint32_t i = 0; i < count; i++) {
            assert_int_equal(find(copy, pace__idmap_original(map)[i]), i);
            assert_int_equal(find(copy, pace__idmap_original(map)[i] + 1),
                             find(map, pace__idmap_original(map)[i] + 1));
        }
        pace__idmap_free(copy);
    }
    pace__idmap_free(map);
    free(from);
}

/* --- several processes --- */

#define MAPS 3

/* Maps of as many processes, which share the additions; their arrays end at different ids. */
static void open_maps(const sample *from, uint64_t features, pace__idmap *maps[MAPS])
{
    static const size_t memory[MAPS] = {SMALL, LARGE, SMALL / 2};

    for (int m = 0; m < MAPS; m++) {
        pace__idmap_notes *notes;

        maps[m] = create(features, memory[m]);
        assert_ok(pace__idmap_open_notes(maps[m], &notes));
        for (int i = 0; i < ADDITIONS; i++) {
            if ((i / 7) % MAPS == m)
                assert_ok(add_noted(maps[m], notes, from->ids[from->added[i]], from->counts[i]));
        }
        hand_in(maps[m], notes);
    }
}

/* The first numbers those of all, the others take that over. */
static void compare_merged(void **state, uint64_t space, const uint64_t *starts, size_t ranges, uint64_t seed)
{
    counted *expected = tiny_alloc(ADDITIONS * sizeof *expected);
    sample *from = make_sample(space, seed);
    size_t count = number_naively(from, starts, ranges, expected);
    pace__idmap *maps[MAPS];

    open_maps(from, space, maps);
    for (int m = MAPS - 1; m > 0; m--) {
        assert_ok(pace__idmap_save(maps[m], in(state, "ids")));
        assert_ok(pace__idmap_merge(maps[0], in(state, "ids")));
    }
    assert_ok(pace__idmap_number(maps[0], starts, ranges));
    for (int m = 1; m < MAPS; m++)
        assert_ok(pace__idmap_adopt(maps[m], pace__idmap_original(maps[0]), pace__idmap_count(maps[0])));
    for (int m = 0; m < MAPS; m++) {
        assert_numbered(maps[m], expected, count);
        pace__idmap_free(maps[m]);
    }
    free(from);
    free(expected);
}

/* Each merges what all others have saved, and numbers for itself. */
static void compare_each(void **state, uint64_t space, const uint64_t *starts, size_t ranges, uint64_t seed)
{
    static const char *const files[MAPS] = {"ids-0", "ids-1", "ids-2"};
    counted *expected = tiny_alloc(ADDITIONS * sizeof *expected);
    sample *from = make_sample(space, seed);
    size_t count = number_naively(from, starts, ranges, expected);
    pace__idmap *maps[MAPS];

    open_maps(from, space, maps);
    for (int m = 0; m < MAPS; m++)
        assert_ok(pace__idmap_save(maps[m], in(state, files[m])));
    for (int m = 0; m < MAPS; m++) {
        for (int other = 0; other < MAPS; other++) {
            if (other != m)
                assert_ok(pace__idmap_merge(maps[m], in(state, files[other])));
        }
        assert_ok(pace__idmap_number(maps[m], starts, ranges));
        assert_numbered(maps[m], expected, count);
        pace__idmap_free(maps[m]);
    }
    for (int m = 0; m < MAPS; m++)
        assert_int_equal(unlink(in(state, files[m])), 0);
    free(from);
    free(expected);
}

static void maps_of_several_processes_are_one(void **state)
{
    static const uint64_t starts[] = {0, 1, 64, 128, 1000, 1000, 99999, 100000};

    compare_merged(state, 200, NULL, 0, 9);
    compare_merged(state, 100000, starts, 7, 10);
    compare_merged(state, 600000, NULL, 0, 11);
    compare_merged(state, UINT64_C(1) << 53, NULL, 0, 12);
}

static void each_process_can_number_for_itself(void **state)
{
    static const uint64_t starts[] = {0, 1, 64, 128, 1000, 1000, 99999, 100000};

    compare_each(state, 200, NULL, 0, 13);
    compare_each(state, 100000, starts, 7, 14);
    compare_each(state, UINT64_C(1) << 53, NULL, 0, 15);
}

static void what_others_have_saved_is_checked(void **state)
{
    pace__idmap *map = create(0, SMALL), *empty = create(0, SMALL);

    assert_ok(pace__idmap_save(empty, in(state, "ids")));
    assert_ok(pace__idmap_merge(map, in(state, "ids")));
    assert_ok(add(map, 5, true));
    assert_ok(pace__idmap_save(map, in(state, "ids")));
    assert_int_equal(truncate(in(state, "ids"), 7), 0);
    assert_failed(pace__idmap_merge(empty, in(state, "ids")), PACE_IO, "changed by someone else");
    assert_failed(pace__idmap_merge(empty, in(state, "nothing")), PACE_IO, "cannot open");
    assert_failed(pace__idmap_save(map, in(state, "no/directory")), PACE_IO, "cannot create");
    assert_ok(pace__idmap_number(empty, NULL, 0));
    assert_int_equal(pace__idmap_count(empty), 0);
    pace__idmap_free(empty);
    pace__idmap_free(map);
}

/* So many ids that tables of counts fill up, are emptied into a larger one, and that becomes an array: the order is by hits. */
static void tables_of_counts_grow(void **state)
{
    const uint64_t ids = 300000;
    pace__idmap *map = create(4 * ids, LARGE);
    pace__idmap_notes *notes;

    (void)state;
    assert_ok(pace__idmap_open_notes(map, &notes));
    for (uint64_t i = 0; i < 2 * ids; i++) {
        uint64_t id = i % ids * 4;

        assert_ok(add_noted(map, notes, id, i < ids || id % 3 == 0));
    }
    hand_in(map, notes);
    assert_ok(pace__idmap_number(map, NULL, 0));
    assert_int_equal(pace__idmap_count(map), ids);
    for (uint32_t i = 0; i < ids; i++) {
        uint64_t id = pace__idmap_original(map)[i];

        assert_true(id % 4 == 0 && (id % 3 == 0) == (i < ids / 3));
        assert_true(i == 0 || i == ids / 3 || id > pace__idmap_original(map)[i - 1]);
        assert_int_equal(find(map, id), i);
        assert_int_equal(find(map, id + 1), ids);
    }
    pace__idmap_free(map);
}

/* Lines with few and with many members, and numbers beyond the last one. */
static void kernels_find_the_same_values(void **state)
{
    enum { LINE = PACE__RANKS_LINE, LINES = 20, COUNT = LINE * LINES + 200 };
    pace__rank_line lines[LINES] = {0};
    uint32_t values[LINE * LINES], expected[COUNT], found[COUNT];
    uint64_t numbers[COUNT];
    pace__ranks ranks = {.limit = LINE * LINES - 10, .lines = lines, .values = values, .other = 77};

    (void)state;
    for (uint64_t number = 0; number < COUNT; number++) {
        numbers[number] = number * 7919 % COUNT; /* each of them once, as 7919 is prime */
        if (number % LINE == 0 && number / LINE < LINES)
            lines[number / LINE].before = ranks.members;
        if (number >= ranks.limit || pace__mix64(number) % LINES > number / LINE)
            continue;
        lines[number / LINE].bits[number % LINE / 64] |= UINT64_C(1) << (number % 64);
        values[ranks.members++] = (uint32_t)number + 1000;
    }
    pace__ranks_bring_near(&ranks);
    size_t others = pace__ranks_plain.find(&ranks, numbers, COUNT, expected);

    assert_int_equal(others, COUNT - ranks.members);
    for (size_t i = 0; i < COUNT; i++)
        assert_true(expected[i] == 77 || expected[i] == numbers[i] + 1000);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        assert_int_equal(pace__ranks_of(set)->find(&ranks, numbers, COUNT, found), others);
        assert_memory_equal(found, expected, sizeof found);
    }
}

/* Bits of any density, and spaces that end anywhere in a line. */
static void kernels_make_the_same_lines(void **state)
{
    enum { WORDS = 41 };
    static const uint64_t limits[] = {0, 1, 63, 64, 127, 128, 129, WORDS * 64 - 1};
    uint64_t bits[WORDS];

    (void)state;
    for (uint64_t i = 0; i < WORDS; i++)
        bits[i] = i % 5 == 0 ? 0 : i % 7 == 0 ? UINT64_MAX : pace__mix64(i) & pace__mix64(i + 1000);
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
            pace__rank_line lines[WORDS / 2 + 1] = {0};
            pace__ranks ranks = {.limit = limits[i], .lines = lines};
            uint64_t members = 0;

            if (!pace_kernels_run(set))
                continue;
            pace__ranks_of(set)->index(&ranks, bits);
            for (uint64_t number = 0; number / 64 <= limits[i] / 64; number++) {
                assert_int_equal(pace__rank_of(&ranks, number), members);
                members += bits[number / 64] >> number % 64 & 1;
            }
            assert_int_equal(ranks.members, members);
        }
    }
}

/* Ids that share slots, that do not occur, that are beyond the arrays, or look like a free slot: as the map says. */
static void a_memo_says_what_the_map_says(void **state)
{
    static const uint64_t others[] = {UINT32_MAX, UINT64_MAX >> 11, (UINT64_C(1) << 40) + 5, 7};
    enum { TURNS = 200, OTHERS = sizeof others / sizeof *others };
    pace__idmap *map = create(0, SMALL);
    pace__memo *memo = tiny_alloc(sizeof *memo);
    pace__random random = pace__random_at(5, 1);
    uint64_t ids[PACE__MEMO_ASKED];
    uint32_t numbers[PACE__MEMO_ASKED], expected[PACE__MEMO_ASKED];

    (void)state;
    for (uint64_t i = 0; i < 40; i++)
        assert_ok(add(map, i / 4 * 3 + i % 4 * PACE__MEMO_SLOTS * 5, i % 3 == 0));
    assert_ok(add(map, UINT32_MAX, true));
    assert_ok(add(map, others[2], true));
    assert_ok(pace__idmap_number(map, NULL, 0));
    pace__memo_clear(memo);
    for (int turn = 0; turn < TURNS; turn++) {
        size_t asked = 0;

        for (size_t i = 0; i < PACE__MEMO_ASKED; i++) {
            uint64_t some = pace__random_below(&random, 48);

            ids[i] = some < OTHERS ? others[some] : some / 4 * 3 + some % 4 * PACE__MEMO_SLOTS * 5;
            asked = pace__memo_look(memo, asked, ids[i], numbers, i);
        }
        size_t unknown = pace__memo_settle(memo, asked, map, numbers);

        assert_int_equal(unknown, pace__idmap_find(map, ids, PACE__MEMO_ASKED, expected));
        assert_memory_equal(numbers, expected, sizeof numbers);
        assert_true(turn == 0 || asked < PACE__MEMO_ASKED); /* some were remembered */
    }
    free(memo);
    pace__idmap_free(map);
}

/* Counts that differ in their lowest bits, in their middle and in their highest ones alone. */
static void large_counts_are_ordered(void **state)
{
    static const uint32_t counts[] = {1, 0, 2047, 2048, 2049, 4096, 3, 1 << 22, (1 << 22) + 1, 1 << 23};
    static const uint64_t order[] = {9, 8, 7, 5, 4, 3, 2, 6, 0, 1};
    enum { COUNTS = sizeof counts / sizeof *counts, PIECE = 4096 };
    pace__idmap *map = create(COUNTS, LARGE);
    pace__idmap_notes *notes;
    uint64_t ids[PIECE];

    (void)state;
    assert_ok(pace__idmap_open_notes(map, &notes));
    for (uint64_t id = 0; id < COUNTS; id++) {
        for (size_t i = 0; i < PIECE; i++)
            ids[i] = id;
        assert_ok(pace__idmap_add(map, notes, &id, 1));
        for (uint32_t left = counts[id], piece; left > 0; left -= piece) {
            piece = left < PIECE ? left : PIECE;
            assert_ok(pace__idmap_count_hits(map, notes, ids, piece));
        }
    }
    hand_in(map, notes);
    assert_ok(pace__idmap_number(map, NULL, 0));
    assert_memory_equal(pace__idmap_original(map), order, sizeof order);
    pace__idmap_free(map);
}

/* Ids 0, 1, ... occur 254, 255, ... times: more often than a byte can count, and more of them than notes hold. */
static void counts_carry(void **state)
{
    enum { CARRIED = 300, FIRST = 254 };
    pace__idmap *maps[2] = {create(CARRIED, LARGE), create(CARRIED, LARGE)};

    for (int half = 0; half < 2; half++) {
        pace__idmap_notes *notes;

        assert_ok(pace__idmap_open_notes(maps[half], &notes));
        for (uint64_t id = 0; id < CARRIED; id++) {
            assert_ok(pace__idmap_add(maps[half], notes, &id, 1));
            for (uint64_t hit = (uint64_t)half; hit < FIRST + id; hit += 2)
                assert_ok(pace__idmap_count_hits(maps[half], notes, &id, 1));
        }
        assert_ok(pace__idmap_hand_in(maps[half], notes));
        pace__idmap_free_notes(maps[half], notes);
    }
    assert_ok(pace__idmap_save(maps[1], in(state, "ids")));
    assert_ok(pace__idmap_merge(maps[0], in(state, "ids")));
    assert_ok(pace__idmap_number(maps[0], NULL, 0));
    assert_int_equal(pace__idmap_count(maps[0]), CARRIED);
    for (uint32_t number = 0; number < CARRIED; number++)
        assert_int_equal(pace__idmap_original(maps[0])[number], CARRIED - 1 - number);
    pace__idmap_free(maps[0]);
    pace__idmap_free(maps[1]);
}

/* More different large ids than memory allows: an error that says what to do, not a growing process. */
static void a_full_table_is_an_error(void **state)
{
    pace__idmap *map = create(0, SMALL);
    uint64_t added = 0;
    pace__idmap_notes *notes;
    pace_status status = pace__idmap_open_notes(map, &notes);

    (void)state;
    said_clear();
    for (; added < 1000000 && !status; added++) {
        status = add_noted(map, notes, (UINT64_C(1) << 40) + added, true);
    }
    pace__idmap_free_notes(map, notes);
    assert_failed(status, PACE_FAILED, "--memory");
    assert_true(added > SMALL / 16 / 4); /* but a good part of the memory was used */
    pace__idmap_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ids_are_numbered_by_frequency),
        cmocka_unit_test(ids_of_any_size_are_numbered),
        cmocka_unit_test(ranges_come_first),
        cmocka_unit_test(unseen_ids_share_one_number),
        cmocka_unit_test(only_counted_rows_decide_the_order),
        cmocka_unit_test(no_ids_at_all),
        cmocka_unit_test(the_last_id_of_the_space_fits),
        cmocka_unit_test(a_numbering_can_be_adopted),
        cmocka_unit_test_setup_teardown(maps_of_several_processes_are_one, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(each_process_can_number_for_itself, make_directory, remove_directory),
        cmocka_unit_test_setup_teardown(what_others_have_saved_is_checked, make_directory, remove_directory),
        cmocka_unit_test(a_full_table_is_an_error),
        cmocka_unit_test(tables_of_counts_grow),
        cmocka_unit_test(kernels_find_the_same_values),
        cmocka_unit_test(kernels_make_the_same_lines),
        cmocka_unit_test(a_memo_says_what_the_map_says),
        cmocka_unit_test(large_counts_are_ordered),
        cmocka_unit_test_setup_teardown(counts_carry, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
