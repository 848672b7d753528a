#include "gen/review_words.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* clang-format off */
const pace__cue pace__cues[PACE__CUES] = {
    {"great", PACE__PRAISE, 1.2}, {"good", PACE__PRAISE, 1.0}, {"nice", PACE__PRAISE, 0.8},
    {"perfect", PACE__PRAISE, 1.4}, {"excellent", PACE__PRAISE, 1.4}, {"easy", PACE__PRAISE, 0.8},
    {"happy", PACE__PRAISE, 1.0}, {"beautiful", PACE__PRAISE, 1.1}, {"amazing", PACE__PRAISE, 1.4},
    {"wonderful", PACE__PRAISE, 1.3}, {"comfortable", PACE__PRAISE, 0.9}, {"sturdy", PACE__PRAISE, 0.9},
    {"awesome", PACE__PRAISE, 1.3}, {"solid", PACE__PRAISE, 0.9}, {"fine", PACE__PRAISE, 0.6},
    {"fantastic", PACE__PRAISE, 1.4}, {"reliable", PACE__PRAISE, 1.0}, {"useful", PACE__PRAISE, 0.8},
    {"durable", PACE__PRAISE, 0.9}, {"lovely", PACE__PRAISE, 1.1}, {"helpful", PACE__PRAISE, 0.8},
    {"impressive", PACE__PRAISE, 1.1}, {"pleasant", PACE__PRAISE, 0.8}, {"decent", PACE__PRAISE, 0.6},
    {"accurate", PACE__PRAISE, 0.8}, {"smooth", PACE__PRAISE, 0.7}, {"handy", PACE__PRAISE, 0.7},
    {"brilliant", PACE__PRAISE, 1.3}, {"superb", PACE__PRAISE, 1.4}, {"enjoyable", PACE__PRAISE, 1.0},
    {"satisfying", PACE__PRAISE, 1.0}, {"clever", PACE__PRAISE, 0.8}, {"outstanding", PACE__PRAISE, 1.5},
    {"flawless", PACE__PRAISE, 1.4}, {"elegant", PACE__PRAISE, 0.9}, {"fresh", PACE__PRAISE, 0.6},
    {"charming", PACE__PRAISE, 0.9}, {"crisp", PACE__PRAISE, 0.7}, {"delightful", PACE__PRAISE, 1.2},
    {"exquisite", PACE__PRAISE, 1.3},

    {"bad", PACE__BLAME, -1.0}, {"poor", PACE__BLAME, -1.0}, {"terrible", PACE__BLAME, -1.4},
    {"disappointing", PACE__BLAME, -1.1}, {"cheap", PACE__BLAME, -0.7}, {"awful", PACE__BLAME, -1.4},
    {"horrible", PACE__BLAME, -1.4}, {"broken", PACE__BLAME, -1.2}, {"useless", PACE__BLAME, -1.3},
    {"defective", PACE__BLAME, -1.3}, {"wrong", PACE__BLAME, -0.8}, {"flimsy", PACE__BLAME, -1.0},
    {"weak", PACE__BLAME, -0.8}, {"annoying", PACE__BLAME, -0.9}, {"difficult", PACE__BLAME, -0.7},
    {"uncomfortable", PACE__BLAME, -0.9}, {"slow", PACE__BLAME, -0.6}, {"worthless", PACE__BLAME, -1.4},
    {"ugly", PACE__BLAME, -0.9}, {"noisy", PACE__BLAME, -0.7}, {"faulty", PACE__BLAME, -1.1},
    {"boring", PACE__BLAME, -0.9}, {"frustrating", PACE__BLAME, -1.0}, {"overpriced", PACE__BLAME, -0.8},
    {"mediocre", PACE__BLAME, -0.6}, {"unreliable", PACE__BLAME, -1.1}, {"dull", PACE__BLAME, -0.7},
    {"lousy", PACE__BLAME, -1.1}, {"disgusting", PACE__BLAME, -1.4}, {"dreadful", PACE__BLAME, -1.4},
    {"messy", PACE__BLAME, -0.7}, {"shoddy", PACE__BLAME, -1.1}, {"rough", PACE__BLAME, -0.6},
    {"clumsy", PACE__BLAME, -0.7}, {"pathetic", PACE__BLAME, -1.4}, {"leaky", PACE__BLAME, -0.9},
    {"brittle", PACE__BLAME, -0.9}, {"sloppy", PACE__BLAME, -0.8}, {"stale", PACE__BLAME, -0.8},
    {"unusable", PACE__BLAME, -1.4},

    {"not", PACE__NEGATOR, 0}, {"never", PACE__NEGATOR, 0}, {"isn't", PACE__NEGATOR, 0},
    {"hardly", PACE__NEGATOR, 0}, {"wasn't", PACE__NEGATOR, 0}, {"rarely", PACE__NEGATOR, 0},
    {"scarcely", PACE__NEGATOR, 0}, {"nowhere", PACE__NEGATOR, 0},

    {"very", PACE__INTENSIFIER, 1.5}, {"really", PACE__INTENSIFIER, 1.4},
    {"somewhat", PACE__INTENSIFIER, 0.5}, {"extremely", PACE__INTENSIFIER, 1.8},
    {"fairly", PACE__INTENSIFIER, 0.7}, {"slightly", PACE__INTENSIFIER, 0.4},
    {"incredibly", PACE__INTENSIFIER, 1.8}, {"barely", PACE__INTENSIFIER, 0.3},

    {"but", PACE__CONTRAST, 0}, {"however", PACE__CONTRAST, 0}, {"yet", PACE__CONTRAST, 0},
    {"nevertheless", PACE__CONTRAST, 0},
};

