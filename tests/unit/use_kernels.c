/* Part of every unit test and benchmark: PACELINE_KERNELS=plain in the environment runs it with those kernels, as it
 * would the program. `make kernels` runs tests this way. */
#include <paceline/kernels.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SKIPPED 77 /* to CTest */

static void print(void *user, pace_level level, const char *text)
{
    (void)user, (void)level;
    fprintf(stderr, "%s\n", text);
}

/* The number of a name in "auto|plain|v2|v3|v4|neon"; -1: none. */
static int number_of(const char *name)
{
    const char *word = PACE_KERNELS_WORDS;

    for (int number = 0; *word; number++) {
        size_t length = strcspn(word, "|");

        if (strlen(name) == length && strncmp(name, word, length) == 0)
            return number;
        word += length + (word[length] == '|');
    }
    return -1;
}

__attribute__((constructor)) static void use_kernels(void)
{
    const char *name = getenv("PACELINE_KERNELS");
    int kernels = name ? number_of(name) : PACE_KERNELS_AUTO;

    if (kernels < 0) {
        fprintf(stderr, "PACELINE_KERNELS=%s: must be one of %s\n", name, PACE_KERNELS_WORDS);
        _exit(1);
    }
    if (kernels != PACE_KERNELS_AUTO && pace_kernels_use(kernels, &(pace_log){.write = print}))
        _exit(SKIPPED);
}
