#include "data/input/decimal.h"

#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Up to here digits and powers of ten are exact in a double, and so is their quotient, rounded once. */
#define EXACT_DIGITS_MAX 15

const double pace__power_of_ten[PACE__POWER_OF_TEN_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static bool is_digit(char character)
{
    return character >= '0' && character <= '9';
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
static bool make_number(const char *digits, unsigned count, int exponent, double *value)
{
    char text[PACE__DECIMAL_MAX + 32];

    snprintf(text, sizeof text, "%.*se%d", (int)count, digits, exponent);
    *value = strtod(text, NULL);
    return isfinite(*value);
}

bool pace__decimal_parse(const char *text, size_t size, double *value)
{
    char digits[PACE__DECIMAL_MAX];
    unsigned count = 0;
    int fraction = 0, exponent = 0;
    uint64_t mantissa = 0;
    bool negative = size > 0 && text[0] == '-', point = false;
    size_t at = negative || (size > 0 && text[0] == '+');
    double found;

    if (size > PACE__DECIMAL_MAX)
        return false;
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
        found = (double)mantissa / pace__power_of_ten[fraction];
    else if (at < size && ((text[at] | 0x20) != 'e' || !parse_exponent(text, size, at + 1, &exponent)))
        return false;
    else if (!make_number(digits, count, exponent - fraction, &found))
        return false;
    *value = negative ? -found : found;
    return true;
}
