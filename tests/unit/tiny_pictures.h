/*
 * tiny_pictures.h - tiny data sets of pictures, or of features, made without prep; beside those of support.h,
 * behind which it is included.
 *
 *     tiny_pictures set = tiny_pictures_make((tiny_pictures_plan){.train = 100, .side = 8, .classes = 3});
 *     tiny_pictures_write(&set, in(state, "set"));
 *     ...
 *     tiny_pictures_free(&set);
 *
 * Classes are named "class 0", "class 1", ...; pictures "class 0/0.jpg" and so on, in the order in which they
 * were made. A picture is noise with a bright stripe whose place tells its class; so are features.
 */
#ifndef UNIT_TINY_PICTURES_H
#define UNIT_TINY_PICTURES_H

#include "data/picture/class_names.h"
#include "data/picture/image_names.h"

#include "support.h"

typedef struct tiny_pictures_plan {
    uint64_t train, test, validation; /* rows */
    uint32_t side;                    /* height; the width is 1 more */
    uint32_t channels;                /* 0: 1 */
    uint32_t classes;
    uint32_t features; /* not 0: a set of so many features */
    uint32_t parts;
    uint64_t seed;
} tiny_pictures_plan;

typedef struct tiny_pictures {
    tiny_pictures_plan plan;
    pace__class_names names;
    pace__store_info info;
    uint8_t *pixels[PACE__SETS];
    float *features[PACE__SETS];
    uint16_t *classes[PACE__SETS];
    uint32_t *source[PACE__SETS];
} tiny_pictures;

static inline pace__class_names tiny_class_names(uint32_t count)
{
    char *text = tiny_alloc((size_t)count * 24);
    pace__class_names names;
    size_t size = 0;

    for (uint32_t i = 0; i < count; i++)
        size += (size_t)snprintf(text + size, 24, "class %u\n", i);
    assert_ok(pace__class_names_parse(text, size, "tiny", &said_log, &names));
    free(text);
    return names;
}

static inline void tiny_pictures_fill(tiny_pictures *set, int which, pace__random *random)
{
    uint32_t columns = set->info.columns, classes = set->plan.classes;
    uint64_t rows = set->info.rows[which], all = set->info.rows[PACE__TRAIN] + set->info.rows[PACE__TEST];

    if (set->plan.features)
        set->features[which] = tiny_alloc(rows * columns * sizeof(float));
    else
        set->pixels[which] = tiny_alloc(rows * columns);
    set->classes[which] = tiny_alloc(rows * sizeof(uint16_t));
    set->source[which] = tiny_alloc(rows * sizeof(uint32_t));
    for (uint64_t row = 0; row < rows; row++) {
        uint32_t class = (uint32_t)pace__random_below(random, classes);

        for (uint32_t i = 0; i < columns; i++) {
            bool bright = (uint64_t)i * classes / columns == class;
            uint32_t value = (uint32_t)pace__random_below(random, 160) + (bright ? 90 : 0);

            if (set->plan.features)
                set->features[which][row * columns + i] = (float)value / 64 - 1;
            else
                set->pixels[which][row * columns + i] = (uint8_t)value;
        }
        set->classes[which][row] = (uint16_t) class;
        /* As if prep had shuffled them. */
        set->source[which][row] = (uint32_t)((row * 7 + (which ? set->info.rows[PACE__TRAIN] : 0)) % all);
        set->info.positives[which] += class == 1;
    }
}

static inline tiny_pictures tiny_pictures_make(tiny_pictures_plan plan)
{
    pace__random random = pace__random_at(plan.seed, 3);
    uint32_t channels = plan.channels ? plan.channels : 1;
    tiny_pictures set = {.plan = plan, .names = tiny_class_names(plan.classes)};
    pace__encoding encoding = {.kind = plan.features ? PACE__FEATURES : PACE__IMAGE,
                               .features = plan.features,
                               .height = plan.side,
                               .width = plan.side + 1,
                               .channels = channels,
                               .classes = plan.classes,
                               .class_names = pace__class_names_checksum(&set.names),
                               .origin = plan.features ? 77 : 0};
    uint32_t columns = pace__encoding_columns(&encoding);

    set.info =
        (pace__store_info){.encoding = encoding,
                           .columns = columns,
                           .row_entries_max = columns,
                           .parts = plan.parts ? plan.parts : 1,
                           .seed = (int64_t)plan.seed,
                           .rows = {plan.train, plan.test, plan.validation},
                           .entries = {plan.train * columns, plan.test * columns, plan.validation * columns},
                           .command = "made by a test"};
    for (int which = 0; which < PACE__SETS; which++)
        tiny_pictures_fill(&set, which, &random);
    return set;
}

