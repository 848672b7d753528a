/* Encodings as JSON, and whether data fits a model. */
#include "data/formats/encoding_json.h"

#include "base/json.h"
#include "files/file.h"

#include <cjson/cJSON.h>
#include <inttypes.h>
#include <paceline/prep.h>
#include <stdlib.h>
#include <string.h>

/* Raised whenever the same text or integer would get another id than before. */
#define SCHEME 1
/* The same of words: of how texts are cut into them (tokens.h). */
#define TEXT_SCHEME 1
/* And of pictures: of how a file becomes pixels (picture.h). */
#define IMAGE_SCHEME 1

const char *const pace__numeric_names[] = {[PACE_NUMERIC_BINS] = "bins", [PACE_NUMERIC_VALUES] = "values"};
const char *const pace__truncate_names[] = {
    [PACE_TRUNCATE_HEAD] = "head", [PACE_TRUNCATE_TAIL] = "tail", [PACE_TRUNCATE_BOTH] = "both"};
static const char *const pad_names[] = {[PACE_PAD_END] = "end", [PACE_PAD_FRONT] = "front"};
const char *const pace__fit_names[] = {
    [PACE_FIT_CROP] = "crop", [PACE_FIT_PAD] = "pad", [PACE_FIT_STRETCH] = "stretch"};

/* Features begin as the pictures that they were made of. */
static char *pictures_to_json(const pace__encoding *encoding)
{
    char *features =
        encoding->kind == PACE__FEATURES
            ? pace__format("\"kind\":\"features\",\"features\":%" PRIu64 ",\"origin\":\"%016" PRIx64 "\"",
                           encoding->features, encoding->origin)
            : pace__format("\"kind\":\"image\"");
    char *json = features ? pace__format("{%s,\"height\":%u,\"width\":%u,\"channels\":%u,\"fit\":\"%s\","
                                         "\"classes\":%u,\"class_names\":\"%016" PRIx64 "\",\"scheme\":%d}",
                                         features, encoding->height, encoding->width, encoding->channels,
                                         pace__fit_names[encoding->fit], encoding->classes,
                                         encoding->class_names, IMAGE_SCHEME)
                          : NULL;

    free(features);
    return json;
}

char *pace__encoding_to_json(const pace__encoding *encoding)
{
    if (encoding->kind == PACE__SHEET)
        return pace__sheet_to_json(encoding);
    if (encoding->kind == PACE__CRITEO)
        return pace__format("{\"kind\":\"criteo\",\"features\":%" PRIu64 ",\"numeric\":\"%s\",\"scheme\":%d}",
                            encoding->features, pace__numeric_names[encoding->numeric], SCHEME);
    if (encoding->kind == PACE__TEXT)
        return pace__format("{\"kind\":\"text\",\"features\":%" PRIu64
                            ",\"length\":%u,\"truncate\":\"%s\",\"pad\":\"%s\",\"vocabulary\":\"%016" PRIx64
                            "\",\"scheme\":%d}",
                            encoding->features, encoding->length, pace__truncate_names[encoding->truncate],
                            pad_names[encoding->pad_front], encoding->vocabulary, TEXT_SCHEME);
    if (pace__has_classes(encoding))
        return pictures_to_json(encoding);
    return pace__format("{\"kind\":\"numbered\",\"hashed\":%s,\"features\":%" PRIu64 "}",
                        encoding->hashed ? "true" : "false", encoding->features);
}

pace_status pace__bad_encoding(const char *where, const char *what, const pace_log *log)
{
    return pace_fail(log, PACE_BAD_DATA, "%s: the encoding %s; the file is damaged, or not paceline's", where,
                     what);
}

bool pace__encoding_integer(const cJSON *object, const char *name, uint64_t min, uint64_t max,
                            uint64_t *value)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    if (!cJSON_IsNumber(item) || !(item->valuedouble >= (double)min) || item->valuedouble > (double)max)
        return false;
    *value = (uint64_t)item->valuedouble;
    return (double)*value == item->valuedouble;
}

