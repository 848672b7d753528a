#include "base/json.h"
#include "base/locale.h"
#include "files/file.h"
#include "files/sealed.h"
#include "options/internal.h"

#include <stdlib.h>
#include <string.h>
#include <yaml.h>

/* ---- reading ---- */

typedef struct yaml_reader {
    yaml_parser_t parser;
    const char *path;
    const pace__yaml_target *target;
    const pace_log *log;
} yaml_reader;

static int line_of(const yaml_event_t *event)
{
    return (int)event->start_mark.line + 1;
}

static pace_status next_event(yaml_reader *reader, yaml_event_t *event)
{
    if (yaml_parser_parse(&reader->parser, event))
        return PACE_OK;
    const yaml_parser_t *parser = &reader->parser;

    if (parser->error == YAML_MEMORY_ERROR)
        return pace_fail(reader->log, PACE_FAILED, "%s: out of memory", reader->path);
    if (parser->error == YAML_READER_ERROR)
        return pace_fail(reader->log, PACE_USAGE, "%s: not a YAML text: %s at byte %zu", reader->path,
                         parser->problem, parser->problem_offset);
    return pace_fail(reader->log, PACE_USAGE, "%s:%zu: not valid YAML: %s", reader->path,
                     parser->problem_mark.line + 1, parser->problem);
}

static bool is_null(const yaml_event_t *event)
{
    static const char *const words[] = {"", "~", "null", "Null", "NULL"};

    if (event->data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        return false;
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        if (strcmp((const char *)event->data.scalar.value, words[i]) == 0)
            return true;
    }
    return false;
}

static pace_status give_value(yaml_reader *reader, const char *key, const yaml_event_t *event)
{
    const char *text = (const char *)event->data.scalar.value;

    if (strlen(text) != event->data.scalar.length)
        return pace_fail(reader->log, PACE_USAGE, "%s:%d: %s: the value contains a zero byte", reader->path,
                         line_of(event), key);
    return reader->target->value(reader->target->user, is_null(event) ? NULL : text, line_of(event));
}

static pace_status read_sequence(yaml_reader *reader, const char *key)
{
    pace_status status = PACE_OK;

    for (bool open = true; open && !status;) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status)
            break;
        if (event.type == YAML_SEQUENCE_END_EVENT)
            open = false;
        else if (event.type == YAML_SCALAR_EVENT)
            status = give_value(reader, key, &event);
        else
            status =
                pace_fail(reader->log, PACE_USAGE, "%s:%d: %s: the items of the list must be plain values",
                          reader->path, line_of(&event), key);
        yaml_event_delete(&event);
    }
    return status;
}

static pace_status read_value(yaml_reader *reader, const char *key, int key_line)
{
    yaml_event_t event;
    pace_status status = next_event(reader, &event);

    if (status)
        return status;
    bool sequence = event.type == YAML_SEQUENCE_START_EVENT;

    if (!sequence && event.type != YAML_SCALAR_EVENT)
        status = pace_fail(reader->log, PACE_USAGE,
                           "%s:%d: %s: the value must be a plain value or a list, not a mapping or an alias",
                           reader->path, line_of(&event), key);
    if (!status)
        status = reader->target->key(reader->target->user, key, sequence, key_line);
    if (!status)
        status = sequence ? read_sequence(reader, key) : give_value(reader, key, &event);
    yaml_event_delete(&event);
    return status;
}

static pace_status read_mapping(yaml_reader *reader)
{
    pace_status status = PACE_OK;

    for (bool open = true; open && !status;) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status)
            break;
        if (event.type == YAML_MAPPING_END_EVENT)
            open = false;
        else if (event.type == YAML_SCALAR_EVENT)
            status = read_value(reader, (const char *)event.data.scalar.value, line_of(&event));
        else
            status = pace_fail(reader->log, PACE_USAGE, "%s:%d: expected a key like \"name: value\"",
                               reader->path, line_of(&event));
        yaml_event_delete(&event);
    }
    return status;
}

