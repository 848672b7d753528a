/*
 * Counted words against counting by hand: the vocabulary and every text's ids are the same whatever the
 * memory, the number of counters and that of partitions. Damaged files are refused.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "gen/zipf.h"
#include "prep/reviews/words.h"
#include "prep/reviews/words_file.h"
#include "prep/reviews/words_internal.h"
#include "threads/thread.h"

#include "counters.h"

#define ROOMY      ((size_t)64 << 20)
#define RANKS      250000
#define TEXTS      1200
#define WORDS_MAX  400
#define COUNTERS   2
#define PARTITIONS 7
#define STOPS      40

static char *path_of(void **state, const char *name, uint32_t number)
{
    char *path = pace__format("%s/%s-%u", (const char *)*state, name, number);

    assert_non_null(path);
    return path;
}

/* --- texts, and what is in them --- */

typedef struct spelling {
    char text[PACE__TOKEN_BYTES_MAX + 1];
    uint32_t size;
} spelling;

typedef struct corpus {
    spelling *words; /* (RANKS) */
    uint64_t *count; /* (RANKS) how often each occurs */
    uint32_t *rank;  /* of all words of all texts */
    size_t start[TEXTS + 1];
    pace__word stops[STOPS]; /* ranks 0, 3, 6, ... */
} corpus;

/* Different ranks, different words: letters, the rank, and sometimes more, up to the greatest size. */
static void spell(uint32_t rank, spelling *word)
{
    pace__random random = pace__random_at(11, rank);
    uint32_t letters = (uint32_t)pace__random_below(&random, 6), size = 0;
    uint32_t more = rank % 4 == 1 ? (uint32_t)pace__random_below(&random, 60) : 0;

    for (uint32_t i = 0; i < letters; i++)
        word->text[size++] = (char)('a' + pace__random_below(&random, 26));
    if (rank % 97 == 5)
        size += (uint32_t)sprintf(word->text + size, "\u00e9");
    size += (uint32_t)sprintf(word->text + size, "%u", rank);
    for (uint32_t i = 0; i < more && size < PACE__TOKEN_BYTES_MAX; i++)
        word->text[size++] = 'x';
    word->text[size] = '\0';
    word->size = size;
}

static corpus *make_corpus(uint64_t seed)
{
    corpus *self = calloc(1, sizeof *self);
    pace__random random = pace__random_at(seed, 1);
    static pace__zipf zipf;

    assert_non_null(self);
    self->words = calloc(RANKS, sizeof *self->words);
    self->count = calloc(RANKS, sizeof *self->count);
    self->rank = calloc((size_t)TEXTS * WORDS_MAX, sizeof *self->rank);
    assert_true(self->words && self->count && self->rank);
    for (uint32_t i = 0; i < RANKS; i++)
        spell(i, &self->words[i]);
    pace__zipf_init(&zipf, RANKS, 0.4);
    for (size_t text = 0; text < TEXTS; text++) {
        size_t words = text % 100 == 3 ? 0 : pace__random_below(&random, WORDS_MAX), at = self->start[text];

        for (size_t i = 0; i < words; i++) {
            self->rank[at] = pace__zipf_draw(&zipf, pace__random_next(&random), &random);
            self->count[self->rank[at++]]++;
        }
        self->start[text + 1] = at;
    }
    for (uint32_t i = 0; i < STOPS; i++)
        self->stops[i] = (pace__word){.text = self->words[3 * i].text, .size = self->words[3 * i].size};
    return self;
}

static void free_corpus(corpus *self)
{
    free(self->words);
    free(self->count);
    free(self->rank);
    free(self);
}

static bool is_stop(uint32_t rank)
{
    return rank % 3 == 0 && rank / 3 < STOPS;
}

static const corpus *sorting;

static int compare_ranks(const void *left, const void *right)
{
    uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;

    if (sorting->count[a] != sorting->count[b])
        return sorting->count[a] > sorting->count[b] ? -1 : 1;
    return strcmp(sorting->words[a].text, sorting->words[b].text);
}

