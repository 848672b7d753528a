#include "gen/review_text.h"

#include "gen/elementary.h"
#include "gen/review_words.h"
#include "gen/zipf.h"

#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* All in percent. */
#define GOOD_MOODS     83 /* of the reviews */
#define TRUE_TO_MOOD   92 /* of the opinions */
#define OPINIONS       60 /* of the sentences; the first one always is */
#define CONTRASTS      22 /* of those that are long enough */
#define REAL_CONTRASTS 80 /* of these: the first half says the opposite */
#define NEGATED        36 /* of the clauses that are long enough */
#define INTENSE        30 /* the same */
#define IDLE_NEGATORS  45 /* of the sentences without opinion that are long enough */
#define IDLE_INTENSE   15 /* the same */

#define MEDIAN_LOG_WORDS 3.912 /* log 50 */
#define LOG_WORDS_SPREAD 0.80

#define CONTRAST_WORDS_MIN 11
/* So many words follow an idle negator, more than its scope, and clearly so. */
#define IDLE_WORDS_MIN 8
_Static_assert(IDLE_WORDS_MIN > PACE__NEGATOR_SCOPE && IDLE_WORDS_MIN > PACE__INTENSIFIER_SCOPE,
               "idle cues must be out of reach of the next sentence");

#define VOCABULARY_EXPONENT 1.02
/* Words behind the function words that stand in for one at the end of a phrase. */
#define COMMON_NOUNS 1500

static const char *const copula_texts[] = {"is",    "was",  "seems",  "looks",
                                           "feels", "felt", "sounds", "became"};
static const char *const subject_texts[] = {"it", "this", "that", "everything", "mine", "one", "he", "she"};
/* They stand in front of a polar word, in the scope of a negator or not. */
static const char *const filler_texts[] = {"a",   "the",  "all", "that", "as", "even", "exactly",  "one",
                                           "any", "what", "my",  "such", "in", "this", "entirely", "our"};
#define FILLERS_MAX 3
_Static_assert(FILLERS_MAX < PACE__NEGATOR_SCOPE, "a polar word must be in its negator's scope");

struct pace__review_language {
    pace__zipf zipf;
    uint32_t function_words; /* at the start of the vocabulary */
    pace__word cues[PACE__CUES], that;
    pace__word copulas[COUNT(copula_texts)], subjects[COUNT(subject_texts)], fillers[COUNT(filler_texts)];
    pace__word vocabulary[PACE__VOCABULARY];
};

/* A text in the making. */
typedef struct draft {
    const pace__review_language *language;
    pace__random *random;
    char *at; /* behind the last word and a space */
    pace__tone tone;
} draft;

static void fill_words(pace__word *words, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++)
        words[i] = pace__word_of(texts[i]);
}

pace__review_language *pace__review_language_create(void)
{
    pace__review_language *language = malloc(sizeof *language);

    if (!language)
        return NULL;
    pace__zipf_init(&language->zipf, PACE__VOCABULARY, VOCABULARY_EXPONENT);
    language->function_words = pace__vocabulary_fill(language->vocabulary);
    for (size_t i = 0; i < PACE__CUES; i++)
        language->cues[i] = pace__word_of(pace__cues[i].text);
    language->that = pace__word_of("that");
    fill_words(language->copulas, copula_texts, COUNT(copula_texts));
    fill_words(language->subjects, subject_texts, COUNT(subject_texts));
    fill_words(language->fillers, filler_texts, COUNT(filler_texts));
    return language;
}

void pace__review_language_free(pace__review_language *language)
{
    free(language);
}

static bool chance(draft *text, unsigned percent)
{
    return pace__random_below(text->random, 100) < percent;
}

/* 0 .. count - 1, the first ones more often. */
static unsigned draw_early(draft *text, unsigned count)
{
    uint64_t bits = pace__random_next(text->random);
    unsigned a = (unsigned)((bits >> 32) * count >> 32), b = (unsigned)((bits & UINT32_MAX) * count >> 32);

    return a < b ? a : b;
}

/* ---- words ---- */

static void put_text(draft *text, const char *bytes)
{
    size_t length = strlen(bytes);

    memcpy(text->at, bytes, length);
    text->at += length;
}

/* Without telling the tone. */
static void put_bytes(draft *text, const pace__word *word)
{
    memcpy(text->at, word, sizeof *word);
    text->at += word->length;
    *text->at++ = ' ';
}

static void put_word(draft *text, const pace__word *word)
{
    put_bytes(text, word);
    pace__tone_plain(&text->tone);
}

static void put_one_of(draft *text, const pace__word *words, unsigned count)
{
    put_word(text, &words[draw_early(text, count)]);
}

