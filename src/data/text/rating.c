#include "data/text/rating.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* Longer texts are no ratings. */
#define CHARACTERS_MAX 64
/* Up to here digits and powers of ten are exact in a double, and so is their quotient, rounded once. */
#define EXACT_DIGITS_MAX 15

static const double power_of_ten[EXACT_DIGITS_MAX + 1] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                          1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
}

static bool is_blank(char character)
{
    return character == ' ' || (character >= '\t' && character <= '\r');
}

static bool parse_word(const char *text, size_t size, double *rating)
{
    static const struct {
        const char *word;
        double rating;
    } words[] = {{"pos", 1}, {"positive", 1}, {"true", 1}, {"neg", 0}, {"negative", 0}, {"false", 0}};

    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strlen(words[i].word) == size && strncasecmp(words[i].word, text, size) == 0) {
            *rating = words[i].rating;
            return true;
        }
    }
    return false;
}

/* The exponent from `at` on, to the end; false if it is none. */
static bool parse_exponent(const char *text, size_t size, size_t at, int *exponent)
{
    bool negative = at < size && text[at] == '-';
    int value = 0;

    at += at < size && (text[at] == '-' || text[at] == '+');
    if (at == size)
        return false;
    for (; at < size; at++) {
        if (!is_digit(text[at]))
            return false;
        /* Beyond what any number of this length could make up for. */
        value = value < 100000 ? 10 * value + (text[at] - '0') : value;
    }
    *exponent = negative ? -value : value;
    return true;
}

/* Written without a point, which strtod would want to be the locale's. */
static bool make_number(const char *digits, unsigned count, int exponent, double *rating)
{
    char text[CHARACTERS_MAX + 32];

    snprintf(text, sizeof text, "%.*se%d", (int)count, digits, exponent);
    *rating = strtod(text, NULL);
    return isfinite(*rating);
}

static bool parse_number(const char *text, size_t size, double *rating)
{
    char digits[CHARACTERS_MAX];
    unsigned count = 0;
    int fraction = 0, exponent = 0;
    uint64_t mantissa = 0;
    bool negative = text[0] == '-', point = false;
    size_t at = negative || text[0] == '+';

    for (; at < size && (is_digit(text[at]) || (text[at] == '.' && !point)); at++) {
        point |= text[at] == '.';
        if (text[at] == '.')
            continue;
        digits[count++] = text[at];
        mantissa = 10 * mantissa + (uint64_t)(text[at] - '0');
        fraction += point;
    }
    if (count == 0)
        return false;
    if (at == size && count <= EXACT_DIGITS_MAX)
        *rating = (double)mantissa / power_of_ten[fraction];
    else if (at < size && ((text[at] | 0x20) != 'e' || !parse_exponent(text, size, at + 1, &exponent)))
        return false;
    else if (!make_number(digits, count, exponent - fraction, rating))
        return false;
    *rating = negative ? -*rating : *rating;
    return true;
}

bool pace__rating_parse(const char *text, size_t size, double *rating)
{
    double found;

    for (; size > 0 && is_blank(*text); text++)
        size--;
    while (size > 0 && is_blank(text[size - 1]))
        size--;
    if (size == 0 || size > CHARACTERS_MAX ||
        !(parse_number(text, size, &found) || parse_word(text, size, &found)))
        return false;
    *rating = found;
    return true;
}
