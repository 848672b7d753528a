#include "data/text/vocabulary.h"

#include "data/input/shown.h"
#include "files/file.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/prep.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

/* "\t18446744073709551615\n" */
#define COUNT_TEXT_MAX 22

/* A word in the text. */
typedef struct entry {
    uint32_t at, size;
    uint64_t count;
} entry;

/* `id` 0, which is no word's, marks a free one. What it takes to compare is beside it. */
typedef struct slot {
    uint32_t tag, id;
    uint32_t at, size;
} slot;

/* The words are where they stand in the text form, which is kept. */
struct pace__vocabulary {
    char *text; /* (size), and a word's room of zeros behind it */
    size_t size;
    uint64_t checksum;
    uint32_t words, stops;
    entry *entries; /* (words + stops) */
    unsigned table_bits;
    slot *table; /* open addressing, at most half full */
};

bool pace__is_word(const char *text, size_t size)
{
    bool ascii = true;

    if (size < 1 || size > PACE__TOKEN_BYTES_MAX)
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned char byte = (unsigned char)text[i];
        bool letter = (byte >= 'a' && byte <= 'z') || (byte >= '0' && byte <= '9') || byte == '\'';

        if (byte < 0x80 && !letter)
            return false;
        ascii = ascii && byte < 0x80;
    }
    return ascii || pace__utf8_find_invalid(text, size) == size;
}

bool pace__count_read(const char *text, size_t size, uint64_t *count)
{
    uint64_t value = 0;

    if (size == 0 || (size > 1 && text[0] == '0'))
        return false;
    for (size_t i = 0; i < size; i++) {
        unsigned digit = (unsigned)(text[i] - '0');

        if (digit > 9 || __builtin_mul_overflow(value, 10, &value) ||
            __builtin_add_overflow(value, digit, &value))
            return false;
    }
    *count = value;
    return true;
}

void pace__vocabulary_free(pace__vocabulary *vocabulary)
{
    if (!vocabulary)
        return;
    free(vocabulary->text);
    free(vocabulary->entries);
    free(vocabulary->table);
    free(vocabulary);
}

/* --- reading the text form --- */

/* Where parsing stands: lines begin at 1. */
typedef struct parser {
    pace__vocabulary *vocabulary;
    const char *where;
    const pace_log *log;
    size_t at, line;
} parser;

static pace_status bad_line(const parser *self, const char *text, size_t size, const char *what)
{
    return pace_fail(self->log, PACE_BAD_DATA, "%s: line %zu: \"%s\" %s", self->where, self->line,
                     pace__show(text, size).text, what);
}

static slot *slot_of(const pace__vocabulary *vocabulary, uint64_t hash)
{
    return &vocabulary->table[hash >> (64 - vocabulary->table_bits)];
}

/* The slot of a word, or the free one where it would be. */
static slot *find_slot(const pace__vocabulary *vocabulary, uint64_t hash, const char *word, uint32_t size)
{
    slot *end = vocabulary->table + ((size_t)1 << vocabulary->table_bits);

    for (slot *each = slot_of(vocabulary, hash);; each = each + 1 < end ? each + 1 : vocabulary->table) {
        if (each->id == 0 || (each->tag == (uint32_t)hash && each->size == size &&
                              memcmp(vocabulary->text + each->at, word, size) == 0))
            return each;
    }
}

/* Takes the word at the parser's place; `index` is its entry. */
static pace_status add_word(const parser *self, uint32_t size, uint64_t count, uint32_t index)
{
    pace__vocabulary *vocabulary = self->vocabulary;
    const char *text = vocabulary->text + self->at;

    if (!pace__is_word(text, size))
        return bad_line(self, text, size, "is no word");
    uint64_t hash = pace__token_hash(text, size);
    slot *to = find_slot(vocabulary, hash, text, size);

    if (to->id != 0)
        return bad_line(self, text, size, "is there a second time");
    bool stop = index >= vocabulary->words;

    vocabulary->entries[index] = (entry){(uint32_t)self->at, size, count};
    *to = (slot){(uint32_t)hash, stop ? PACE__ID_STOP : PACE__ID_WORDS + index, (uint32_t)self->at, size};
    return PACE_OK;
}

/* The bytes of the line at the parser's place, without its end, which is there. */
static size_t line_size(const parser *self)
{
    const char *text = self->vocabulary->text + self->at;
    const char *end = memchr(text, '\n', self->vocabulary->size - self->at);

    assert(end);
    return (size_t)(end - text);
}

