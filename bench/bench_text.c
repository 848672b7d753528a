/*
 * bench_text [REPEAT]: what prep does with the text of reviews, on one thread. Lines
 * of JSON are made up in the shape of product reviews: nine members, texts of 20 to 200 words by Zipf's law,
 * some of them with quotes, line ends, entities, tags and letters other than ASCII.
 *
 * Prints a line for each step: GB/s of CPU time (best of REPEAT), by the bytes that it reads, of the plain
 * and the fast version, and what the latter is of a memcpy of the lines in the same run:
 *
 *     find        two fields of each line
 *     decode      the texts that have escapes
 *     utf8        looking for bytes that are no UTF-8 in the lines
 *     tokenise    the texts, as they were decoded
 *     count       tokenise, and count the words
 *     all         find, decode, tokenise and count, by the bytes of the lines
 *
 * CPU time, because the ratios should hold on a busy machine too.
 */
#include "base/memory.h"
#include "data/text/jsonl_internal.h"
#include "data/text/tokens_internal.h"
#include "gen/zipf.h"
#include "prep/reviews/words.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define BYTES_MAX      ((size_t)32 << 20)
#define LINE_BYTES_MAX ((size_t)8192)
#define LINES_MAX      (BYTES_MAX / 256)
#define WORDS          50000
#define COMMON         (sizeof common / sizeof *common)

static const char *const common[] = {
    "the",   "and",   "I",    "a",     "to",   "it",      "of",    "is",   "this",  "in",  "for",
    "that",  "was",   "with", "you",   "my",   "on",      "but",   "have", "not",   "are", "as",
    "book",  "be",    "so",   "very",  "one",  "they",    "great", "like", "good",  "all", "at",
    "just",  "don't", "it's", "from",  "if",   "has",     "me",    "had",  "would", "can", "when",
    "or",    "what",  "get",  "read",  "than", "more",    "out",   "will", "an",    "up",  "were",
    "about", "love",  "time", "their", "no",   "product", "her",   "use",  "also",  "I've"};

static double cpu_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

typedef struct writer {
    char *at;
    pace__random random;
    pace__zipf zipf;
} writer;

static void put(writer *self, const char *text)
{
    size_t size = strlen(text);

    memcpy(self->at, text, size);
    self->at += size;
}

/* Common words are themselves; the letters of a rarer one follow from its rank. */
static void put_word(writer *self)
{
    uint32_t rank = pace__zipf_draw(&self->zipf, pace__random_next(&self->random), &self->random);

    if (rank < COMMON) {
        put(self, common[rank]);
        return;
    }
    pace__random letters = {rank};
    size_t size = 3 + pace__random_below(&letters, 4) + pace__random_below(&letters, 4);

    for (size_t i = 0; i < size; i++)
        *self->at++ = "eeeetttaaoooiinnsshhrrddlucmfwypvbgk"[pace__random_below(&letters, 36)];
}

static void put_gap(writer *self)
{
    static const char *const odd[] = {"\\n",    "\\n\\n",   " \\\"",    "\\\" ",   " &#34;",   " &amp; ",
                                      "<br />", "\u2019s ", " \u2014 ", "\u00e9 ", "\\u00e9 ", "... "};
    uint64_t kind = pace__random_below(&self->random, 100);

    put(self, kind < 85   ? " "
              : kind < 91 ? ", "
              : kind < 97 ? ". "
                          : odd[pace__random_below(&self->random, 12)]);
}

static void put_words(writer *self, uint64_t count)
{
    for (; count > 0; count--) {
        put_word(self);
        put_gap(self);
    }
}

static void put_line(writer *self)
{
    uint64_t id = pace__random_next(&self->random);
    uint64_t words = 20 + pace__random_below(&self->random, 90) + pace__random_below(&self->random, 90);

    self->at +=
        sprintf(self->at, "{\"reviewerID\": \"A%013llX\", \"asin\": \"B%09llu\", \"reviewerName\": \"",
                (unsigned long long)id >> 12, (unsigned long long)id % 1000000000);
    put_word(self);
    self->at += sprintf(self->at, "\", \"helpful\": [%u, %u], \"reviewText\": \"", (unsigned)(id % 7),
                        (unsigned)(id % 19));
    put_words(self, words);
    self->at += sprintf(self->at, "\", \"overall\": %u.0, \"summary\": \"", (unsigned)(1 + id % 5));
    put_words(self, 1 + id % 8);
    self->at += sprintf(self->at, "\", \"unixReviewTime\": %u, \"reviewTime\": \"%02u %u, 20%02u\"}\n",
                        (unsigned)(1000000000 + id % 400000000), (unsigned)(1 + id % 12),
                        (unsigned)(1 + id % 28), (unsigned)(id % 15));
}

