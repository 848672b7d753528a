#include "data/formats/encoding.h"

#include "base/random.h"
#include "data/formats/criteo.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/prep.h>
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* How many different categories each column of the public Kaggle set has. */
static const uint32_t cardinality[PACE__CRITEO_CATEGORIES] = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     3,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572};

static uint64_t square_root(uint64_t x)
{
    uint64_t root = 0;

    for (uint64_t bit = UINT64_C(1) << 31; bit > 0; bit >>= 1) {
        if ((root + bit) * (root + bit) <= x)
            root += bit;
    }
    return root;
}

/* About a third of a small id space goes to the integers. */
static uint64_t integer_column_size(uint64_t features, int numeric)
{
    uint64_t share = features / (3 * PACE__CRITEO_INTEGERS) + 1;

    if (numeric == PACE_NUMERIC_VALUES)
        return 2; /* PACE__PLACE_VALUE and PACE__PLACE_MISSING */
    return share < PACE__BINS ? share : PACE__BINS;
}

/* In 16ths, as 3 and 4 should differ. */
static uint64_t weight(unsigned category)
{
    return square_root((uint64_t)cardinality[category] * 16 * 16);
}

/*
 * Shares grow with the square root of the cardinality. In proportion to it, a column of 24 categories would
 * get about 24 places, and many of its categories, each seen in millions of rows, would share theirs with
 * another one. Equal shares would let the columns with millions of categories collide throughout. With square
 * roots the small columns have tens to thousands of places per category, and the large ones lose only part
 * of their tail, which is rare.
 */
static void divide_categories(uint64_t *column_base, uint64_t features)
{
    /* One place each is taken out first, so that no share is empty. */
    uint64_t start = column_base[0];
    uint64_t rest = features - start - PACE__CRITEO_CATEGORIES;
    uint64_t total = 0, sum = 0;

    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++)
        total += weight(c);
    for (unsigned c = 0; c < PACE__CRITEO_CATEGORIES; c++) {
        sum += weight(c);
        column_base[c + 1] = start + c + 1 + (uint64_t)((unsigned __int128)rest * sum / total);
    }
}

pace_status pace__encoding_criteo(uint64_t features, int numeric, pace__encoding *encoding,
                                  const pace_log *log)
{
    if (features < PACE__CRITEO_FEATURES_MIN || features > PACE__FEATURES_MAX)
        return pace_fail(log, PACE_USAGE,
                         "--features %" PRIu64 ": Criteo's 39 columns need at least %d, and at most %" PRIu64
                         " (2^53) are possible; leave it out to get %d",
                         features, PACE__CRITEO_FEATURES_MIN, PACE__FEATURES_MAX, PACE__FEATURES_DEFAULT);
    uint64_t size = integer_column_size(features, numeric);

    *encoding =
        (pace__encoding){.kind = PACE__CRITEO, .hashed = true, .numeric = numeric, .features = features};
    for (unsigned c = 0; c <= PACE__CRITEO_INTEGERS; c++)
        encoding->column_base[c] = c * size;
    divide_categories(&encoding->column_base[PACE__CRITEO_INTEGERS], features);
    return PACE_OK;
}

/* About a third of a small id space goes to the numbers. */
static uint64_t number_column_size(uint64_t features, int numeric, uint32_t numbers)
{
    if (numeric == PACE_NUMERIC_VALUES || numbers == 0)
        return 2; /* PACE__PLACE_VALUE and PACE__PLACE_MISSING */
    uint64_t share = features / (3 * (uint64_t)numbers) + 1;

    return share < PACE__SHEET_BINS ? share : PACE__SHEET_BINS;
}

static uint64_t usual_features(int numeric, const pace__sheet *sheet)
{
    uint64_t numbers = sheet->numbers * number_column_size(UINT32_MAX, numeric, sheet->numbers);

    return sheet->numbers < sheet->columns ? PACE__FEATURES_DEFAULT : numbers;
}

pace_status pace__encoding_sheet(uint64_t features, int numeric, const pace__sheet *sheet,
                                 pace__encoding *encoding, const pace_log *log)
{
    uint64_t least = 4 * (uint64_t)sheet->columns;
    uint64_t categories = sheet->columns - sheet->numbers;

    if (features == 0)
        features = usual_features(numeric, sheet);
    if (features > PACE__FEATURES_MAX || (features < least && features < usual_features(numeric, sheet)))
        return pace_fail(log, PACE_USAGE,
                         "--features %" PRIu64 ": %u columns need at least %" PRIu64 ", and at most %" PRIu64
                         " (2^53) are possible",
                         features, sheet->columns, least, PACE__FEATURES_MAX);
    uint64_t size = number_column_size(features, numeric, sheet->numbers);

    *encoding = (pace__encoding){
        .kind = PACE__SHEET, .hashed = true, .numeric = numeric, .features = features, .sheet = *sheet};
    for (uint32_t c = 0; c <= sheet->numbers; c++)
        encoding->column_base[c] = c * size;
    uint64_t start = encoding->column_base[sheet->numbers];

    for (uint64_t c = 1; c <= categories; c++)
        encoding->column_base[sheet->numbers + c] =
            start + (uint64_t)((unsigned __int128)(features - start) * c / categories);
    return PACE_OK;
}