/* What the vocabulary has to be. */
static pace__vocabulary *count_by_hand(const corpus *self, uint32_t keep, uint64_t *distinct)
{
    uint32_t *ranks = calloc(RANKS, sizeof *ranks), count = 0;
    pace__word *words = calloc(RANKS, sizeof *words);
    pace__vocabulary *vocabulary = NULL;

    assert_true(ranks && words);
    for (uint32_t i = 0; i < RANKS; i++) {
        if (self->count[i] > 0 && !is_stop(i))
            ranks[count++] = i;
    }
    sorting = self;
    qsort(ranks, count, sizeof *ranks, compare_ranks);
    *distinct = count;
    count = count < keep ? count : keep;
    for (uint32_t i = 0; i < count; i++) {
        const spelling *from = &self->words[ranks[i]];

        words[i] = (pace__word){.text = from->text, .size = from->size, .count = self->count[ranks[i]]};
    }
    assert_ok(pace__vocabulary_create(words, count, self->stops, STOPS, &said_log, &vocabulary));
    free(words);
    free(ranks);
    return vocabulary;
}

/* --- the same by counters --- */

typedef struct job {
    const corpus *corpus;
    const char *directory;
    size_t memory;
    int counters;
    pace__word_counter *counter[COUNTERS];
    uint32_t generation[TEXTS], kept[TEXTS];
    uint32_t *locals; /* of a text from its start on */
} job;

/* A text as raw input has it. */
static pace__tokens tokens_of(const corpus *from, size_t text)
{
    size_t size = 0;
    char *raw = calloc((from->start[text + 1] - from->start[text]) * (PACE__TOKEN_BYTES_MAX + 1) + 64, 1);
    pace__tokens tokens = {0};

    require(raw);
    for (size_t i = from->start[text]; i < from->start[text + 1]; i++) {
        memcpy(raw + size, from->words[from->rank[i]].text, from->words[from->rank[i]].size);
        size += from->words[from->rank[i]].size;
        raw[size++] = ' ';
    }
    require(pace__tokenise(&tokens, raw, size, &said_log) == PACE_OK);
    require(tokens.count == from->start[text + 1] - from->start[text]);
    free(raw);
    return tokens;
}

static pace_status count_texts(void *arg, int thread)
{
    job *self = arg;
    char name[16];
    pace__word_counter_plan plan = {.directory = self->directory,
                                    .name = name,
                                    .memory = self->memory,
                                    .stops = self->corpus->stops,
                                    .stop_count = STOPS};
    pace__word_counter **counter = &self->counter[thread];

    snprintf(name, sizeof name, "words-%d", thread);
    require(pace__word_counter_create(&plan, &said_log, counter) == PACE_OK);
    for (size_t text = (size_t)thread; text < TEXTS; text += (size_t)self->counters) {
        pace__tokens tokens = tokens_of(self->corpus, text);

        require(pace__word_counter_make_room(*counter, tokens.count) == PACE_OK);
        self->generation[text] = pace__word_counter_generation(*counter);
        self->kept[text] =
            (uint32_t)pace__word_counter_add(*counter, &tokens, self->locals + self->corpus->start[text]);
        pace__tokens_release(&tokens);
    }
    return pace__word_counter_finish(*counter);
}

static void check_stats(const job *self, uint64_t distinct)
{
    pace__word_stats sum = {0};
    uint64_t stopped = 0;

    for (int i = 0; i < self->counters; i++) {
        pace__word_stats stats = pace__word_counter_stats(self->counter[i]);

        sum.words += stats.words;
        sum.stopped += stats.stopped;
        sum.distinct += stats.distinct;
        sum.bytes += stats.bytes;
        sum.generations += stats.generations;
    }
    for (uint32_t i = 0; i < STOPS; i++)
        stopped += self->corpus->count[3 * i];
    assert_int_equal(sum.words, self->corpus->start[TEXTS]);
    assert_int_equal(sum.stopped, stopped);
    assert_true(sum.bytes > sum.distinct * PACE__WORDS_ENTRY);
    assert_int_equal(count_entries(self->directory), sum.generations);
    if (self->memory == ROOMY)
        assert_int_equal(sum.generations, self->counters);
    else
        assert_true(sum.generations >= 2 * (uint32_t)self->counters);
    assert_true(self->memory == ROOMY && self->counters == 1 ? sum.distinct == distinct
                                                             : sum.distinct > distinct);
}

