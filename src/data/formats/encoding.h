/*
 * encoding.h - how raw rows become feature ids. Pure: no files, no state.
 *
 * An encoding is what a later data set must share with an older model to be scored by it. Ids made by it are
 * *original* ids, in [0, features). (Data sets on disk hold *compact* ids, numbered by frequency; see
 * store.h.)
 *
 * PACE__CRITEO: every row has 39 entries, one per column: integers I1..I13, then categories C1..C26. Each
 * column owns a range of the id space, column_base[c] .. column_base[c + 1], so that ids of different columns
 * never collide and the column of an id can be told. A category's place in its range is a hash of its text; a
 * missing one has a place too. An integer's place is its log bin (PACE_NUMERIC_BINS), or the column has one
 * weight and the entry's value is the scaled logarithm (PACE_NUMERIC_VALUES). PACE__NUMBERED: ids come with
 * the data (svmlight, TFRecord), any number per row, with values; kept as they are, or hashed. PACE__SHEET: as
 * PACE__CRITEO, but how many columns there are, how they are called and what they are, `sheet` says (sheet.h).
 *
 * PACE__TEXT: a row is a text, its ids are the numbers of its words in a vocabulary (vocabulary.h), in order,
 * at most `length` of them. `features` is the number of ids, the special ones included. What the vocabulary
 * leaves open, which end of a long text is kept and where padding goes, is here; its checksum is here, too,
 * so that an encoding stands for all of it.
 *
 * PACE__IMAGE: a row is a picture of height x width x channels bytes and belongs to one of `classes`
 * classes, whose names (class_names.h) stand beside it; their checksum is here. `fit` says how pictures of
 * other shapes were brought to that size. PACE__FEATURES: a row is `features` floats that the frozen layers
 * of a network have made of such a picture; of which network and pictures, `origin` says.
 */
#ifndef DATA_FORMATS_ENCODING_H
#define DATA_FORMATS_ENCODING_H

#include "data/formats/sheet.h"
#include "math/batch.h"
#include "math/dataset.h"

#include <paceline/log.h>
#include <stdbool.h>
#include <stdint.h>

#define PACE__VOCABULARY_WORDS_MAX (UINT32_C(1) << 24)

#define PACE__CRITEO_INTEGERS     13
#define PACE__CRITEO_CATEGORIES   26
#define PACE__CRITEO_COLUMNS      (PACE__CRITEO_INTEGERS + PACE__CRITEO_CATEGORIES)
#define PACE__CRITEO_FEATURES_MIN 64
#define PACE__FEATURES_DEFAULT    33762578
/* Of rows that have an entry for each column. */
#define PACE__COLUMNS_MAX      PACE__SHEET_COLUMNS_MAX
#define PACE__TEXT_LENGTH_MAX  65536
#define PACE__CLASSES_MAX      65535
#define PACE__PICTURE_SIDE_MAX 4096
/* Floats of a row of PACE__FEATURES. */
#define PACE__ROW_FEATURES_MAX (1 << 20)
/* Ids must be exact in the formats that carry them: below 2^53. */
#define PACE__FEATURES_MAX (UINT64_C(1) << 53)

typedef struct pace__encoding {
    enum { PACE__CRITEO, PACE__NUMBERED, PACE__TEXT, PACE__IMAGE, PACE__FEATURES, PACE__SHEET } kind;
    bool hashed;
    int numeric;                                 /* PACE_NUMERIC_*, of PACE__CRITEO and PACE__SHEET */
    uint64_t features;                           /* 0 while unknown: PACE__NUMBERED and not hashed; 0 of
                                                    PACE__IMAGE */
    uint64_t column_base[PACE__COLUMNS_MAX + 1]; /* of PACE__CRITEO and PACE__SHEET */
    pace__sheet sheet;                           /* of PACE__SHEET */
    /* Of PACE__TEXT. */
    uint32_t length;     /* of a row: 1 .. PACE__TEXT_LENGTH_MAX */
    int truncate;        /* PACE_TRUNCATE_*: what is kept of a text that is longer */
    bool pad_front;      /* padding is in front of the words, not behind them */
    uint64_t vocabulary; /* pace__vocabulary_checksum */
    /* Of PACE__IMAGE and PACE__FEATURES. */
    uint32_t height, width;
    uint32_t channels;    /* 1: grey, 3: red, green, blue */
    int fit;              /* PACE_FIT_* */
    uint32_t classes;     /* 2 .. PACE__CLASSES_MAX */
    uint64_t class_names; /* pace__class_names_checksum */
    uint64_t origin;      /* of PACE__FEATURES: checksum of everything that they depend on */
} pace__encoding;

