#include "study/prices.h"

#include "files/file.h"

#include <ctype.h>
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_MAX 8

typedef struct place {
    const char *path;
    int line;
    const pace_log *log;
} place;

static bool read_real(const char *text, double max, double *value)
{
    char *end;
    double number = strtod(text, &end);

    if (end == text || *end || !isfinite(number) || number <= 0 || number > max)
        return false;
    *value = number;
    return true;
}

static bool is_currency(const char *word)
{
    return strlen(word) == 3 && isupper((unsigned char)word[0]) && isupper((unsigned char)word[1]) &&
           isupper((unsigned char)word[2]);
}

/* slots=N, speed=X */
static pace_status take_setting(const place *at, const char *word, pace__price *price)
{
    double value;

    if (strncmp(word, "slots=", 6) == 0 && read_real(word + 6, 4096, &value) && value == floor(value)) {
        price->slots = (int64_t)value;
        return PACE_OK;
    }
    if (strncmp(word, "speed=", 6) == 0 && read_real(word + 6, PACE__SPEED_MAX, &value)) {
        price->speed = value;
        return PACE_OK;
    }
    return pace_fail(at->log, PACE_USAGE,
                     "%s:%d: '%s': behind name, price and currency stand slots=N and speed=X, above 0",
                     at->path, at->line, word);
}

static pace_status take_words(const place *at, char *words[], size_t count, pace__price *price)
{
    *price = (pace__price){.slots = 1, .speed = 1};
    if (count < 3)
        return pace_fail(
            at->log, PACE_USAGE,
            "%s:%d: a line has a name, a price for an hour and a currency, as in: small 0.085 USD", at->path,
            at->line);
    if (strlen(words[0]) >= PACE__PRICE_TEXT)
        return pace_fail(at->log, PACE_USAGE, "%s:%d: the name is longer than %d bytes", at->path, at->line,
                         PACE__PRICE_TEXT - 1);
    if (!read_real(words[1], PACE__PRICE_HOUR_MAX, &price->hour))
        return pace_fail(at->log, PACE_USAGE, "%s:%d: '%s' is no price for an hour, above 0 and up to %g",
                         at->path, at->line, words[1], PACE__PRICE_HOUR_MAX);
    if (!is_currency(words[2]))
        return pace_fail(at->log, PACE_USAGE, "%s:%d: '%s' is no currency: three capital letters, as EUR",
                         at->path, at->line, words[2]);
    snprintf(price->name, sizeof price->name, "%s", words[0]);
    snprintf(price->currency, sizeof price->currency, "%s", words[2]);
    pace_status status = PACE_OK;

    for (size_t i = 3; i < count && !status; i++)
        status = take_setting(at, words[i], price);
    return status;
}

static pace_status add_price(const place *at, const pace__price *price, pace__prices *prices)
{
    if (prices->count == PACE__PRICES_MAX)
        return pace_fail(at->log, PACE_USAGE, "%s:%d: more than %d machine types", at->path, at->line,
                         PACE__PRICES_MAX);
    if (prices->count && strcmp(price->currency, prices->of[0].currency) != 0)
        return pace_fail(at->log, PACE_USAGE,
                         "%s:%d: the price of %s is in %s, that of %s in %s: all must be in one currency",
                         at->path, at->line, price->name, price->currency, prices->of[0].name,
                         prices->of[0].currency);
    for (size_t i = 0; i < prices->count; i++) {
        if (strcmp(price->name, prices->of[i].name) == 0)
            return pace_fail(at->log, PACE_USAGE, "%s:%d: %s has a price already", at->path, at->line,
                             price->name);
    }
    prices->of[prices->count++] = *price;
    return PACE_OK;
}

static pace_status take_line(const place *at, char *line, pace__prices *prices)
{
    char *words[WORDS_MAX], *rest = NULL;
    size_t count = 0;
    pace__price price;

    line[strcspn(line, "#")] = '\0';
    for (char *word = strtok_r(line, " \t\r", &rest); word; word = strtok_r(NULL, " \t\r", &rest)) {
        if (count == WORDS_MAX)
            return pace_fail(at->log, PACE_USAGE, "%s:%d: more than %d words", at->path, at->line, WORDS_MAX);
        words[count++] = word;
    }
    if (count == 0)
        return PACE_OK;
    pace_status status = take_words(at, words, count, &price);

    return status ? status : add_price(at, &price, prices);
}

pace_status pace__prices_parse(const char *text, const char *path, const pace_log *log, pace__prices *prices)
{
    char *copy = strdup(text), *rest = copy, *line;
    place at = {.path = path, .log = log};
    pace__prices found = {0};
    pace_status status = copy ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");

    while (!status && (line = strsep(&rest, "\n"))) {
        at.line++;
        status = take_line(&at, line, &found);
    }
    free(copy);
    if (!status && found.count == 0)
        status = pace_fail(log, PACE_USAGE, "%s: there is no machine type in it", path);
    if (!status)
        *prices = found;
    return status;
}

pace_status pace__prices_read(const char *path, const pace_log *log, pace__prices *prices)
{
    char *text;
    size_t size;
    pace_status status = pace__read_file(path, PACE__PRICES_BYTES, &text, &size, log);

    if (status)
        return status;
    status = pace__prices_parse(text, path, log, prices);
    free(text);
    return status;
}

pace__bill pace__bill_of(const pace__price *price, int64_t processes, double seconds)
{
    pace__bill bill = {.machines = (processes + price->slots - 1) / price->slots,
                       .seconds = seconds / price->speed};

    bill.money = (double)bill.machines * price->hour * bill.seconds / 3600;
    return bill;
}
