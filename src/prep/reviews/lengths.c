#include "prep/reviews/lengths.h"

#include "data/text/vocabulary.h"

/* Bins of 10, of 100, of 1,000 words, and where each of these ends. */
#define TENS         100
#define HUNDREDS     90
#define TENS_END     1000
#define HUNDREDS_END 10000
/* One in so many texts may be cut. */
#define CUT_SHARE 5
/* Of all rows. */
#define BYTES_MAX      ((uint64_t)4 << 30)
#define BIN_OF_LONGEST (PACE__LENGTH_BINS - 1)

_Static_assert(TENS + HUNDREDS + (PACE__TEXT_LENGTH_MAX - HUNDREDS_END + 999) / 1000 + 1 == PACE__LENGTH_BINS,
               "bins up to the longest row, and one behind it");

/* Steps of `width` that `words` reach into, of words behind `begin`. */
static unsigned steps(uint64_t words, uint64_t begin, uint64_t width)
{
    return (unsigned)((words - begin + width - 1) / width);
}

unsigned pace__length_bin(uint64_t words)
{
    if (words > PACE__TEXT_LENGTH_MAX)
        return BIN_OF_LONGEST;
    if (words > HUNDREDS_END)
        return TENS + HUNDREDS - 1 + steps(words, HUNDREDS_END, 1000);
    if (words > TENS_END)
        return TENS - 1 + steps(words, TENS_END, 100);
    return words > 0 ? steps(words, 0, 10) - 1 : 0;
}

uint64_t pace__length_bin_end(unsigned bin)
{
    uint64_t end = bin < TENS              ? 10 * (bin + UINT64_C(1))
                   : bin < TENS + HUNDREDS ? TENS_END + 100 * (bin - TENS + UINT64_C(1))
                                           : HUNDREDS_END + 1000 * (bin - TENS - HUNDREDS + UINT64_C(1));

    return end < PACE__TEXT_LENGTH_MAX ? end : PACE__TEXT_LENGTH_MAX;
}

uint64_t pace__length_texts(const uint64_t counts[PACE__LENGTH_BINS])
{
    uint64_t texts = 0;

    for (unsigned bin = 0; bin < PACE__LENGTH_BINS; bin++)
        texts += counts[bin];
    return texts;
}

uint64_t pace__length_of_share(const uint64_t counts[PACE__LENGTH_BINS], double share)
{
    double wanted = share * (double)pace__length_texts(counts);
    uint64_t whole = 0;

    for (unsigned bin = 0; bin < BIN_OF_LONGEST; bin++) {
        whole += counts[bin];
        if (whole > 0 && (double)whole >= wanted)
            return pace__length_bin_end(bin);
    }
    return 0;
}

uint64_t pace__length_cut(const uint64_t counts[PACE__LENGTH_BINS], uint64_t length)
{
    uint64_t cut = 0;

    for (unsigned bin = pace__length_bin(length) + 1; bin < PACE__LENGTH_BINS; bin++)
        cut += counts[bin];
    return cut;
}

uint32_t pace__length_of_rows(const uint64_t counts[PACE__LENGTH_BINS])
{
    uint64_t texts = pace__length_texts(counts), wanted = pace__length_of_share(counts, PACE__WHOLE_SHARE);

    if (CUT_SHARE * pace__length_cut(counts, PACE__ROOM_MIN) <= texts)
        return PACE__ROOM_MIN;
    uint64_t room = BYTES_MAX / (texts * sizeof(uint32_t)) / 10 * 10;

    room = room < PACE__ROOM_MAX ? room : PACE__ROOM_MAX;
    if (wanted > 0 && wanted < room)
        room = wanted;
    return room > PACE__ROOM_MIN ? (uint32_t)room : PACE__ROOM_MIN;
}