static pace_status parse_words(parser *self)
{
    for (uint32_t i = 0; i < self->vocabulary->words; i++) {
        const char *text = self->vocabulary->text + self->at;
        size_t size = line_size(self);
        const char *tab = memchr(text, '\t', size);
        uint64_t count;

        if (!tab || !pace__count_read(tab + 1, size - (size_t)(tab - text) - 1, &count))
            return bad_line(self, text, size, "is not a word, a tab and a count");
        size_t word = (size_t)(tab - text);
        pace_status status = word <= PACE__TOKEN_BYTES_MAX ? add_word(self, (uint32_t)word, count, i)
                                                           : bad_line(self, text, word, "is no word");

        if (status)
            return status;
        self->at += size + 1;
        self->line++;
    }
    return PACE_OK;
}

static pace_status parse_stops(parser *self)
{
    const pace__vocabulary *vocabulary = self->vocabulary;
    pace__word last = {.text = ""};

    for (uint32_t i = 0; i < vocabulary->stops; i++) {
        const char *text = vocabulary->text + self->at;
        size_t size = line_size(self);
        pace__word word = {.text = text, .size = (uint32_t)size};
        pace_status status = size <= PACE__TOKEN_BYTES_MAX
                                 ? add_word(self, (uint32_t)size, 0, vocabulary->words + i)
                                 : bad_line(self, text, size, "is no word");

        if (!status && pace__word_compare(&last, &word) >= 0)
            status = bad_line(self, text, size, "comes too late: stop words are in the order of spelling");
        if (status)
            return status;
        last = word;
        self->at += size + 1;
        self->line++;
    }
    return PACE_OK;
}

/* How many lines are before the empty one, and behind it. */
static pace_status count_lines(const parser *self, size_t *words, size_t *stops)
{
    const char *text = self->vocabulary->text, *end = text + self->vocabulary->size;
    bool empty = false;

    if (self->vocabulary->size == 0 || end[-1] != '\n')
        return pace_fail(self->log, PACE_BAD_DATA, "%s: the last line has no end: the file was cut",
                         self->where);
    *words = *stops = 0;
    for (const char *line = text; line < end;
         line = (const char *)memchr(line, '\n', (size_t)(end - line)) + 1) {
        if (*line == '\n' && !empty)
            empty = true;
        else
            ++*(empty ? stops : words);
    }
    if (!empty)
        return pace_fail(self->log, PACE_BAD_DATA,
                         "%s: no empty line between words and stop words: the file was cut", self->where);
    if (*words > PACE__VOCABULARY_WORDS_MAX || *stops > PACE__VOCABULARY_WORDS_MAX)
        return pace_fail(self->log, PACE_BAD_DATA, "%s: %zu words and %zu stop words: more than %u",
                         self->where, *words, *stops, PACE__VOCABULARY_WORDS_MAX);
    return PACE_OK;
}

static pace_status make_tables(const parser *self, size_t words, size_t stops)
{
    pace__vocabulary *vocabulary = self->vocabulary;

    vocabulary->words = (uint32_t)words;
    vocabulary->stops = (uint32_t)stops;
    for (vocabulary->table_bits = 4; (size_t)1 << vocabulary->table_bits < 2 * (words + stops);)
        vocabulary->table_bits++;
    vocabulary->entries = calloc(words + stops + 1, sizeof *vocabulary->entries);
    vocabulary->table = calloc((size_t)1 << vocabulary->table_bits, sizeof *vocabulary->table);
    if (!vocabulary->entries || !vocabulary->table)
        return pace_fail(self->log, PACE_FAILED, "%s: out of memory for %zu words", self->where,
                         words + stops);
    return PACE_OK;
}

/* The vocabulary has its text and nothing else. */
static pace_status parse(pace__vocabulary *vocabulary, const char *where, const pace_log *log)
{
    parser self = {.vocabulary = vocabulary, .where = where, .log = log, .line = 1};
    size_t words, stops;
    pace_status status = count_lines(&self, &words, &stops);

    if (!status)
        status = make_tables(&self, words, stops);
    if (!status)
        status = parse_words(&self);
    if (status)
        return status;
    self.at++;
    self.line++;
    status = parse_stops(&self);
    if (!status)
        vocabulary->checksum = XXH3_64bits(vocabulary->text, vocabulary->size);
    return status;
}

/* One with room for a text. */
static pace_status make_empty(size_t size, const char *where, const pace_log *log,
                              pace__vocabulary **vocabulary)
{
    if (size > PACE__VOCABULARY_BYTES_MAX)
        return pace_fail(log, PACE_BAD_DATA, "%s: %zu bytes of words, more than the limit of %zu", where,
                         size, PACE__VOCABULARY_BYTES_MAX);
    pace__vocabulary *self = calloc(1, sizeof *self);

    if (self)
        self->text = malloc(size + PACE__TOKEN_BYTES_MAX);
    if (!self || !self->text) {
        pace__vocabulary_free(self);
        return pace_fail(log, PACE_FAILED, "%s: out of memory for %zu bytes of words", where, size);
    }
    memset(self->text + size, 0, PACE__TOKEN_BYTES_MAX);
    self->size = size;
    *vocabulary = self;
    return PACE_OK;
}

