/*
 * The first exchange: every rank says hello to the chief, the chief compares and answers.
 *
 * Structs travel as they are (ps/wire.h), so the first thing that is compared is the program's version.
 */
#include "files/file.h"
#include "train/member.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/kernels.h>
#include <paceline/version.h>
#include <stdlib.h>

/* Changes when ranks of different builds could misunderstand each other. */
#define PROTOCOL  3
#define FACTS_MAX 1536

typedef struct hello {
    uint64_t protocol;
    char version[32];
    char host[PACE__HOSTNAME_MAX];
    char facts[FACTS_MAX]; /* options and data set; a ps has no data set */
} hello;

/* What a ps needs to know of the data set, and where everyone begins. */
typedef struct go {
    uint64_t first_step, over;
    uint64_t rows, test_rows;
    uint32_t ids_seen, columns, row_entries_max, has_values, kind;
    uint32_t height, width, channels, classes; /* of pictures */
    uint64_t positives;
    char hosts[][PACE__HOSTNAME_MAX]; /* by rank */
} go;

static size_t go_bytes(const pace__job *job)
{
    return sizeof(go) + (size_t)pace__cluster_size(&job->cluster) * PACE__HOSTNAME_MAX;
}

/* What must be the same everywhere. */
static void write_facts(const pace__job *job, bool with_data, char text[FACTS_MAX])
{
    const pace_train_config *config = job->given; /* a ps does not know yet what was left open */
    const pace__store_info *info = &job->store.info;
    int size = snprintf(
        text, FACTS_MAX,
        "mode=%d workers=%d ps=%d evaluator=%d batch=%" PRId64 " epochs=%" PRId64 " steps=%" PRId64
        " optimizer=%d lr=%.9g momentum=%.9g l1=%.9g l2=%.9g schedule=%d warmup=%" PRId64 " seed=%" PRId64
        " staleness=%" PRId64 " eval-every=%" PRId64 " checkpoint-every=%" PRId64 " dry-run=%d"
        " model=%d ngram=%" PRId64 " cell=%d layers=%" PRId64 " hidden=%" PRId64 " embed=%" PRId64
        " dense=%" PRId64 " bidirectional=%d pooling=%d dropout=%.9g,%.9g loss=%d focal=%.9g class-weight=%s"
        " clip=%.9g reduce=%d preset=%d arch=%d width=%.9g train=%s bn=%d head=%d smoothing=%.9g augment=%s"
        " pretrained=%d kernels=%s",
        job->mode, job->cluster.workers, job->cluster.ps, job->cluster.evaluator, config->batch,
        config->epochs, config->steps, config->optimizer, config->lr, config->momentum, config->l1,
        config->l2, config->schedule, config->warmup, config->seed, config->staleness, config->eval_every,
        config->checkpoint_every, config->dry_run, config->model, config->ngram, config->cell, config->layers,
        config->hidden, config->embed, config->dense, config->bidirectional, config->pooling, config->dropout,
        config->word_dropout, config->loss, config->focal, config->class_weight ? config->class_weight : "1",
        config->clip, config->reduce, config->preset, config->arch, config->width,
        config->train ? config->train : "all", config->bn, config->head, config->smoothing,
        config->augment ? config->augment : "auto", config->pretrained != NULL,
        pace_kernels_name(pace_kernels_asked()));

    if (with_data && size < FACTS_MAX)
        snprintf(text + size, FACTS_MAX - (size_t)size,
                 " data-rows=%" PRIu64 " data-test-rows=%" PRIu64 " data-ids=%u data-entries=%" PRIu64
                 " data-seed=%" PRId64 " weights=%.16s",
                 info->rows[PACE__TRAIN], info->rows[PACE__TEST], info->ids_seen, info->entries[PACE__TRAIN],
                 info->seed, job->network.pretrained[0] ? job->network.pretrained : "none");
}