/* One flat mapping; an empty file, or one with nothing but comments, is fine. */
static pace_status read_stream(yaml_reader *reader)
{
    pace_status status = PACE_OK;
    int documents = 0;

    for (bool open = true; open && !status;) {
        yaml_event_t event;

        status = next_event(reader, &event);
        if (status)
            break;
        if (event.type == YAML_STREAM_END_EVENT)
            open = false;
        else if (event.type == YAML_DOCUMENT_START_EVENT && documents++ > 0)
            status = pace_fail(reader->log, PACE_USAGE, "%s:%d: a second document; only one is read",
                               reader->path, line_of(&event));
        else if (event.type == YAML_MAPPING_START_EVENT)
            status = read_mapping(reader);
        else if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_ALIAS_EVENT ||
                 (event.type == YAML_SCALAR_EVENT && !is_null(&event)))
            status = pace_fail(reader->log, PACE_USAGE, "%s:%d: expected lines like \"name: value\"",
                               reader->path, line_of(&event));
        yaml_event_delete(&event);
    }
    return status;
}

pace_status pace__yaml_read(const char *path, const pace__yaml_target *target, const pace_log *log)
{
    yaml_reader reader = {.path = path, .target = target, .log = log};
    char *bytes;
    size_t size;
    pace_status status = pace__read_file(path, PACE_CONFIG_BYTES_MAX, &bytes, &size, log);

    if (status)
        return status;
    if (!yaml_parser_initialize(&reader.parser)) {
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
        goto free_bytes;
    }
    yaml_parser_set_encoding(&reader.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&reader.parser, (const unsigned char *)bytes, size);
    status = read_stream(&reader);
    yaml_parser_delete(&reader.parser);
free_bytes:
    free(bytes);
    return status;
}

/* ---- writing ---- */

