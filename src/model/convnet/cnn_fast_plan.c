/* What follows from the shapes alone: who reads what, tiles, and which tensors share memory. */
#include "model/convnet/cnn_fast.h"

#include <assert.h>
#include <stdlib.h>

#define LANES PACE__CNN_LANES

#define PIECES_MAX 32 /* of a row */

/* Tensors of more tiles are written past the cache: lines need not be fetched first. A fifth of the time of a
 * step of mobilenet-v2. */
#define STREAM_TILES 2

static size_t round_up(size_t count, size_t unit)
{
    return (count + unit - 1) / unit * unit;
}

unsigned pace__cnn_tasks(size_t rows, uint32_t tile)
{
    size_t task = round_up((rows + PACE__CNN_TASKS_MAX - 1) / PACE__CNN_TASKS_MAX, tile);

    return rows ? (unsigned)((rows + task - 1) / task) : 0;
}

pace__cnn_range pace__cnn_task(size_t rows, uint32_t tile, unsigned index)
{
    size_t task = round_up((rows + PACE__CNN_TASKS_MAX - 1) / PACE__CNN_TASKS_MAX, tile);
    pace__cnn_range range = {.first = index * task, .rows = task};

    if (range.first + range.rows > rows)
        range.rows = rows - range.first;
    return range;
}

unsigned pace__cnn_tiles(const pace__cnn_part *part, pace__cnn_range task)
{
    return (unsigned)((task.rows + part->tile - 1) / part->tile) * part->pieces;
}

pace__cnn_range pace__cnn_tile(const pace__cnn_part *part, pace__cnn_range task, unsigned index)
{
    size_t done = (size_t)(index / part->pieces) * part->tile;
    unsigned piece = index % part->pieces;
    pace__cnn_range tile = {.first = task.first + done, .rows = part->tile};

    if (tile.rows > task.rows - done)
        tile.rows = task.rows - done;
    tile.block = piece * part->slice;
    tile.blocks = part->slice;
    tile.pixel = piece * part->strip;
    tile.pixels = part->strip;
    return tile;
}

/* --- units --- */

static uint32_t tile_of(const pace__cnn_fast *self, const pace__cnn_part *part, size_t bytes)
{
    uint32_t tile = PACE__CNN_TILE_MAX;

    while (tile > 1 && tile * (part->in_size + part->size) * sizeof(float) > bytes)
        tile /= 2;
    while (tile > 1 && tile >= 2 * self->rows_max)
        tile /= 2;
    return tile;
}

/* The fewest equal pieces of `count` things that fit into a tile. */
static size_t pieces_of(const pace__cnn_part *part, size_t count, size_t limit)
{
    size_t bytes = (part->in_size + part->size) * sizeof(float), most = 1;

    for (size_t pieces = 1; pieces <= PIECES_MAX && pieces <= count && bytes / most > limit; pieces++) {
        if (count % pieces == 0)
            most = pieces;
    }
    return most;
}

static void plan_pieces(pace__cnn_part *part, size_t limit)
{
    const pace__cnn_unit *unit = part->unit;

    part->pieces = 1;
    if (part->tile > 1 || unit->from == PACE__CNN_PIXELS)
        return;
    if (unit->depthwise) {
        part->pieces = (unsigned)pieces_of(part, part->blocks, limit);
        part->slice = part->pieces > 1 ? part->blocks / part->pieces : 0;
    } else if (unit->kernel == 1 && unit->stride == 1) {
        part->pieces = (unsigned)pieces_of(part, part->pixels, limit);
        part->strip = part->pieces > 1 ? part->pixels / part->pieces : 0;
    }
}

static void plan_part(pace__cnn_fast *self, uint32_t number)
{
    const pace__cnn_unit *unit = &self->net.unit[number];
    pace__cnn_part *part = &self->part[number];
    size_t in_pixels = (size_t)unit->in_height * unit->in_width;

    *part = (pace__cnn_part){.unit = unit,
                             .number = number,
                             .blocks = (unit->channels + LANES - 1) / LANES,
                             .pixels = (size_t)unit->height * unit->width,
                             .trained = number >= self->config.first_trained,
                             .first_user = self->net.units,
                             .last_user = 0};
    part->size = part->blocks * LANES * part->pixels;
    part->in_size = unit->from == PACE__CNN_PIXELS ? unit->in_channels * in_pixels
                                                   : round_up(unit->in_channels, LANES) * in_pixels;
    part->tile = tile_of(self, part, self->tile_bytes);
    part->fused_tile = tile_of(self, part, self->tile_bytes * 3 / 2);
    part->streams = self->rows_max * part->size * sizeof(float) > STREAM_TILES * self->tile_bytes;
    plan_pieces(part, self->tile_bytes);
    /* Rows go through all units of equal tiles one after the other; tiles only grow: few groups. */
    if (number > 0 && self->part[number - 1].fused_tile > part->fused_tile)
        part->fused_tile = self->part[number - 1].fused_tile;
}