/* Paths of all counters' files. */
static char **all_paths(const job *self, size_t *count)
{
    char **paths = calloc(10000, sizeof *paths);

    assert_non_null(paths);
    *count = 0;
    for (int i = 0; i < self->counters; i++) {
        uint32_t generations = pace__word_counter_stats(self->counter[i]).generations;
        char **some = pace__word_counter_paths(self->counter[i]);

        assert_non_null(some);
        for (uint32_t j = 0; j < generations; j++)
            paths[(*count)++] = some[j];
        free(some);
    }
    return paths;
}

static void free_paths(char **paths, size_t count)
{
    for (size_t i = 0; i < count; i++)
        free(paths[i]);
    free(paths);
}

static pace__vocabulary *reduce(void **state, const job *self, uint32_t partitions, uint32_t keep,
                                uint64_t *distinct)
{
    char *outputs[PARTITIONS];
    size_t count;
    char **paths = all_paths(self, &count);
    pace__vocabulary *vocabulary = NULL;

    *distinct = 0;
    for (uint32_t i = 0; i < partitions; i++) {
        uint64_t here;

        outputs[i] = path_of(state, "top", i);
        assert_ok(pace__words_reduce((const char *const *)paths, count, i, partitions, keep, outputs[i],
                                     &here, &said_log));
        *distinct += here;
    }
    assert_ok(pace__words_join((const char *const *)outputs, partitions, keep, self->corpus->stops, STOPS,
                               &said_log, &vocabulary));
    for (uint32_t i = 0; i < partitions; i++) {
        assert_int_equal(unlink(outputs[i]), 0);
        free(outputs[i]);
    }
    free_paths(paths, count);
    return vocabulary;
}

/* Every text's local ids, translated, are the ids of its words. */
static void check_ids(const job *self, const pace__vocabulary *vocabulary)
{
    const corpus *from = self->corpus;

    for (int counter = 0; counter < self->counters; counter++) {
        uint32_t generations = pace__word_counter_stats(self->counter[counter]).generations;
        char **paths = pace__word_counter_paths(self->counter[counter]);

        for (uint32_t generation = 0; generation < generations; generation++) {
            uint32_t *ids, count;

            assert_ok(pace__words_translate(paths[generation], vocabulary, &said_log, &ids, &count));
            for (size_t text = (size_t)counter; text < TEXTS; text += (size_t)self->counters) {
                uint32_t at = 0;

                if (self->generation[text] != generation)
                    continue;
                for (size_t i = from->start[text]; i < from->start[text + 1]; i++) {
                    const spelling *word = &from->words[from->rank[i]];
                    uint64_t hash = pace__word_hash(word->text, word->size);

                    if (is_stop(from->rank[i]))
                        continue;
                    uint32_t local = self->locals[from->start[text] + at++];

                    assert_true(local < count);
                    assert_int_equal(ids[local],
                                     pace__vocabulary_find(vocabulary, hash, word->text, word->size));
                }
                assert_int_equal(at, self->kept[text]);
            }
            free(ids);
        }
        free_paths(paths, generations);
    }
}

static void run(void **state, const corpus *from, size_t memory, int counters, uint32_t partitions,
                uint32_t keep)
{
    job *self = calloc(1, sizeof *self);
    uint64_t distinct, found;
    pace__vocabulary *expected = count_by_hand(from, keep, &distinct);

    assert_non_null(self);
    *self = (job){.corpus = from, .directory = *state, .memory = memory, .counters = counters};
    self->locals = calloc(from->start[TEXTS] + 1, sizeof *self->locals);
    assert_non_null(self->locals);
    assert_ok(pace__team(counters, count_texts, self, &said_log));
    check_stats(self, distinct);
    pace__vocabulary *vocabulary = reduce(state, self, partitions, keep, &found);

    assert_int_equal(found, distinct);
    assert_true(pace__vocabulary_checksum(vocabulary) == pace__vocabulary_checksum(expected));
    check_ids(self, vocabulary);
    for (int i = 0; i < counters; i++)
        pace__word_counter_free(self->counter[i]);
    assert_int_equal(count_entries(*state), 0);
    pace__vocabulary_free(vocabulary);
    pace__vocabulary_free(expected);
    free(self->locals);
    free(self);
}