pace_status pace__vocabulary_from_text(const char *text, size_t size, const char *where, const pace_log *log,
                                       pace__vocabulary **vocabulary)
{
    pace__vocabulary *self = NULL;
    pace_status status = make_empty(size, where, log, &self);

    if (status)
        return status;
    if (size > 0)
        memcpy(self->text, text, size);
    status = parse(self, where, log);
    if (status)
        pace__vocabulary_free(self);
    else
        *vocabulary = self;
    return status;
}

/* --- making it from words --- */

static int compare_words(const void *left, const void *right)
{
    return pace__word_compare(left, right);
}

/* Returns the end. */
static char *put_words(char *to, const pace__word *words, uint32_t count, bool counts)
{
    for (uint32_t i = 0; i < count; i++) {
        memcpy(to, words[i].text, words[i].size);
        to += words[i].size;
        if (counts)
            to += sprintf(to, "\t%" PRIu64, words[i].count);
        *to++ = '\n';
    }
    return to;
}

static pace_status measure(const pace__word *words, uint32_t count, size_t extra, const pace_log *log,
                           size_t *size)
{
    for (uint32_t i = 0; i < count; i++) {
        if (!pace__is_word(words[i].text, words[i].size))
            return pace_fail(log, PACE_BAD_DATA, "\"%s\" is no word for a vocabulary",
                             pace__show(words[i].text, words[i].size).text);
        *size += words[i].size + extra;
    }
    return PACE_OK;
}

pace_status pace__vocabulary_create(const pace__word *words, uint32_t count, const pace__word *stops,
                                    uint32_t stop_count, const pace_log *log, pace__vocabulary **vocabulary)
{
    pace__vocabulary *self = NULL;
    pace__word *sorted = malloc((stop_count + 1) * sizeof *sorted);
    size_t size = 1;
    pace_status status =
        sorted ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory for %u stop words", stop_count);

    if (!status)
        status = measure(words, count, COUNT_TEXT_MAX, log, &size);
    if (!status)
        status = measure(stops, stop_count, 1, log, &size);
    if (!status)
        status = make_empty(size, "the vocabulary", log, &self);
    if (status)
        goto free_sorted;
    if (stop_count > 0)
        memcpy(sorted, stops, stop_count * sizeof *sorted);
    qsort(sorted, stop_count, sizeof *sorted, compare_words);
    char *end = put_words(self->text, words, count, true);

    *end++ = '\n';
    self->size = (size_t)(put_words(end, sorted, stop_count, false) - self->text);
    memset(self->text + self->size, 0, PACE__TOKEN_BYTES_MAX);
    status = parse(self, "the vocabulary", log);
    if (status)
        pace__vocabulary_free(self);
    else
        *vocabulary = self;
free_sorted:
    free(sorted);
    return status;
}

/* --- the text form --- */

pace_status pace__vocabulary_to_text(const pace__vocabulary *vocabulary, const pace_log *log, char **text,
                                     size_t *size)
{
    char *copy = malloc(vocabulary->size);

    if (!copy)
        return pace_fail(log, PACE_FAILED, "out of memory for %zu bytes of words", vocabulary->size);
    memcpy(copy, vocabulary->text, vocabulary->size);
    *text = copy;
    *size = vocabulary->size;
    return PACE_OK;
}

uint64_t pace__vocabulary_checksum(const pace__vocabulary *vocabulary)
{
    return vocabulary->checksum;
}

static char *path_in(const char *directory, const pace_log *log)
{
    char *path = pace__format("%s/%s", directory, PACE__VOCABULARY_NAME);

    if (!path)
        pace_fail(log, PACE_FAILED, "out of memory");
    return path;
}

pace_status pace__vocabulary_write(const pace__vocabulary *vocabulary, const char *directory,
                                   const pace_log *log)
{
    char *path = path_in(directory, log);
    pace_status status =
        path ? pace__write_file_atomically(path, vocabulary->text, vocabulary->size, log) : PACE_FAILED;

    free(path);
    return status;
}

static pace_status read_path(const char *path, const pace_log *log, pace__vocabulary **vocabulary)
{
    char *text;
    size_t size;
    pace_status status = pace__read_file(path, PACE__VOCABULARY_BYTES_MAX, &text, &size, log);

    if (status)
        return status;
    status = pace__vocabulary_from_text(text, size, path, log, vocabulary);
    free(text);
    return status;
}