static const char *const function_words[] = {
    "the", "and", "a", "to", "I", "it", "of", "is", "this", "in", "for", "my", "that", "with", "on", "was",
    "have", "you", "as", "are", "they", "be", "one", "had", "these", "use", "when", "at", "all", "from", "or",
    "we", "would", "me", "can", "has", "your", "just", "them", "will", "if", "what", "were", "up", "out",
    "it's", "about", "an", "get", "more", "which", "by", "other", "time", "product", "do", "than", "some",
    "been", "after", "there", "their", "I've", "first", "into", "also", "two", "bought", "because", "who",
    "now", "over", "did", "back", "then", "how", "could", "he", "she", "her", "his", "used", "using", "make",
    "made", "any", "work", "where", "off", "through", "before", "most", "our", "same", "while", "got", "put",
    "box", "size", "color", "5", "months", "day", "year", "10", "set", "each", "buy", "came", "want", "think",
    "know", "way", "thing", "things", "home", "kids", "store", "price", "item", "order", "unit", "part",
    "side", "hand", "water", "2", "found", "tried", "weeks", "us", "him", "its", "between", "around", "under",
    "during", "those", "here", "every", "another", "next", "went", "said", "told", "opened", "ordered", "100",
    "arrived",
};

/* Among the made-up words, at these ranks. The escapes are the same words once more. */
#define FOREIGN_FIRST 600
#define FOREIGN_STEP  97
static const char *const foreign_words[] = {
    "café", "naïve", "jalapeño", "caf\\u00e9", "crème", "déjà", "na\\u00efve", "Zürich", "smörgåsbord", "São",
    "œuvre", "façade", "Ærø", "Łódź", "fa\\u00e7ade", "Ελλάδα", "Москва", "東京", "piñata", "\\u6771\\u4eac",
};

static const char *const onsets[] = {"b", "d", "f", "g", "h", "j", "k", "l", "m", "n", "p",
                                     "r", "s", "t", "v", "w", "z", "br", "ch", "cl", "dr", "fl",
                                     "gr", "kr", "pl", "pr", "sh", "sk", "sp", "st", "th", "tr"};
