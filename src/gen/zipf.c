#include "gen/zipf.h"

#include "gen/elementary.h"

#include <assert.h>

/* (a / b)^exponent for ranks a <= b. */
static double falloff(const pace__zipf *zipf, uint32_t a, uint32_t b)
{
    return pace__portable_exp(zipf->exponent * pace__portable_log(((double)a + 1) / ((double)b + 1)));
}

/* The alias method: `mass` sums to `cells`; cells with too little are filled up from those with too much. */
static void build_alias(pace__zipf *zipf, double *mass)
{
    uint32_t poor[PACE__ZIPF_CELLS], rich[PACE__ZIPF_CELLS];
    uint32_t poor_count = 0, rich_count = 0;

    for (uint32_t i = 0; i < zipf->cells; i++) {
        zipf->table[i].keep = UINT32_MAX;
        zipf->table[i].alias = i;
        if (mass[i] < 1)
            poor[poor_count++] = i;
        else
            rich[rich_count++] = i;
    }
    while (poor_count > 0 && rich_count > 0) {
        uint32_t low = poor[--poor_count], high = rich[rich_count - 1];

        zipf->table[low].keep = (uint32_t)(mass[low] * 0x1p32);
        zipf->table[low].alias = high;
        mass[high] -= 1 - mass[low];
        if (mass[high] < 1) {
            rich_count--;
            poor[poor_count++] = high;
        }
    }
}

void pace__zipf_init(pace__zipf *zipf, uint32_t count, double exponent)
{
    double mass[PACE__ZIPF_CELLS], total = 0;

    assert(count > 0 && exponent > 0 && exponent <= 4);
    zipf->exponent = exponent;
    zipf->head = count < PACE__ZIPF_HEAD ? count : PACE__ZIPF_HEAD;
    zipf->cells = zipf->head;
    for (uint32_t i = 0; i < zipf->head; i++)
        mass[i] = falloff(zipf, 0, i);
    for (uint32_t start = zipf->head; start < count; zipf->cells++) {
        uint32_t range = zipf->cells - zipf->head;
        uint32_t width = start / 16 < count - start ? start / 16 : count - start;

        assert(range < PACE__ZIPF_RANGES);
        zipf->ranges[range].start = start;
        zipf->ranges[range].width = width;
        zipf->ranges[range].sure = falloff(zipf, start, start + width - 1);
        mass[zipf->cells] = width * falloff(zipf, 0, start);
        start += width;
    }
    for (uint32_t i = 0; i < zipf->cells; i++)
        total += mass[i];
    for (uint32_t i = 0; i < zipf->cells; i++)
        mass[i] *= zipf->cells / total;
    build_alias(zipf, mass);
}

uint32_t pace__zipf_draw(const pace__zipf *zipf, uint64_t choice, pace__random *random)
{
    for (;; choice = pace__random_next(random)) {
        unsigned __int128 place = (unsigned __int128)choice * zipf->cells;
        uint32_t cell = (uint32_t)(place >> 64);

        uint32_t alias = zipf->table[cell].alias;

        /* Written as a mask: a branch would be mispredicted half of the time. */
        cell ^= (cell ^ alias) & -(uint32_t)((uint32_t)((uint64_t)place >> 32) >= zipf->table[cell].keep);
        if (cell < zipf->head)
            return cell;
        uint32_t range = cell - zipf->head, start = zipf->ranges[range].start;
        uint32_t rank = start + (uint32_t)pace__random_below(random, zipf->ranges[range].width);
        double even = pace__random_unit(random);

        if (even < zipf->ranges[range].sure || even < falloff(zipf, start, rank))
            return rank;
    }
}
