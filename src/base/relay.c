#include "base/clock.h"
#include "base/json.h"
#include "base/locale.h"

#include <assert.h>
#include <cjson/cJSON.h>
#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <paceline/relay.h>
#include <paceline/version.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define MARK            "@paceline "
#define RANK_DIGITS     5
#define HEADER          (sizeof MARK - 1 + RANK_DIGITS + 4) /* "@paceline 00003 W. " */
#define PAYLOAD         (PACE_RELAY_FRAME - 1 - HEADER)
#define FRAMES_MAX      ((PACE_RELAY_TEXT_MAX + PAYLOAD - 1) / PAYLOAD)
#define RECORD_PAUSE_NS 100000000u
#define LINE_MAX_BYTES  4096 /* longer lines of others are cut */
#define FIELDS_MAX      64

/* One write of up to 4,096 bytes into a pipe is never mixed with another one. */
_Static_assert(FRAMES_MAX *PACE_RELAY_FRAME <= 4096, "all frames of a text fit one atomic write");
_Static_assert(PACE_RELAY_RANKS_MAX <= 99999, "a rank has RANK_DIGITS digits");

/* ---- the rank's end ---- */

bool pace_relay_wanted(void)
{
    const char *value = getenv(PACE_RELAY_VARIABLE);

    return value && *value && strcmp(value, "0") != 0;
}

int pace_relay_attempts(void)
{
    const char *value = getenv(PACE_RELAY_VARIABLE);
    long attempt = value ? strtol(value, NULL, 10) : 0;

    return attempt > 1 && attempt <= INT_MAX ? (int)attempt - 1 : 0;
}

int pace_relay_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "SLURM_PROCID"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        int rank = value && isdigit((unsigned char)*value) ? atoi(value) : -1;

        if (rank >= 0 && rank < PACE_RELAY_RANKS_MAX)
            return rank;
    }
    return 0;
}

/* A launcher that is killed cannot end its ranks. One that is dead by now cannot be noticed here, but MPI
 * does not start without it. */
static void die_with_launcher(void)
{
    if (pace_relay_wanted())
        prctl(PR_SET_PDEATHSIG, SIGKILL);
}

void pace_relay_init(pace_relay *relay, int fd)
{
    die_with_launcher();
    memset(relay, 0, sizeof *relay);
    pthread_mutex_init(&relay->lock, NULL);
    relay->fd = fd;
    relay->rank = pace_relay_rank();
}

/* What cannot be written cannot be told either: the launcher is gone, and the job with it. */
static void write_bytes(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0)
            return;
        bytes += written;
        size -= (size_t)written;
    }
}

static void write_frames(pace_relay *relay, char kind, const char *text)
{
    char frames[FRAMES_MAX * PACE_RELAY_FRAME];
    size_t left = strlen(text), used = 0;

    if (left > PACE_RELAY_TEXT_MAX)
        left = PACE_RELAY_TEXT_MAX;
    do {
        char *frame = frames + used, header[64];
        size_t piece = left < PAYLOAD ? left : PAYLOAD;

        left -= piece;
        snprintf(header, sizeof header, MARK "%0*d %c%c ", RANK_DIGITS, relay->rank, kind, left ? '+' : '.');
        memset(frame, ' ', PACE_RELAY_FRAME - 1);
        memcpy(frame, header, HEADER);
        for (size_t i = 0; i < piece; i++)
            frame[HEADER + i] = iscntrl((unsigned char)text[i]) ? '?' : text[i];
        frame[PACE_RELAY_FRAME - 1] = '\n';
        text += piece;
        used += PACE_RELAY_FRAME;
    } while (left > 0);
    pthread_mutex_lock(&relay->lock);
    write_bytes(relay->fd, frames, used);
    pthread_mutex_unlock(&relay->lock);
}

void pace_relay_hello(pace_relay *relay)
{
    char host[256] = "", text[512];
    const char *job = getenv("OMPI_MCA_ess_base_jobid");

    gethostname(host, sizeof host - 1);
    snprintf(text, sizeof text, "%s %ld %.64s %s", *host ? host : "-", (long)getpid(),
             job && *job ? job : "-", pace_version());
    write_frames(relay, 'H', text);
}

void pace_relay_log(void *user, pace_level level, const char *text)
{
    if (level <= PACE_INFO)
        write_frames(user, "EWI"[level], text);
}

void pace_relay_exit(pace_relay *relay, pace_status status)
{
    char text[16];

    snprintf(text, sizeof text, "%d", (int)status);
    write_frames(relay, 'X', text);
}

/* A phase that ends is shown with its last numbers. */
static bool ends_phase(const pace_record *record)
{
    const pace_field *done = pace_record_find(record, "done"), *total = pace_record_find(record, "total");

    return done && total && done->type == PACE_FIELD_INT && total->type == PACE_FIELD_INT &&
           total->value.integer > 0 && done->value.integer >= total->value.integer;
}

/* A launcher's pipes are for people to read from. The frequent kinds pass ten times a second;
 * metrics.jsonl has them all. */