static void test_same_as_by_hand(void **state)
{
    uint64_t seed = 20240131;
    corpus *from = make_corpus(seed);

    print_message("seed %llu, %zu words\n", (unsigned long long)seed, from->start[TEXTS]);
    run(state, from, ROOMY, 1, 1, 5000);
    run(state, from, PACE__WORDS_MEMORY_MIN, 1, 2, 5000);
    run(state, from, PACE__WORDS_MEMORY_MIN, COUNTERS, PARTITIONS, 300000);
    run(state, from, ROOMY, 2, 5, 10);
    free_corpus(from);
}

/* --- small counters --- */

/* The text form of the vocabulary of one counter; to be freed. */
static char *vocabulary_of(void **state, pace__word_counter *counter, uint32_t keep)
{
    const char *output = in(state, "top");
    pace__vocabulary *vocabulary = NULL;
    uint64_t distinct;
    size_t size;
    char *text;

    assert_ok(pace__word_counter_finish(counter));
    uint32_t count = pace__word_counter_stats(counter).generations;
    char **paths = pace__word_counter_paths(counter);

    assert_ok(
        pace__words_reduce((const char *const *)paths, count, 0, 1, keep, output, &distinct, &said_log));
    assert_ok(pace__words_join(&output, 1, keep, NULL, 0, &said_log, &vocabulary));
    assert_ok(pace__vocabulary_to_text(vocabulary, &said_log, &text, &size));
    pace__vocabulary_free(vocabulary);
    free_paths(paths, count);
    unlink(output);
    text = realloc(text, size + 1);
    assert_non_null(text);
    text[size] = '\0';
    return text;
}

static void test_ties_by_spelling(void **state)
{
    static const char *const expected[] = {"\n",
                                           "b\t3\n\n",
                                           "b\t3\na\t2\n\n",
                                           "b\t3\na\t2\nab\t2\n\n",
                                           "b\t3\na\t2\nab\t2\nc\t2\n\n",
                                           "b\t3\na\t2\nab\t2\nc\t2\nz\t1\n\n"};

    for (uint32_t keep = 0; keep < 6; keep++) {
        pace__word_counter *counter = make_counter(state, "words");
        uint32_t ids[16];

        assert_int_equal(add_text(counter, "c ab b a", ids), 4);
        assert_int_equal(ids[0], 0);
        assert_int_equal(ids[3], 3);
        assert_int_equal(add_text(counter, "", NULL), 0);
        assert_int_equal(add_text(counter, "Z a, b ab c B", ids), 6);
        assert_int_equal(ids[0], 4);
        assert_int_equal(ids[1], 3);
        assert_int_equal(ids[5], 2);
        char *text = vocabulary_of(state, counter, keep);

        assert_string_equal(text, expected[keep]);
        free(text);
        pace__word_counter_free(counter);
    }
}

static void test_no_words(void **state)
{
    pace__word_counter *counter = make_counter(state, "words");
    char *text = vocabulary_of(state, counter, 10);
    uint32_t *ids, count;
    pace__vocabulary *vocabulary = NULL;

    assert_string_equal(text, "\n");
    assert_int_equal(pace__word_counter_stats(counter).generations, 1);
    assert_ok(pace__vocabulary_from_text(text, 1, "here", &said_log, &vocabulary));
    assert_ok(pace__words_translate(in(state, "words-0"), vocabulary, &said_log, &ids, &count));
    assert_int_equal(count, 0);
    free(ids);
    free(text);
    pace__vocabulary_free(vocabulary);
    pace__word_counter_free(counter);
    pace__word_counter_free(NULL);
}

/* A text of more words than the memory has room for has a generation of its own. */
static void test_a_text_larger_than_memory(void **state)
{
    pace__word_counter *counter = make_counter(state, "words");
    char *huge = many_words(100000, "h");

    add_text(counter, "one h7", NULL);
    assert_int_equal(pace__word_counter_generation(counter), 0);
    add_text(counter, huge, NULL);
    assert_int_equal(pace__word_counter_generation(counter), 1);
    add_text(counter, "one h7", NULL);
    assert_int_equal(pace__word_counter_generation(counter), 2);
    add_text(counter, "one", NULL);
    assert_int_equal(pace__word_counter_generation(counter), 2);
    char *text = vocabulary_of(state, counter, 3);

    assert_string_equal(text, "h7\t3\none\t3\nh0\t1\n\n");
    assert_int_equal(pace__word_counter_stats(counter).distinct, 100004);
    free(text);
    free(huge);
    pace__word_counter_free(counter);
    assert_int_equal(count_entries(*state), 0);
}