static pace_status check_encoding(const pace__vocabulary *vocabulary, const pace__encoding *encoding,
                                  const char *path, const pace_log *log)
{
    if (encoding->kind != PACE__TEXT)
        return pace_fail(log, PACE_BAD_DATA, "%s: the data beside it has no words", path);
    if (encoding->vocabulary != vocabulary->checksum ||
        encoding->features != pace__vocabulary_ids(vocabulary))
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: not the vocabulary of the data beside it: it has %u ids and the checksum "
                         "%016" PRIx64 ", the data %" PRIu64 " and %016" PRIx64,
                         path, pace__vocabulary_ids(vocabulary), vocabulary->checksum, encoding->features,
                         encoding->vocabulary);
    return PACE_OK;
}

pace_status pace__vocabulary_read(const char *directory, const pace__encoding *encoding, const pace_log *log,
                                  pace__vocabulary **vocabulary)
{
    pace__vocabulary *self = NULL;
    char *path = path_in(directory, log);
    pace_status status = path ? read_path(path, log, &self) : PACE_FAILED;

    if (!status)
        status = check_encoding(self, encoding, path, log);
    if (status)
        pace__vocabulary_free(self);
    else
        *vocabulary = self;
    free(path);
    return status;
}

/* --- asking it --- */

uint32_t pace__vocabulary_ids(const pace__vocabulary *vocabulary)
{
    return PACE__ID_WORDS + vocabulary->words;
}

uint32_t pace__vocabulary_stops(const pace__vocabulary *vocabulary)
{
    return vocabulary->stops;
}

static pace__word word_at(const pace__vocabulary *vocabulary, uint32_t index)
{
    entry found = vocabulary->entries[index];

    return (pace__word){.text = vocabulary->text + found.at, .size = found.size, .count = found.count};
}

pace__word pace__vocabulary_word(const pace__vocabulary *vocabulary, uint32_t id)
{
    static const char *const special[PACE__ID_WORDS] = {"<pad>", "<unknown>", "<empty>"};

    assert(id < pace__vocabulary_ids(vocabulary));
    if (id < PACE__ID_WORDS)
        return (pace__word){.text = special[id], .size = (uint32_t)strlen(special[id])};
    return word_at(vocabulary, id - PACE__ID_WORDS);
}

pace__word pace__vocabulary_stop(const pace__vocabulary *vocabulary, uint32_t index)
{
    assert(index < vocabulary->stops);
    return word_at(vocabulary, vocabulary->words + index);
}

uint32_t pace__vocabulary_find(const pace__vocabulary *vocabulary, uint64_t hash, const char *word,
                               uint32_t size)
{
    uint32_t id = find_slot(vocabulary, hash, word, size)->id;

    return id ? id : PACE__ID_UNKNOWN;
}

/* --- a text --- */

void pace__truncation(int truncate, uint64_t count, uint32_t length, uint32_t *head, uint32_t *tail)
{
    if (count <= length) {
        *head = (uint32_t)count;
        *tail = 0;
        return;
    }
    *head = truncate == PACE_TRUNCATE_HEAD   ? length
            : truncate == PACE_TRUNCATE_TAIL ? 0
                                             : length - length / 2;
    *tail = length - *head;
}

static uint32_t id_of(const pace__vocabulary *vocabulary, const pace__tokens *tokens, size_t token)
{
    return pace__vocabulary_find(vocabulary, tokens->hash[token], tokens->text + tokens->span[token].begin,
                                 pace__token_size(tokens, token));
}

/* Fills ids[first .. last) with the last words of the text, from behind: there are as many. */
static void fill_tail(const pace__vocabulary *vocabulary, const pace__tokens *tokens, uint32_t *ids,
                      uint32_t first, uint32_t last)
{
    for (size_t token = tokens->count; last > first;) {
        uint32_t id = id_of(vocabulary, tokens, --token);

        if (id != PACE__ID_STOP)
            ids[--last] = id;
    }
}

uint32_t pace__vocabulary_encode(const pace__vocabulary *vocabulary, const pace__encoding *encoding,
                                 const pace__tokens *tokens, uint32_t *ids)
{
    uint32_t length = encoding->length, count = 0, head, tail;
    size_t token = 0;

    assert(length > 0);
    for (size_t i = 0; i < tokens->count; i++)
        __builtin_prefetch(slot_of(vocabulary, tokens->hash[i]));
    for (; token < tokens->count && count < length; token++) {
        ids[count] = id_of(vocabulary, tokens, token);
        count += ids[count] != PACE__ID_STOP;
    }
    while (token < tokens->count && id_of(vocabulary, tokens, token) == PACE__ID_STOP)
        token++;
    if (count == 0) {
        ids[0] = PACE__ID_EMPTY;
        return 1;
    }
    if (token < tokens->count) { /* there is at least one word more */
        pace__truncation(encoding->truncate, (uint64_t)length + 1, length, &head, &tail);
        fill_tail(vocabulary, tokens, ids, head, length);
    }
    return count;
}