static bool may_pass(pace_relay *relay, const pace_record *record)
{
    static const char *const limited[] = {"progress", "step", "resources"};
    bool pass = true;

    _Static_assert(sizeof limited / sizeof *limited <= sizeof relay->passed_ns / sizeof *relay->passed_ns,
                   "a time for each");
    pthread_mutex_lock(&relay->lock);
    for (size_t i = 0; i < sizeof limited / sizeof *limited; i++) {
        uint64_t now_ns = pace__now_ns();

        if (strcmp(record->kind, limited[i]) != 0)
            continue;
        pass = now_ns - relay->passed_ns[i] >= RECORD_PAUSE_NS || ends_phase(record);
        if (pass)
            relay->passed_ns[i] = now_ns;
    }
    pthread_mutex_unlock(&relay->lock);
    return pass;
}

/* ["rows","int","512"]: with its type, and whole numbers as text, because JSON knows only doubles. */
static void write_field(pace__json *json, const pace_field *field)
{
    char digits[32];

    pace__json_raw(json, "[");
    pace__json_string(json, field->name);
    if (field->type == PACE_FIELD_INT) {
        pace__json_raw(json, ",\"int\",");
        snprintf(digits, sizeof digits, "%lld", (long long)field->value.integer);
        pace__json_string(json, digits);
    } else if (field->type == PACE_FIELD_REAL) {
        pace__json_raw(json, ",\"real\",");
        pace__json_real(json, field->value.real);
    } else {
        pace__json_raw(json, ",\"text\",");
        pace__json_string(json, field->value.text);
    }
    pace__json_raw(json, "]");
}

void pace_relay_record(void *user, const pace_record *record)
{
    PACE__C_LOCALE();
    pace_relay *relay = user;
    char text[PACE_RELAY_TEXT_MAX + 1];
    pace__json json = {.text = text, .capacity = PACE_RELAY_TEXT_MAX};

    if (relay->rank != 0 || !may_pass(relay, record))
        return;
    pace__json_raw(&json, "{\"kind\":");
    pace__json_string(&json, record->kind);
    pace__json_raw(&json, ",\"fields\":[");
    for (size_t i = 0; i < record->count; i++) {
        pace__json_raw(&json, i ? "," : "");
        write_field(&json, &record->fields[i]);
    }
    pace__json_raw(&json, "]}");
    if (json.size > json.capacity || record->count > FIELDS_MAX)
        return;
    text[json.size] = '\0';
    write_frames(relay, 'R', text);
}

/* ---- the launcher's end ---- */

/* A text of which not all frames have come. */
typedef struct partial {
    char *text; /* PACE_RELAY_TEXT_MAX + 1 bytes, once the rank has said something long */
    size_t size;
    char kind;
} partial;

struct pace_relay_reader {
    pace_relay_target target;
    partial *partials; /* by rank */
    int ranks;
    size_t size;
    bool cut; /* the line is longer than `line` */
    char line[LINE_MAX_BYTES + 1];
};

pace_relay_reader *pace_relay_reader_create(int ranks, const pace_relay_target *target)
{
    pace_relay_reader *reader = calloc(1, sizeof *reader);

    assert(ranks > 0 && ranks <= PACE_RELAY_RANKS_MAX);
    if (!reader)
        return NULL;
    reader->target = *target;
    reader->ranks = ranks;
    reader->partials = calloc((size_t)ranks, sizeof *reader->partials);
    if (!reader->partials) {
        free(reader);
        return NULL;
    }
    return reader;
}

void pace_relay_reader_free(pace_relay_reader *reader)
{
    if (!reader)
        return;
    for (int rank = 0; rank < reader->ranks; rank++)
        free(reader->partials[rank].text);
    free(reader->partials);
    free(reader);
}

static void give_other(pace_relay_reader *reader, const char *line)
{
    if (*line)
        reader->target.other(reader->target.user, line);
}

/* "host process job version" */
static bool read_hello(char *text, pace_relay_message *message)
{
    char *rest = text, *end;
    const char *host = strsep(&rest, " "), *process = strsep(&rest, " "), *job = strsep(&rest, " ");

    if (!process || !job || !rest || !*host || !*job || !*rest)
        return false;
    message->hello.process = strtol(process, &end, 10);
    message->hello.host = host;
    message->hello.job = job;
    message->hello.version = rest;
    return end != process && *end == '\0';
}

/* False: nothing that a rank would say. `text` is taken apart. */
static bool give_message(const pace_relay_reader *reader, int rank, char kind, char *text)
{
    pace_relay_message message = {.rank = rank, .kind = PACE_RELAY_LOG, .text = text};
    char *end;

    switch (kind) {
    case 'E':
    case 'W':
    case 'I':
        message.level = kind == 'E' ? PACE_ERROR : kind == 'W' ? PACE_WARN : PACE_INFO;
        break;
    case 'R':
        message.kind = PACE_RELAY_RECORD;
        break;
    case 'H':
        message.kind = PACE_RELAY_HELLO;
        if (!read_hello(text, &message))
            return false;
        break;
    case 'X':
        message.kind = PACE_RELAY_EXIT;
        message.status = (int)strtol(text, &end, 10);
        if (end == text || *end != '\0')
            return false;
        break;
    default:
        return false;
    }
    reader->target.message(reader->target.user, &message);
    return true;
}

