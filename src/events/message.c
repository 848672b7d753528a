/*
 * Messages, as far as they are written here (numbers are those of fields):
 *
 *     Event              wall_time 1, step 2, and one of file_version 3, summary 5, session_log 7
 *     SessionLog         status 1
 *     Summary            value 1, which may come again: tag 1, simple_value 2, tensor 8, metadata 9
 *     SummaryMetadata    plugin_data 1 { plugin_name 1, content 2 }, data_class 4
 *     TensorProto        dtype 1, tensor_shape 2 { dim 2 { size 1 } }, float_val 5, string_val 8
 *
 *     HParamsPluginData  experiment 2, session_start_info 3, session_end_info 4: the content of plugin "hparams"
 *     Experiment         hparam_infos 4 { name 1, type 4 }, metric_infos 5 { name 1 { tag 2 } }
 *     SessionStartInfo   hparams 1 { key 1, value 2 }, start_time_secs 5
 *     SessionEndInfo     status 1, end_time_secs 2
 *     Value              number_value 2, string_value 3, bool_value 4
 */
#include "events/message.h"

#include <stdlib.h>
#include <string.h>

enum { EVENT_WALL_TIME = 1, EVENT_STEP = 2, EVENT_VERSION = 3, EVENT_SUMMARY = 5, EVENT_SESSION_LOG = 7 };
enum { VALUE_TAG = 1, VALUE_SIMPLE = 2, VALUE_TENSOR = 8, VALUE_METADATA = 9 };
enum { SESSION_LOG_START = 1 };
enum { DATA_CLASS_TENSOR = 2 };
enum { TYPE_FLOAT = 1, TYPE_STRING = 7 };
enum { HPARAMS_EXPERIMENT = 2, HPARAMS_START = 3, HPARAMS_END = 4 };
enum { HPARAM_STRING = 1, HPARAM_BOOL = 2, HPARAM_FLOAT64 = 3 };
enum { STATUS_SUCCESS = 1, STATUS_FAILURE = 2 };

static void put_text(pace__proto *out, unsigned field, const char *text)
{
    pace__proto_text(out, field, text, strlen(text));
}

static size_t begin(pace__proto *out, pace__stamp stamp)
{
    size_t record = pace__proto_record_begin(out);

    pace__proto_real(out, EVENT_WALL_TIME, stamp.wall_s);
    pace__proto_number(out, EVENT_STEP, stamp.step);
    return record;
}

void pace__event_version(pace__proto *out, pace__stamp stamp)
{
    size_t record = begin(out, stamp);

    put_text(out, EVENT_VERSION, "brain.Event:2");
    pace__proto_record_end(out, record);
}

void pace__event_restart(pace__proto *out, pace__stamp stamp)
{
    size_t record = begin(out, stamp), session = pace__proto_begin(out, EVENT_SESSION_LOG);

    pace__proto_number(out, 1, SESSION_LOG_START);
    pace__proto_end(out, session);
    pace__proto_record_end(out, record);
}

void pace__event_scalars(pace__proto *out, pace__stamp stamp, const pace__scalars *scalars)
{
    size_t record = begin(out, stamp), summary = pace__proto_begin(out, EVENT_SUMMARY);

    for (size_t i = 0; i < scalars->count; i++) {
        size_t value = pace__proto_begin(out, 1);

        put_text(out, VALUE_TAG, scalars->item[i].tag);
        pace__proto_single(out, VALUE_SIMPLE, (float)scalars->item[i].value);
        pace__proto_end(out, value);
    }
    pace__proto_end(out, summary);
    pace__proto_record_end(out, record);
}

/* --- values of plugins --- */

/* An event with one value, in its metadata: begun so deep that the plugin's content comes next. */
typedef struct nest {
    size_t record, summary, value, metadata, plugin, content;
} nest;

static nest begin_plugin(pace__proto *out, pace__stamp stamp, const char *tag, const char *plugin)
{
    nest begun = {.record = begin(out, stamp)};

    begun.summary = pace__proto_begin(out, EVENT_SUMMARY);
    begun.value = pace__proto_begin(out, 1);
    put_text(out, VALUE_TAG, tag);
    begun.metadata = pace__proto_begin(out, VALUE_METADATA);
    begun.plugin = pace__proto_begin(out, 1);
    put_text(out, 1, plugin);
    begun.content = pace__proto_begin(out, 2);
    return begun;
}

static void end_metadata(pace__proto *out, const nest *begun)
{
    pace__proto_end(out, begun->content);
    pace__proto_end(out, begun->plugin);
    pace__proto_number(out, 4, DATA_CLASS_TENSOR);
    pace__proto_end(out, begun->metadata);
}

static void end_value(pace__proto *out, const nest *begun)
{
    pace__proto_end(out, begun->value);
    pace__proto_end(out, begun->summary);
    pace__proto_record_end(out, begun->record);
}

