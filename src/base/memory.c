#include "base/memory.h"

#include <stdint.h>
#include <sys/mman.h>

#define HUGE_PAGE ((size_t)2 << 20)

static size_t round_up(size_t bytes)
{
    return (bytes + HUGE_PAGE) / HUGE_PAGE * HUGE_PAGE;
}

void *pace__pages_alloc(size_t bytes)
{
    if (bytes > SIZE_MAX / 2)
        return NULL;
    size_t size = round_up(bytes);
    char *map = mmap(NULL, size + HUGE_PAGE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (map == MAP_FAILED)
        return NULL;
    /* Trim to alignment: what is in front and behind goes back. */
    char *start = (char *)(((uintptr_t)map + HUGE_PAGE - 1) / HUGE_PAGE * HUGE_PAGE);
    size_t front = (size_t)(start - map);

    if (front > 0)
        munmap(map, front);
    if (front < HUGE_PAGE)
        munmap(start + size, HUGE_PAGE - front);
    madvise(start, size, MADV_HUGEPAGE);
    return start;
}

void pace__pages_free(void *pages, size_t bytes)
{
    if (pages)
        munmap(pages, round_up(bytes));
}
