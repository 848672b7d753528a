/* decimal.h - decimal numbers in text, read to the same bits on every machine and in every locale. */
#ifndef DATA_INPUT_DECIMAL_H
#define DATA_INPUT_DECIMAL_H

#include <stdbool.h>
#include <stddef.h>

/* Longer texts are no numbers. */
#define PACE__DECIMAL_MAX 64

/*
 * A finite number: a sign, digits with a point among them or at either end, an exponent; no blanks. False if the
 * text is none.
 */
bool pace__decimal_parse(const char *text, size_t size, double *value);

/* 10 to the power of 0 .. 22: the largest that a double holds exactly. */
#define PACE__POWER_OF_TEN_MAX 22
extern const double pace__power_of_ten[PACE__POWER_OF_TEN_MAX + 1];

#endif
