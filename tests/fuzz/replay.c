/*
 * Feeds every file of a directory to the fuzz target it is linked with: replay DIR. Fails if there is none.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define INPUT_BYTES_MAX ((size_t)1 << 20)

/* In memory of just its size, so that a sanitizer sees every byte read beyond it. */
static int feed(const uint8_t *bytes, size_t size)
{
    uint8_t *exact = malloc(size > 0 ? size : 1);

    if (!exact)
        return -1;
    for (size_t i = 0; i < size; i++)
        exact[i] = bytes[i];
    LLVMFuzzerTestOneInput(exact, size);
    free(exact);
    return 0;
}

static int replay(const char *directory, const char *name)
{
    static uint8_t bytes[INPUT_BYTES_MAX];
    char path[4096];

    if (snprintf(path, sizeof path, "%s/%s", directory, name) >= (int)sizeof path)
        return -1;
    FILE *file = fopen(path, "rb");

    if (!file)
        return -1;
    size_t size = fread(bytes, 1, sizeof bytes, file);
    int failed = ferror(file);

    fclose(file);
    return failed ? -1 : feed(bytes, size);
}

int main(int argc, char **argv)
{
    unsigned count = 0;
    DIR *directory = argc == 2 ? opendir(argv[1]) : NULL;

    if (!directory) {
        fprintf(stderr, "usage: %s CORPUS_DIRECTORY\n", argv[0]);
        return 64;
    }
    for (struct dirent *entry; (entry = readdir(directory)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        if (replay(argv[1], entry->d_name) != 0) {
            fprintf(stderr, "%s/%s: cannot be read\n", argv[1], entry->d_name);
            return 74;
        }
        count++;
    }
    closedir(directory);
    printf("%u inputs replayed\n", count);
    return count > 0 ? 0 : 66;
}
