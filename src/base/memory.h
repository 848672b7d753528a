/*
 * memory.h - large arrays.
 *
 * pace__pages_alloc gives zeroed memory for weights and tables that are accessed at random: huge pages as far as whole ones
 * fit, and small ones behind them. pace__pages_alloc_sparse gives small pages alone, for a large array of which few places
 * will be used: every touch of a huge one zeroes 2 MiB. Small allocations use malloc as usual.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* NULL when out of memory. A size of 0 gives a valid pointer. */
void *pace__pages_alloc(size_t bytes);
void *pace__pages_alloc_sparse(size_t bytes);
void pace__pages_free(void *pages, size_t bytes); /* `bytes` as allocated; NULL is allowed */

/* Arrays out of one piece of memory, each at a multiple of 64 bytes: first counted, then taken. */
typedef struct pace__taking {
    char *memory; /* NULL: only count */
    size_t used;
} pace__taking;

static inline void *pace__take(pace__taking *from, size_t count, size_t size)
{
    void *taken = from->memory ? from->memory + from->used : NULL;

    from->used += (count * size + 63) / 64 * 64;
    return taken;
}

static inline float *pace__take_floats(pace__taking *from, size_t count)
{
    return pace__take(from, count, sizeof(float));
}

#endif