void pace__criteo_column_name(unsigned column, char name[4])
{
    assert(column < PACE__CRITEO_COLUMNS);
    bool integer = column < PACE__CRITEO_INTEGERS;
    unsigned number = (integer ? column + 1 : column + 1 - PACE__CRITEO_INTEGERS) % 100;

    snprintf(name, 4, "%c%u", integer ? 'I' : 'C', number);
}

/* Names of a table's columns may be long: characters that do not fit are left out. */
static void put_column(const pace__encoding *encoding, unsigned column, char *name)
{
    char label[4];
    const char *text = label;
    size_t size;

    if (encoding->kind == PACE__CRITEO)
        pace__criteo_column_name(column, label);
    else
        text = pace__sheet_name(&encoding->sheet, column);
    size = strnlen(text, PACE__FEATURE_NAME_BYTES - 24);
    while (text[size] && ((unsigned char)text[size] & 0xc0) == 0x80) /* within a character of UTF-8 */
        size--;
    snprintf(name, PACE__FEATURE_NAME_BYTES, "%.*s+", (int)size, text);
}

void pace__feature_name(const pace__encoding *encoding, uint64_t id, char *name)
{
    uint32_t columns = pace__encoding_entries(encoding);
    unsigned column = 0;

    assert(columns > 0 || encoding->kind == PACE__NUMBERED);
    *name = '\0';
    if (columns > 0) {
        while (column + 1 < columns && encoding->column_base[column + 1] <= id)
            column++;
        put_column(encoding, column, name);
        id -= encoding->column_base[column];
    }
    snprintf(name + strlen(name), PACE__FEATURE_NAME_BYTES - strlen(name), "%" PRIu64, id);
}

void pace__unseen_name(const pace__encoding *encoding, unsigned column, char *name)
{
    *name = '\0';
    if (pace__encoding_entries(encoding) > 0)
        put_column(encoding, column, name);
    strcat(name, "?");
}

uint64_t pace__category_hash(const char *text, uint32_t size)
{
    uint64_t word = 0;

    if (size > PACE__SHORT_TEXT)
        return XXH3_64bits(text, size);
    if (size > 0)
        memcpy(&word, text, size);
    return pace__short_hash(word, size);
}

uint32_t pace__integer_bin(int64_t value)
{
    return pace__integer_bins[pace__integer_cell(value)];
}

/*
 * The natural logarithm of a number >= 1, by exponent and a series of the rest. Not libm's: data sets are
 * to be the same bytes on every machine, and logarithms differ between libraries in their last bit.
 */
static double natural_log(double x)
{
    static const double log_2 = 0.693147180559945309417;
    uint64_t bits;

    memcpy(&bits, &x, sizeof bits);
    double exponent = (double)(int64_t)(bits >> 52) - 1023;

    bits = (bits & ((UINT64_C(1) << 52) - 1)) | (UINT64_C(1023) << 52);
    memcpy(&x, &bits, sizeof bits);
    /* x is in [1, 2): log x = 2 artanh s with s at most a third; 12 terms leave an error below 1e-12. */
    double s = (x - 1) / (x + 1), square = s * s, sum = 0;

    for (int term = 23; term >= 1; term -= 2)
        sum = sum * square + 1.0 / term;
    return exponent * log_2 + 2 * s * sum;
}

float pace__logarithmic(double value)
{
    return (float)(0.25 * natural_log(1.0 + value));
}

float pace__integer_value(int64_t value)
{
    return value <= 0 ? 0 : pace__logarithmic((double)value);
}

uint64_t pace__number_hash(uint64_t id, uint64_t features)
{
    /* The constant keeps id 0 from staying 0. */
    return pace__scale_to(pace__mix64(id + 0x9e3779b97f4a7c15u), features);
}

/*
 * Bins 1, 2 and 3 are <= -3, -2 and -1; 4, 5 and 6 are 0, 1 and 2; then 6 + floor(log(v)^2) of the cell's
 * smallest integer.
 */
