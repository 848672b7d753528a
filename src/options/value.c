#include "options/internal.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* A decimal number as written: digits * 10^exponent. Exact, and independent of the locale. */
typedef struct decimal {
    bool negative;
    unsigned __int128 digits;
    int exponent;
    const char *rest; /* what follows the number: a suffix, or "" */
} decimal;

#define DIGITS_MAX   25 /* 10^25 * 2^40 fits 128 bits */
#define EXPONENT_MAX 400

static bool read_exponent(const char **text, int *exponent)
{
    const char *walk = *text;
    int sign = 1, value = 0;

    if (*walk != 'e' && *walk != 'E')
        return true;
    walk++;
    if (*walk == '-' || *walk == '+')
        sign = *walk++ == '-' ? -1 : 1;
    if (!isdigit((unsigned char)*walk))
        return false;
    for (; isdigit((unsigned char)*walk) && value < EXPONENT_MAX; walk++)
        value = value * 10 + (*walk - '0');
    *exponent += sign * value;
    *text = walk;
    return true;
}

static bool read_decimal(const char *text, decimal *number)
{
    int digits = 0, significant = 0;
    bool point = false;

    *number = (decimal){.negative = *text == '-'};
    text += *text == '-' || *text == '+';
    for (; isdigit((unsigned char)*text) || (*text == '.' && !point); text++) {
        if (*text == '.') {
            point = true;
            continue;
        }
        digits++;
        significant += significant > 0 || *text != '0';
        if (significant > DIGITS_MAX)
            return false;
        number->digits = number->digits * 10 + (unsigned)(*text - '0');
        number->exponent -= point;
    }
    if (digits == 0 || !read_exponent(&text, &number->exponent))
        return false;
    number->rest = text;
    return true;
}

/* False if the whole part does not fit 64 bits; *fraction tells whether something was cut off. */
static bool decimal_to_whole(const decimal *number, int shift, uint64_t *whole, bool *fraction)
{
    unsigned __int128 value = number->digits << shift;

    *fraction = false;
    for (int i = number->exponent; i < 0 && value > 0; i++) {
        *fraction = *fraction || value % 10 != 0;
        value /= 10;
    }
    for (int i = number->exponent; i > 0 && value > 0 && value <= UINT64_MAX; i--)
        value *= 10;
    if (value > UINT64_MAX)
        return false;
    *whole = (uint64_t)value;
    return true;
}

/* 3 for "k", 6 for "M" ...; 0 for nothing; -1 for anything else. */
static int suffix_thousands(const char *suffix)
{
    static const char letters[] = "kmgt";

    if (*suffix == '\0')
        return 0;
    const char *found = strchr(letters, tolower((unsigned char)*suffix));

    return found ? (int)(found - letters) + 1 : -1;
}

/* As it would be written: 1000000, 0.5, 128M. */
static void show_limit(const pace_option *row, double limit, char text[PACE_OPTION_NAME_MAX])
{
    static const char *const units[] = {"", "k", "M", "G", "T", NULL};
    const char *const *unit = units;

    for (; row->kind == PACE_OPT_SIZE && unit[1] && limit >= 1024 && fmod(limit, 1024) == 0; unit++)
        limit /= 1024;
    snprintf(text, PACE_OPTION_NAME_MAX, row->kind == PACE_OPT_REAL ? "%.15g" : "%.0f%s", limit, *unit);
}

/* A long double holds any 64-bit whole number: 2^53 + 1 must not pass for 2^53. */
static bool in_range(const pace_option *row, long double value, char *why)
{
    char min[PACE_OPTION_NAME_MAX], max[PACE_OPTION_NAME_MAX];

    if ((row->min == 0 && row->max == 0) || (value >= row->min && value <= row->max))
        return true;
    /* The 0 of a number that is left open is nobody's to give. */
    bool above = row->not_zero && row->kind == PACE_OPT_REAL;

    show_limit(row, row->not_zero && !above ? fmax(row->min, 1) : row->min, min);
    show_limit(row, row->max, max);
    if (above)
        snprintf(why, PACE_WHY_MAX, "out of range: must be above %s and at most %s", min, max);
    else if (row->max >= 9e18)
        snprintf(why, PACE_WHY_MAX, "out of range: must be at least %s", min);
    else
        snprintf(why, PACE_WHY_MAX, "out of range: must be between %s and %s", min, max);
    return false;
}