static void use(pace__cnn_fast *self, uint32_t number, uint32_t user)
{
    if (number == PACE__CNN_PIXELS)
        return;
    pace__cnn_part *part = &self->part[number];

    if (self->part[user].trained && (!part->trained || part->first_user != self->net.units))
        part->stored = true;
    if (part->first_user == self->net.units)
        part->first_user = user;
    part->last_user = user;
    if (self->part[user].fused_tile != part->fused_tile)
        part->crosses = true;
}

/* Who gives first, and who last, in falling order of users; a unit gives to what it adds before it gives to
 * what it reads. */
static void plan_giving(pace__cnn_fast *self)
{
    bool given[PACE__CNN_UNITS_MAX] = {false};
    pace__cnn_giving *last[PACE__CNN_UNITS_MAX] = {NULL};

    for (uint32_t number = self->net.units; number-- > self->config.first_trained;) {
        pace__cnn_part *part = &self->part[number];
        uint32_t from = part->unit->from, add = part->unit->add;

        part->gives_add = add != PACE__CNN_NOTHING && self->part[add].trained;
        part->gives_from = from != PACE__CNN_PIXELS && self->part[from].trained;
        if (part->gives_add) {
            part->to_add.first = !given[add];
            given[add] = true;
            last[add] = &part->to_add;
        }
        if (part->gives_from) {
            part->to_from.first = !given[from];
            given[from] = true;
            last[from] = &part->to_from;
        }
    }
    for (uint32_t number = 0; number < self->net.units; number++) {
        if (last[number])
            last[number]->last = true;
    }
}

void pace__cnn_plan_parts(pace__cnn_fast *self)
{
    uint32_t units = self->net.units;

    for (uint32_t number = 0; number < units; number++)
        plan_part(self, number);
    for (uint32_t number = 0; number < units; number++) {
        const pace__cnn_unit *unit = &self->net.unit[number];

        use(self, unit->from, number);
        if (unit->add != PACE__CNN_NOTHING) {
            use(self, unit->add, number);
            self->part[number].stored |= self->part[number].trained;
        }
    }
    self->part[units - 1].last_user = units;
    self->part[units - 1].crosses = true;
    self->part[units - 1].stored = false;
    plan_giving(self);
}

/* --- memory that units share --- */

typedef struct piece {
    size_t at, size;
    uint32_t begin, end; /* when it lives, both included */
} piece;

/* Where a piece fits below, between or above those that live at the same time. */
static size_t place(piece *pieces, unsigned *count, piece it)
{
    bool moved = true;

    while (moved) {
        moved = false;
        for (unsigned i = 0; i < *count; i++) {
            const piece *other = &pieces[i];
            bool meets = it.begin <= other->end && other->begin <= it.end;

            if (meets && it.at < other->at + other->size && other->at < it.at + it.size) {
                it.at = other->at + other->size;
                moved = true;
            }
        }
    }
    pieces[(*count)++] = it;
    return it.at;
}

/* Derivatives of a unit live from its last user's turn to its own, in falling order. */
static void place_derivatives(pace__cnn_fast *self)
{
    piece pieces[PACE__CNN_UNITS_MAX];
    unsigned count = 0;
    uint32_t units = self->net.units;

    self->d_size = 0;
    for (uint32_t number = units; self->trains && number-- > self->config.first_trained;) {
        pace__cnn_part *part = &self->part[number];
        piece it = {0, self->rows_room * part->size, units - part->last_user, units - number};

        part->d_at = place(pieces, &count, it);
        if (part->d_at + it.size > self->d_size)
            self->d_size = part->d_at + it.size;
    }
}

/* The last turn at which y of a unit is read: if it crosses from tile to tile, the last of its kind. */
static uint32_t lives_until(const pace__cnn_fast *self, const pace__cnn_part *part)
{
    uint32_t last = part->last_user;

    while (last + 1 < self->net.units && self->part[last + 1].fused_tile == self->part[last].fused_tile)
        last++;
    return part->crosses ? last : part->last_user;
}

static uint32_t lives_from(const pace__cnn_fast *self, const pace__cnn_part *part)
{
    uint32_t first = part->number;

    while (first > 0 && self->part[first - 1].fused_tile == part->fused_tile)
        first--;
    return part->crosses ? first : part->number;
}

static void place_infer(pace__cnn_fast *self)
{
    piece pieces[PACE__CNN_UNITS_MAX];
    unsigned count = 0;

    self->infer_size = 0;
    for (uint32_t number = 0; number < self->net.units; number++) {
        pace__cnn_part *part = &self->part[number];
        size_t rows = part->crosses ? PACE__CNN_TILE_MAX : part->fused_tile;
        piece it = {0, rows * part->size, lives_from(self, part), lives_until(self, part)};

        part->infer_at = place(pieces, &count, it);
        if (part->infer_at + it.size > self->infer_size)
            self->infer_size = part->infer_at + it.size;
    }
}

void pace__cnn_plan_memory(pace__cnn_fast *self)
{
    place_derivatives(self);
    place_infer(self);
}