/*
 * Two words of 16 letters with the same hash. Of the first 8 letters the hash takes a number, to which those
 * of the next 8 are added: so the difference of two such numbers has to be one of two letters in every byte,
 * which holds for one pair in 2^19.
 */
static bool find_collision(char first[17], char second[17])
{
    enum { TRIES = 3000 };
    static uint64_t number[TRIES], letters[TRIES];
    pace__random random = pace__random_at(3, 4);

    for (int i = 0; i < TRIES; i++) {
        for (int j = 0; j < 8; j++)
            letters[i] |= ('a' + pace__random_below(&random, 26)) << 8 * j;
        number[i] = letters[i] * PACE__TOKEN_HASH_FIRST;
        number[i] ^= number[i] >> 32;
    }
    for (int i = 0; i < TRIES; i++) {
        for (int j = 0; j < TRIES; j++) {
            uint64_t difference = number[i] - number[j], borrow = 0;
            int byte = 0;

            for (; byte < 8 && i != j; byte++) {
                uint64_t step = (difference >> 8 * byte & 0xff) + borrow;

                if (step > 25 && step < 231)
                    break;
                borrow = step >= 231;
                first[8 + byte] = (char)(borrow ? (step == 256 ? 'a' : 'a' + 256 - (int)step) : 'a');
                second[8 + byte] = (char)(borrow ? 'a' : 'a' + (int)step);
            }
            if (byte == 8) {
                memcpy(first, &letters[i], 8);
                memcpy(second, &letters[j], 8);
                first[16] = second[16] = '\0';
                return true;
            }
        }
    }
    return false;
}

static void test_equal_hashes_are_not_equal_words(void **state)
{
    char a[17], b[17], text[128], expected[128];

    assert_true(find_collision(a, b));
    assert_true(strcmp(a, b) != 0 && pace__word_hash(a, 16) == pace__word_hash(b, 16));
    print_message("%s and %s have the same hash\n", a, b);
    pace__word_counter *counter = make_counter(state, "words");
    uint32_t ids[8];

    snprintf(text, sizeof text, "%s %s zzzz %s", a, b, b);
    assert_int_equal(add_text(counter, text, ids), 4);
    assert_true(ids[0] == 0 && ids[1] == 1 && ids[2] == 2 && ids[3] == 1);
    char *made = vocabulary_of(state, counter, 10);

    snprintf(expected, sizeof expected, "%s\t2\n%s\t1\nzzzz\t1\n\n", b, a);
    assert_string_equal(made, expected);
    pace__vocabulary *vocabulary = NULL;
    uint32_t *translated, count;

    assert_ok(pace__vocabulary_from_text(made, strlen(made), "here", &said_log, &vocabulary));
    assert_ok(pace__words_translate(in(state, "words-0"), vocabulary, &said_log, &translated, &count));
    assert_int_equal(count, 3);
    assert_true(translated[0] == 4 && translated[1] == 3 && translated[2] == 5);
    free(translated);
    free(made);
    pace__vocabulary_free(vocabulary);
    pace__word_counter_free(counter);
}

/* Slots that a set looks at find the record that is there, or one that is another word's; and those that plain kernels find are
 * found by all. */
static void check_places(const pace__word_counter *counter, const pace__tokens *tokens)
{
    uint32_t plain[WORDS_MAX], fast[WORDS_MAX];

    assert_true(tokens->count <= WORDS_MAX);
    pace__words_plain.find(counter, tokens->hash, tokens->count, plain);
    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END; set++) {
        if (!pace_kernels_run(set))
            continue;
        pace__words_of(set)->find(counter, tokens->hash, tokens->count, fast);
        for (size_t i = 0; i < tokens->count; i++)
            assert_true(plain[i] == 0 || plain[i] == fast[i]);
    }
}