static bool read_features(const cJSON *object, uint64_t min, uint64_t *features)
{
    return pace__encoding_integer(object, "features", min, PACE__FEATURES_MAX, features);
}

static bool read_hex(const cJSON *object, const char *member, uint64_t *value)
{
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, member));

    if (!text || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
        return false;
    *value = strtoull(text, NULL, 16);
    return true;
}

pace_status pace__encoding_scheme(const cJSON *object, int known, bool required, const char *where,
                                  const pace_log *log)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, "scheme");

    if (!item && !required)
        return PACE_OK;
    if (!cJSON_IsNumber(item) || item->valuedouble < 1)
        return pace__bad_encoding(where, "has no valid \"scheme\"", log);
    if (item->valuedouble != known)
        return pace_fail(log, PACE_BAD_DATA,
                         "%s: encoding scheme %g: made by a newer paceline; this one knows scheme %d", where,
                         item->valuedouble, known);
    return PACE_OK;
}

static pace_status criteo_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                    const pace_log *log)
{
    int numeric = pace__json_choice(object, "numeric", pace__numeric_names, 2);
    pace_status status = pace__encoding_scheme(object, SCHEME, true, where, log);
    uint64_t features;

    if (status)
        return status;
    if (!read_features(object, PACE__CRITEO_FEATURES_MIN, &features))
        return pace__bad_encoding(where, "has no valid \"features\"", log);
    if (numeric < 0)
        return pace__bad_encoding(where, "has no valid \"numeric\" (bins or values)", log);
    return pace__encoding_criteo(features, numeric, encoding, log);
}

static pace_status numbered_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                      const pace_log *log)
{
    const cJSON *hashed = cJSON_GetObjectItemCaseSensitive(object, "hashed");
    pace_status status = pace__encoding_scheme(object, SCHEME, false, where, log);
    uint64_t features;

    if (status)
        return status;
    if (!cJSON_IsBool(hashed))
        return pace__bad_encoding(where, "has no valid \"hashed\" (true or false)", log);
    if (!read_features(object, cJSON_IsTrue(hashed) ? 1 : 0, &features))
        return pace__bad_encoding(where, "has no valid \"features\"", log);
    *encoding =
        (pace__encoding){.kind = PACE__NUMBERED, .hashed = cJSON_IsTrue(hashed), .features = features};
    return PACE_OK;
}

static pace_status text_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                  const pace_log *log)
{
    int truncate = pace__json_choice(object, "truncate", pace__truncate_names, 3);
    int pad = pace__json_choice(object, "pad", pad_names, 2);
    pace_status status = pace__encoding_scheme(object, TEXT_SCHEME, true, where, log);
    uint64_t features, length, vocabulary;

    if (status)
        return status;
    if (!pace__encoding_integer(object, "features", PACE__ID_WORDS,
                                PACE__ID_WORDS + PACE__VOCABULARY_WORDS_MAX, &features))
        return pace__bad_encoding(where, "has no valid \"features\"", log);
    if (!pace__encoding_integer(object, "length", 1, PACE__TEXT_LENGTH_MAX, &length))
        return pace__bad_encoding(where, "has no valid \"length\"", log);
    if (truncate < 0)
        return pace__bad_encoding(where, "has no valid \"truncate\" (head, tail or both)", log);
    if (pad < 0)
        return pace__bad_encoding(where, "has no valid \"pad\" (end or front)", log);
    if (!read_hex(object, "vocabulary", &vocabulary))
        return pace__bad_encoding(where, "has no valid \"vocabulary\" (16 digits)", log);
    *encoding = (pace__encoding){.kind = PACE__TEXT,
                                 .features = features,
                                 .length = (uint32_t)length,
                                 .truncate = truncate,
                                 .pad_front = pad == PACE_PAD_FRONT,
                                 .vocabulary = vocabulary};
    return PACE_OK;
}

