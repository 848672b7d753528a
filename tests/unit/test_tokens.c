/* The tokeniser: its rules, and the fast one against the plain one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "base/json.h"
#include "base/random.h"
#include "data/text/tokens_internal.h"

#include "padded.h"
#include "thinned.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A copy with nothing readable behind its padding, which looks as if the text went on. */
static char *padded(const char *text, size_t size)
{
    static const char *const rests[] = {"x",     "'s", "xy <b>", "<b>",    ">",
                                        "&amp;", ";",  "39;",    "\u00e9", "\u0301"};
    static unsigned turn;

    return padded_with(text, size, rests[turn++ % (sizeof rests / sizeof *rests)]);
}

static pace__tokens run(int set, const char *text, size_t size)
{
    pace__tokens tokens = {0};

    assert_int_equal(pace__tokens_reserve(&tokens, size, NULL), PACE_OK);
    pace__tokens_of(set)->tokenise(&tokens, text, size);
    return tokens;
}

/* NULL if they are the same. */
static const char *difference(const pace__tokens *a, const pace__tokens *b)
{
    if (a->count != b->count)
        return "their number";
    if (a->dropped != b->dropped)
        return "the number of dropped ones";
    for (size_t i = 0; i < a->count; i++) {
        uint32_t size = pace__token_size(a, i);

        if (size != pace__token_size(b, i) ||
            memcmp(a->text + a->span[i].begin, b->text + b->span[i].begin, size) != 0)
            return "bytes";
        if (a->hash[i] != b->hash[i])
            return "a hash";
        if (a->first[i] != b->first[i] || a->second[i] != b->second[i])
            return "the first bytes";
    }
    return NULL;
}

/* Every set of kernels that this CPU runs with the plain one. */
static const char *compare(const char *text, size_t size)
{
    char *copy = padded(text, size);
    pace__tokens plain = run(PACE_KERNELS_PLAIN, copy, size);
    const char *found = NULL;

    for (int set = PACE_KERNELS_PLAIN + 1; set < PACE__KERNELS_END && !found; set++) {
        if (!pace_kernels_run(set))
            continue;
        pace__tokens fast = run(set, copy, size);

        found = difference(&plain, &fast);
        pace__tokens_release(&fast);
    }
    pace__tokens_release(&plain);
    free(copy);
    return found;
}

static void join(const pace__tokens *tokens, char *joined)
{
    size_t at = 0;

    for (size_t i = 0; i < tokens->count; i++) {
        uint32_t size = pace__token_size(tokens, i);

        if (i > 0)
            joined[at++] = '|';
        memcpy(joined + at, tokens->text + tokens->span[i].begin, size);
        at += size;
    }
    joined[at] = '\0';
}

/* `words` with | between them. At every place relative to the fast one's blocks. */
static void expect_words(const char *text, const char *words)
{
    char shifted[1024], joined[1024];
    size_t size = strlen(text);

    for (size_t shift = 0; shift < 130; shift++) {
        memset(shifted, '.', shift);
        memcpy(shifted + shift, text, size);
        char *copy = padded(shifted, shift + size);
        pace__tokens tokens = {0};

        assert_int_equal(pace__tokenise(&tokens, copy, shift + size, NULL), PACE_OK);
        join(&tokens, joined);
        if (strcmp(joined, words) != 0)
            fail_msg("\"%s\" at byte %zu gives \"%s\", not \"%s\"", text, shift, joined, words);
        pace__tokens_release(&tokens);
        free(copy);
        const char *found = compare(shifted, shift + size);

        if (found)
            fail_msg("\"%s\" at byte %zu: the tokenisers differ in %s", text, shift, found);
    }
}

static void test_words(void **state)
{
    (void)state;
    expect_words("", "");
    expect_words(" \t\n.,;:!?", "");
    expect_words("a", "a");
    expect_words("This is GREAT, the 2nd-best!", "this|is|great|the|2nd|best");
    expect_words("snake_case a+b 3.5 x@y.z", "snake|case|a|b|3|5|x|y|z");
    expect_words("[@`{/:AZaz09", "azaz09");
    expect_words("a\x01"
                 "b\x7f"
                 "c",
                 "a|b|c");
}