static void test_kernels_find_the_same(void **state)
{
    corpus *from = make_corpus(7);
    pace__word_counter *counter = make_counter(state, "words");
    uint32_t first[WORDS_MAX], again[WORDS_MAX];

    for (size_t text = 0; text < 60; text++) {
        pace__tokens tokens = tokens_of(from, text);
        size_t kept = 0;

        assert_ok(pace__word_counter_make_room(counter, tokens.count));
        for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
            if (!pace_kernels_run(set))
                continue;
            counter->kernels = pace__words_of(set);
            if (set == PACE_KERNELS_PLAIN) {
                kept = pace__word_counter_add(counter, &tokens, first);
                continue;
            }
            assert_int_equal(pace__word_counter_add(counter, &tokens, again), kept);
            assert_memory_equal(again, first, kept * sizeof *first);
        }
        check_places(counter, &tokens);
        pace__tokens_release(&tokens);
    }
    assert_int_equal(pace__word_counter_generation(counter), 0);
    pace__word_counter_free(counter);
    free_corpus(from);
}

/* --- files --- */

/* More files than are kept open. Word i is in the files whose number i divides. */
static void test_many_files(void **state)
{
    enum { FILES = 300, WORDS = 200 };
    char *paths[FILES];
    pace__counted words[WORDS];
    char texts[WORDS][8];
    uint64_t distinct, bytes;
    pace__vocabulary *vocabulary = NULL;
    const char *output = in(state, "top");

    for (uint32_t i = 0; i < WORDS; i++) {
        snprintf(texts[i], sizeof texts[i], "w%u", i + 1);
        words[i].word = (pace__word){.text = texts[i], .size = (uint32_t)strlen(texts[i]), .count = i + 1};
        words[i].hash = pace__word_hash(texts[i], strlen(texts[i]));
        words[i].local = i;
        for (uint32_t j = i; j > 0 && words[j - 1].hash > words[j].hash; j--) {
            pace__counted kept = words[j];

            words[j] = words[j - 1];
            words[j - 1] = kept;
        }
    }
    for (uint32_t file = 0; file < FILES; file++) {
        pace__words_writer writer;

        paths[file] = path_of(state, "file", file);
        assert_ok(pace__words_writer_open(&writer, paths[file], &said_log));
        for (uint32_t i = 0; i < WORDS; i++) {
            if (file % (words[i].local + 1) == 0)
                assert_ok(pace__words_writer_put(&writer, &words[i]));
        }
        assert_ok(pace__words_writer_close(&writer, PACE_OK, &bytes));
    }
    assert_ok(
        pace__words_reduce((const char *const *)paths, FILES, 0, 1, WORDS, output, &distinct, &said_log));
    assert_int_equal(distinct, WORDS);
    assert_ok(pace__words_join(&output, 1, WORDS, NULL, 0, &said_log, &vocabulary));
    for (uint32_t id = PACE__ID_WORDS; id < pace__vocabulary_ids(vocabulary); id++) {
        pace__word word = pace__vocabulary_word(vocabulary, id);
        uint32_t number = (uint32_t)atoi(word.text + 1);

        assert_int_equal(word.count, (uint64_t)number * ((FILES - 1) / number + 1));
    }
    pace__vocabulary_free(vocabulary);
    for (uint32_t file = 0; file < FILES; file++)
        free(paths[file]);
}

static void flip(const char *path, size_t at, char bits)
{
    int fd = open(path, O_RDWR);
    char byte;

    assert_true(fd >= 0 && pread(fd, &byte, 1, (off_t)at) == 1);
    byte = (char)(byte ^ bits);
    assert_int_equal(pwrite(fd, &byte, 1, (off_t)at), 1);
    close(fd);
}

/* Is what was changed found? Either way there is one error or none. */
static bool translate_refuses(const char *path, const pace__vocabulary *vocabulary)
{
    uint32_t *ids = NULL, count;

    said_clear();
    pace_status status = pace__words_translate(path, vocabulary, &said_log, &ids, &count);

    if (status) {
        assert_failed(status, PACE_BAD_DATA, path);
        return true;
    }
    free(ids);
    return false;
}