typedef struct piece {
    const char *text;
    size_t size;
} piece;

typedef struct bench {
    char *lines, *copy, *texts; /* all lines; room for as much; decoded texts */
    size_t bytes, line_count;
    size_t escaped_bytes, text_bytes;
    piece *line, *escaped, *text; /* escaped has line_count entries, with size 0 where there are none */
    pace__jsonl_fields fields;
    pace__tokens tokens;
    pace__word_counter *counter;
    uint32_t *ids;
    size_t token_count;
    uint64_t sum; /* keeps the compiler from leaving out work */
} bench;

static void make_lines(bench *self)
{
    static writer pen;

    pen.at = self->lines;
    pen.random = pace__random_at(1, 2);
    pace__zipf_init(&pen.zipf, WORDS, 1.08);
    while (pen.at < self->lines + BYTES_MAX - LINE_BYTES_MAX && self->line_count < LINES_MAX) {
        piece *line = &self->line[self->line_count++];

        line->text = pen.at;
        put_line(&pen);
        line->size = (size_t)(pen.at - line->text) - 1;
    }
    self->bytes = (size_t)(pen.at - self->lines);
}

/* Finds and decodes the texts, for the steps that begin with them. */
static bool make_texts(bench *self)
{
    char *to = self->texts;

    for (size_t i = 0; i < self->line_count; i++) {
        pace__jsonl_value value[2];
        pace__jsonl_error error;

        if (!pace__jsonl_find(&self->fields, self->line[i].text, self->line[i].size, value, &error)) {
            fprintf(stderr, "line %zu, byte %zu: %s\n", i + 1, error.offset, error.reason);
            return false;
        }
        if (value[0].escaped)
            self->escaped[i] = (piece){value[0].text, value[0].size};
        self->escaped_bytes += self->escaped[i].size;
        self->text[i] = (piece){to, pace__jsonl_decode(value[0].text, value[0].size, to)};
        self->text_bytes += self->text[i].size;
        to += self->text[i].size;
    }
    return true;
}

/* What a step runs on. */
typedef struct kernels {
    const pace__jsonl_kernels *jsonl;
    const pace__tokens_kernels *tokens;
} kernels;

static void run_find(bench *self, const kernels *by)
{
    for (size_t i = 0; i < self->line_count; i++) {
        pace__jsonl_value value[2];
        bool good = by->jsonl->find(&self->fields, self->line[i].text, self->line[i].size, value);

        assert(good);
        self->sum += value[0].size + value[1].size;
    }
}

static void run_decode(bench *self, const kernels *by)
{
    for (size_t i = 0; i < self->line_count; i++)
        self->sum += by->jsonl->decode(self->escaped[i].text, self->escaped[i].size, self->copy);
}

static void run_utf8(bench *self, const kernels *by)
{
    for (size_t i = 0; i < self->line_count; i++)
        self->sum += by->tokens->find_invalid(self->line[i].text, self->line[i].size);
}

/* There is room for any of the texts. */
static void tokenise(bench *self, const char *text, size_t size, const kernels *by)
{
    by->tokens->tokenise(&self->tokens, text, size);
    self->token_count += self->tokens.count;
    self->sum += self->tokens.hash[0];
}

static void run_tokenise(bench *self, const kernels *by)
{
    self->token_count = 0;
    for (size_t i = 0; i < self->line_count; i++)
        tokenise(self, self->text[i].text, self->text[i].size, by);
}

/* Of the words that were made last. */
static void count_words(bench *self)
{
    pace_status status = pace__word_counter_make_room(self->counter, self->tokens.count);

    assert(!status);
    self->sum += pace__word_counter_add(self->counter, &self->tokens, self->ids);
}

static void run_count(bench *self, const kernels *by)
{
    for (size_t i = 0; i < self->line_count; i++) {
        tokenise(self, self->text[i].text, self->text[i].size, by);
        count_words(self);
    }
}