void pace__event_text(pace__proto *out, pace__stamp stamp, const char *tag, const char *text)
{
    nest begun = begin_plugin(out, stamp, tag, "text");

    end_metadata(out, &begun);
    size_t tensor = pace__proto_begin(out, VALUE_TENSOR), shape;

    pace__proto_number(out, 1, TYPE_STRING);
    shape = pace__proto_begin(out, 2);
    pace__proto_end(out, shape); /* no dimensions: one text */
    put_text(out, 8, text);
    pace__proto_end(out, tensor);
    end_value(out, &begun);
}

char *pace__config_as_markdown(const char *config)
{
    size_t lines = 2, used = 0;

    for (const char *at = config; *at; at++)
        lines += *at == '\n';
    char *text = malloc(strlen(config) + 4 * lines + 2);

    for (const char *line = config; text && *line;) {
        size_t length = strcspn(line, "\n");

        if (*line != '#' && length > 0) {
            memcpy(text + used, "    ", 4);
            memcpy(text + used + 4, line, length);
            used += 4 + length;
            text[used++] = '\n';
        }
        line += length + (line[length] == '\n');
    }
    if (text)
        text[used] = '\0';
    return text;
}

/* What hparams have to say is in the metadata; a value has to have a tensor nevertheless. */
static void end_hparams(pace__proto *out, const nest *begun)
{
    end_metadata(out, begun);
    size_t tensor = pace__proto_begin(out, VALUE_TENSOR), shape, dimension;

    pace__proto_number(out, 1, TYPE_FLOAT);
    shape = pace__proto_begin(out, 2);
    dimension = pace__proto_begin(out, 2);
    pace__proto_number(out, 1, 1);
    pace__proto_end(out, dimension);
    pace__proto_end(out, shape);
    pace__proto_single(out, 5, 0);
    pace__proto_end(out, tensor);
    end_value(out, begun);
}

/* --- hparams --- */

static void put_hparam_info(pace__proto *out, const pace__hparam *hparam)
{
    static const uint64_t types[] = {[PACE__HPARAM_NUMBER] = HPARAM_FLOAT64,
                                     [PACE__HPARAM_FLAG] = HPARAM_BOOL,
                                     [PACE__HPARAM_TEXT] = HPARAM_STRING};
    size_t info = pace__proto_begin(out, 4);

    put_text(out, 1, hparam->name);
    pace__proto_number(out, 4, types[hparam->type]);
    pace__proto_end(out, info);
}

static void put_metric_info(pace__proto *out, const char *tag)
{
    size_t info = pace__proto_begin(out, 5), name = pace__proto_begin(out, 1);

    put_text(out, 2, tag);
    pace__proto_end(out, name);
    pace__proto_end(out, info);
}

void pace__event_experiment(pace__proto *out, pace__stamp stamp, const pace__hparam *hparams, size_t count)
{
    static const char *const metrics[] = {"test/logloss", "test/auc",   "test/accuracy",
                                          "test/f1",      "train/loss", "train/rows_per_s"};
    nest begun = begin_plugin(out, stamp, "_hparams_/experiment", "hparams");
    size_t experiment = pace__proto_begin(out, HPARAMS_EXPERIMENT);

    for (size_t i = 0; i < count; i++)
        put_hparam_info(out, &hparams[i]);
    for (size_t i = 0; i < sizeof metrics / sizeof *metrics; i++)
        put_metric_info(out, metrics[i]);
    pace__proto_end(out, experiment);
    end_hparams(out, &begun);
}

static void put_hparam(pace__proto *out, const pace__hparam *hparam)
{
    size_t entry = pace__proto_begin(out, 1), value;

    put_text(out, 1, hparam->name);
    value = pace__proto_begin(out, 2);
    if (hparam->type == PACE__HPARAM_NUMBER)
        pace__proto_real(out, 2, hparam->number);
    else if (hparam->type == PACE__HPARAM_FLAG)
        pace__proto_number(out, 4, hparam->number != 0);
    else
        put_text(out, 3, hparam->text);
    pace__proto_end(out, value);
    pace__proto_end(out, entry);
}

void pace__event_session_start(pace__proto *out, pace__stamp stamp, const pace__hparam *hparams, size_t count)
{
    nest begun = begin_plugin(out, stamp, "_hparams_/session_start_info", "hparams");
    size_t session = pace__proto_begin(out, HPARAMS_START);

    for (size_t i = 0; i < count; i++)
        put_hparam(out, &hparams[i]);
    pace__proto_real(out, 5, stamp.wall_s);
    pace__proto_end(out, session);
    end_hparams(out, &begun);
}

void pace__event_session_end(pace__proto *out, pace__stamp stamp, bool success)
{
    nest begun = begin_plugin(out, stamp, "_hparams_/session_end_info", "hparams");
    size_t session = pace__proto_begin(out, HPARAMS_END);

    pace__proto_number(out, 1, success ? STATUS_SUCCESS : STATUS_FAILURE);
    pace__proto_real(out, 2, stamp.wall_s);
    pace__proto_end(out, session);
    end_hparams(out, &begun);
}
