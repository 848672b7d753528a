#include "data/picture/picture.h"

#include "data/picture/picture_internal.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Buffers above this are given back when a picture is done: one giant must not stay for a day. */
#define KEEP_BYTES_MAX ((size_t)64 << 20)

struct pace__picture_loader {
    pace__picture_plan plan;
    const pace__mix_kernels *kernels;
    pace__decoded decoded;
    pace__resizer resizer;
    uint8_t *grey; /* of a source in colour, when grey is wanted */
    size_t grey_room;
    uint64_t turned;
    uint8_t *small; /* the result before it is turned and put into place */
    size_t small_room;
};

bool pace__picture_reserve(uint8_t **bytes, size_t *room, size_t need)
{
    if (need <= *room && *bytes)
        return true;
    free(*bytes);
    *bytes = malloc(need > 0 ? need : 1);
    *room = *bytes ? need : 0;
    return *bytes != NULL;
}

static void give_back(uint8_t **bytes, size_t *room)
{
    if (*room <= KEEP_BYTES_MAX)
        return;
    free(*bytes);
    *bytes = NULL;
    *room = 0;
}

pace_status pace__picture_loader_create(const pace__picture_plan *plan, const pace_log *log,
                                        pace__picture_loader **loader)
{
    assert(plan->channels == 1 || plan->channels == 3);
    if (plan->height < 1 || plan->width < 1 || plan->height > PACE__FILE_SIDE_MAX ||
        plan->width > PACE__FILE_SIDE_MAX)
        return pace_fail(log, PACE_USAGE, "pictures of %u x %u: sides from 1 to %d are possible", plan->width,
                         plan->height, PACE__FILE_SIDE_MAX);
    pace__picture_loader *self = calloc(1, sizeof *self);

    if (!self)
        return pace_fail(log, PACE_FAILED, "out of memory for a picture loader");
    self->plan = *plan;
    self->kernels = pace__mix_of(pace_kernels_in_use());
    *loader = self;
    return PACE_OK;
}

void pace__picture_loader_free(pace__picture_loader *loader)
{
    if (!loader)
        return;
    pace__resizer_release(&loader->resizer);
    free(loader->decoded.bitmap.pixels);
    free(loader->decoded.row);
    free(loader->grey);
    free(loader->small);
    free(loader);
}

/* ---- fit ---- */

static uint32_t rounded(double side, uint32_t most)
{
    uint32_t whole = (uint32_t)(side + 0.5);

    return whole < 1 ? 1 : whole > most ? most : whole;
}

/* The middle of `side`, as long as `other` times `ratio`. */
static void cut(double *start, double *side, double other, double ratio)
{
    double length = other * ratio < *side ? other * ratio : *side;

    *start = (*side - length) / 2;
    *side = length;
}

pace__frame pace__picture_frame(const pace__picture_plan *plan, uint32_t height, uint32_t width,
                                int orientation)
{
    bool swap = pace__is_transposed(orientation);
    uint32_t rows = swap ? plan->width : plan->height, columns = swap ? plan->height : plan->width;
    pace__frame frame = {0, 0, height, width, rows, columns};
    bool wide = (uint64_t)width * rows > (uint64_t)height * columns; /* wider than what is wanted */

    if (plan->fit == PACE_FIT_CROP && wide)
        cut(&frame.left, &frame.width, height, (double)columns / rows);
    else if (plan->fit == PACE_FIT_CROP)
        cut(&frame.top, &frame.height, width, (double)rows / columns);
    else if (plan->fit == PACE_FIT_PAD && wide)
        frame.rows = rounded((double)height * columns / width, rows);
    else if (plan->fit == PACE_FIT_PAD)
        frame.columns = rounded((double)width * rows / height, columns);
    return frame;
}

/* ---- orientation ---- */

static uint32_t read_number(const uint8_t *at, unsigned bytes, bool big)
{
    uint32_t number = 0;

    for (unsigned i = 0; i < bytes; i++)
        number |= (uint32_t)at[i] << 8 * (big ? bytes - 1 - i : i);
    return number;
}