/* Collects the pieces of a text. One that lacks memory, or is longer than ranks ever write, is dropped. */
static bool take_piece(const pace_relay_reader *reader, int rank, char kind, bool more, const char *piece,
                       size_t size)
{
    partial *part = &reader->partials[rank];

    if (!part->text)
        part->text = malloc(PACE_RELAY_TEXT_MAX + 1);
    if (!part->text)
        return true;
    if (part->kind != kind || part->size + size > PACE_RELAY_TEXT_MAX)
        part->size = 0; /* the end of what came before is lost */
    part->kind = kind;
    memcpy(part->text + part->size, piece, size);
    part->size += size;
    if (more)
        return true;
    while (part->size > 0 && part->text[part->size - 1] == ' ')
        part->size--;
    part->text[part->size] = '\0';
    part->size = 0;
    return give_message(reader, rank, kind, part->text);
}

/* `frame` is as long as a frame without its newline. */
static bool take_frame(const pace_relay_reader *reader, const char *frame)
{
    const char *digits = frame + sizeof MARK - 1, *tail = digits + RANK_DIGITS;
    int rank = 0;

    if (strncmp(frame, MARK, sizeof MARK - 1) != 0)
        return false;
    for (const char *digit = digits; digit < tail; digit++) {
        if (!isdigit((unsigned char)*digit))
            return false;
        rank = rank * 10 + (*digit - '0');
    }
    if (rank >= reader->ranks || tail[0] != ' ' || (tail[2] != '.' && tail[2] != '+') || tail[3] != ' ')
        return false;
    return take_piece(reader, rank, tail[1], tail[2] == '+', frame + HEADER, PAYLOAD);
}

/* What a launcher or a library has put before a frame, on the same line, is a line of theirs. */
static void take_line(pace_relay_reader *reader)
{
    size_t before = reader->size >= PACE_RELAY_FRAME - 1 ? reader->size - (PACE_RELAY_FRAME - 1) : 0;

    reader->line[reader->size] = '\0';
    if (!reader->cut && reader->size >= PACE_RELAY_FRAME - 1 && take_frame(reader, reader->line + before))
        reader->line[before] = '\0';
    give_other(reader, reader->line);
    reader->size = 0;
    reader->cut = false;
}

void pace_relay_reader_feed(pace_relay_reader *reader, const char *bytes, size_t size)
{
    PACE__C_LOCALE();
    for (size_t i = 0; i < size; i++) {
        if (bytes[i] == '\n')
            take_line(reader);
        else if (reader->size == LINE_MAX_BYTES)
            reader->cut = true;
        else if (bytes[i] != '\0' && bytes[i] != '\r')
            reader->line[reader->size++] = bytes[i];
    }
}

void pace_relay_reader_end(pace_relay_reader *reader)
{
    PACE__C_LOCALE();
    if (reader->size > 0)
        take_line(reader);
}

/* ---- records ---- */

static bool read_field(const cJSON *item, pace_field *field)
{
    const cJSON *name = cJSON_GetArrayItem(item, 0), *type = cJSON_GetArrayItem(item, 1);
    const cJSON *value = cJSON_GetArrayItem(item, 2);

    if (!cJSON_IsString(name) || !cJSON_IsString(type) || !value)
        return false;
    *field = (pace_field){.name = name->valuestring};
    if (strcmp(type->valuestring, "int") == 0 && cJSON_IsString(value)) {
        field->type = PACE_FIELD_INT;
        field->value.integer = strtoll(value->valuestring, NULL, 10);
    } else if (strcmp(type->valuestring, "real") == 0 && (cJSON_IsNumber(value) || cJSON_IsNull(value))) {
        field->type = PACE_FIELD_REAL;
        field->value.real = cJSON_IsNumber(value) ? value->valuedouble : (double)NAN;
    } else if (strcmp(type->valuestring, "text") == 0 && cJSON_IsString(value)) {
        field->type = PACE_FIELD_TEXT;
        field->value.text = value->valuestring;
    } else {
        return false;
    }
    return true;
}

bool pace_relay_emit(const char *text, pace_registry *registry)
{
    PACE__C_LOCALE();
    cJSON *record = cJSON_Parse(text);
    const cJSON *kind = cJSON_GetObjectItem(record, "kind"), *items = cJSON_GetObjectItem(record, "fields"),
                *item;
    pace_field fields[FIELDS_MAX];
    size_t count = 0;
    bool valid = cJSON_IsString(kind) && cJSON_IsArray(items) && cJSON_GetArraySize(items) <= FIELDS_MAX;

    for (item = valid ? items->child : NULL; item && valid; item = item->next)
        valid = read_field(item, &fields[count++]);
    if (valid)
        pace_registry_emit(registry, kind->valuestring, fields, count);
    cJSON_Delete(record);
    return valid;
}