static pace_status check_hello(const pace__member *member, int rank, const hello *theirs, const hello *own)
{
    const char *name = pace__link_name(member->link, rank);
    size_t word;

    if (theirs->protocol != own->protocol || strcmp(theirs->version, own->version) != 0)
        return pace_fail(member->log, PACE_USAGE,
                         "%s runs paceline %.31s (protocol %" PRIu64 "), the chief runs %s (protocol %" PRIu64
                         "): install the same program everywhere",
                         name, theirs->version, theirs->protocol, own->version, own->protocol);
    if (pace__same_words(own->facts, theirs->facts, &word)) /* those without a data set end early */
        return PACE_OK;
    return pace_fail(member->log, PACE_USAGE,
                     "%s has another job: %.*s there, %.*s on the chief; start all ranks with the same "
                     "options and the same data set",
                     name, (int)strcspn(theirs->facts + word, " "), theirs->facts + word,
                     (int)strcspn(own->facts + word, " "), own->facts + word);
}

static hello make_hello(const pace__member *member)
{
    hello own = {.protocol = PROTOCOL};

    snprintf(own.version, sizeof own.version, "%s", pace_version());
    snprintf(own.host, sizeof own.host, "%s", member->host);
    write_facts(member->job, member->role != PACE__PS, own.facts);
    return own;
}

void pace__member_set_name(pace__member *member, int rank, const char *host)
{
    char role[PACE__ROLE_TEXT], name[PACE__ROLE_TEXT + PACE__HOSTNAME_MAX + 32];

    pace__role_name(&member->job->cluster, rank, role);
    snprintf(name, sizeof name, host ? "%s (rank %d, host %s)" : "%s (rank %d)", role, rank, host);
    pace__link_set_name(member->link, rank, name);
}

static pace_status write_cluster(const pace__member *member, const hello *hellos)
{
    pace__job *job = member->job;
    int size = pace__cluster_size(&job->cluster);
    size_t capacity = 256 + (size_t)size * (128 + 6 * PACE__HOSTNAME_MAX); /* all of it escaped */
    char *text = malloc(capacity), role[PACE__ROLE_TEXT];
    pace__json json = {.text = text, .capacity = capacity};

    if (!text)
        return pace_fail(member->log, PACE_FAILED, "out of memory");
    pace__json_raw(&json, "{\"version\": ");
    pace__json_string(&json, pace_version());
    pace__json_raw(&json, ", \"ranks\": [");
    for (int rank = 0; rank < size; rank++) {
        pace__role_name(&job->cluster, rank, role);
        pace__json_raw(&json, rank ? ",\n  {\"rank\": " : "\n  {\"rank\": ");
        pace__json_integer(&json, rank);
        pace__json_raw(&json, ", \"role\": ");
        pace__json_string(&json, role);
        pace__json_raw(&json, ", \"host\": ");
        pace__json_string(&json, hellos[rank].host);
        pace__json_raw(&json, "}");
    }
    pace__json_raw(&json, "\n]}\n");
    assert(json.size <= capacity);
    pace_status status = job->run
                             ? pace__write_file_atomically(pace__rundir_path(job->run, PACE__RUN_CLUSTER),
                                                           text, json.size, member->log)
                             : PACE_OK;

    free(text);
    return status;
}

static pace_status send_go(pace__member *member, const hello *hellos)
{
    const pace__job *job = member->job;
    const pace__store_info *info = &job->store.info;
    go *facts = calloc(1, go_bytes(job));

    if (!facts)
        return pace_fail(member->log, PACE_FAILED, "out of memory");
    *facts = (go){.first_step = job->position.step,
                  .over = pace__job_is_over(job),
                  .rows = info->rows[PACE__TRAIN],
                  .test_rows = info->rows[PACE__TEST],
                  .ids_seen = info->ids_seen,
                  .columns = info->columns,
                  .row_entries_max = info->row_entries_max,
                  .has_values = info->has_values,
                  .kind = info->encoding.kind,
                  .height = info->encoding.height,
                  .width = info->encoding.width,
                  .channels = info->encoding.channels,
                  .classes = info->encoding.classes,
                  .positives = info->positives[PACE__TRAIN]};
    for (int rank = 0; rank < pace__cluster_size(&job->cluster); rank++)
        memcpy(facts->hosts[rank], hellos[rank].host, PACE__HOSTNAME_MAX);
    pace_status status = pace__member_tell_all(member, PACE__TAG_GO, facts, go_bytes(job));

    free(facts);
    return status;
}

