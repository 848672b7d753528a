/*
 * random.h - seeded randomness.
 *
 * pace__mix64 is a bijection on 64 bits: distinct inputs give distinct outputs, so mixed keys need no
 * tie-break. pace__random is a SplitMix64 stream: small, seekable in spirit (a stream per (seed, place) by
 * pace__random_at), and good enough for data and shuffles. Not for secrets.
 */
#ifndef BASE_RANDOM_H
#define BASE_RANDOM_H

#include <stdint.h>

static inline uint64_t pace__mix64(uint64_t x)
{
    x ^= x >> 30;
    x *= 0xbf58476d1ce4e5b9u;
    x ^= x >> 27;
    x *= 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef struct pace__random {
    uint64_t state;
} pace__random;

static inline uint64_t pace__random_next(pace__random *random)
{
    return pace__mix64(random->state += 0x9e3779b97f4a7c15u);
}

/* The stream that belongs to a place: a function of seed and place alone. */
static inline pace__random pace__random_at(uint64_t seed, uint64_t place)
{
    return (pace__random){pace__mix64(seed ^ pace__mix64(place + 0x632be59bd9b4e019u))};
}

/* Uniform in [0, 1). */
static inline double pace__random_unit(pace__random *random)
{
    return (double)(pace__random_next(random) >> 11) * 0x1p-53;
}

/* Uniform in [0, limit), by multiplication: bias below limit / 2^64. */
static inline uint64_t pace__scale_to(uint64_t bits, uint64_t limit)
{
    return (uint64_t)(((unsigned __int128)bits * limit) >> 64);
}

static inline uint64_t pace__random_below(pace__random *random, uint64_t limit)
{
    return pace__scale_to(pace__random_next(random), limit);
}

/* Roughly normal with deviation 1, within +-4.9: the sum of eight even 16-bit numbers, centred and scaled.
 * Not by logarithms, which are not the same bits on every machine. */
static inline double pace__random_normal(pace__random *random)
{
    int32_t sum = -8 * 65535 / 2;

    for (int draw = 0; draw < 2; draw++) {
        for (uint64_t bits = pace__random_next(random), piece = 0; piece < 4; piece++, bits >>= 16)
            sum += (int32_t)(bits & 65535);
    }
    return (double)sum * (1 / 53509.9);
}

#endif