static void run_all(bench *self, const kernels *by)
{
    for (size_t i = 0; i < self->line_count; i++) {
        pace__jsonl_value value[2];
        bool good = by->jsonl->find(&self->fields, self->line[i].text, self->line[i].size, value);

        assert(good);
        if (value[0].escaped) {
            value[0].size = by->jsonl->decode(value[0].text, value[0].size, self->copy);
            value[0].text = self->copy;
        }
        tokenise(self, value[0].text, value[0].size, by);
        count_words(self);
    }
}

static void run_copy(bench *self, const kernels *by)
{
    (void)by;
    memcpy(self->copy, self->lines, self->bytes);
    self->sum += (unsigned char)self->copy[self->bytes / 2];
}

typedef void step_fn(bench *self, const kernels *by);

enum { COPY, FIND, DECODE, UTF8, TOKENISE, COUNT, ALL, STEPS };

static void run(bench *self, int repeat)
{
    static step_fn *const steps[STEPS] = {run_copy,     run_find,  run_decode, run_utf8,
                                          run_tokenise, run_count, run_all};
    static const char *const names[STEPS] = {"copy", "find", "decode", "utf8", "tokenise", "count", "all"};
    const size_t bytes[STEPS] = {self->bytes,      self->bytes,      self->escaped_bytes, self->bytes,
                                 self->text_bytes, self->text_bytes, self->bytes};
    int used = pace_kernels_in_use();
    const kernels by[2] = {{&pace__jsonl_plain, &pace__tokens_plain},
                           {pace__jsonl_of(used), pace__tokens_of(used)}};
    double best[STEPS][2];

    for (int turn = 0; turn < repeat; turn++) {
        for (int step = 0; step < STEPS; step++) {
            for (int fast = 0; fast < 2; fast++) {
                double begin = cpu_ns();

                steps[step](self, &by[fast]);
                double ns = cpu_ns() - begin;

                best[step][fast] = turn == 0 || ns < best[step][fast] ? ns : best[step][fast];
            }
        }
    }
    double copy = (double)self->bytes / best[COPY][1];

    printf("%-8s %24.2f GB/s\n", names[COPY], copy);
    for (int step = FIND; step < STEPS; step++) {
        double plain = (double)bytes[step] / best[step][0], fast = (double)bytes[step] / best[step][1];

        printf("%-8s plain %5.2f  fast %6.2f GB/s, %.2f of a copy\n", names[step], plain, fast, fast / copy);
    }
}

int main(int argc, char **argv)
{
    static const char *const names[] = {"reviewText", "overall"};
    static bench self;
    /* With memory for all words it writes no file. */
    pace__word_counter_plan plan = {.directory = "/tmp", .name = "bench_text", .memory = (size_t)64 << 20};

    plan.stops = pace__english_stops(true, &plan.stop_count);
    self.lines = pace__pages_alloc(BYTES_MAX + PACE__TEXT_PADDING);
    self.copy = pace__pages_alloc(BYTES_MAX + PACE__TEXT_PADDING);
    self.texts = pace__pages_alloc(BYTES_MAX + PACE__TEXT_PADDING);
    self.line = calloc(LINES_MAX, sizeof *self.line);
    self.escaped = calloc(LINES_MAX, sizeof *self.escaped);
    self.text = calloc(LINES_MAX, sizeof *self.text);
    self.ids = calloc(LINE_BYTES_MAX, sizeof *self.ids);
    if (!self.lines || !self.copy || !self.texts || !self.line || !self.escaped || !self.text || !self.ids ||
        pace__jsonl_fields_init(&self.fields, names, 2, NULL) ||
        pace__tokens_reserve(&self.tokens, LINE_BYTES_MAX, NULL) ||
        pace__word_counter_create(&plan, NULL, &self.counter))
        return 1;
    make_lines(&self);
    if (!make_texts(&self))
        return 1;
    run_tokenise(&self, &(kernels){.tokens = &pace__tokens_plain});
    printf("%zu lines of %zu bytes, %zu of them text, %.1f words in each; %s kernels\n", self.line_count,
           self.bytes / self.line_count, self.text_bytes / self.line_count,
           (double)self.token_count / (double)self.line_count, pace_kernels_name(pace_kernels_in_use()));
    run(&self, argc > 1 ? atoi(argv[1]) : 7);
    pace__word_counter_free(self.counter);
    pace__tokens_release(&self.tokens);
    return self.sum == 0;
}