static inline void tiny_pictures_free(tiny_pictures *set)
{
    for (int which = 0; which < PACE__SETS; which++) {
        free(set->pixels[which]);
        free(set->features[which]);
        free(set->classes[which]);
        free(set->source[which]);
    }
    pace__class_names_release(&set->names);
}

/* All rows of a set as a model sees them. */
static inline pace__rows tiny_pictures_view(const tiny_pictures *set, int which)
{
    return (pace__rows){.rows = set->info.rows[which],
                        .columns = set->info.columns,
                        .pixels = set->pixels[which],
                        .features = set->features[which],
                        .classes = set->classes[which],
                        .source = set->source[which]};
}

/* The first row of a part. */
static inline uint64_t tiny_pictures_first(const tiny_pictures *set, int which, uint32_t part)
{
    return set->info.rows[which] * part / set->info.parts;
}

static inline void tiny_pictures_write_rows(const tiny_pictures *set, int which, const pace__part *part,
                                            uint64_t first)
{
    const pace__part_set *to = &part->sets[which];
    uint64_t entry = first * set->info.columns;

    tiny_put(part, to->label_at, set->classes[which] + first, to->rows * 2);
    tiny_put(part, to->source_at, set->source[which] + first, to->rows * 4);
    if (set->plan.features)
        tiny_put(part, to->features_at, set->features[which] + entry, to->entries * 4);
    else
        tiny_put(part, to->pixels_at, set->pixels[which] + entry, to->entries);
}

static inline void tiny_pictures_write_names(const tiny_pictures *set, const char *directory)
{
    uint64_t count = set->info.rows[PACE__TRAIN] + set->info.rows[PACE__TEST];
    char *path = pace__format("%s/" PACE__IMAGE_NAMES_FILE, directory);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    for (uint64_t i = 0; i < count; i++)
        fprintf(file, "class %u/%u.jpg\n", (unsigned)(i % set->plan.classes), (unsigned)i);
    assert_int_equal(fclose(file), 0);
    free(path);
}

/* As prep would leave it before it is sealed. */
static inline void tiny_pictures_write(const tiny_pictures *set, const char *directory)
{
    assert_ok(pace__make_dirs(directory, &said_log));
    assert_ok(pace__class_names_write(directory, &set->names, &said_log));
    tiny_pictures_write_names(set, directory);
    for (uint32_t i = 0; i < set->info.parts; i++) {
        pace__part part = {.fd = -1};

        for (int which = 0; which < PACE__SETS; which++) {
            part.sets[which].rows =
                tiny_pictures_first(set, which, i + 1) - tiny_pictures_first(set, which, i);
            part.sets[which].entries = part.sets[which].rows * set->info.columns;
        }
        assert_ok(pace__part_create(directory, i, &set->info, &part, &said_log));
        for (int which = 0; which < PACE__SETS; which++) {
            if (set->info.rows[which] > 0)
                tiny_pictures_write_rows(set, which, &part, tiny_pictures_first(set, which, i));
        }
        tiny_finish(&set->info, &part);
    }
}

/* Some sets, of pictures and of features. */
static const tiny_pictures_plan tiny_pictures_plans[] = {
    {.train = 700,
     .test = 300,
     .validation = 130,
     .side = 6,
     .channels = 3,
     .classes = 4,
     .parts = 3,
     .seed = 1},
    {.train = 700,
     .test = 300,
     .validation = 130,
     .side = 6,
     .classes = 4,
     .features = 33,
     .parts = 3,
     .seed = 2},
    {.train = 5, .test = 2, .side = 1, .classes = 2, .parts = 8, .seed = 3}, /* more parts than rows */
    {.train = 7, .side = 3, .classes = 300, .seed = 4},                      /* no test rows */
};
static inline void tiny_pictures_write_sealed(const tiny_pictures_plan *plan, const char *directory)
{
    tiny_pictures set = tiny_pictures_make(*plan);

    tiny_pictures_write(&set, directory);
    assert_ok(pace__store_seal(directory, &said_log));
    tiny_pictures_free(&set);
}

#endif