static void test_apostrophes(void **state)
{
    (void)state;
    expect_words("don't DON'T don\u2019t", "don't|don't|don't");
    expect_words("rock'n'roll o\u2019clock's", "rock'n'roll|o'clock's");
    expect_words("'tis the dogs' 'quoted' \u2018so\u2019", "tis|the|dogs|quoted|so");
    expect_words("a''b a'\u2019"
                 "b ' '' a' b",
                 "a|b|a|b|a|b");
    expect_words("'", "");
    expect_words("80's 5'11", "80's|5'11");
    expect_words("l'\u00e9t\u00e9 \u00e9t\u00e9'l", "l'\u00e9t\u00e9|\u00e9t\u00e9'l");
    expect_words("a'<b>c", "a|c");
    expect_words("a'\u0301"
                 "b",
                 "a|b");
}

static void test_other_than_ascii(void **state)
{
    (void)state;
    expect_words("\u00c9T\u00c9 na\u00efve \u00dcBER", "\u00e9t\u00e9|na\u00efve|\u00fcber");
    expect_words("\u201cHello\u201d\u2014world\u2026 \u00a35 5\u20ac", "hello|world|5|5");
    expect_words("\u041f\u0420\u0418\u0412\u0415\u0422 \u043c\u0438\u0440",
                 "\u043f\u0440\u0438\u0432\u0435\u0442|\u043c\u0438\u0440");
    expect_words("\u039f\u0394\u039f\u03a3 \u03bf\u03b4\u03bf\u03c2",
                 "\u03bf\u03b4\u03bf\u03c3|\u03bf\u03b4\u03bf\u03c3");
    expect_words("\u6771\u4eac\u3001\u65e5\u672c", "\u6771\u4eac|\u65e5\u672c");
    expect_words("good\U0001f600movie \u2764\ufe0f it", "good|movie|it");
    expect_words("\U0001d54f \U00010400", "\U0001d54f|\U00010428");
    /* A mark belongs to the word in front of it, and alone to nothing. */
    expect_words("cafe\u0301s \u0301x", "cafe\u0301s|x");
    /* Lower case of another length: shorter (Kelvin), longer. */
    expect_words("\u212a \u023a\u023a\u023e", "k|\u2c65\u2c65\u2c66");
    expect_words("x\u00b2 \u00bd \u2167", "x\u00b2|\u00bd|\u2177");
    expect_words("a\u00a0b\u3000c\u00adx", "a|b|c|x");
}

static void test_tags(void **state)
{
    (void)state;
    expect_words("one<br />two<BR>three</p>four", "one|two|three|four");
    expect_words("<a href=\"http://x.y/z?a=b\">Link</a>s", "link|s");
    expect_words("a <!-- hidden --> b", "a|b");
    expect_words("I <3 it, 1 < 2 > 1, </3, < b>", "i|3|it|1|2|1|3|b");
    expect_words("<b", "b");
    expect_words("<", "");
    expect_words("</", "");
    expect_words("a<b <i>c", "a|b|c");
    expect_words("<b&amp;>x", "x");
    expect_words("&lt;b&gt; x", "b|x");
    expect_words("<\u00e9>x", "\u00e9|x");
}

static void test_a_tag_is_not_endless(void **state)
{
    char text[PACE__TAG_BYTES_MAX + 32];

    (void)state;
    for (size_t size = PACE__TAG_BYTES_MAX; size <= PACE__TAG_BYTES_MAX + 1; size++) {
        memset(text, ' ', size);
        memcpy(text, "<b", 2);
        text[size - 1] = '>';
        char *copy = padded(text, size);
        pace__tokens tokens = {0};

        assert_int_equal(pace__tokenise(&tokens, copy, size, NULL), PACE_OK);
        assert_int_equal(tokens.count, size > PACE__TAG_BYTES_MAX);
        pace__tokens_release(&tokens);
        free(copy);
        assert_null(compare(text, size));
    }
}