int pace__exif_orientation(const uint8_t *tiff, size_t size)
{
    if (size < 8 || (memcmp(tiff, "II*\0", 4) != 0 && memcmp(tiff, "MM\0*", 4) != 0))
        return 1;
    bool big = tiff[0] == 'M';
    size_t at = read_number(tiff + 4, 4, big);

    if (at > size || size - at < 2)
        return 1;
    uint32_t entries = read_number(tiff + at, 2, big);

    for (at += 2; entries > 0 && size - at >= 12; entries--, at += 12) {
        uint32_t tag = read_number(tiff + at, 2, big), type = read_number(tiff + at + 2, 2, big);
        uint32_t count = read_number(tiff + at + 4, 4, big), value = read_number(tiff + at + 8, 2, big);

        if (tag == 0x112)
            return type == 3 && count == 1 && value >= 1 && value <= 8 ? (int)value : 1;
    }
    return 1;
}

/* Where pixel (0, 0) of a picture (rows, columns) as stored goes, and how far a step in it moves there. */
typedef struct turn {
    ptrdiff_t start, down, right; /* bytes */
} turn;

/* The upright picture begins at byte 0 and has `stride` bytes from row to row, `pixel` from pixel to pixel. */
static turn find_turn(int orientation, uint32_t rows, uint32_t columns, ptrdiff_t stride, ptrdiff_t pixel)
{
    bool swap = pace__is_transposed(orientation);
    /* Whether what comes first in the file, a row's begin or a first row, is at the right, or at the bottom. */
    static const bool left[9] = {0, 0, 1, 1, 0, 0, 1, 1, 0}, up[9] = {0, 0, 0, 1, 1, 0, 0, 1, 1};
    ptrdiff_t x = left[orientation] ? -pixel : pixel, y = up[orientation] ? -stride : stride;
    ptrdiff_t last_x = (ptrdiff_t)(swap ? rows : columns) - 1,
              last_y = (ptrdiff_t)(swap ? columns : rows) - 1;

    return (turn){.start = (left[orientation] ? last_x * pixel : 0) + (up[orientation] ? last_y * stride : 0),
                  .down = swap ? x : y,
                  .right = swap ? y : x};
}

/* From (rows, columns, channels) without gaps to where the turn says; grey becomes colour if need be. */
static void place(const uint8_t *from, uint32_t rows, uint32_t columns, uint32_t channels, const turn *way,
                  uint32_t to_channels, uint8_t *to)
{
    for (uint32_t y = 0; y < rows; y++) {
        uint8_t *at = to + way->start + (ptrdiff_t)y * way->down;

        for (uint32_t x = 0; x < columns; x++, from += channels, at += way->right) {
            for (uint32_t c = 0; c < to_channels; c++)
                at[c] = from[channels == 1 ? 0 : c];
        }
    }
}

/* ---- resize ---- */

static bool to_grey(pace__picture_loader *self, pace__bitmap *bitmap)
{
    size_t count = (size_t)bitmap->height * bitmap->width;

    if (!pace__picture_reserve(&self->grey, &self->grey_room, count))
        return false;
    for (size_t i = 0; i < count; i++)
        self->grey[i] =
            pace__grey(bitmap->pixels[3 * i], bitmap->pixels[3 * i + 1], bitmap->pixels[3 * i + 2]);
    *bitmap = (pace__bitmap){bitmap->height, bitmap->width, 1, self->grey, 0};
    return true;
}

