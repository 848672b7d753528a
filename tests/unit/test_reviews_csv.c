/* The two readers of csv, and one that goes byte by byte, agree on where records end, whatever the bytes. */
#include "data/input/csv.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "support.h"

#define TEXT_MAX    60
#define RECORDS_MAX (TEXT_MAX + 1)

/* What is to be found: where records end, how many cells they have, whether something follows a quote. */
typedef struct found {
    size_t count, end[RECORDS_MAX], cells[RECORDS_MAX];
    bool junk[RECORDS_MAX];
    bool unclosed;
    char bytes[2 * TEXT_MAX]; /* of all cells, without their quotes, each behind a '|' */
    size_t size;
} found;

static void put(found *to, char byte)
{
    to->bytes[to->size++] = byte;
}

static void end_record(found *to, size_t at)
{
    to->end[to->count++] = at;
    to->cells[to->count] = 0;
}

/* Byte by byte. Text behind a closing quote is not kept. */
static void read_plainly(const char *text, size_t size, found *to)
{
    enum { START, PLAIN, QUOTED, CLOSED } where = START;

    for (size_t i = 0; i < size; i++) {
        char byte = text[i];

        if (where == START) {
            put(to, '|');
            to->cells[to->count]++;
        }
        if (where == QUOTED) {
            if (byte != '"' || (i + 1 < size && text[i + 1] == '"'))
                put(to, byte);
            if (byte == '"')
                where = i + 1 < size && text[i + 1] == '"' ? (i++, QUOTED) : CLOSED;
        } else if (byte == ',' || byte == '\n') {
            if (byte == '\n')
                end_record(to, i + 1);
            where = START;
        } else if (byte == '"' && where == START) {
            where = QUOTED;
        } else if (byte == '\r' && (i + 1 == size || text[i + 1] == '\n')) {
            where = where == START ? PLAIN : where;
        } else if (where == CLOSED) {
            to->junk[to->count] = true;
        } else {
            put(to, byte);
            where = PLAIN;
        }
    }
    to->unclosed = where == QUOTED;
    if (size > 0 && where == START && text[size - 1] == ',') {
        put(to, '|');
        to->cells[to->count]++;
    }
    if (size > 0 && (to->count == 0 || to->end[to->count - 1] < size))
        end_record(to, size);
}

static void read_cells(const char *text, size_t size, found *to)
{
    pace__csv_cells cells = pace__csv_cells_of(text, size, ',');

    while (cells.at < size) {
        pace__csv_cell_end end;
        pace__csv_cell cell;

        cells.junk = false;
        do {
            end = pace__csv_cells_next(&cells, &cell);
            put(to, '|');
            if (cell.doubled) {
                to->size += pace__csv_cell_decode(&cell, to->bytes + to->size);
            } else {
                memcpy(to->bytes + to->size, cell.text, cell.size);
                to->size += cell.size;
            }
            to->cells[to->count]++;
        } while (end == PACE__CSV_CELL_MORE);
        to->junk[to->count] = cells.junk;
        to->unclosed = end == PACE__CSV_CELL_UNCLOSED;
        end_record(to, cells.at);
    }
}

static void check_scan(const char *text, size_t size, const found *expected, pace__random *random)
{
    pace__csv_scan scan = {0};

    for (size_t given = 0; given < size;) {
        size_t whole = 0;

        given += 1 + pace__random_below(random, size - given);
        pace__csv_scan_on(&scan, text, given);
        for (size_t i = 0; i < expected->count; i++) {
            if (expected->end[i] <= given && text[expected->end[i] - 1] == '\n' &&
                !(expected->unclosed && i + 1 == expected->count))
                whole = expected->end[i];
        }
        assert_int_equal(scan.whole, whole);
    }
}

static void check(const char *bytes, size_t size, pace__random *random)
{
    /* Of just this size, for sanitizers. */
    char *text = malloc(size + 1);
    found plain = {0}, cells = {0};

    assert_non_null(text);
    memcpy(text, bytes, size);
    text[size] = '\0';
    read_plainly(text, size, &plain);
    read_cells(text, size, &cells);
    if (memcmp(&plain, &cells, offsetof(found, bytes)) != 0 || plain.size != cells.size ||
        memcmp(plain.bytes, cells.bytes, plain.size) != 0)
        fail_msg("of \"%s\" the cells are %.*s and %.*s, the records %zu and %zu", text, (int)plain.size,
                 plain.bytes, (int)cells.size, cells.bytes, plain.count, cells.count);
    check_scan(text, size, &plain, random);
    free(text);
}

static void test_readers_agree(void **state)
{
    static const char letters[] = "\"\"\"\",,\n\na\r";
    uint64_t seed = pace__mix64((uint64_t)getpid());
    pace__random random = pace__random_at(seed, 0);

    (void)state;
    print_message("seed %llu\n", (unsigned long long)seed);
    for (unsigned i = 0; i < 100000; i++) {
        char text[TEXT_MAX];
        size_t size = pace__random_below(&random, i % 2 ? 8 : TEXT_MAX);

        for (size_t j = 0; j < size; j++)
            text[j] = letters[pace__random_below(&random, sizeof letters - 1)];
        check(text, size, &random);
    }
}

static void test_a_scan_that_begins_later(void **state)
{
    static const char text[] = "\xef\xbb\xbf\"a\nb\",c\nd";
    pace__csv_scan scan = {.begin = 3, .at = 3}, other = {0};

    (void)state;
    pace__csv_scan_on(&scan, text, sizeof text - 1);
    assert_int_equal(scan.whole, sizeof text - 2);
    pace__csv_scan_on(&other, text, 6);
    assert_int_equal(other.whole, 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_readers_agree),
        cmocka_unit_test(test_a_scan_that_begins_later),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
