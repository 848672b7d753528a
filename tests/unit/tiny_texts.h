/*
 * tiny_texts.h - tiny data sets of texts, made without prep; beside those of support.h, behind which it is
 * included.
 *
 *     tiny_texts set = tiny_texts_make((tiny_texts_plan){.train = 1000, .words = 50, .length = 12});
 *     tiny_texts_write(&set, in(state, "set"));
 *     ...
 *     tiny_texts_free(&set);
 *
 * The words are "w0", "w1", ...; "the" and "of" are stop words. A text is positive if it has more words with
 * an even number than with an odd one.
 */
#ifndef UNIT_TINY_TEXTS_H
#define UNIT_TINY_TEXTS_H

#include "data/text/vocabulary.h"

#include "support.h"

typedef struct tiny_texts_plan {
    uint64_t train, test, validation; /* rows */
    uint32_t words, length;
    bool front;
    uint32_t parts;
    uint64_t seed;
} tiny_texts_plan;

typedef struct tiny_texts {
    tiny_texts_plan plan;
    pace__vocabulary *vocabulary;
    pace__store_info info;
    uint32_t *ids[PACE__SETS], *length[PACE__SETS];
    uint8_t *label[PACE__SETS];
} tiny_texts;

/* `from`: the number of the first word, so that vocabularies may differ. */
static inline pace__vocabulary *tiny_vocabulary(uint32_t words, uint32_t from)
{
    static const pace__word stops[] = {{"of", 2, 0}, {"the", 3, 0}};
    pace__word *list = tiny_alloc(words * sizeof *list);
    char *names = tiny_alloc((size_t)words * 16);
    pace__vocabulary *vocabulary;

    for (uint32_t i = 0; i < words; i++) {
        char *name = names + (size_t)i * 16;

        list[i] = (pace__word){name, (uint32_t)snprintf(name, 16, "w%u", from + i), 3 * (words - i)};
    }
    assert_ok(pace__vocabulary_create(list, words, stops, 2, &said_log, &vocabulary));
    free(names);
    free(list);
    return vocabulary;
}

static inline void tiny_texts_fill(tiny_texts *set, int which, pace__random *random)
{
    uint32_t columns = set->plan.length;
    uint64_t rows = set->info.rows[which];

    set->ids[which] = tiny_alloc(rows * columns * 4);
    set->length[which] = tiny_alloc(rows * 4);
    set->label[which] = tiny_alloc(rows);
    for (uint64_t row = 0; row < rows; row++) {
        uint32_t length = 1 + (uint32_t)pace__random_below(random, columns);
        uint32_t *ids = set->ids[which] + row * columns + (set->plan.front ? columns - length : 0);
        int balance = 0;

        for (uint32_t i = 0; i < length; i++) {
            uint32_t word = (uint32_t)(set->plan.words * pow(pace__random_unit(random), 2));
            bool unknown = pace__random_below(random, 10) == 0;

            ids[i] = unknown ? PACE__ID_UNKNOWN : PACE__ID_WORDS + word;
            balance += unknown ? 0 : word % 2 ? -1 : 1;
        }
        if (length == 1 && pace__random_below(random, 4) == 0)
            ids[0] = PACE__ID_EMPTY;
        set->length[which][row] = length;
        set->label[which][row] = balance > 0;
        set->info.positives[which] += balance > 0;
    }
}

static inline tiny_texts tiny_texts_make(tiny_texts_plan plan)
{
    pace__random random = pace__random_at(plan.seed, 2);
    tiny_texts set = {.plan = plan, .vocabulary = tiny_vocabulary(plan.words, 0)};

    set.info = (pace__store_info){
        .encoding = {.kind = PACE__TEXT,
                     .features = pace__vocabulary_ids(set.vocabulary),
                     .length = plan.length,
                     .pad_front = plan.front,
                     .vocabulary = pace__vocabulary_checksum(set.vocabulary)},
        .columns = plan.length,
        .ids_seen = pace__vocabulary_ids(set.vocabulary),
        .row_entries_max = plan.length,
        .parts = plan.parts ? plan.parts : 1,
        .seed = (int64_t)plan.seed,
        .rows = {plan.train, plan.test, plan.validation},
        .entries = {plan.train * plan.length, plan.test * plan.length, plan.validation * plan.length},
        .command = "made by a test"};
    for (int which = 0; which < PACE__SETS; which++)
        tiny_texts_fill(&set, which, &random);
    return set;
}

static inline void tiny_texts_free(tiny_texts *set)
{
    for (int which = 0; which < PACE__SETS; which++) {
        free(set->ids[which]);
        free(set->length[which]);
        free(set->label[which]);
    }
    pace__vocabulary_free(set->vocabulary);
}

/* All rows of a set as a model sees them. */
static inline pace__rows tiny_texts_view(const tiny_texts *set, int which)
{
    return (pace__rows){.rows = set->info.rows[which],
                        .columns = set->info.columns,
                        .ids = set->ids[which],
                        .label = set->label[which],
                        .length = set->length[which],
                        .front = set->plan.front};
}

/* The first row of a part. */
static inline uint64_t tiny_texts_first(const tiny_texts *set, int which, uint32_t part)
{
    return set->info.rows[which] * part / set->info.parts;
}

/* As prep would leave it before it is sealed. */
static inline void tiny_texts_write(const tiny_texts *set, const char *directory)
{
    assert_ok(pace__make_dirs(directory, &said_log));
    for (uint32_t i = 0; i < set->info.parts; i++) {
        pace__part part = {.fd = -1};

        for (int which = 0; which < PACE__SETS; which++) {
            part.sets[which].rows = tiny_texts_first(set, which, i + 1) - tiny_texts_first(set, which, i);
            part.sets[which].lead = tiny_lead(&set->info, tiny_texts_first(set, which, i));
            part.sets[which].entries = part.sets[which].rows * set->info.columns;
        }
        assert_ok(pace__part_create(directory, i, &set->info, &part, &said_log));
        for (int which = 0; which < PACE__SETS; which++) {
            uint64_t first = tiny_texts_first(set, which, i);
            const pace__part_set *to = &part.sets[which];

            if (set->info.rows[which] == 0)
                continue;
            tiny_put(&part, to->label_at, set->label[which] + first, to->rows);
            tiny_put(&part, to->ids_at, set->ids[which] + first * set->info.columns, to->entries * 4);
            tiny_put(&part, to->length_at, set->length[which] + first, to->rows * 4);
        }
        tiny_finish(&set->info, &part);
    }
    assert_ok(pace__vocabulary_write(set->vocabulary, directory, &said_log));
}

#endif