static unsigned draw_cue(draft *text, unsigned role)
{
    unsigned first = pace__first_cue(role);

    return first + draw_early(text, pace__first_cue(role + 1) - first);
}

static void put_that_cue(draft *text, unsigned cue)
{
    put_bytes(text, &text->language->cues[cue]);
    pace__tone_cue(&text->tone, &pace__cues[cue]);
}

static void put_cue(draft *text, unsigned role)
{
    put_that_cue(text, draw_cue(text, role));
}

/* In place of the space behind the last word. */
static void put_behind(draft *text, const char *bytes)
{
    text->at--;
    put_text(text, bytes);
}

/* What may stand around a word, with chances out of 4096. Most words have nothing. */
static const struct decoration {
    uint32_t chance;
    const char *front, *behind;
} decorations[] = {
    {200, "", ", "},     {10, "\\\"", "\\\" "}, {6, "&quot;", "&quot; "}, {4, "&#34;", "&#34; "},
    {4, "(", ") "},      {6, "", " &amp; "},    {3, "", " - "},           {3, "", "; "},
    {1, "<b>", "</b> "}, {1, "", "/"},
};
#define DECORATED 238 /* the sum of the chances */

static void put_decorated(draft *text, const pace__word *word, uint32_t bits)
{
    const struct decoration *decoration = decorations;

    for (; bits >= decoration->chance; decoration++)
        bits -= decoration->chance;
    put_text(text, decoration->front);
    put_word(text, word);
    put_behind(text, decoration->behind);
}

/* Words of the vocabulary. */
static void put_plain_words(draft *text, unsigned count)
{
    const pace__review_language *language = text->language;

    for (unsigned i = 0; i < count; i++) {
        uint64_t choice = pace__random_next(text->random);
        uint32_t rank = pace__zipf_draw(&language->zipf, choice, text->random);
        uint32_t bits = choice & 4095; /* far below those that choose the rank */

        if (bits < DECORATED)
            put_decorated(text, &language->vocabulary[rank], bits);
        else
            put_word(text, &language->vocabulary[rank]);
    }
}

/* The same, and the last of them is no function word: phrases do not end with "the". */
static void put_phrase(draft *text, unsigned count)
{
    const pace__review_language *language = text->language;

    if (count == 0)
        return;
    put_plain_words(text, count - 1);
    uint32_t rank = pace__zipf_draw(&language->zipf, pace__random_next(text->random), text->random);

    if (rank < language->function_words)
        rank = language->function_words + (uint32_t)pace__random_below(text->random, COMMON_NOUNS);
    put_word(text, &language->vocabulary[rank]);
}

static void put_subject(draft *text, unsigned count)
{
    if (count == 1)
        put_one_of(text, text->language->subjects, COUNT(subject_texts));
    else
        put_phrase(text, count);
}

/* ---- sentences ---- */

/* What stands between a clause's subject and its end. */
typedef struct core {
    bool negated, intense;
    unsigned fillers;
    unsigned words;
} core;

static core draw_core(draft *text)
{
    core inner = {.negated = chance(text, NEGATED), .intense = chance(text, INTENSE)};

    inner.fillers = draw_early(text, FILLERS_MAX + 1 - inner.intense);
    inner.words = 2 + inner.negated + inner.fillers + inner.intense; /* copula ... polar word */
    return inner;
}

/* "was", "was not", "that isn't" */
static void put_verb(draft *text, bool negated)
{
    const pace__review_language *language = text->language;

    if (!negated) {
        put_one_of(text, language->copulas, COUNT(copula_texts));
        return;
    }
    unsigned negator = draw_cue(text, PACE__NEGATOR);

    if (memchr(language->cues[negator].text, '\'', language->cues[negator].length))
        put_word(text, &language->that);
    else
        put_one_of(text, language->copulas, COUNT(copula_texts));
    put_that_cue(text, negator);
}

/* "was not all that very good" */
static void put_core(draft *text, const core *inner, bool praise)
{
    const pace__review_language *language = text->language;

    put_verb(text, inner->negated);
    for (unsigned i = 0; i < inner->fillers; i++)
        put_word(text, &language->fillers[pace__random_below(text->random, COUNT(filler_texts))]);
    if (inner->intense)
        put_cue(text, PACE__INTENSIFIER);
    put_cue(text, praise != inner->negated ? PACE__PRAISE : PACE__BLAME);
}

