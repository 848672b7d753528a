/*
 * tiles.h - the tiles of AMX: eight registers of up to 16 rows x 64 bytes. For files named *_amx.c only.
 *
 * A tile's number is written as a number. With LANES_TILES_IN_C they are arrays, and anyone can try what is built on them.
 */
#ifndef LANES_TILES_H
#define LANES_TILES_H

#include <stddef.h>
#include <stdint.h>

/* What tiles_configure takes: rows of each tile, and the bytes of a row. */
typedef struct tiles_shape {
    uint8_t palette, start, unused[14];
    uint16_t row_bytes[16];
    uint8_t rows[16];
} tiles_shape;

_Static_assert(sizeof(tiles_shape) == 64, "as the instruction reads it");

#ifndef LANES_TILES_IN_C

/* Tiles are 0 then. The shape is constant: GCC 12 does not see that a local one is read. */
#define tiles_configure(shape) __asm__ volatile("ldtilecfg %0" ::"m"(*(shape)) : "memory")
#define tiles_release()        __asm__ volatile("tilerelease" ::: "memory")
#define tile_zero(tile)        __asm__ volatile("tilezero %%tmm" #tile ::: "memory")
/* Rows are `stride` bytes apart. */
#define tile_load(tile, from, stride)                                                                        \
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"((const void *)(from)), "r"((size_t)(stride))   \
                     : "memory")
#define tile_store(to, stride, tile)                                                                         \
    __asm__ volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"((void *)(to)), "r"((size_t)(stride))       \
                     : "memory")
/* tile `to`, of floats += rows of `a` x pairs of `b` */
#define tile_dot(to, a, b) __asm__ volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #to::: "memory")

#else

#include <assert.h>
#include <string.h>

static _Thread_local struct {
    const tiles_shape *shape; /* NULL: there are no tiles */
    unsigned char bytes[8][16][64];
} tiles;

static inline void tiles_configure(const tiles_shape *shape)
{
    assert(shape->palette == 1);
    tiles.shape = shape;
    memset(tiles.bytes, 0, sizeof tiles.bytes);
}

static inline void tiles_release(void)
{
    tiles.shape = NULL;
}

static inline size_t tiles_rows(int tile)
{
    assert(tiles.shape && tiles.shape->rows[tile] > 0 && tiles.shape->rows[tile] <= 16);
    assert(tiles.shape->row_bytes[tile] == 64);
    return tiles.shape->rows[tile];
}

static inline void tile_zero(int tile)
{
    assert(tiles_rows(tile));
    memset(tiles.bytes[tile], 0, sizeof tiles.bytes[tile]);
}

static inline void tile_load(int tile, const void *from, size_t stride)
{
    tile_zero(tile);
    for (size_t row = 0; row < tiles_rows(tile); row++)
        memcpy(tiles.bytes[tile][row], (const char *)from + row * stride, 64);
}

static inline void tile_store(void *to, size_t stride, int tile)
{
    for (size_t row = 0; row < tiles_rows(tile); row++)
        memcpy((char *)to + row * stride, tiles.bytes[tile][row], 64);
}

static inline float tile_number(int tile, size_t row, size_t half)
{
    uint32_t bits = 0;
    float number;

    memcpy((char *)&bits + 2, tiles.bytes[tile][row] + half * 2, 2);
    memcpy(&number, &bits, sizeof number);
    return number;
}

/* Its memory is `tiles` alone, whose numbers are constants: nothing that sanitizers could find, and they would make three
 * quarters of a test's time of it. What is loaded and stored, they see. */
__attribute__((noinline, unused, no_sanitize("address", "undefined"))) static void tile_dot(int to, int a,
                                                                                            int b)
{
    float wide[32][16]; /* b */

    assert(tiles_rows(to) == tiles_rows(a) && tiles_rows(b) == 16);
    for (size_t i = 0; i < 32; i++) {
        for (size_t column = 0; column < 16; column++)
            wide[i][column] = tile_number(b, i / 2, column * 2 + i % 2);
    }
    for (size_t row = 0; row < tiles_rows(a); row++) {
        float *sums = (float *)(void *)tiles.bytes[to][row];

        for (size_t i = 0; i < 32; i++) {
            float number = tile_number(a, row, i);

            for (size_t column = 0; column < 16; column++)
                sums[column] += number * wide[i][column];
        }
    }
}

#endif
#endif
