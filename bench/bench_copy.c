/*
 * bench_copy BYTES: seconds that memcpy takes for so many bytes, once into fresh memory (which the kernel must
 * clear first) and once more into the same: the yardstick for a checkpoint's copy. As JSON.
 */
#include "base/clock.h"
#include "base/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double copy(char *to, const char *from, size_t bytes)
{
    uint64_t start_ns = pace__now_ns();

    memcpy(to, from, bytes);
    return pace__seconds_since(start_ns);
}

int main(int argc, char **argv)
{
    size_t bytes = argc == 2 ? strtoull(argv[1], NULL, 10) : 0;
    char *from = bytes ? pace__pages_alloc(bytes) : NULL;
    char *to = bytes ? pace__pages_alloc(bytes) : NULL;

    if (!from || !to) {
        fprintf(stderr, "usage: bench_copy BYTES, twice of which must fit into memory\n");
        return 64;
    }
    memset(from, 1, bytes);
    double fresh_s = copy(to, from, bytes), again_s = copy(to, from, bytes);

    printf("{\"bytes\": %zu, \"fresh_s\": %.6f, \"again_s\": %.6f, \"last\": %d}\n", bytes, fresh_s, again_s,
           to[bytes - 1]);
    return 0;
}