static void test_entities(void **state)
{
    (void)state;
    expect_words("don&#39;t don&apos;t don&#x2019;t don&rsquo;t don&#146;t", "don't|don't|don't|don't|don't");
    expect_words("&quot;yes&quot; Q&amp;A a&nbsp;b&#160;c&#34;d", "yes|q|a|a|b|c|d");
    expect_words("caf&eacute; &Eacute;t&eacute; na&#239;ve &#xC9;",
                 "caf\u00e9|\u00e9t\u00e9|na\u00efve|\u00e9");
    expect_words("&#65;&#066;&#x43;d&#48;", "abcd0");
    expect_words("AT&T R&D; &;&#;&#x; &amp", "at|t|r|d|x|amp");
    expect_words("&unknown; &Quot; &#12345678; &#x12345678;", "unknown|quot|12345678|x12345678");
    /* Not recursive. */
    expect_words("&amp;lt; &amp;#39;", "lt|39");
    /* No characters: zero, a surrogate, beyond the last one. */
    expect_words("a&#0;b&#xD800;c&#x110000;d&#9999999;e", "a|b|c|d|e");
    expect_words("e&#769;a &#769;a", "e\u0301"
                                     "a|a");
    expect_words("&#x1F600;a&#66560;", "a\U00010428");
    expect_words("&mdash;a&hellip;b&copy;", "a|b");
    expect_words("&szlig;&AElig;&yuml;&Yuml;&THORN;&ETH;", "\u00df\u00e6\u00ff\u00ff\u00fe\u00f0");
}

static void test_long_words(void **state)
{
    char text[3 * PACE__TOKEN_BYTES_MAX];

    (void)state;
    for (size_t size = 1; size < 2 * PACE__TOKEN_BYTES_MAX; size++) {
        memset(text, 'W', size);
        memcpy(text + size, " ok", 3);
        char *copy = padded(text, size + 3);
        pace__tokens tokens = {0};

        assert_int_equal(pace__tokenise(&tokens, copy, size + 3, NULL), PACE_OK);
        assert_int_equal(tokens.count, size > PACE__TOKEN_BYTES_MAX ? 1 : 2);
        assert_int_equal(tokens.dropped, size > PACE__TOKEN_BYTES_MAX);
        assert_int_equal(pace__token_size(&tokens, 0), size > PACE__TOKEN_BYTES_MAX ? 2 : size);
        if (size <= PACE__TOKEN_BYTES_MAX)
            assert_true((tokens.second[0] == PACE__TOKEN_LONG) == (size >= 16));
        pace__tokens_release(&tokens);
        free(copy);
        assert_null(compare(text, size + 3));
    }
}

/* Unicode has nothing between these, and plans nothing. */
#define EMPTY_FIRST 0x40000
#define EMPTY_END   0xe0000

static uint32_t next_code(uint32_t code)
{
    return code + (code >= EMPTY_FIRST && code < EMPTY_END ? THINNED(61) : 1);
}

/* Every character of Unicode, alone between two letters and behind a space, by both; and what it becomes. */
static void test_every_character(void **state)
{
    char text[64];
    size_t letters = 0;

    (void)state;
    for (uint32_t code = 1; code <= 0x10ffff; code = next_code(code)) {
        size_t size = 0;

        if (code >= 0xd800 && code < 0xe000)
            continue;
        text[size++] = 'a';
        size += pace__utf8_encode(code, text + size);
        text[size++] = 'b';
        text[size++] = ' ';
        size += pace__utf8_encode(code, text + size);
        char *copy = padded(text, size);
        pace__tokens tokens = run(PACE_KERNELS_PLAIN, copy, size);

        for (size_t i = 0; i < tokens.count; i++) {
            uint32_t bytes = pace__token_size(&tokens, i);

            letters += i == 0 && bytes > 2;
            assert_int_equal(pace__utf8_find_invalid(tokens.text + tokens.span[i].begin, bytes), bytes);
            assert_true(tokens.span[i].end <= pace__tokens_text_bytes(size));
        }
        pace__tokens_release(&tokens);
        free(copy);
        const char *found = compare(text, size);

        if (found)
            fail_msg("U+%04X: the tokenisers differ in %s", code, found);
    }
    /* Letters, marks and numbers that Unicode has assigned: some 140,000. */
    assert_true(letters > 130000 && letters < 200000);
}