/* The emitter takes an event over, also when it fails. */
static bool emit_scalar(yaml_emitter_t *emitter, const char *text, yaml_scalar_style_t style)
{
    yaml_event_t event;

    return yaml_scalar_event_initialize(&event, NULL, NULL, (const yaml_char_t *)text, (int)strlen(text), 1,
                                        1, style) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_texts(yaml_emitter_t *emitter, const pace_texts *texts)
{
    yaml_event_t event;

    if (!yaml_sequence_start_event_initialize(&event, NULL, NULL, 1, YAML_FLOW_SEQUENCE_STYLE) ||
        !yaml_emitter_emit(emitter, &event))
        return false;
    for (size_t i = 0; i < texts->count; i++) {
        if (!emit_scalar(emitter, texts->items[i], YAML_DOUBLE_QUOTED_SCALAR_STYLE))
            return false;
    }
    return yaml_sequence_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool emit_value(yaml_emitter_t *emitter, const pace_option *row, const void *field)
{
    char text[PACE_VALUE_TEXT_MAX];

    if (row->kind == PACE_OPT_LIST)
        return emit_texts(emitter, field);
    if (row->kind == PACE_OPT_TEXT) {
        const char *value = *(const char *const *)field;

        if (!value)
            return emit_scalar(emitter, "null", YAML_PLAIN_SCALAR_STYLE);
        return emit_scalar(emitter, value, YAML_DOUBLE_QUOTED_SCALAR_STYLE);
    }
    if (row->not_zero && pace__value_is_default(row, field)) /* left open, which no number says */
        return emit_scalar(emitter, "null", YAML_PLAIN_SCALAR_STYLE);
    pace__value_print(row, field, text);
    /* Choices are quoted: other readers of the file would take a bare on or off for a truth value. */
    return emit_scalar(emitter, text,
                       row->kind == PACE_OPT_CHOICE ? YAML_DOUBLE_QUOTED_SCALAR_STYLE
                                                    : YAML_PLAIN_SCALAR_STYLE);
}

static bool emit_start(yaml_emitter_t *emitter)
{
    yaml_event_t event;

    return yaml_stream_start_event_initialize(&event, YAML_UTF8_ENCODING) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_document_start_event_initialize(&event, NULL, NULL, NULL, 1) &&
           yaml_emitter_emit(emitter, &event) &&
           yaml_mapping_start_event_initialize(&event, NULL, NULL, 1, YAML_BLOCK_MAPPING_STYLE) &&
           yaml_emitter_emit(emitter, &event);
}

static bool emit_end(yaml_emitter_t *emitter)
{
    yaml_event_t event;

    return yaml_mapping_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event) &&
           yaml_document_end_event_initialize(&event, 1) && yaml_emitter_emit(emitter, &event) &&
           yaml_stream_end_event_initialize(&event) && yaml_emitter_emit(emitter, &event);
}

static bool is_utf8(const char *text)
{
    for (size_t left = text ? strlen(text) : 0, length; left > 0; text += length, left -= length) {
        length = pace__utf8_length(text, left);
        if (length == 0)
            return false;
    }
    return true;
}

static pace_status refuse(const char *path, const pace_option *row, const pace_log *log)
{
    return pace_fail(log, PACE_USAGE, "%s: the value of --%s cannot be written: it is not UTF-8 text", path,
                     row->name);
}

static bool can_emit(const pace_option *row, const void *field)
{
    const pace_texts *texts = field;
    bool can = true;

    if (row->kind == PACE_OPT_TEXT)
        return is_utf8(*(const char *const *)field);
    for (size_t i = 0; row->kind == PACE_OPT_LIST && can && i < texts->count; i++)
        can = is_utf8(texts->items[i]);
    return can;
}

pace_status pace_options_check_yaml(const pace_option_part *parts, const char *path, const pace_log *log)
{
    PACE__C_LOCALE();
    for (; parts->table; parts++) {
        const char *config = parts->config;

        for (const pace_option *row = parts->table; row->name; row++) {
            if (!can_emit(row, config + row->offset))
                return refuse(path, row, log);
        }
    }
    return PACE_OK;
}

static pace_status emit_part(yaml_emitter_t *emitter, const pace_option_part *part, const char *path,
                             const pace_log *log)
{
    const char *config = part->config;

    for (const pace_option *row = part->table; row->name; row++) {
        if (!emit_scalar(emitter, row->name, YAML_PLAIN_SCALAR_STYLE) ||
            !emit_value(emitter, row, config + row->offset))
            return refuse(path, row, log);
    }
    return PACE_OK;
}

static pace_status emit_parts(yaml_emitter_t *emitter, const pace_option_part *parts, const char *path,
                              const pace_log *log)
{
    pace_status status =
        emit_start(emitter) ? PACE_OK : pace_fail(log, PACE_FAILED, "%s: out of memory", path);

    for (; parts->table && !status; parts++)
        status = emit_part(emitter, parts, path, log);
    if (!status && !emit_end(emitter))
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    return status;
}

pace_status pace_options_write_yaml(const pace_option_part *parts, const char *path, const pace_log *log)
{
    PACE__C_LOCALE();
    yaml_emitter_t emitter;
    pace_status status = PACE_FAILED;
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    if (!memory)
        return pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    if (!yaml_emitter_initialize(&emitter)) {
        pace_fail(log, PACE_FAILED, "%s: out of memory", path);
        goto close_memory;
    }
    yaml_emitter_set_output_file(&emitter, memory);
    yaml_emitter_set_unicode(&emitter, 1);
    yaml_emitter_set_width(&emitter, -1);
    status = emit_parts(&emitter, parts, path, log);
    yaml_emitter_delete(&emitter);
close_memory:
    if (fclose(memory) != 0 && !status)
        status = pace_fail(log, PACE_FAILED, "%s: out of memory", path);
    if (!status)
        status = pace__write_sealed_lines(path, text, size, log);
    free(text);
    return status;
}
