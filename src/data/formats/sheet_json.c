/* Encodings of tables as JSON: numbers are [name, origin, exponent], all others names. */
#include "data/formats/encoding_json.h"

#include "base/json.h"
#include "data/input/decimal.h"

#include <paceline/prep.h>
#include <stdlib.h>

/* Raised whenever the same cell would get another id than before. */
#define SHEET_SCHEME 1

/* --- writing --- */

static void write_number(pace__json *json, const pace__sheet *sheet, uint32_t column)
{
    pace__json_raw(json, "[");
    pace__json_string(json, pace__sheet_name(sheet, column));
    pace__json_raw(json, ",");
    pace__json_integer(json, sheet->steps[column].origin);
    pace__json_raw(json, ",");
    pace__json_integer(json, sheet->steps[column].exponent);
    pace__json_raw(json, "]");
}

static void write_columns(pace__json *json, const char *member, const pace__sheet *sheet, uint32_t first,
                          uint32_t last)
{
    pace__json_raw(json, ",\"");
    pace__json_raw(json, member);
    pace__json_raw(json, "\":[");
    for (uint32_t column = first; column < last; column++) {
        if (column > first)
            pace__json_raw(json, ",");
        if (column < sheet->numbers)
            write_number(json, sheet, column);
        else
            pace__json_string(json, pace__sheet_name(sheet, column));
    }
    pace__json_raw(json, "]");
}

static void write_all(pace__json *json, const pace__encoding *encoding)
{
    const pace__sheet *sheet = &encoding->sheet;

    pace__json_raw(json, "{\"kind\":\"table\",\"features\":");
    pace__json_unsigned(json, encoding->features);
    pace__json_raw(json, ",\"numeric\":");
    pace__json_string(json, pace__numeric_names[encoding->numeric]);
    pace__json_raw(json, ",\"label\":");
    pace__json_string(json, pace__sheet_name(sheet, pace__sheet_label(sheet)));
    write_columns(json, "numbers", sheet, 0, sheet->numbers);
    write_columns(json, "categories", sheet, sheet->numbers, sheet->columns);
    write_columns(json, "ignored", sheet, sheet->columns, pace__sheet_label(sheet));
    pace__json_raw(json, ",\"scheme\":");
    pace__json_integer(json, SHEET_SCHEME);
    pace__json_raw(json, "}");
}

char *pace__sheet_to_json(const pace__encoding *encoding)
{
    pace__json json = {0};

    write_all(&json, encoding);
    char *text = malloc(json.size + 1);

    if (!text)
        return NULL;
    json = (pace__json){.text = text, .capacity = json.size};
    write_all(&json, encoding);
    text[json.size] = '\0';
    return text;
}

/* --- reading --- */

typedef struct found {
    pace__sheet_column columns[PACE__SHEET_COLUMNS_MAX];
    size_t count;
} found;

static bool add(found *self, const cJSON *name, pace__column_kind kind, pace__scale steps)
{
    if (!cJSON_IsString(name) || self->count == PACE__SHEET_COLUMNS_MAX)
        return false;
    self->columns[self->count++] = (pace__sheet_column){name->valuestring, kind, steps};
    return true;
}

static bool is_whole(const cJSON *item, double most)
{
    double value = cJSON_IsNumber(item) ? item->valuedouble : most + 1;

    return value >= -most && value <= most && (double)(int64_t)value == value;
}

static bool add_number(found *self, const cJSON *item)
{
    const cJSON *origin = cJSON_GetArrayItem(item, 1), *exponent = cJSON_GetArrayItem(item, 2);

    return cJSON_IsArray(item) && is_whole(origin, (double)PACE__SCALE_ORIGIN_MAX) &&
           is_whole(exponent, PACE__POWER_OF_TEN_MAX) &&
           add(self, cJSON_GetArrayItem(item, 0), PACE__COLUMN_NUMBER,
               (pace__scale){(int64_t)origin->valuedouble, (int32_t)exponent->valuedouble});
}

static bool add_all(found *self, const cJSON *object, const char *member, pace__column_kind kind)
{
    const cJSON *list = cJSON_GetObjectItemCaseSensitive(object, member), *item;

    if (!cJSON_IsArray(list))
        return false;
    cJSON_ArrayForEach(item, list)
    {
        if (kind == PACE__COLUMN_NUMBER ? !add_number(self, item) : !add(self, item, kind, (pace__scale){0}))
            return false;
    }
    return true;
}

pace_status pace__sheet_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                  const pace_log *log)
{
    int numeric = pace__json_choice(object, "numeric", pace__numeric_names, 2);
    pace_status status = pace__encoding_scheme(object, SHEET_SCHEME, true, where, log);
    found columns = {.count = 0};
    pace__sheet sheet;
    uint64_t features;

    if (status)
        return status;
    if (!pace__encoding_integer(object, "features", 1, PACE__FEATURES_MAX, &features))
        return pace__bad_encoding(where, "has no valid \"features\"", log);
    if (numeric < 0)
        return pace__bad_encoding(where, "has no valid \"numeric\" (bins or values)", log);
    if (!add(&columns, cJSON_GetObjectItemCaseSensitive(object, "label"), PACE__COLUMN_LABEL,
             (pace__scale){0}))
        return pace__bad_encoding(where, "has no valid \"label\"", log);
    if (!add_all(&columns, object, "numbers", PACE__COLUMN_NUMBER) ||
        !add_all(&columns, object, "categories", PACE__COLUMN_CATEGORY) ||
        !add_all(&columns, object, "ignored", PACE__COLUMN_IGNORED))
        return pace__bad_encoding(where, "has no valid lists of columns", log);
    status = pace__sheet_make(columns.columns, columns.count, where, &sheet, log);
    if (status || pace__encoding_sheet(features, numeric, &sheet, encoding, NULL) == PACE_OK)
        return status;
    return pace__bad_encoding(where, "has too few \"features\" for its columns", log);
}