pace_status pace__member_gather_hellos(pace__member *member)
{
    int size = pace__cluster_size(&member->job->cluster);
    hello *hellos = calloc((size_t)size, sizeof *hellos);
    pace_status status = hellos ? PACE_OK : pace_fail(member->log, PACE_FAILED, "out of memory");

    if (hellos)
        hellos[0] = make_hello(member);
    for (int rank = 1; rank < size && !status; rank++) {
        pace__request receive = {0};

        pace__link_receive(member->link, rank, PACE__TAG_HELLO, &hellos[rank], sizeof hellos[rank], &receive);
        status = pace__link_wait(member->link, &receive, "its first message");
        if (!status && receive.bytes != sizeof hellos[rank])
            status = pace_fail(member->log, PACE_USAGE,
                               "%s runs another version of paceline: install the same program everywhere",
                               pace__link_name(member->link, rank));
        if (status)
            break;
        hellos[rank].host[PACE__HOSTNAME_MAX - 1] = hellos[rank].facts[FACTS_MAX - 1] = '\0';
        hellos[rank].version[sizeof hellos[rank].version - 1] = '\0';
        pace__member_set_name(member, rank, hellos[rank].host);
        status = check_hello(member, rank, &hellos[rank], &hellos[0]);
    }
    if (!status)
        status = write_cluster(member, hellos);
    if (!status)
        status = send_go(member, hellos);
    free(hellos);
    return status;
}

/* Where everyone is, and, for a ps, what the data set is like. */
static pace_status learn(pace__member *member, const go *facts)
{
    pace__job *job = member->job;
    pace__store_info *info = &job->store.info;
    pace_status status = PACE_OK;

    for (int rank = 0; rank < pace__cluster_size(&job->cluster); rank++)
        pace__member_set_name(member, rank, facts->hosts[rank]);
    if (member->role == PACE__PS) {
        info->rows[PACE__TRAIN] = facts->rows;
        info->rows[PACE__TEST] = facts->test_rows;
        info->ids_seen = facts->ids_seen;
        info->columns = facts->columns;
        info->row_entries_max = facts->row_entries_max;
        info->has_values = facts->has_values;
        info->encoding.kind = facts->kind;
        info->encoding.height = facts->height;
        info->encoding.width = facts->width;
        info->encoding.channels = facts->channels;
        info->encoding.classes = facts->classes;
        info->positives[PACE__TRAIN] = facts->positives;
        status = pace__job_plan(job);
    }
    job->position.step = facts->first_step;
    job->over = facts->over;
    return status;
}

pace_status pace__member_say_hello(pace__member *member)
{
    hello own = make_hello(member);
    size_t bytes = go_bytes(member->job);
    go *facts = calloc(1, bytes);
    pace__request send = {0}, receive = {0};

    if (!facts)
        return pace_fail(member->log, PACE_FAILED, "out of memory");
    pace__link_receive(member->link, 0, PACE__TAG_GO, facts, bytes, &receive);
    pace__link_send(member->link, 0, PACE__TAG_HELLO, &own, sizeof own, &send);
    pace_status status = pace__link_wait(member->link, &send, "a message to leave");

    if (!status)
        status = pace__link_wait(member->link, &receive, "the start");
    pace__link_cancel(member->link, &receive); /* if it is still under way, something has failed */
    if (!status)
        status = learn(member, facts);
    free(facts);
    return status;
}
