#include "base/memory.h"

#include <stdint.h>
#include <sys/mman.h>

/* The largest that a Linux has: on arm64 a kernel may have been built for pages of 4, 16 or 64 KiB. */
#define SMALL_PAGE ((size_t)64 << 10)
#define HUGE_PAGE  ((size_t)2 << 20)

/* At least a byte more, so that nothing is not nowhere. */
static size_t round_up(size_t bytes)
{
    return (bytes + SMALL_PAGE) / SMALL_PAGE * SMALL_PAGE;
}

static void *map_pages(size_t size)
{
    void *map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    return map == MAP_FAILED ? NULL : map;
}

void *pace__pages_alloc_sparse(size_t bytes)
{
    void *map = bytes > SIZE_MAX / 2 ? NULL : map_pages(round_up(bytes));

    if (map)
        madvise(map, round_up(bytes), MADV_NOHUGEPAGE); /* where all memory would have them */
    return map;
}

void *pace__pages_alloc(size_t bytes)
{
    size_t size = round_up(bytes);

    if (bytes < HUGE_PAGE || bytes > SIZE_MAX / 2)
        return pace__pages_alloc_sparse(bytes);
    char *map = map_pages(size + HUGE_PAGE);

    if (!map)
        return NULL;
    /* Trim to alignment: what is in front and behind goes back. */
    char *start = (char *)(((uintptr_t)map + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    size_t front = (size_t)(start - map);

    if (front > 0)
        munmap(map, front);
    if (front < HUGE_PAGE)
        munmap(start + size, HUGE_PAGE - front);
    madvise(start, bytes / HUGE_PAGE * HUGE_PAGE, MADV_HUGEPAGE);
    return start;
}

void pace__pages_free(void *pages, size_t bytes)
{
    if (pages)
        munmap(pages, round_up(bytes));
}
