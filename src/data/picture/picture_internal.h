/*
 * picture_internal.h - what the parts of picture.h share.
 *
 * A decoder hands on a bitmap as it is stored in the file, perhaps smaller by a scale of n/8; nothing of it is
 * cut off or turned. `resize` brings the wanted part of it to its size, and what is small by then is turned and
 * put into place.
 */
#ifndef DATA_PICTURE_PICTURE_INTERNAL_H
#define DATA_PICTURE_PICTURE_INTERNAL_H

#include "base/cpu.h"
#include "data/picture/picture.h"

#define PACE__PICTURE_REASON_MAX 256

/* What a decoder hands on. */
typedef struct pace__decoded {
    pace__bitmap bitmap;
    uint32_t height, width; /* of the file, as it is stored */
    uint32_t eighths; /* the scale of the bitmap: a side is a side of the file x eighths / 8, rounded up */
    int orientation;  /* 1 .. 8 as in EXIF: how to turn it */
    uint8_t *row;     /* a row with four channels */
    size_t row_room;
    char reason[PACE__PICTURE_REASON_MAX];
} pace__decoded;

/* Which part of a picture is used, in pixels of the file, and which size it gets; both as it is stored. */
typedef struct pace__frame {
    double top, left, height, width;
    uint32_t rows, columns;
} pace__frame;

pace__frame pace__picture_frame(const pace__picture_plan *plan, uint32_t height, uint32_t width,
                                int orientation);

/* False: `reason` says why. */
bool pace__decode_jpeg(pace__decoded *self, const pace__picture_plan *plan, const void *bytes, size_t size);
bool pace__decode_png(pace__decoded *self, const pace__picture_plan *plan, const void *bytes, size_t size);

/* 1 .. 8, from the TIFF structure of an EXIF block; 1 if there is none, or it is not as it should be. */
int pace__exif_orientation(const uint8_t *tiff, size_t size);

/* Rows and columns are swapped. */
static inline bool pace__is_transposed(int orientation)
{
    return orientation >= 5;
}

/* Grey as JPEG sees it. */
static inline uint8_t pace__grey(uint32_t red, uint32_t green, uint32_t blue)
{
    return (uint8_t)((19595 * red + 38470 * green + 7471 * blue + 32768) >> 16);
}

/* At least so many bytes; what was there is lost. False: out of memory, and there are none. */
bool pace__picture_reserve(uint8_t **bytes, size_t *room, size_t need);

/* --- resize --- */

/* Weights of one side: sums of `taps` pixels from first[i] on are pixel i of the result, times 1 << shift. */
typedef struct pace__taps {
    uint32_t from, to; /* pixels before and behind */
    double start, length;
    uint32_t taps; /* even */
    uint32_t shift;
    uint32_t *first;
    int16_t *weights; /* (to, taps) */
    size_t first_room, weights_room;
} pace__taps;

typedef struct pace__resizer pace__resizer;

/* Packs the columns for a kernel. False: out of memory. */
typedef bool pace__pack_fn(pace__resizer *self, uint32_t channels);

struct pace__resizer {
    pace__taps rows, columns;
    int16_t *line; /* a row between the two passes */
    size_t line_room;
    /* The columns as some kernels want them, for as long as they are the same. */
    pace__pack_fn *packed_by; /* NULL: not made */
    uint32_t packed_channels;
    uint32_t *base;
    int16_t *packed;
    size_t base_room, packed_room;
    uint32_t groups;  /* of windows */
    bool windows_fit; /* else they are not made */
};

/*
 * The part of `from` that begins at (top, left) and is (height, width) becomes (rows, columns), channels as
 * they are; `stride` bytes from row to row of `to`. False: out of memory.
 */
typedef struct pace__resize_job {
    const pace__bitmap *from;
    double top, left, height, width;
    uint32_t rows, columns;
    uint8_t *to;
    size_t stride;
} pace__resize_job;

/* Bits of a fraction that the row between the passes has, and elements behind it that may be read. */
#define PACE__LINE_BITS    4
#define PACE__LINE_PADDING 64

typedef struct pace__mix_kernels {
    /*
     * Rows x weights: line[i] for i < count, from `taps` rows that are `stride` bytes apart. An odd number of
     * rows has one weight more, which is 0.
     */
    void (*rows)(const uint8_t *rows, size_t stride, const int16_t *weights, uint32_t taps, uint32_t shift,
                 size_t count, int16_t *line);
    /* The line x weights: a row of the result. */
    void (*columns)(const pace__resizer *self, uint32_t channels, uint8_t *to);
    pace__pack_fn *pack; /* what columns wants; NULL: nothing */
} pace__mix_kernels;

PACE__TABLES(pace__mix_kernels, pace__mix)

/*
 * Groups of 16 results, for all channels: base (groups) is where a window of 64 elements of the line begins that
 * holds all they come from; packed (groups, taps / 2, 2, 32) is places in the window, then weights.
 */
pace__pack_fn pace__pack_windows;

/*
 * Groups of 4 or 2 pixels of three channels, as many as are whole: base (pixels) is where in the line a pixel's taps
 * begin; packed (groups, taps / 2, pixels, 4, 2) has two weights of each, those of even pixels first.
 */
pace__pack_fn pace__pack_fours, pace__pack_twos;

/* Plain, of pixels `first` and on. */
void pace__mix_columns_from(const pace__resizer *self, uint32_t channels, uint32_t first, uint8_t *to);

bool pace__resize(pace__resizer *self, const pace__resize_job *job, const pace__mix_kernels *kernels);
void pace__resizer_release(pace__resizer *self);

#endif