/* Rows have a class instead of a label. */
static inline bool pace__has_classes(const pace__encoding *encoding)
{
    return encoding->kind == PACE__IMAGE || encoding->kind == PACE__FEATURES;
}

/* Entries of every row, one per column, each with a range of ids; 0: rows have any number of them. */
static inline uint32_t pace__encoding_entries(const pace__encoding *encoding)
{
    return encoding->kind == PACE__CRITEO  ? PACE__CRITEO_COLUMNS
           : encoding->kind == PACE__SHEET ? encoding->sheet.columns
                                           : 0;
}

/* Of pictures and features: the bytes, or floats, of a row. */
static inline uint32_t pace__encoding_columns(const pace__encoding *encoding)
{
    return encoding->kind == PACE__IMAGE ? encoding->height * encoding->width * encoding->channels
                                         : (uint32_t)encoding->features;
}

/* Fails (PACE_USAGE) if the id space is too small for the columns or above PACE__FEATURES_MAX. */
pace_status pace__encoding_criteo(uint64_t features, int numeric, pace__encoding *encoding,
                                  const pace_log *log);

/*
 * Features 0: as many as numbers need, and room for 33762578 in all if there are categories, which share equally what
 * numbers leave.
 */
pace_status pace__encoding_sheet(uint64_t features, int numeric, const pace__sheet *sheet,
                                 pace__encoding *encoding, const pace_log *log);

/* The column's name: "I1" .. "C26". */
void pace__criteo_column_name(unsigned column, char name[4]);

/* What people call an original id, with its NUL in at most PACE__FEATURE_NAME_BYTES: "C14+1234", the 1234th place of
 * that column's (of a table's column "city+1234"), where columns own ids; else its digits. Not of PACE__TEXT, whose ids are words. */
#define PACE__FEATURE_NAME_BYTES 128
void pace__feature_name(const pace__encoding *encoding, uint64_t id, char *name);
/* The same of an entry that no training row has: "C14+?" by its column, where rows have columns, or "?". */
void pace__unseen_name(const pace__encoding *encoding, unsigned column, char *name);

/* The hash of a category's text (any length, 0: missing), before it is scaled to the column's range. */
uint64_t pace__category_hash(const char *text, uint32_t size);

/* The log bin of an integer, in [0, PACE__BINS). Bin 0 is "missing". */
#define PACE__BINS 256
uint32_t pace__integer_bin(int64_t value);
/* log(1 + value) scaled to about unit size, for PACE_NUMERIC_VALUES; values below 0 count as 0. */
float pace__integer_value(int64_t value);
/* The same of any number from 0 on. */
float pace__logarithmic(double value);

/* For PACE__NUMBERED with hashing. */
uint64_t pace__number_hash(uint64_t id, uint64_t features);

/* One-line JSON, the form kept in data sets and models. The caller frees the text; NULL when out of memory.
 */
char *pace__encoding_to_json(const pace__encoding *encoding);
pace_status pace__encoding_from_json(const char *json, const char *where, pace__encoding *encoding,
                                     const pace_log *log);

/* What a model is told of rows that are encoded like this, as far as that is known without them. */
pace__dataset pace__encoding_describe(const pace__encoding *encoding);
/* The same from the text: a pace__describe_fn. */
pace_status pace__describe_encoding(const char *json, const char *where, pace__dataset *data,
                                    const pace_log *log);

/*
 * PACE_OK if rows encoded by `data` mean to a model trained under `model` what the model learned; else
 * PACE_BAD_DATA with a message that names the difference. Numbered ids fit if their space is not larger;
 * texts if vocabulary, length, truncation and padding are the same; pictures if size, channels, fit and class
 * names are the same; features if those of their pictures, their number and their origin are.
 */
pace_status pace__encoding_fits(const pace__encoding *model, const pace__encoding *data, const pace_log *log);

/* By PACE_TRUNCATE_* and PACE_FIT_*, as texts and messages have them. */
extern const char *const pace__truncate_names[], *const pace__fit_names[];

#endif