static pace_status pictures_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                      const pace_log *log)
{
    int fit = pace__json_choice(object, "fit", pace__fit_names, 3);
    pace_status status = pace__encoding_scheme(object, IMAGE_SCHEME, true, where, log);
    uint64_t height, width, channels, classes, class_names;

    if (status)
        return status;
    if (!pace__encoding_integer(object, "height", 1, PACE__PICTURE_SIDE_MAX, &height) ||
        !pace__encoding_integer(object, "width", 1, PACE__PICTURE_SIDE_MAX, &width))
        return pace__bad_encoding(where, "has no valid \"height\" and \"width\"", log);
    if (!pace__encoding_integer(object, "channels", 1, 3, &channels) || channels == 2)
        return pace__bad_encoding(where, "has no valid \"channels\" (1 or 3)", log);
    if (fit < 0)
        return pace__bad_encoding(where, "has no valid \"fit\" (crop, pad or stretch)", log);
    if (!pace__encoding_integer(object, "classes", 2, PACE__CLASSES_MAX, &classes))
        return pace__bad_encoding(where, "has no valid \"classes\"", log);
    if (!read_hex(object, "class_names", &class_names))
        return pace__bad_encoding(where, "has no valid \"class_names\" (16 digits)", log);
    *encoding = (pace__encoding){.kind = PACE__IMAGE,
                                 .height = (uint32_t)height,
                                 .width = (uint32_t)width,
                                 .channels = (uint32_t)channels,
                                 .fit = fit,
                                 .classes = (uint32_t)classes,
                                 .class_names = class_names};
    return PACE_OK;
}

static pace_status features_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                      const pace_log *log)
{
    pace__encoding found;
    pace_status status = pictures_from_json(object, where, &found, log);

    if (status)
        return status;
    if (!pace__encoding_integer(object, "features", 1, PACE__ROW_FEATURES_MAX, &found.features))
        return pace__bad_encoding(where, "has no valid \"features\"", log);
    if (!read_hex(object, "origin", &found.origin))
        return pace__bad_encoding(where, "has no valid \"origin\" (16 digits)", log);
    found.kind = PACE__FEATURES;
    *encoding = found;
    return PACE_OK;
}

static pace_status object_from_json(const cJSON *object, const char *where, pace__encoding *encoding,
                                    const pace_log *log)
{
    const char *kind = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, "kind"));

    if (!cJSON_IsObject(object) || !kind)
        return pace__bad_encoding(where, "is no JSON object with a \"kind\"", log);
    if (strcmp(kind, "criteo") == 0)
        return criteo_from_json(object, where, encoding, log);
    if (strcmp(kind, "numbered") == 0)
        return numbered_from_json(object, where, encoding, log);
    if (strcmp(kind, "table") == 0)
        return pace__sheet_from_json(object, where, encoding, log);
    if (strcmp(kind, "text") == 0)
        return text_from_json(object, where, encoding, log);
    if (strcmp(kind, "image") == 0)
        return pictures_from_json(object, where, encoding, log);
    if (strcmp(kind, "features") == 0)
        return features_from_json(object, where, encoding, log);
    return pace_fail(log, PACE_BAD_DATA,
                     "%s: encoding kind \"%.40s\": made by a newer paceline; this one knows criteo, sheet, "
                     "numbered, text, image and features",
                     where, kind);
}

pace_status pace__encoding_from_json(const char *json, const char *where, pace__encoding *encoding,
                                     const pace_log *log)
{
    cJSON *object = cJSON_ParseWithOpts(json, NULL, true);
    pace_status status = object_from_json(object, where, encoding, log);

    cJSON_Delete(object);
    return status;
}

static const char *kind_name(const pace__encoding *encoding)
{
    if (encoding->kind == PACE__CRITEO)
        return "Criteo columns";
    if (encoding->kind == PACE__SHEET)
        return "columns of tables";
    if (encoding->kind == PACE__TEXT)
        return "words of texts";
    if (encoding->kind == PACE__IMAGE)
        return "pictures";
    if (encoding->kind == PACE__FEATURES)
        return "features of pictures";
    return encoding->hashed ? "hashed numbers" : "numbers as they are";
}

