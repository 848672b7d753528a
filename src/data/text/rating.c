#include "data/text/rating.h"

#include "data/input/decimal.h"

#include <string.h>
#include <strings.h>

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

bool pace__rating_parse(const char *text, size_t size, double *rating)
{
    double found;

    for (; size > 0 && is_blank(*text); text++)
        size--;
    while (size > 0 && is_blank(text[size - 1]))
        size--;
    if (size == 0 || size > PACE__DECIMAL_MAX ||
        !(pace__decimal_parse(text, size, &found) || parse_word(text, size, &found)))
        return false;
    *rating = found;
    return true;
}