const uint8_t pace__integer_bins[PACE__INTEGER_CELLS + 1] = {
    /* clang-format off */
    1, 2, 3, 4, 5, 6, 7, 7, 8, 9, 9, 10, 10, 11, 11, 12, 12, 12, 13, 13, 14, 14, 14, 14, 15, 15, 15, 16, 16,
    16, 16, 17, 17, 17, 17, 18, 18, 18, 18, 18, 19, 19, 19, 19, 19, 19, 20, 20, 20, 20, 20, 20, 21, 21, 21,
    21, 21, 21, 22, 22, 22, 22, 22, 22, 22, 23, 23, 23, 23, 24, 24, 24, 24, 25, 25, 25, 25, 25, 26, 26, 26,
    26, 26, 27, 27, 27, 27, 27, 28, 28, 28, 28, 28, 28, 28, 29, 29, 29, 29, 29, 29, 30, 30, 30, 30, 30, 30,
    30, 31, 31, 31, 31, 31, 31, 31, 31, 32, 32, 32, 32, 32, 32, 32, 32, 33, 33, 33, 33, 33, 33, 33, 34, 34,
    34, 34, 34, 35, 35, 35, 35, 35, 36, 36, 36, 36, 36, 36, 37, 37, 37, 37, 37, 37, 38, 38, 38, 38, 38, 38,
    39, 39, 39, 39, 39, 39, 39, 40, 40, 40, 40, 40, 40, 40, 40, 41, 41, 41, 41, 41, 41, 41, 41, 42, 42, 42,
    42, 42, 42, 42, 42, 42, 43, 43, 43, 43, 43, 44, 44, 44, 44, 44, 45, 45, 45, 45, 45, 45, 46, 46, 46, 46,
    46, 47, 47, 47, 47, 47, 47, 48, 48, 48, 48, 48, 48, 48, 49, 49, 49, 49, 49, 49, 49, 50, 50, 50, 50, 50,
    50, 50, 51, 51, 51, 51, 51, 51, 51, 51, 52, 52, 52, 52, 52, 52, 52, 52, 52, 53, 53, 53, 53, 54, 54, 54,
    54, 54, 55, 55, 55, 55, 55, 56, 56, 56, 56, 56, 56, 57, 57, 57, 57, 57, 58, 58, 58, 58, 58, 58, 59, 59,
    59, 59, 59, 59, 59, 60, 60, 60, 60, 60, 60, 60, 61, 61, 61, 61, 61, 61, 61, 62, 62, 62, 62, 62, 62, 62,
    63, 63, 63, 63, 63, 63, 63, 64, 64, 64, 64, 65, 65, 65, 65, 65, 66, 66, 66, 66, 66, 67, 67, 67, 67, 67,
    68, 68, 68, 68, 68, 69, 69, 69, 69, 69, 69, 70, 70, 70, 70, 70, 70, 71, 71, 71, 71, 71, 71, 72, 72, 72,
    72, 72, 72, 72, 73, 73, 73, 73, 73, 73, 73, 74, 74, 74, 74, 74, 74, 74, 75, 75, 75, 75, 76, 76, 76, 76,
    77, 77, 77, 77, 78, 78, 78, 78, 78, 79, 79, 79, 79, 79, 80, 80, 80, 80, 80, 81, 81, 81, 81, 81, 82, 82,
    82, 82, 82, 82, 83, 83, 83, 83, 83, 83, 84, 84, 84, 84, 84, 84, 85, 85, 85, 85, 85, 85, 86, 86, 86, 86,
    86, 86, 86, 87, 87, 87, 87, 88, 88, 88, 88, 89, 89, 89, 89, 90, 90, 90, 90, 91, 91, 91, 91, 92, 92, 92,
    92, 92, 93, 93, 93, 93, 93, 94, 94, 94, 94, 94, 95, 95, 95, 95, 95, 96, 96, 96, 96, 96, 96, 97, 97, 97,
    97, 97, 98, 98, 98, 98, 98, 98, 98, 99, 99, 99, 99, 99, 99, 100, 100, 100, 100, 101, 101, 101, 102, 102,
    102, 102, 103, 103, 103, 103, 104, 104, 104, 104, 105, 105, 105, 105, 106, 106, 106, 106, 107, 107, 107,
    107, 107, 108, 108, 108, 108, 108, 109, 109, 109, 109, 109, 110, 110, 110, 110, 110, 111, 111, 111, 111,
    111, 112, 112, 112, 112, 112, 112, 113, 113, 113, 113, 113, 113, 114, 114, 114, 115, 115, 115, 115, 116,
    116, 116, 117, 117, 117, 117, 118, 118, 118, 119, 119, 119, 119, 120, 120, 120, 120, 121, 121, 121, 121,
    121, 122, 122, 122, 122, 123, 123, 123, 123, 123, 124, 124, 124, 124, 125, 125, 125, 125, 125, 126, 126,
    126, 126, 126, 126, 127, 127, 127, 127, 127, 128, 128, 128, 128, 128, 128, 129, 129, 129, 130, 130, 130,
    131, 131, 131, 132, 132, 132, 133, 133, 133, 133, 134, 134, 134, 135, 135, 135, 135, 136, 136, 136, 136,
    137, 137, 137, 137, 138, 138, 138, 138, 139, 139, 139, 139, 139, 140, 140, 140, 140, 141, 141, 141, 141,
    141, 142, 142, 142, 142, 142, 143, 143, 143, 143, 143, 144, 144, 144, 144, 144, 145, 145, 145, 146, 146,
    146, 147, 147, 147, 148, 148, 148, 149, 149, 149, 150, 150, 150, 151, 151, 151, 151, 152, 152, 152, 152,
    153, 153, 153, 154, 154, 154, 154, 155, 155, 155, 155, 156, 156, 156, 156, 156, 157, 157, 157, 157, 158,
    158, 158, 158, 158, 159, 159, 159, 159, 160, 160, 160, 160, 160, 161, 161, 161, 161, 162, 162, 162, 163,
    163, 163, 164, 164, 164, 165, 165, 165, 166, 166, 166, 167, 167, 167, 168, 168, 168, 169, 169, 169, 169,
    170, 170, 170, 171, 171, 171, 171, 172, 172, 172, 172, 173, 173, 173, 174, 174, 174, 174, 174, 175, 175,
    175, 175, 176, 176, 176, 176, 177, 177, 177, 177, 177, 178, 178, 178, 178, 179, 179, 179, 179, 180, 180,
    181, 181, 181, 182, 182, 182, 183, 183, 183, 184, 184, 185, 185, 185, 186, 186, 186, 186, 187, 187, 187,
    188, 188, 188, 189, 189, 189, 190, 190, 190, 190, 191, 191, 191, 191, 192, 192, 192, 192, 193, 193, 193,
    194, 194, 194, 194, 194, 195, 195, 195, 195, 196, 196, 196, 196, 197, 197, 197, 197, 197, 198, 198, 199,
    199, 199, 200, 200, 201, 201, 201, 202, 202, 202, 203, 203, 204, 204, 204, 205, 205, 205, 206, 206, 206,
    207, 207, 207, 208, 208, 208, 208, 209, 209, 209, 210, 210, 210, 211, 211, 211, 211, 212, 212, 212, 212,
    213, 213, 213, 214, 214, 214, 214, 215, 215, 215, 215, 216, 216, 216, 216, 216, 217, 217, 217, 217, 218,
    218, 219, 219, 220, 220, 220, 221, 221, 222, 222, 222, 223, 223, 224, 224, 224, 225, 225, 225, 226, 226,
    226, 227, 227, 227, 228, 228, 228, 229, 229, 229, 230, 230, 230, 231, 231, 231, 231, 232, 232, 232, 233,
    233, 233, 233, 234, 234, 234, 235, 235, 235, 235, 236, 236, 236, 236, 237, 237, 237, 237, 238, 238, 238,
    239, 239, 239, 240, 240, 241, 241, 242, 242, 242, 243, 243, 244, 244, 245, 245, 245, 246, 246, 246, 247,
    247, 247, 248, 248, 249, 249, 249, 250, 250, 250, 251, 251, 251, 252, 252, 252, 252, 253, 253, 253, 254,
    254, 254, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
    255,
    /* clang-format on */
};