static bool parse_int(const pace_option *row, const char *text, int64_t *field, char *why)
{
    decimal number;
    uint64_t whole;
    bool fraction;

    snprintf(why, PACE_WHY_MAX, "not a whole number (understood are 512, 10k, 3M, 1e6)");
    if (!read_decimal(text, &number))
        return false;
    int thousands = suffix_thousands(number.rest);

    if (thousands < 0 || (thousands > 0 && number.rest[1] != '\0'))
        return false;
    number.exponent += 3 * thousands;
    if (!decimal_to_whole(&number, 0, &whole, &fraction) ||
        whole > (uint64_t)INT64_MAX + (number.negative ? 1 : 0)) {
        snprintf(why, PACE_WHY_MAX, "too large: whole numbers have 64 bits");
        return false;
    }
    if (fraction)
        return false;
    int64_t value = number.negative ? (int64_t)(0 - whole) : (int64_t)whole;

    if (!in_range(row, value, why))
        return false;
    *field = value;
    return true;
}

/* A number, or the word that stands for one which is still to be found. */
static bool parse_int_or_word(const pace_option *row, const char *text, int64_t *field, char *why)
{
    if (!row->word)
        return parse_int(row, text, field, why);
    if (strcmp(text, row->word) == 0) {
        *field = -1;
        return true;
    }
    bool is_number = parse_int(row, text, field, why);

    if (!is_number)
        snprintf(why + strlen(why), PACE_WHY_MAX - strlen(why), "; or the word %s", row->word);
    return is_number;
}

static bool parse_size(const pace_option *row, const char *text, uint64_t *field, char *why)
{
    decimal number;
    uint64_t whole;
    bool fraction;

    snprintf(why, PACE_WHY_MAX, "not a size (understood are 4096, 512M, 1G, 1.5GiB)");
    if (!read_decimal(text, &number) || number.negative)
        return false;
    int thousands = suffix_thousands(number.rest);

    if (thousands < 0 || (thousands > 0 && number.rest[1] != '\0' && strcasecmp(number.rest + 1, "iB") != 0))
        return false;
    if (!decimal_to_whole(&number, 10 * thousands, &whole, &fraction)) {
        snprintf(why, PACE_WHY_MAX, "too large: sizes have 64 bits");
        return false;
    }
    if ((fraction && thousands == 0) || !in_range(row, whole, why))
        return false;
    *field = whole;
    return true;
}

static bool parse_real(const pace_option *row, const char *text, double *field, char *why)
{
    decimal number;

    snprintf(why, PACE_WHY_MAX, "not a number (understood are 0.1, -2, 1e-4)");
    /* read_decimal keeps out what strtod would also take: blanks, hexadecimal, inf and nan. */
    if (strlen(text) >= PACE_OPTION_NAME_MAX || !read_decimal(text, &number) || *number.rest != '\0')
        return false;
    double value = strtod(text, NULL);

    if (!isfinite(value)) {
        snprintf(why, PACE_WHY_MAX, "too large for a number");
        return false;
    }
    if (!in_range(row, value, why))
        return false;
    *field = value;
    return true;
}

static bool find_switch(const char *const *words, size_t count, const char *text, bool *on)
{
    for (size_t i = 0; i < count; i++) {
        if (strcasecmp(text, words[i]) == 0) {
            *on = i % 2 == 1;
            return true;
        }
    }
    return false;
}

bool pace__flag_word(const char *text, bool *on)
{
    static const char *const words[] = {"false", "true", "off", "on", "no", "yes"};

    return find_switch(words, sizeof words / sizeof *words, text, on);
}