static const char *const vowels[] = {"a", "e", "i", "o", "u"};
static const char *const accented[] = {"á", "é", "ï", "ø", "ü"};
static const char *const codas[] = {"", "n", "k", "l", "x", "nd", "sh", "m"};
/* clang-format on */

#define SYLLABLES (COUNT(onsets) * COUNT(vowels))
/* Every made-up word is another number below this, and all numbers have another one. */
#define MADE_UP (SYLLABLES * SYLLABLES * COUNT(codas))
/* Odd, and no multiple of 5: multiplying by it permutes the numbers below MADE_UP. */
#define MADE_UP_STRIDE 40503
/* Words behind this rank have three syllables every other time. */
#define SHORT_RANKS 4000
/* Once in so many made-up words a vowel has an accent. */
#define ACCENT_STEP 509

unsigned pace__first_cue(unsigned role)
{
    static const unsigned first[] = {PACE__FIRST_PRAISE,      PACE__FIRST_BLAME,    PACE__FIRST_NEGATOR,
                                     PACE__FIRST_INTENSIFIER, PACE__FIRST_CONTRAST, PACE__CUES};

    assert(role < COUNT(first));
    return first[role];
}

pace__word pace__word_of(const char *text)
{
    pace__word word = {.length = (uint8_t)strlen(text)};

    assert(strlen(text) <= sizeof word.text);
    memcpy(word.text, text, word.length);
    return word;
}

static void append(pace__word *word, const char *text)
{
    size_t length = strlen(text);

    assert(word->length + length <= sizeof word->text);
    memcpy(word->text + word->length, text, length);
    word->length = (uint8_t)(word->length + length);
}

static void append_syllable(pace__word *word, uint32_t syllable, bool accent)
{
    append(word, onsets[syllable / COUNT(vowels)]);
    append(word, (accent ? accented : vowels)[syllable % COUNT(vowels)]);
}

/*
 * Vowels stand alone, and consonants behind the last one are the coda: so different numbers give different
 * words, and a syllable more in the middle does not make two of them equal.
 */
static pace__word made_up_word(uint32_t index, uint32_t rank)
{
    uint32_t number = (uint32_t)((uint64_t)index * MADE_UP_STRIDE % MADE_UP);
    uint32_t second = number / SYLLABLES % SYLLABLES;
    pace__word word = {.length = 0};

    append_syllable(&word, number % SYLLABLES, index % ACCENT_STEP == ACCENT_STEP - 1);
    if (rank > SHORT_RANKS && rank % 2)
        append_syllable(&word, (number + rank) % SYLLABLES, false);
    append_syllable(&word, second, false);
    append(&word, codas[number / SYLLABLES / SYLLABLES]);
    return word;
}

static int compare(const void *left, const void *right)
{
    return memcmp(left, right, sizeof(pace__word));
}

uint32_t pace__vocabulary_fill(pace__word *vocabulary)
{
    pace__word real[COUNT(function_words) + PACE__CUES];
    uint32_t rank = 0, foreign = 0;

    for (size_t i = 0; i < PACE__CUES; i++)
        real[COUNT(function_words) + i] = pace__word_of(pace__cues[i].text);
    for (; rank < COUNT(function_words); rank++)
        vocabulary[rank] = real[rank] = pace__word_of(function_words[rank]);
    qsort(real, COUNT(real), sizeof *real, compare);
    for (uint32_t index = 0; rank < PACE__VOCABULARY; index++) {
        pace__word word = made_up_word(index, rank);

        assert(index < MADE_UP);
        if (rank == FOREIGN_FIRST + foreign * FOREIGN_STEP && foreign < COUNT(foreign_words))
            vocabulary[rank++] = pace__word_of(foreign_words[foreign++]);
        /* Some are English by chance ("broken"). */
        if (!bsearch(&word, real, COUNT(real), sizeof *real, compare))
            vocabulary[rank++] = word;
    }
    return COUNT(function_words);
}
