/*
 * memory.h - large arrays.
 *
 * pace__pages_alloc gives zeroed memory, aligned to 2 MiB and advised to use huge pages, for weights and
 * tables that are accessed at random. Small allocations use malloc as usual.
 */
#ifndef BASE_MEMORY_H
#define BASE_MEMORY_H

#include <stddef.h>

/* NULL when out of memory. A size of 0 gives a valid pointer. */
void *pace__pages_alloc(size_t bytes);
void pace__pages_free(void *pages, size_t bytes); /* `bytes` as allocated; NULL is allowed */

#endif