static pace_status texts_fit(const pace__encoding *model, const pace__encoding *data, const pace_log *log)
{
    if (model->vocabulary != data->vocabulary || model->features != data->features)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model knows another vocabulary (%016" PRIx64 ", of %" PRIu64
                         " words) than the data (%016" PRIx64 ", of %" PRIu64
                         " words); prepare the data with --like",
                         model->vocabulary, model->features - PACE__ID_WORDS, data->vocabulary,
                         data->features - PACE__ID_WORDS);
    if (model->length != data->length)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model takes other texts than the data has: length %u against %u; prepare the "
                         "data with --like",
                         model->length, data->length);
    if (model->truncate != data->truncate)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model takes other texts than the data has: of a long one it keeps %s, not %s; "
                         "prepare the data with --like",
                         pace__truncate_names[model->truncate], pace__truncate_names[data->truncate]);
    if (model->pad_front != data->pad_front)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model takes other texts than the data has: padding at the %s, not the %s; "
                         "prepare the data with --like",
                         pad_names[model->pad_front], pad_names[data->pad_front]);
    return PACE_OK;
}

static pace_status pictures_fit(const pace__encoding *model, const pace__encoding *data, const pace_log *log)
{
    if (model->height != data->height || model->width != data->width || model->channels != data->channels)
        return pace_fail(
            log, PACE_BAD_DATA,
            "the model takes other pictures than the data has: %u x %u x %u against %u x %u x %u "
            "(height, width, channels); prepare the data with --like",
            model->height, model->width, model->channels, data->height, data->width, data->channels);
    if (model->fit != data->fit)
        return pace_fail(
            log, PACE_BAD_DATA,
            "the model takes other pictures than the data has: --fit %s, not %s; prepare the data "
            "with --like",
            pace__fit_names[model->fit], pace__fit_names[data->fit]);
    if (model->classes != data->classes || model->class_names != data->class_names)
        return pace_fail(
            log, PACE_BAD_DATA,
            "the model knows other classes (%u) than the data (%u), or has them in another order; "
            "prepare the data with --like",
            model->classes, data->classes);
    if (model->features != data->features || model->origin != data->origin)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model takes other features (%" PRIu64 ", origin %016" PRIx64
                         ") than the data has (%" PRIu64 ", origin %016" PRIx64 ")",
                         model->features, model->origin, data->features, data->origin);
    return PACE_OK;
}

/* Of these, one is nothing like another. */
static bool is_apart(const pace__encoding *encoding)
{
    return encoding->kind == PACE__TEXT || pace__has_classes(encoding);
}

pace_status pace__encoding_fits(const pace__encoding *model, const pace__encoding *data, const pace_log *log)
{
    if (model->kind != data->kind && (is_apart(model) || is_apart(data)))
        return pace_fail(log, PACE_BAD_DATA, "the model was trained on %s, the data holds %s",
                         kind_name(model), kind_name(data));
    if (model->kind != data->kind || model->hashed != data->hashed)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model's feature ids are %s, the data's are %s; prepare the data with --like",
                         kind_name(model), kind_name(data));
    if (model->kind == PACE__TEXT)
        return texts_fit(model, data, log);
    if (pace__has_classes(model))
        return pictures_fit(model, data, log);
    if (pace__encoding_entries(model) > 0 && model->numeric != data->numeric)
        return pace_fail(
            log, PACE_BAD_DATA,
            "the model takes integers as %s, the data has them as %s; prepare the data with --like",
            pace__numeric_names[model->numeric], pace__numeric_names[data->numeric]);
    if (model->kind == PACE__SHEET && !pace__sheets_agree(&model->sheet, &data->sheet))
        return pace_fail(
            log, PACE_BAD_DATA,
            "the model knows other columns than the data has, or takes their numbers in other steps; "
            "prepare the data with --like");
    bool fits = model->hashed ? data->features == model->features : data->features <= model->features;

    if (!fits)
        return pace_fail(log, PACE_BAD_DATA,
                         "the model has %" PRIu64 " features, the data %" PRIu64
                         "; prepare the data with --like",
                         model->features, data->features);
    return PACE_OK;
}
