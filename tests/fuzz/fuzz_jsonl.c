/*
 * The fast walkers over a line of JSON against the plain one: the same values, or not valid, on any bytes.
 * What is found lies in the line, strings decode to UTF-8 that is no longer than they are, and an object that
 * is found is a valid line of its own. The first byte of an input is what stands behind the line, the rest is
 * the line.
 */
#include "data/text/jsonl_internal.h"

#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const names[] = {"a", "reviewText", "b\xc3\xa9"};

#define FIELDS (sizeof names / sizeof *names)

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        abort();
    }
}

static char *room(size_t size)
{
    char *memory = malloc(size + PACE__TEXT_PADDING);

    check(memory != NULL, "out of memory");
    return memory;
}

static void check_string(const pace__jsonl_value *value)
{
    char *plain = room(value->size), *fast = room(value->size);
    size_t size = pace__jsonl_plain.decode(value->text, value->size, plain);

    check(size <= value->size && pace__utf8_find_invalid(plain, size) == size, "a decoded string");
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        if (pace_kernels_run(set))
            check(pace__jsonl_of(set)->decode(value->text, value->size, fast) == size &&
                      memcmp(plain, fast, size) == 0,
                  "decoding fast");
    }
    check(value->escaped == (memchr(value->text, '\\', value->size) != NULL), "the mark of escapes");
    free(plain);
    free(fast);
}

static void check_value(const pace__jsonl_fields *fields, const pace__jsonl_value *value, const char *line,
                        size_t size)
{
    pace__jsonl_value ignored[FIELDS];
    pace__jsonl_error error;

    if (value->kind == PACE__JSONL_MISSING)
        return;
    size_t begin = (size_t)(value->text - line);

    check(begin <= size && value->size <= size - begin, "where a value is");
    if (value->kind == PACE__JSONL_STRING)
        check_string(value);
    if (value->kind == PACE__JSONL_OBJECT)
        check(pace__jsonl_find(fields, value->text, value->size, ignored, &error), "an object alone");
}

static void check_same(const pace__jsonl_value *plain, const pace__jsonl_value *fast)
{
    for (size_t i = 0; i < FIELDS; i++)
        check(plain[i].kind == fast[i].kind && plain[i].text == fast[i].text &&
                  plain[i].size == fast[i].size && plain[i].escaped == fast[i].escaped,
              "a value");
}

/* What a fast one finds is right; what it leaves to the plain one need not be wrong. */
static void check_sets(const pace__jsonl_fields *fields, const char *line, size_t size, bool valid,
                       const pace__jsonl_value *plain)
{
    pace__jsonl_value fast[FIELDS];

    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set) || !pace__jsonl_of(set)->find(fields, line, size, fast))
            continue;
        check(valid, "found in a line that is not valid");
        check_same(plain, fast);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pace__jsonl_fields fields;
    pace__jsonl_value plain[FIELDS], found[FIELDS];
    pace__jsonl_error error = {0};

    if (size == 0)
        return 0;
    size--;
    char *line = room(size);

    memcpy(line, data + 1, size);
    memset(line + size, data[0], PACE__TEXT_PADDING);
    check(pace__jsonl_fields_init(&fields, names, FIELDS, NULL) == PACE_OK, "the fields");
    bool valid = pace__jsonl_plain.find(&fields, line, size, plain);

    check_sets(&fields, line, size, valid, plain);
    check(pace__jsonl_find(&fields, line, size, found, &error) == valid, "valid or not");
    check(error.offset <= size, "the error");
    for (size_t i = 0; valid && i < FIELDS; i++)
        check_value(&fields, &plain[i], line, size);
    if (valid)
        check_same(plain, found);
    free(line);
    return 0;
}