/* A clause of so many words that praises or blames. */
static void put_opinion(draft *text, unsigned words, bool praise)
{
    if (words < 3) { /* "Great tavik" */
        put_cue(text, praise ? PACE__PRAISE : PACE__BLAME);
        put_phrase(text, words - 1);
        return;
    }
    core inner = draw_core(text);

    if (inner.words >= words) { /* no room for a subject */
        inner.fillers = inner.intense = 0;
        inner.negated = inner.negated && words >= 4;
        inner.words = 2 + inner.negated;
    }
    unsigned rest = words - inner.words;
    unsigned tail = (unsigned)pace__random_below(text->random, rest < 4 ? rest : 4);

    put_subject(text, rest - tail);
    put_core(text, &inner, praise);
    put_phrase(text, tail);
}

static void put_contrast(draft *text, unsigned words, bool praise)
{
    unsigned first = (words - 1) / 2;

    put_opinion(text, first, chance(text, REAL_CONTRASTS) ? !praise : praise);
    put_behind(text, ", ");
    put_cue(text, PACE__CONTRAST);
    put_opinion(text, words - 1 - first, praise);
}

static void put_neutral(draft *text, unsigned words)
{
    unsigned kind = (unsigned)pace__random_below(text->random, 100);

    if (words >= IDLE_WORDS_MIN + 3 && kind < IDLE_NEGATORS + IDLE_INTENSE) {
        put_subject(text, 1);
        put_verb(text, kind < IDLE_NEGATORS);
        if (kind >= IDLE_NEGATORS)
            put_cue(text, PACE__INTENSIFIER);
        words -= 3;
    }
    put_phrase(text, words);
}

/* Ends of sentences, with chances out of 256. */
static const struct ending {
    uint32_t chance;
    const char *bytes;
} endings[] = {
    {178, ". "},
    {40, "! "},
    {12, "... "},
    {8, "? "},
    {9, ".<br />"},
    {4, ".<br /><br />"},
    {3, ".\\n\\n"},
    {1, ". \xf0\x9f\x98\x80 "},
    {1, ". \\ud83d\\ude00 "},
};

static void put_end(draft *text)
{
    uint32_t bits = (uint32_t)pace__random_below(text->random, 256);
    const struct ending *ending = endings;

    for (; bits >= ending->chance; ending++)
        bits -= ending->chance;
    put_behind(text, ending->bytes);
}

static void capitalise(char *at)
{
    if (*at >= 'a' && *at <= 'z')
        *at = (char)(*at - 'a' + 'A');
}

static void put_sentence(draft *text, unsigned words, bool opinion, bool praise)
{
    char *start = text->at;

    if (!opinion)
        put_neutral(text, words);
    else if (words >= CONTRAST_WORDS_MIN && chance(text, CONTRASTS))
        put_contrast(text, words, praise);
    else
        put_opinion(text, words, praise);
    capitalise(start);
    put_end(text);
}

/* ---- reviews ---- */

/* Log-normal with a heavier tail. */
static unsigned draw_length(pace__random *random)
{
    double normal = pace__rough_normal(pace__random_next(random));
    double log_words = MEDIAN_LOG_WORDS + LOG_WORDS_SPREAD * normal * (1 + 0.05 * normal * normal);
    double words = pace__portable_exp(log_words);

    if (words < PACE__REVIEW_WORDS_MIN)
        return PACE__REVIEW_WORDS_MIN;
    return words < PACE__REVIEW_WORDS_MAX ? (unsigned)words : PACE__REVIEW_WORDS_MAX;
}

/* Of the next sentence, if `left` words are left; what would remain behind it is none or enough for one. */
static unsigned draw_sentence_length(draft *text, unsigned left)
{
    unsigned words =
        4 + (unsigned)pace__random_below(text->random, 8) + (unsigned)pace__random_below(text->random, 8);

    return words + 4 > left ? left : words;
}

char *pace__review_text(const pace__review_language *language, pace__random *random, char *at,
                        pace__tone *tone)
{
    draft text = {.language = language, .random = random, .at = at};
    unsigned left = draw_length(random);
    bool good_mood = chance(&text, GOOD_MOODS), opinion = true;

    while (left > 0) {
        unsigned words = draw_sentence_length(&text, left);
        bool praise = chance(&text, TRUE_TO_MOOD) == good_mood;

        put_sentence(&text, words, opinion, praise);
        opinion = chance(&text, OPINIONS);
        left -= words;
    }
    *tone = text.tone;
    return text.at[-1] == ' ' ? text.at - 1 : text.at;
}

char *pace__review_title(const pace__review_language *language, pace__random *random, char *at)
{
    draft text = {.language = language, .random = random, .at = at};

    put_phrase(&text, 1 + (unsigned)pace__random_below(random, 5));
    capitalise(at);
    return text.at - 1;
}