static void test_damaged_generations(void **state)
{
    pace__word_counter *counter = make_counter(state, "words");

    add_text(counter, "one two three four two onceuponatimetherewasawordlongerthanthat", NULL);
    char *text = vocabulary_of(state, counter, 10), *path = path_of(state, "words", 0);
    size_t size = (size_t)pace__word_counter_stats(counter).bytes, counts = 0;
    pace__vocabulary *vocabulary = NULL;

    assert_ok(pace__vocabulary_from_text(text, strlen(text), "here", &said_log, &vocabulary));
    assert_false(translate_refuses(path, vocabulary));
    for (size_t at = 0; at < size; at++) {
        flip(path, at, 0x10);
        bool refused = translate_refuses(path, vocabulary);

        /* A range may begin elsewhere: whoever begins to read there finds no word. */
        assert_true(refused || at >= offsetof(pace__words_header, range_at[1]));
        counts += !refused && at >= sizeof(pace__words_header);
        flip(path, at, 0x10);
    }
    /* Four bytes of each of the five counts are the only ones of words that nothing tells. */
    assert_int_equal(counts, 5 * 4);
    for (size_t left = size; left > 0; left -= left > 300 ? 97 : 1) {
        assert_int_equal(truncate(path, (off_t)left), 0);
        assert_int_equal(translate_refuses(path, vocabulary), left < size);
    }
    assert_int_equal(unlink(path), 0);
    uint32_t *ids, count;

    assert_failed(pace__words_translate(path, vocabulary, &said_log, &ids, &count), PACE_NO_INPUT, path);
    const char *missing = path;
    uint64_t distinct;

    assert_failed(pace__words_reduce(&missing, 1, 0, 1, 10, in(state, "top"), &distinct, &said_log),
                  PACE_NO_INPUT, path);
    pace__vocabulary_free(vocabulary);
    pace__word_counter_free(counter);
    free(path);
    free(text);
}

/* All that a reducer's output can suffer is refused, or is another vocabulary. */
static void test_damaged_outputs(void **state)
{
    pace__word_counter *counter = make_counter(state, "words");
    const char *output = in(state, "output"), *path = in(state, "words-0");
    pace__vocabulary *vocabulary = NULL;
    uint64_t distinct;
    struct stat info;
    size_t refused = 0;

    add_text(counter, "one two three four two two four", NULL);
    assert_ok(pace__word_counter_finish(counter));
    assert_ok(pace__words_reduce(&path, 1, 0, 1, 10, output, &distinct, &said_log));
    assert_int_equal(stat(output, &info), 0);
    for (size_t at = 0; at < (size_t)info.st_size; at++) {
        flip(output, at, 0x40);
        said_clear();
        pace_status status = pace__words_join(&output, 1, 10, NULL, 0, &said_log, &vocabulary);

        if (status) {
            assert_failed(status, PACE_BAD_DATA, "");
            refused++;
        } else {
            pace__vocabulary_free(vocabulary);
        }
        flip(output, at, 0x40);
    }
    assert_true(refused > 24 + 4);
    for (off_t cut = 1; cut <= info.st_size; cut++) {
        assert_int_equal(truncate(output, info.st_size - cut), 0);
        assert_failed(pace__words_join(&output, 1, 10, NULL, 0, &said_log, &vocabulary), PACE_BAD_DATA,
                      output);
    }
    unlink(output);
    assert_failed(pace__words_join(&output, 1, 10, NULL, 0, &said_log, &vocabulary), PACE_NO_INPUT, output);
    pace__word_counter_free(counter);
}

static void test_nowhere_to_write(void **state)
{
    pace__word_counter_plan plan = {
        .directory = in(state, "missing"), .name = "words", .memory = PACE__WORDS_MEMORY_MIN};
    pace__word_counter *counter = NULL;

    assert_ok(pace__word_counter_create(&plan, &said_log, &counter));
    add_text(counter, "one", NULL);
    assert_failed(pace__word_counter_finish(counter), PACE_IO, "missing/words-0: cannot create");
    pace__word_counter_free(counter);
}

#define IN_DIRECTORY(test) cmocka_unit_test_setup_teardown(test, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_DIRECTORY(test_same_as_by_hand),
        IN_DIRECTORY(test_ties_by_spelling),
        IN_DIRECTORY(test_no_words),
        IN_DIRECTORY(test_a_text_larger_than_memory),
        IN_DIRECTORY(test_equal_hashes_are_not_equal_words),
        IN_DIRECTORY(test_kernels_find_the_same),
        IN_DIRECTORY(test_many_files),
        IN_DIRECTORY(test_damaged_generations),
        IN_DIRECTORY(test_damaged_outputs),
        IN_DIRECTORY(test_nowhere_to_write),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