/* --- for models --- */

pace__dataset pace__encoding_describe(const pace__encoding *encoding)
{
    pace__dataset data = {.features = encoding->features,
                          .height = encoding->height,
                          .width = encoding->width,
                          .channels = encoding->channels,
                          .classes = encoding->classes,
                          .class_names = encoding->class_names,
                          .positives = UINT64_MAX};

    switch (encoding->kind) {
    case PACE__CRITEO:
    case PACE__SHEET:
        data.columns = pace__encoding_entries(encoding);
        data.has_values = encoding->numeric == PACE_NUMERIC_VALUES;
        break;
    case PACE__NUMBERED:
        data.has_values = true;
        break;
    case PACE__TEXT:
        data.kind = PACE__ROWS_TEXT;
        data.columns = data.row_entries_max = encoding->length;
        data.ids = (uint32_t)encoding->features;
        break;
    case PACE__IMAGE:
    case PACE__FEATURES:
        data.kind = encoding->kind == PACE__IMAGE ? PACE__ROWS_PICTURES : PACE__ROWS_FEATURES;
        data.columns = data.row_entries_max = pace__encoding_columns(encoding);
        break;
    }
    return data;
}

pace_status pace__describe_encoding(const char *json, const char *where, pace__dataset *data,
                                    const pace_log *log)
{
    pace__encoding encoding;
    pace_status status = pace__encoding_from_json(json, where, &encoding, log);

    if (!status)
        *data = pace__encoding_describe(&encoding);
    return status;
}
