#include "plan/words.h"

#include "job/job.h"
#include "options/internal.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define ITEM_TEXT 64
#define PRICE_MAX 1e9

/* The next of "a,b,c"; false behind the last one. Longer ones are cut, and fit nothing. */
static bool next_item(const char **text, char item[ITEM_TEXT])
{
    if (!*text)
        return false;
    size_t length = strcspn(*text, ",");

    snprintf(item, ITEM_TEXT, "%.*s", (int)length, *text);
    *text = (*text)[length] ? *text + length + 1 : NULL;
    return true;
}

pace_status pace__words_numbers(const char *option, const char *text, double least, double most,
                                const pace_log *log, pace__number_list *numbers)
{
    pace_option row = {.name = option, .kind = PACE_OPT_INT, .min = least, .max = most};
    char item[ITEM_TEXT], why[PACE_WHY_MAX];

    numbers->count = 0;
    while (next_item(&text, item)) {
        int64_t value;

        if (numbers->count == PACE__LIST_MAX)
            return pace_fail(log, PACE_USAGE, "--%s: more than %d numbers", option, PACE__LIST_MAX);
        if (!pace__value_parse(&row, item, &value, why))
            return pace_fail(log, PACE_USAGE, "--%s: \"%s\" %s; a list is like 1,2,4", option, item, why);
        numbers->items[numbers->count++] = (uint64_t)value;
    }
    return PACE_OK;
}

pace_status pace__words_modes(const char *text, const pace_log *log, pace__number_list *modes)
{
    char item[ITEM_TEXT], word[PACE_OPTION_NAME_MAX];

    modes->count = 0;
    while (next_item(&text, item)) {
        int mode = 0;

        while (pace__choice_word(pace__mode_names, mode, word) && strcmp(word, item) != 0)
            mode++;
        if (strcmp(word, item) != 0 || mode == PACE_MODE_AUTO || modes->count == PACE__LIST_MAX)
            return pace_fail(log, PACE_USAGE, "--mode: \"%s\" is none that can be predicted; there is %s",
                             item, strchr(pace__mode_names, '|') + 1);
        modes->items[modes->count++] = (uint64_t)mode;
    }
    return PACE_OK;
}

/* --- numbers with units --- */

typedef struct unit {
    const char *name;
    double times;
} unit;

static bool parse_unit(const char *text, const unit *units, double *value)
{
    char *rest;
    double number = strtod(text, &rest);

    for (; rest != text && units->name; units++) {
        if (strcmp(rest, units->name) == 0 && isfinite(number) && number > 0) {
            *value = number * units->times;
            return true;
        }
    }
    return false;
}

pace_status pace__words_net(const char *text, const pace_log *log, double *bytes_s)
{
    static const unit units[] = {{"gbit", 1e9 / 8}, {"mbit", 1e6 / 8}, {"kbit", 1e3 / 8}, {0}};

    if (!parse_unit(text, units, bytes_s))
        return pace_fail(log, PACE_USAGE, "--net %s: a speed is a number with gbit, mbit or kbit, above 0",
                         text);
    return PACE_OK;
}

pace_status pace__words_latency(const char *text, const pace_log *log, double *seconds)
{
    static const unit units[] = {{"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {0}};

    if (!parse_unit(text, units, seconds))
        return pace_fail(log, PACE_USAGE, "--latency %s: a time is a number with us, ms or s, above 0", text);
    return PACE_OK;
}

/* --- prices --- */

static pace_status take_price(const char *text, const pace_log *log, pace__hourly *prices)
{
    bool of_ps = strncmp(text, "ps=", 3) == 0;
    const char *number = of_ps ? text + 3 : text;
    char *rest;
    double price = strtod(number, &rest);

    if (rest == number || !(price >= 0 && price <= PRICE_MAX) || strlen(rest) >= sizeof prices->currency ||
        strpbrk(rest, "0123456789 ,.=/"))
        return pace_fail(log, PACE_USAGE,
                         "--price %s: a price of a machine and hour is a number, with a currency or without: "
                         "0.35EUR, ps=0.20EUR",
                         text);
    if (prices->worker + prices->ps > -2 && strcmp(prices->currency, rest) != 0)
        return pace_fail(log, PACE_USAGE,
                         "--price %s: prices in \"%s\" and in \"%s\" cannot be added: take one currency",
                         text, prices->currency, rest);
    strcpy(prices->currency, rest);
    *(of_ps ? &prices->ps : &prices->worker) = price;
    return PACE_OK;
}

pace_status pace__words_prices(const pace_texts *texts, const pace_log *log, pace__hourly *prices)
{
    pace_status status = PACE_OK;

    *prices = (pace__hourly){.worker = -1, .ps = -1};
    for (size_t i = 0; i < texts->count && !status; i++)
        status = take_price(texts->items[i], log, prices);
    if (!status && prices->worker < 0 && prices->ps >= 0)
        return pace_fail(log, PACE_USAGE,
                         "--price ps=...: that of the other machines is missing: --price 0.35EUR");
    if (prices->ps < 0)
        prices->ps = prices->worker;
    return status;
}