static bool parse_flag(const char *text, bool *field, char *why)
{
    static const char *const numbers[] = {"0", "1"};

    if (pace__flag_word(text, field) || find_switch(numbers, 2, text, field))
        return true;
    snprintf(why, PACE_WHY_MAX, "must be true or false (on/off, yes/no and 1/0 are understood too)");
    return false;
}

bool pace__choice_word(const char *choices, int index, char word[PACE_OPTION_NAME_MAX])
{
    for (; index > 0; index--) {
        choices = strchr(choices, '|');
        if (!choices)
            return false;
        choices++;
    }
    size_t length = strcspn(choices, "|");

    assert(length > 0 && length < PACE_OPTION_NAME_MAX);
    memcpy(word, choices, length);
    word[length] = '\0';
    return true;
}

static bool parse_choice(const pace_option *row, const char *text, int *field, char *why)
{
    char word[PACE_OPTION_NAME_MAX], best[PACE_OPTION_NAME_MAX] = "";
    pace__nearest nearest = {.word = text};

    for (int i = 0; pace__choice_word(row->choices, i, word); i++) {
        if (strcmp(text, word) == 0) {
            *field = i;
            return true;
        }
        if (pace__nearest_offer(&nearest, word))
            strcpy(best, word);
    }
    if (best[0])
        snprintf(why, PACE_WHY_MAX, "must be one of %s (did you mean %s?)", row->choices, best);
    else
        snprintf(why, PACE_WHY_MAX, "must be one of %s", row->choices);
    return false;
}

bool pace__value_parse(const pace_option *row, const char *text, void *field, char why[PACE_WHY_MAX])
{
    switch (row->kind) {
    case PACE_OPT_FLAG:
        return parse_flag(text, field, why);
    case PACE_OPT_INT:
        return parse_int_or_word(row, text, field, why);
    case PACE_OPT_SIZE:
        return parse_size(row, text, field, why);
    case PACE_OPT_REAL:
        return parse_real(row, text, field, why);
    case PACE_OPT_CHOICE:
        return parse_choice(row, text, field, why);
    case PACE_OPT_TEXT:
        *(const char **)field = text;
        return true;
    case PACE_OPT_LIST:
        break;
    }
    assert(!"a list has no single value");
    return false;
}

/* The shortest form that reads back as the same number, with a point before an exponent: YAML 1.1 wants one.
 */
static void print_real(double value, char *text)
{
    char digits[PACE_VALUE_TEXT_MAX];

    for (int precision = 15; precision <= 17; precision++) {
        snprintf(digits, sizeof digits, "%.*g", precision, value);
        if (strtod(digits, NULL) == value)
            break;
    }
    int mantissa = (int)strcspn(digits, "e");
    bool bare = digits[mantissa] == 'e' && !memchr(digits, '.', (size_t)mantissa);

    snprintf(text, PACE_VALUE_TEXT_MAX, "%.*s%s%.16s", mantissa, digits, bare ? ".0" : "", digits + mantissa);
}

void pace__value_print(const pace_option *row, const void *field, char text[PACE_VALUE_TEXT_MAX])
{
    switch (row->kind) {
    case PACE_OPT_FLAG:
        snprintf(text, PACE_VALUE_TEXT_MAX, "%s", *(const bool *)field ? "true" : "false");
        return;
    case PACE_OPT_INT:
        if (row->word && *(const int64_t *)field == -1)
            snprintf(text, PACE_VALUE_TEXT_MAX, "%s", row->word);
        else
            snprintf(text, PACE_VALUE_TEXT_MAX, "%" PRId64, *(const int64_t *)field);
        return;
    case PACE_OPT_SIZE:
        snprintf(text, PACE_VALUE_TEXT_MAX, "%" PRIu64, *(const uint64_t *)field);
        return;
    case PACE_OPT_REAL:
        print_real(*(const double *)field, text);
        return;
    case PACE_OPT_CHOICE: {
        bool known = pace__choice_word(row->choices, *(const int *)field, text);

        assert(known);
        (void)known;
        return;
    }
    case PACE_OPT_TEXT:
    case PACE_OPT_LIST:
        break;
    }
    assert(!"texts and lists are not printed here");
}