static size_t random_piece(char *text, pace__random *random)
{
    static const char *const pieces[] = {
        " ",  "'", "\u2019",  "<br />", "<b>",    "</i>",     "&amp;",      "&#39;",  "&eacute;", "&",
        "<",  ">", "\u00e9",  "\u0301", "\u201c", "\u4eac",   "\U0001f600", "\u023a", "\u212a",   "The",
        "'s", "!", "&#x301;", "\xff",   "\xc3",   "\xe2\x80", "\0\0",       "I",      "z",        "0"};
    uint64_t kind = pace__random_below(random, 3);
    size_t size = 1 + pace__random_below(random, kind == 0 ? 9 : 3);

    if (kind == 1) {
        const char *piece = pieces[pace__random_below(random, sizeof pieces / sizeof *pieces)];

        size = *piece ? strlen(piece) : 2;
        memcpy(text, piece, size);
        return size;
    }
    if (pace__random_below(random, 200) == 0)
        size = 40 + pace__random_below(random, 50);
    for (size_t i = 0; i < size; i++)
        text[i] = (char)(kind == 0 ? "aeinorstAEDLM19"[pace__random_below(random, 15)]
                                   : " ,.-"[pace__random_below(random, 4)]);
    return size;
}

static void test_fast_and_plain_agree_on_random_texts(void **state)
{
    enum { TEXT_MAX = 2000 };
    char text[TEXT_MAX + 128];

    (void)state;
    for (uint64_t seed = 1; seed <= 20000 / THINNED(10); seed++) {
        pace__random random = {seed};
        size_t wanted = pace__random_below(&random, seed % 8 ? 200 : TEXT_MAX), size = 0;

        while (size < wanted)
            size += random_piece(text + size, &random);
        size -= pace__random_below(&random, size < 4 ? size + 1 : 4);
        const char *found = compare(text, size);

        if (found)
            fail_msg("seed %llu: the tokenisers differ in %s", (unsigned long long)seed, found);
    }
}

static void test_fast_and_plain_agree_on_random_bytes(void **state)
{
    char text[300];

    (void)state;
    for (uint64_t seed = 1; seed <= 20000 / THINNED(10); seed++) {
        pace__random random = {seed};
        size_t size = pace__random_below(&random, sizeof text);
        uint64_t limit = seed % 2 ? 256 : 128;

        for (size_t i = 0; i < size; i++)
            text[i] = (char)pace__random_below(&random, limit);
        const char *found = compare(text, size);

        if (found)
            fail_msg("seed %llu: the tokenisers differ in %s", (unsigned long long)seed, found);
    }
}

