/*
 * Pictures from hostile files: either pixels or a reason, and what a loader has seen before does not matter.
 * The first byte of an input chooses the plan, the rest is the file.
 */
#include "data/picture/picture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HEIGHT 12
#define WIDTH  20

static void check(bool right, const char *what)
{
    if (!right) {
        fprintf(stderr, "wrong: %s\n", what);
        abort();
    }
}

static bool load(pace__picture_loader *loader, const uint8_t *bytes, size_t size, uint8_t *pixels)
{
    const char *reason = pace__picture_load(loader, bytes, size, pixels);

    check(!reason || *reason, "an empty reason");
    return !reason;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static pace__picture_loader *kept[6];
    pace__picture_loader *fresh;
    uint8_t pixels[HEIGHT * WIDTH * 3] = {0}, again[HEIGHT * WIDTH * 3] = {0};

    if (size == 0)
        return 0;
    unsigned choice = data[0] % 6;
    pace__picture_plan plan = {HEIGHT, WIDTH, choice % 2 ? 1 : 3, (int)choice / 2};

    if (!kept[choice])
        check(!pace__picture_loader_create(&plan, NULL, &kept[choice]), "out of memory");
    check(!pace__picture_loader_create(&plan, NULL, &fresh), "out of memory");
    bool good = load(kept[choice], data + 1, size - 1, pixels);

    check(load(fresh, data + 1, size - 1, again) == good, "another verdict");
    check(!good || memcmp(pixels, again, sizeof pixels) == 0, "other pixels");
    pace__picture_loader_free(fresh);
    return 0;
}