/* False: out of memory. */
static bool fit(pace__picture_loader *self, pace__bitmap from, const pace__frame *frame, double scale,
                int orientation, uint8_t *pixels)
{
    const pace__picture_plan *plan = &self->plan;
    bool swap = pace__is_transposed(orientation);
    size_t stride = (size_t)plan->width * plan->channels;

    if (from.channels == 3 && plan->channels == 1 && !to_grey(self, &from))
        return false;
    pace__resize_job job = {&from,
                            frame->top * scale,
                            frame->left * scale,
                            frame->height * scale,
                            frame->width * scale,
                            frame->rows,
                            frame->columns,
                            pixels,
                            stride};

    if (orientation == 1 && from.channels == plan->channels && frame->columns == plan->width &&
        frame->rows == plan->height)
        return pace__resize(&self->resizer, &job, self->kernels);
    job.stride = (size_t)frame->columns * from.channels;
    if (!pace__picture_reserve(&self->small, &self->small_room, job.stride * frame->rows))
        return false;
    job.to = self->small;
    if (!pace__resize(&self->resizer, &job, self->kernels))
        return false;
    turn way = find_turn(orientation, frame->rows, frame->columns, (ptrdiff_t)stride, plan->channels);
    uint32_t above = (plan->height - (swap ? frame->columns : frame->rows)) / 2;
    uint32_t before = (plan->width - (swap ? frame->rows : frame->columns)) / 2;

    if (plan->fit == PACE_FIT_PAD)
        memset(pixels, 0, plan->height * stride);
    way.start += (ptrdiff_t)(above * stride + before * plan->channels);
    place(self->small, frame->rows, frame->columns, from.channels, &way, plan->channels, pixels);
    return true;
}

static void keep_little(pace__picture_loader *self)
{
    give_back(&self->decoded.bitmap.pixels, &self->decoded.bitmap.room);
    give_back(&self->grey, &self->grey_room);
}

const char *pace__picture_resize(pace__picture_loader *loader, const uint8_t *from, uint32_t height,
                                 uint32_t width, uint32_t channels, uint8_t *pixels)
{
    pace__bitmap bitmap = {height, width, channels, (uint8_t *)from, 0};

    assert(channels == 1 || channels == 3);
    if (height < 1 || width < 1)
        return "it has no pixels";
    if (height > PACE__FILE_SIDE_MAX || width > PACE__FILE_SIDE_MAX ||
        (uint64_t)height * width > PACE__PICTURE_PIXELS_MAX)
        return "it has too many pixels";
    pace__frame frame = pace__picture_frame(&loader->plan, height, width, 1);
    bool done = fit(loader, bitmap, &frame, 1, 1, pixels);

    keep_little(loader);
    return done ? NULL : "out of memory";
}

/* ---- files ---- */

static bool is_jpeg(const void *bytes, size_t size)
{
    return size >= 3 && memcmp(bytes, "\xff\xd8\xff", 3) == 0;
}

static bool is_png(const void *bytes, size_t size)
{
    return size >= 8 && memcmp(bytes, "\x89PNG\r\n\x1a\n", 8) == 0;
}

bool pace__is_picture(const void *bytes, size_t size)
{
    return is_jpeg(bytes, size) || is_png(bytes, size);
}

const char *pace__picture_load(pace__picture_loader *loader, const void *bytes, size_t size, uint8_t *pixels)
{
    pace__decoded *decoded = &loader->decoded;
    bool done;

    if (is_jpeg(bytes, size))
        done = pace__decode_jpeg(decoded, &loader->plan, bytes, size);
    else if (is_png(bytes, size))
        done = pace__decode_png(decoded, &loader->plan, bytes, size);
    else
        return "it is neither JPEG nor PNG";
    if (done) {
        pace__frame frame =
            pace__picture_frame(&loader->plan, decoded->height, decoded->width, decoded->orientation);

        done = fit(loader, decoded->bitmap, &frame, decoded->eighths / 8.0, decoded->orientation, pixels);
        if (!done)
            snprintf(decoded->reason, sizeof decoded->reason, "out of memory");
    }
    loader->turned += done && decoded->orientation != 1;
    keep_little(loader);
    return done ? NULL : decoded->reason;
}

uint64_t pace__picture_loader_turned(const pace__picture_loader *loader)
{
    return loader->turned;
}