/* The buffers are used again, and what a longer text has left in them does no harm. */
static void test_buffers_are_used_again(void **state)
{
    static char text[100000 + PACE__TEXT_PADDING];
    pace__tokens tokens = {0};

    (void)state;
    memset(text, 'a', sizeof text);
    for (size_t i = 1; i < sizeof text; i += 2)
        text[i] = ' ';
    for (size_t size = 100000; size > 0; size /= 3) {
        assert_int_equal(pace__tokenise(&tokens, text, size, NULL), PACE_OK);
        assert_int_equal(tokens.count, (size + 1) / 2);
        assert_int_equal(tokens.text_bytes_max, 100000);
        for (size_t i = 0; i < tokens.count; i++)
            assert_int_equal(tokens.hash[i], tokens.hash[0]);
    }
    pace__tokens_release(&tokens);
    assert_null(tokens.hash);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

/*
 * Words that differ in little: all of 1 to 3 letters, numbers, and one long one with a byte changed. No two
 * hashes are the same, and low, middle and high bits spread them as evenly as chance would.
 */
static void test_hashes_spread(void **state)
{
    enum { COUNT_MAX = 200000, BUCKETS = 1024 };
    uint64_t *hash = malloc(COUNT_MAX * sizeof *hash);
    size_t count = 0;
    char text[PACE__TOKEN_BYTES_MAX + 16];

    (void)state;
    assert_non_null(hash);
    for (uint32_t i = 27; i < 27 * 27 * 27; i++) {
        char letters[16] = {0};
        size_t size = 0;

        for (uint32_t left = i; left > 0; left /= 27)
            letters[size++] = (char)('a' - 1 + (left % 27 ? left % 27 : 15));
        if (i % 27 && i / 27 % 27)
            hash[count++] = pace__token_hash(letters, size);
    }
    for (uint32_t i = 0; i < 100000; i++) {
        char digits[16] = {0};

        hash[count++] = pace__token_hash(digits, (size_t)snprintf(digits, sizeof digits, "%u", i));
    }
    for (size_t size = 17; size <= PACE__TOKEN_BYTES_MAX; size++) {
        memset(text, 'a', sizeof text);
        for (size_t i = 0; i < size; i++) {
            for (text[i] = 'b'; text[i] <= 'z'; text[i]++)
                hash[count++] = pace__token_hash(text, size);
            text[i] = 'a';
        }
    }
    assert_true(count <= COUNT_MAX);
    for (unsigned shift = 0; shift <= 54; shift += 6) {
        uint32_t bucket[BUCKETS] = {0};
        double expected = (double)count / BUCKETS, chi = 0;

        for (size_t i = 0; i < count; i++)
            bucket[hash[i] >> shift & (BUCKETS - 1)]++;
        for (size_t i = 0; i < BUCKETS; i++)
            chi += (bucket[i] - expected) * (bucket[i] - expected) / expected;
        /* Mean 1,023, standard deviation 45. */
        if (chi > 1023 + 6 * 45 || chi < 1023 - 6 * 45)
            fail_msg("bits from %u on: chi square %f", shift, chi);
    }
    qsort(hash, count, sizeof *hash, compare_hashes);
    for (size_t i = 1; i < count; i++)
        assert_true(hash[i] != hash[i - 1]);
    free(hash);
}

/* UTF-8 */

static void check_invalid(const char *text, size_t size)
{
    /* Nothing behind it is readable. */
    char *copy = malloc(size > 0 ? size : 1);

    assert_non_null(copy);
    memcpy(copy, text, size);
    size_t expected = 0;

    while (expected < size && pace__utf8_length(copy + expected, size - expected) > 0)
        expected += pace__utf8_length(copy + expected, size - expected);
    for (int set = PACE_KERNELS_PLAIN; set < PACE__KERNELS_END; set++) {
        if (pace_kernels_run(set))
            assert_int_equal(pace__tokens_of(set)->find_invalid(copy, size), expected);
    }
    free(copy);
}

/* All leads with interesting second bytes, whole and cut, at places around the end of a block. */
static void test_invalid_utf8_is_found(void **state)
{
    static const unsigned char seconds[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90,
                                            0x9f, 0xa0, 0xbf, 0xc0, 0xc3, 0xff};
    char text[160];

    (void)state;
    for (unsigned lead = 0x80; lead < 0x100; lead++) {
        for (size_t i = 0; i < sizeof seconds; i++) {
            for (size_t place = 56; place < 66; place++) {
                for (size_t length = 1; length <= 4; length++) {
                    memset(text, 'a', sizeof text);
                    memset(text + place, 0x80, length);
                    text[place] = (char)lead;
                    if (length > 1)
                        text[place + 1] = (char)seconds[i];
                    check_invalid(text, place + length);
                    check_invalid(text, sizeof text);
                    text[place + length] = '\xe2';
                    check_invalid(text, place + length + 1);
                    check_invalid(text, sizeof text);
                }
            }
        }
    }
}

static void test_random_utf8(void **state)
{
    char text[400];

    (void)state;
    for (uint64_t seed = 1; seed <= 50000 / THINNED(10); seed++) {
        pace__random random = {seed};
        size_t size = 0, wanted = pace__random_below(&random, sizeof text - 4);

        while (size < wanted) {
            uint32_t code = (uint32_t)(pace__random_next(&random) >> (43 + pace__random_below(&random, 16)));

            if (code <= 0x10ffff && (code < 0xd800 || code >= 0xe000))
                size += pace__utf8_encode(code, text + size);
        }
        if (seed % 2 && size > 0)
            text[pace__random_below(&random, size)] ^= (char)(1 << pace__random_below(&random, 8));
        check_invalid(text, size);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_apostrophes),
        cmocka_unit_test(test_other_than_ascii),
        cmocka_unit_test(test_tags),
        cmocka_unit_test(test_a_tag_is_not_endless),
        cmocka_unit_test(test_entities),
        cmocka_unit_test(test_long_words),
        cmocka_unit_test(test_every_character),
        cmocka_unit_test(test_fast_and_plain_agree_on_random_texts),
        cmocka_unit_test(test_fast_and_plain_agree_on_random_bytes),
        cmocka_unit_test(test_buffers_are_used_again),
        cmocka_unit_test(test_hashes_spread),
        cmocka_unit_test(test_invalid_utf8_is_found),
        cmocka_unit_test(test_random_utf8),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
