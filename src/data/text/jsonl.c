#include "data/text/jsonl_internal.h"

#include "base/json.h"
#include "data/input/shown.h"

#include <assert.h>

/* A name of n bytes is at most 6 n when each is written as an escape of \u and four digits. */
#define ESCAPED_NAME_MAX (6 * PACE__JSONL_NAME_MAX)

static pace_status check_name(const char *name, const pace_log *log)
{
    size_t size = strlen(name);

    if (size == 0 || size > PACE__JSONL_NAME_MAX)
        return pace_fail(log, PACE_USAGE, "field name \"%s\" is not of 1 to %d bytes",
                         pace__show(name, size).text, PACE__JSONL_NAME_MAX);
    if (pace__utf8_find_invalid(name, size) < size)
        return pace_fail(log, PACE_USAGE, "field name \"%s\" is no UTF-8", pace__show(name, size).text);
    return PACE_OK;
}

pace_status pace__jsonl_fields_init(pace__jsonl_fields *fields, const char *const *names, unsigned count,
                                    const pace_log *log)
{
    pace__jsonl_fields made = {.count = count};

    if (count == 0 || count > PACE__JSONL_FIELDS_MAX)
        return pace_fail(log, PACE_USAGE, "%u fields are wanted of each line: 1 to %d are possible", count,
                         PACE__JSONL_FIELDS_MAX);
    for (unsigned i = 0; i < count; i++) {
        pace_status status = check_name(names[i], log);

        if (status)
            return status;
        made.size[i] = (uint32_t)strlen(names[i]);
        memcpy(made.name[i], names[i], made.size[i]);
        memcpy(&made.first[i], made.name[i], sizeof made.first[i]);
        for (unsigned j = 0; j < i; j++) {
            if (strcmp(names[i], names[j]) == 0)
                return pace_fail(log, PACE_USAGE, "field name \"%s\" is given twice", names[i]);
        }
    }
    *fields = made;
    return PACE_OK;
}

/* Values of hexadecimal digits, plus 1. */
static const uint8_t hex_digits[256] = {
    ['0'] = 1,  ['1'] = 2,  ['2'] = 3,  ['3'] = 4,  ['4'] = 5,  ['5'] = 6,  ['6'] = 7,  ['7'] = 8,
    ['8'] = 9,  ['9'] = 10, ['A'] = 11, ['B'] = 12, ['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
    ['a'] = 11, ['b'] = 12, ['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16,
};

static const char short_escapes[256] = {
    ['"'] = '"',  ['\\'] = '\\', ['/'] = '/',  ['b'] = '\b',
    ['f'] = '\f', ['n'] = '\n',  ['r'] = '\r', ['t'] = '\t',
};

/* What an escape of \u and four digits at text[0] stands for, or UINT32_MAX. */
static uint32_t hex_escape(const char *text, size_t size)
{
    uint32_t value = 0;

    if (size < 6 || text[0] != '\\' || text[1] != 'u')
        return UINT32_MAX;
    for (unsigned i = 2; i < 6; i++) {
        uint8_t digit = hex_digits[(unsigned char)text[i]];

        if (digit == 0)
            return UINT32_MAX;
        value = value << 4 | (digit - 1u);
    }
    return value;
}

unsigned pace__jsonl_escape(const char *text, size_t size, uint32_t *character)
{
    if (size < 2)
        return 0;
    *character = (unsigned char)short_escapes[(unsigned char)text[1]];
    if (*character)
        return 2;
    uint32_t first = hex_escape(text, size);

    *character = first;
    if (first < 0xd800 || (first >= 0xe000 && first <= 0xffff))
        return 6;
    if (first >= 0xdc00)
        return 0;
    uint32_t second = hex_escape(text + 6, size - 6);

    if (second < 0xdc00 || second > 0xdfff)
        return 0;
    *character = 0x10000 + ((first - 0xd800) << 10 | (second - 0xdc00));
    return 12;
}

int pace__jsonl_match_escaped(const pace__jsonl_fields *fields, const char *text, size_t size)
{
    char name[ESCAPED_NAME_MAX + PACE__TEXT_PADDING];

    if (size > ESCAPED_NAME_MAX)
        return -1;
    return pace__jsonl_match(fields, name, pace__jsonl_plain.decode(text, size, name));
}

static bool fail(pace__jsonl_walk *walk, size_t offset, const char *reason)
{
    walk->error = (pace__jsonl_error){offset, reason};
    return false;
}

/* The next byte, or 0 at the end; a NUL is valid nowhere. */
static char peek(const pace__jsonl_walk *walk)
{
    return walk->at < walk->size ? walk->line[walk->at] : '\0';
}

static void skip_blanks(pace__jsonl_walk *walk)
{
    walk->at = pace__jsonl_skip_blanks(walk->line, walk->size, walk->at);
}

static bool string_plain(pace__jsonl_walk *walk, bool *escaped)
{
    const char *line = walk->line;
    size_t at = walk->at, size = walk->size;
    unsigned bytes;
    uint32_t character;

    *escaped = false;
    for (; at < size && line[at] != '"'; at += bytes) {
        bytes = 1;
        if (line[at] == '\\') {
            *escaped = true;
            bytes = pace__jsonl_escape(line + at, size - at, &character);
            if (bytes == 0)
                return fail(walk, at, "not an escape that JSON has, or half a surrogate pair");
        } else if (line[at] & 0x80) {
            bytes = pace__utf8_length(line + at, size - at);
            if (bytes == 0)
                return fail(walk, at, "not UTF-8");
        } else if (line[at] < ' ') {
            return fail(walk, at, "a control character in a string");
        }
    }
    walk->at = at + 1;
    return at < size || fail(walk, size, "the line ends in a string");
}

static bool walk_literal(pace__jsonl_walk *walk, const char *literal)
{
    size_t size = strlen(literal);

    if (walk->size - walk->at < size || memcmp(walk->line + walk->at, literal, size) != 0)
        return fail(walk, walk->at, "a value is expected");
    walk->at += size;
    return true;
}

static bool walk_number(pace__jsonl_walk *walk)
{
    return pace__jsonl_number(walk->line, walk->size, &walk->at) ||
           fail(walk, walk->at, "a digit is expected");
}

/* A member's name, up to the value behind its colon. The name is without its quotes. */
static bool walk_name(pace__jsonl_walk *walk, pace__jsonl_value *name)
{
    if (peek(walk) != '"')
        return fail(walk, walk->at, "a name in quotes is expected");
    name->text = walk->line + ++walk->at;
    if (!walk->string(walk, &name->escaped))
        return false;
    name->size = (size_t)(walk->line + walk->at - name->text) - 1;
    skip_blanks(walk);
    if (peek(walk) != ':')
        return fail(walk, walk->at, "a colon is expected");
    walk->at++;
    skip_blanks(walk);
    return true;
}

/* Behind an element: whether another one follows, up to which it goes. */
static bool walk_comma(pace__jsonl_walk *walk, char close, bool *more)
{
    skip_blanks(walk);
    *more = peek(walk) == ',';
    if (!*more && peek(walk) != close)
        return fail(walk, walk->at, close == '}' ? "a comma or } is expected" : "a comma or ] is expected");
    walk->at++;
    if (*more)
        skip_blanks(walk);
    return true;
}

/* An array, or the object of which nothing is wanted: from its first byte on. */
static bool walk_nested(pace__jsonl_walk *walk)
{
    bool object = walk->line[walk->at] == '{', more = true;
    char close = object ? '}' : ']';
    pace__jsonl_value ignored;

    if (walk->depth >= PACE__JSONL_DEPTH_MAX)
        return fail(walk, walk->at, "more than 64 objects and arrays in each other");
    walk->depth++;
    walk->at++;
    skip_blanks(walk);
    if (peek(walk) == close) {
        walk->at++;
        more = false;
    }
    while (more) {
        if ((object && !walk_name(walk, &ignored)) || !pace__jsonl_walk_value(walk, &ignored) ||
            !walk_comma(walk, close, &more))
            return false;
    }
    walk->depth--;
    return true;
}

bool pace__jsonl_walk_value(pace__jsonl_walk *walk, pace__jsonl_value *value)
{
    size_t begin = walk->at;
    bool good;

    value->escaped = false;
    switch (peek(walk)) {
    case '"':
        value->kind = PACE__JSONL_STRING;
        walk->at++;
        good = walk->string(walk, &value->escaped);
        value->text = walk->line + begin + 1;
        value->size = walk->at - begin - 2;
        return good;
    case '{':
        value->kind = PACE__JSONL_OBJECT;
        good = walk_nested(walk);
        break;
    case '[':
        value->kind = PACE__JSONL_ARRAY;
        good = walk_nested(walk);
        break;
    case 't':
        value->kind = PACE__JSONL_TRUE;
        good = walk_literal(walk, "true");
        break;
    case 'f':
        value->kind = PACE__JSONL_FALSE;
        good = walk_literal(walk, "false");
        break;
    case 'n':
        value->kind = PACE__JSONL_NULL;
        good = walk_literal(walk, "null");
        break;
    default:
        if (peek(walk) != '-' && (unsigned)(peek(walk) - '0') >= 10)
            return fail(walk, begin, "a value is expected");
        value->kind = PACE__JSONL_NUMBER;
        good = walk_number(walk);
    }
    value->text = walk->line + begin;
    value->size = walk->at - begin;
    return good;
}

static bool walk_member(pace__jsonl_walk *walk, const pace__jsonl_fields *fields, pace__jsonl_value *values)
{
    pace__jsonl_value name, value;

    if (!walk_name(walk, &name) || !pace__jsonl_walk_value(walk, &value))
        return false;
    int field = name.escaped ? pace__jsonl_match_escaped(fields, name.text, name.size)
                             : pace__jsonl_match(fields, name.text, name.size);

    if (field >= 0)
        values[field] = value;
    return true;
}

static bool walk_line(pace__jsonl_walk *walk, const pace__jsonl_fields *fields, pace__jsonl_value *values)
{
    bool more = true;

    skip_blanks(walk);
    if (peek(walk) != '{')
        return fail(walk, walk->at, "an object is expected");
    walk->at++;
    skip_blanks(walk);
    if (peek(walk) == '}') {
        walk->at++;
        more = false;
    }
    while (more) {
        if (!walk_member(walk, fields, values) || !walk_comma(walk, '}', &more))
            return false;
    }
    skip_blanks(walk);
    return walk->at == walk->size || fail(walk, walk->at, "something follows the object");
}

static bool find_or_say_why(const pace__jsonl_fields *fields, const char *line, size_t size,
                            pace__jsonl_value *values, pace__jsonl_error *error)
{
    pace__jsonl_walk walk = {.line = line, .size = size, .depth = 1, .string = string_plain};

    memset(values, 0, fields->count * sizeof *values);
    bool good = walk_line(&walk, fields, values);

    *error = walk.error;
    return good;
}

static bool find(const pace__jsonl_fields *fields, const char *line, size_t size, pace__jsonl_value *values)
{
    pace__jsonl_error ignored;

    return find_or_say_why(fields, line, size, values, &ignored);
}

static size_t decode(const char *text, size_t size, char *out)
{
    size_t at = 0, to = 0;

    while (at < size) {
        uint32_t character;

        if (text[at] != '\\') {
            out[to++] = text[at++];
            continue;
        }
        unsigned bytes = pace__jsonl_escape(text + at, size - at, &character);

        assert(bytes > 0);
        at += bytes;
        to += pace__utf8_encode(character, out + to);
    }
    return to;
}

const pace__jsonl_kernels pace__jsonl_plain = {.find = find, .decode = decode};

bool pace__jsonl_find(const pace__jsonl_fields *fields, const char *line, size_t size,
                      pace__jsonl_value *values, pace__jsonl_error *error)
{
    pace__jsonl_value found[PACE__JSONL_FIELDS_MAX];
    pace__jsonl_error why;

    if (pace__jsonl_of(pace_kernels_in_use())->find(fields, line, size, found) ||
        find_or_say_why(fields, line, size, found, &why)) {
        memcpy(values, found, fields->count * sizeof *values);
        return true;
    }
    *error = why;
    return false;
}

size_t pace__jsonl_decode(const char *text, size_t size, char *out)
{
    return pace__jsonl_of(pace_kernels_in_use())->decode(text, size, out);
}
