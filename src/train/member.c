#include "train/member.h"

#include "base/clock.h"
#include "base/file.h"

#include <assert.h>
#include <inttypes.h>
#include <paceline/version.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* Changes when ranks of different builds could misunderstand each other. */
#define PROTOCOL  1
#define FACTS_MAX 512
/* Async: rows that are computed on weights which do not know each other. More cost accuracy (docs/decisions/0009). */
#define ROWS_IN_FLIGHT_MAX 20000

/* --- the plan --- */

pace__exchange pace__exchange_of(int mode)
{
    return mode == PACE_MODE_ALLREDUCE                              ? PACE__EXCHANGE_MERGE
           : mode == PACE_MODE_PS_ASYNC || mode == PACE_MODE_PS_SSP ? PACE__EXCHANGE_ASYNC
                                                                    : PACE__EXCHANGE_SYNC;
}

uint64_t pace__member_rows_max(const pace__job *job)
{
    uint64_t workers = (uint64_t)job->cluster.workers;

    return (job->order.batch + workers - 1) / workers;
}

/* The ids of a batch, and the bias. */
size_t pace__member_keys_max(const pace__job *job)
{
    uint64_t rows = pace__member_rows_max(job), per_row = job->store.info.row_entries_max,
             ids = job->store.info.ids_seen;

    return (size_t)(per_row > 0 && rows > ids / per_row ? ids : rows * per_row) + 1;
}

static uint64_t keys_of(const pace__job *job)
{
    return (uint64_t)job->store.info.ids_seen + 1;
}

unsigned pace__member_depth(const pace__job *job)
{
    return pace__exchange_of(job->mode) == PACE__EXCHANGE_ASYNC && 2 * job->order.batch <= ROWS_IN_FLIGHT_MAX
               ? 2
               : 1;
}

pace__client_plan pace__member_client_plan(const pace__job *job)
{
    return (pace__client_plan){.shards = pace__shards(&job->cluster),
                               .first_rank = pace__shard_rank(&job->cluster, 0),
                               .exchange = pace__exchange_of(job->mode),
                               .keys = keys_of(job),
                               .keys_max = pace__member_keys_max(job)};
}

pace__shard_plan pace__member_shard_plan(const pace__job *job, unsigned shard)
{
    const pace_train_config *config = job->config;
    pace__exchange exchange = pace__exchange_of(job->mode);
    pace__shard_plan plan = {.exchange = exchange,
                             .workers = job->cluster.workers,
                             .steps = job->order,
                             .first_step = job->position.step,
                             .rate = {config->schedule, job->lr, config->warmup, job->steps},
                             .keys_max = pace__member_keys_max(job)};

    plan.table = (pace__table_plan){.keys = keys_of(job),
                                    .shard = shard,
                                    .shards = (unsigned)pace__shards(&job->cluster),
                                    .sums = exchange != PACE__EXCHANGE_ASYNC,
                                    .optim = pace__job_optim(job)};
    if (exchange == PACE__EXCHANGE_MERGE) /* sums only */
        plan.table.optim = pace__optim_make(PACE_SGD, job->lr, 0, 0, 0);
    return plan;
}

/* --- hello and go --- */

typedef struct hello {
    uint64_t protocol;
    char version[32];
    char host[PACE__HOSTNAME_MAX];
    char facts[FACTS_MAX]; /* options and data set; a ps has no data set */
} hello;

/* What a ps needs to know of the data set, and where everyone begins. */
typedef struct go {
    uint64_t first_step;
    uint64_t rows;
    uint32_t ids_seen, columns, row_entries_max, has_values;
} go;

/* What must be the same everywhere. */
static void write_facts(const pace__job *job, bool with_data, char text[FACTS_MAX])
{
    const pace_train_config *config = job->config;
    const pace__store_info *info = &job->store.info;
    int size =
        snprintf(text, FACTS_MAX,
                 "mode=%d workers=%d ps=%d evaluator=%d batch=%" PRId64 " epochs=%" PRId64 " steps=%" PRId64
                 " optimizer=%d lr=%.9g momentum=%.9g l1=%.9g l2=%.9g schedule=%d warmup=%" PRId64
                 " seed=%" PRId64 " staleness=%" PRId64 " eval-every=%" PRId64 " checkpoint-every=%" PRId64,
                 job->mode, job->cluster.workers, job->cluster.ps, job->cluster.evaluator, config->batch,
                 config->epochs, config->steps, config->optimizer, config->lr, config->momentum, config->l1,
                 config->l2, config->schedule, config->warmup, config->seed, config->staleness,
                 config->eval_every, config->checkpoint_every);

    if (with_data && size < FACTS_MAX)
        snprintf(text + size, FACTS_MAX - (size_t)size,
                 " data-rows=%" PRIu64 " data-test-rows=%" PRIu64 " data-ids=%u data-entries=%" PRIu64
                 " data-seed=%" PRId64,
                 info->rows[PACE__TRAIN], info->rows[PACE__TEST], info->ids_seen, info->entries[PACE__TRAIN],
                 info->seed);
}

/* Names the first word in which facts differ; those without a data set end early. */
static bool same_facts(const char *own, const char *theirs, size_t *word)
{
    size_t i = 0;

    for (*word = 0; theirs[i]; i++) {
        if (own[i] != theirs[i])
            return false;
        if (own[i] == ' ')
            *word = i + 1;
    }
    return own[i] == '\0' || own[i] == ' ';
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
    if (same_facts(own->facts, theirs->facts, &word))
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

static void set_name(pace__member *member, int rank, const char *host)
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
    size_t capacity = 256 + (size_t)size * 256;
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

static go make_go(const pace__job *job)
{
    const pace__store_info *info = &job->store.info;

    return (go){.first_step = job->position.step,
                .rows = info->rows[PACE__TRAIN],
                .ids_seen = info->ids_seen,
                .columns = info->columns,
                .row_entries_max = info->row_entries_max,
                .has_values = info->has_values};
}

/* The same message to every other rank. */
static pace_status tell_all(pace__member *member, int tag, const void *bytes, size_t size)
{
    pace_status status = PACE_OK;

    for (int rank = 1; rank < pace__cluster_size(&member->job->cluster) && !status; rank++) {
        pace__request send = {0};

        pace__link_send(member->link, rank, tag, bytes, size, &send);
        status = pace__link_wait(member->link, &send, "a message to leave");
    }
    return status;
}

/* The chief: hears everyone, compares, sends them on their way. */
static pace_status gather_hellos(pace__member *member)
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
        set_name(member, rank, hellos[rank].host);
        status = check_hello(member, rank, &hellos[rank], &hellos[0]);
    }
    if (!status)
        status = write_cluster(member, hellos);
    free(hellos);
    go facts = make_go(member->job);

    return status ? status : tell_all(member, PACE__TAG_GO, &facts, sizeof facts);
}

static pace_status say_hello(pace__member *member, go *facts)
{
    hello own = make_hello(member);
    pace__request send = {0}, receive = {0};

    pace__link_receive(member->link, 0, PACE__TAG_GO, facts, sizeof *facts, &receive);
    pace__link_send(member->link, 0, PACE__TAG_HELLO, &own, sizeof own, &send);
    pace_status status = pace__link_wait(member->link, &send, "a message to leave");

    return status ? status : pace__link_wait(member->link, &receive, "the start");
}

/* --- what this rank holds --- */

static uint64_t step_of_shard(const void *user)
{
    return pace__shard_step(user);
}

static uint64_t step_of_replica(const void *user)
{
    return ((const pace__member *)user)->replica_step;
}

static pace_status open_counter(pace__member *member)
{
    const pace__job *job = member->job;
    const pace_train_config *config = job->config;
    uint64_t gates[2] = {(uint64_t)config->checkpoint_every,
                         job->scores_on_the_way ? (uint64_t)config->eval_every : 0};
    uint64_t staleness =
        job->mode == PACE_MODE_PS_SSP ? (uint64_t)config->staleness : PACE__STALENESS_UNBOUNDED;
    pace__tickets *tickets = malloc(sizeof *tickets);

    if (!tickets)
        return pace_fail(member->log, PACE_FAILED, "out of memory");
    pace__tickets_init(tickets, &job->order, (unsigned)job->cluster.workers, job->position.step, job->steps,
                       staleness, gates);
    pace_status status =
        pace__counter_create(member->link, job->cluster.workers, tickets, member->log, &member->counter);

    free(tickets);
    return status;
}

/* The whole model, on every worker. */
static pace_status open_replica(pace__member *member)
{
    pace__table_plan plan = {
        .keys = keys_of(member->job), .shards = 1, .optim = pace__job_optim(member->job)};

    member->replica_step = member->job->position.step;
    return pace__table_init(&member->replica, &plan, member->log);
}

static pace_status open_holdings(pace__member *member)
{
    pace__job *job = member->job;
    bool merge = member->exchange == PACE__EXCHANGE_MERGE, worker = member->role == PACE__WORKER;
    int first = pace__shard_rank(&job->cluster, 0), shard = member->rank - first;
    bool holds = shard >= 0 && shard < pace__shards(&job->cluster);
    pace__keeper_plan keeper = {.table = &member->replica,
                                .steps = job->order,
                                .exact_steps = pace__is_sync(member),
                                .step = step_of_replica,
                                .user = member};
    pace_status status = PACE_OK;

    if (holds) {
        pace__shard_plan plan = pace__member_shard_plan(job, (unsigned)shard);

        status = pace__shard_create(member->link, &plan, member->log, &member->shard);
    }
    if (!status && merge && worker)
        status = open_replica(member);
    if (!status && holds && !merge) {
        keeper.table = pace__shard_table(member->shard);
        keeper.step = step_of_shard;
        keeper.user = member->shard;
    }
    if (!status && keeper.table->records)
        status = pace__keeper_create(member->link, &keeper, member->log, &member->keeper);
    if (!status && member->exchange == PACE__EXCHANGE_ASYNC && member->rank == first)
        status = open_counter(member);
    pace__link_on_idle(member->link, pace__member_serve, member);
    return status;
}

static void close_holdings(pace__member *member)
{
    pace__link_on_idle(member->link, NULL, NULL);
    pace__counter_free(member->counter);
    pace__keeper_free(member->keeper);
    pace__table_release(&member->replica);
    pace__shard_free(member->shard);
}

pace_status pace__member_serve(void *user, bool *busy)
{
    pace__member *member = user;
    pace_status status = PACE_OK;

    if (member->shard)
        status = pace__shard_poll(member->shard, busy);
    if (!status && member->keeper)
        status = pace__keeper_poll(member->keeper, busy);
    if (!status && member->counter)
        status = pace__counter_poll(member->counter, busy);
    return status;
}

/* --- the model as a whole --- */

unsigned pace__member_holders(const pace__member *member)
{
    return member->exchange == PACE__EXCHANGE_MERGE ? 1 : (unsigned)pace__shards(&member->job->cluster);
}

pace__holder pace__member_holder(const pace__member *member, unsigned index)
{
    const pace__job *job = member->job;

    if (member->exchange == PACE__EXCHANGE_MERGE)
        return pace__holder_of(keys_of(job), 1, 0, (int)index);
    return pace__holder_of(keys_of(job), pace__member_holders(member), index,
                           pace__shard_rank(&job->cluster, 0));
}

/* The last key is the bias; in the model its place means "unseen" and stays as it was. */
static void split_bias(pace__logreg *model)
{
    float *last = model->parameters + (size_t)model->ids * model->optim.width;

    memcpy(model->bias, last, model->optim.width * sizeof(float));
    pace__optim_init(&model->optim, last);
}

pace_status pace__member_assemble(void *user)
{
    pace__member *member = user;
    pace__job *job = member->job;
    pace__logreg *model = &job->model;
    const pace_train_config *config = job->config;
    uint64_t step = job->position.step;
    pace_status status = PACE_OK;

    for (unsigned i = 0; i < pace__member_holders(member) && !status; i++) {
        pace__holder holder = pace__member_holder(member, i);

        status = pace__fetch_state(member->link, &holder, model->optim.width, model->parameters, member->log);
    }
    if (!status)
        split_bias(model);
    if (step > 0)
        pace__optim_begin_step(
            &model->optim, pace__schedule_lr(config->schedule, job->lr, config->warmup, step - 1, job->steps),
            0);
    return status;
}

/* A resumed job: everyone who holds parameters gets those of the checkpoint. */
static pace_status send_out_model(pace__member *member)
{
    pace__logreg *model = &member->job->model;
    float *last = model->parameters + (size_t)model->ids * model->optim.width;
    unsigned holders = member->exchange == PACE__EXCHANGE_MERGE ? (unsigned)member->job->cluster.workers
                                                                : pace__member_holders(member);
    pace_status status = PACE_OK;

    memcpy(last, model->bias, model->optim.width * sizeof(float));
    for (unsigned i = 0; i < holders && !status; i++) {
        pace__holder holder = pace__member_holder(member, i);

        status = pace__store_state(member->link, &holder, model->optim.width, model->parameters, member->log);
    }
    pace__optim_init(&model->optim, last);
    return status;
}

/* --- reports --- */

static bool counts(int tag)
{
    return tag == PACE__TAG_PUSH || tag == PACE__TAG_REPLY || tag == PACE__TAG_ASK ||
           tag == PACE__TAG_TICKET || tag >= PACE__TAG_REDUCE;
}

static void fill_traffic(pace__member *member, int peer)
{
    pace__role_report *report = member->report;

    for (int tag = 0; tag < PACE__LINK_TAGS_MAX; tag++) {
        pace__traffic traffic = pace__link_traffic(member->link, peer, tag);

        if (member->shard && tag == PACE__TAG_PUSH) {
            report->requests += traffic.messages_received;
            report->server_bytes_received += traffic.bytes_received;
        }
        if (member->shard && tag == PACE__TAG_REPLY)
            report->server_bytes_sent += traffic.bytes_sent;
        if (!counts(tag) || peer == member->rank)
            continue;
        report->peer[peer].bytes_sent += traffic.bytes_sent;
        report->peer[peer].bytes_received += traffic.bytes_received;
        report->peer[peer].messages += traffic.messages_sent + traffic.messages_received;
    }
    report->peer[peer].wait_s = (double)pace__link_wait_ns(member->link, peer) * 1e-9;
}

/* Training is over for this rank. */
static void fill_report(pace__member *member)
{
    pace__role_report *report = member->report;
    struct rusage usage;

    getrusage(RUSAGE_SELF, &usage);
    report->seconds = pace__seconds_since(member->start_ns);
    report->cpu_s = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                    (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    report->rss_max_bytes = (uint64_t)usage.ru_maxrss * 1024;
    report->process = (uint64_t)getpid();
    report->holds_shard = member->shard != NULL;
    if (member->shard) {
        const pace__shard_stats *stats = pace__shard_stats_of(member->shard);

        report->repeats_dropped = stats->repeats_dropped;
        report->rows_repeated = stats->rows_repeated;
        memcpy(report->staleness, stats->staleness, sizeof report->staleness);
        if (member->role == PACE__PS) {
            report->communicate_s = (double)stats->busy_ns * 1e-9;
            report->wait_s = report->seconds - report->communicate_s;
        }
    }
    for (int peer = 0; peer < (int)report->peers; peer++)
        fill_traffic(member, peer);
}

static pace__role_report *new_report(const pace__member *member)
{
    int size = pace__cluster_size(&member->job->cluster);
    pace__role_report *report = calloc(1, pace__report_bytes(size));

    if (report) {
        report->peers = (uint64_t)size;
        snprintf(report->host, sizeof report->host, "%s", member->host);
    }
    return report;
}

/* The chief: how the job ended, to all; everyone's report, from all. */
static pace_status end_all(pace__member *member, pace_status how)
{
    int size = pace__cluster_size(&member->job->cluster);
    pace__ending ending = {(uint64_t)how, member->job->position.step};
    pace_status status = tell_all(member, PACE__TAG_END, &ending, sizeof ending);

    member->reports = calloc((size_t)size, sizeof *member->reports);
    if (!status && !member->reports)
        status = pace_fail(member->log, PACE_FAILED, "out of memory");
    if (!status)
        member->reports[0] = member->report;
    for (int rank = 1; rank < size && !status; rank++) {
        pace__request receive = {0};

        member->reports[rank] = new_report(member);
        if (!member->reports[rank])
            return pace_fail(member->log, PACE_FAILED, "out of memory");
        pace__link_receive(member->link, rank, PACE__TAG_REPORT, member->reports[rank],
                           pace__report_bytes(size), &receive);
        status = pace__link_wait(member->link, &receive, "its report");
    }
    return status;
}

static void free_reports(pace__member *member)
{
    int size = pace__cluster_size(&member->job->cluster);

    for (int rank = 1; member->reports && rank < size; rank++)
        free(member->reports[rank]);
    free(member->reports);
    free(member->report);
}

/* Waits for the end, serving meanwhile. */
static pace_status await_end(pace__member *member)
{
    unsigned turns = 0;
    int *peers = calloc((size_t)member->job->cluster.workers, sizeof *peers);
    pace_status status = peers ? PACE_OK : pace_fail(member->log, PACE_FAILED, "out of memory");

    while (!status) {
        bool ended;

        status = pace__link_done(member->link, &member->end_receive, &ended);
        if (status || ended)
            break;
        if (member->shard)
            pace__link_set_step(member->link, member->step = pace__shard_step(member->shard));
        size_t count =
            member->role == PACE__PS && member->shard ? pace__shard_waits_for(member->shard, peers) : 1;

        status = pace__link_turn(member->link, peers, count,
                                 member->role == PACE__PS ? "its gradients" : "the end", &turns);
    }
    free(peers);
    return status;
}

/* Every row up to the last step was applied here, once. */
static pace_status check_rows(const pace__member *member, uint64_t last_step)
{
    return member->shard ? pace__shard_check(member->shard, pace__job_rows_before(member->job, last_step))
                         : PACE_OK;
}

/* --- the chief --- */

/* Everyone has answered, and nothing more is wanted. */
static pace_status end_dry_run(pace__member *member)
{
    pace_status status = pace__member_describe(member);

    return status ? status : end_all(member, PACE_OK);
}

/* job->train of the chief. The run directory is open, the position known. */
static pace_status lead(pace__job *job)
{
    pace__member *member = job->member;
    pace__books books;
    uint64_t start = 0;
    bool over = pace__job_is_over(job);

    member->log = job->log;
    pace_status status = gather_hellos(member);

    if (job->config->dry_run)
        return status ? status : end_dry_run(member);
    if (!status)
        status = open_holdings(member);
    if (!status && job->position.step > 0)
        status = send_out_model(member);
    if (!status)
        status = tell_all(member, PACE__TAG_GO, &start, sizeof start);
    member->start_ns = job->start_ns = pace__now_ns();
    pace__books_open(&books, job);
    books.assemble = pace__member_assemble;
    books.user = member;
    books.distributed = true;
    if (!status && !over)
        status = pace__worker_run(member, &books);
    fill_report(member);
    job->trained_s = pace__seconds_since(job->start_ns);
    if (!status)
        status = pace__member_assemble(member);
    if (!status)
        status = check_rows(member, job->position.step);
    if (status == PACE_INTERRUPTED) { /* a clean end, for everyone */
        pace_status ended = end_all(member, PACE_INTERRUPTED);

        status = ended ? ended : status;
    }
    return status;
}

/* job->final_scores of a chief with an evaluator. */
static pace_status await_scores(pace__job *job)
{
    return pace__member_take_verdicts(job->member, true);
}

/* job->end of the chief: the model is written. */
static pace_status end_job(pace__job *job)
{
    pace__member *member = job->member;
    pace_status status = end_all(member, PACE_OK);

    if (status)
        return status;
    job->reports = member->reports;
    pace__reports_emit(&job->cluster, member->reports, job->registry);
    return PACE_OK;
}

/* --- what the evaluator sends --- */

static void await_verdict(pace__member *member)
{
    pace__link_receive(member->link, pace__cluster_size(&member->job->cluster) - 1, PACE__TAG_SCORES,
                       &member->verdict, sizeof member->verdict, &member->verdict_receive);
}

pace_status pace__member_take_verdicts(pace__member *member, bool final)
{
    pace__job *job = member->job;

    while (job->cluster.evaluator && job->store.info.rows[PACE__TEST] > 0) {
        const pace__verdict *verdict = &member->verdict;
        bool came;

        if (!member->verdict_receive.active)
            await_verdict(member);
        pace_status status = final
                                 ? pace__link_wait(member->link, &member->verdict_receive, "the last scores")
                                 : pace__link_done(member->link, &member->verdict_receive, &came);

        if (status || (!final && !came))
            return status;
        job->scores = verdict->scores;
        job->evaluations_skipped = verdict->skipped;
        pace__job_emit_scores(job, verdict->step);
        if (verdict->final)
            return PACE_OK;
        pace_say(member->log, PACE_INFO,
                 "step %" PRIu64 ": test log-loss %.5f, AUC %.5f, accuracy %.4f (evaluator)", verdict->step,
                 job->scores.logloss, job->scores.auc, job->scores.accuracy);
    }
    return PACE_OK;
}

/* --- everyone else --- */

static void learn(pace__job *job, const go *facts)
{
    pace__store_info *info = &job->store.info;

    job->position.step = facts->first_step;
    info->rows[PACE__TRAIN] = facts->rows;
    info->ids_seen = facts->ids_seen;
    info->columns = facts->columns;
    info->row_entries_max = facts->row_entries_max;
    info->has_values = facts->has_values;
}

static pace_status await_start(pace__member *member)
{
    pace__request receive = {0};
    uint64_t start;

    pace__link_receive(member->link, 0, PACE__TAG_GO, &start, sizeof start, &receive);
    return pace__link_wait(member->link, &receive, "the start");
}

static pace_status follow(pace__member *member)
{
    pace__job *job = member->job;
    pace__request send = {0};
    go facts = {0};
    pace_status status = say_hello(member, &facts);

    if (status)
        return status;
    if (member->role == PACE__PS) {
        learn(job, &facts);
        status = pace__job_plan(job);
    }
    job->position.step = facts.first_step;
    pace__link_receive(member->link, 0, PACE__TAG_END, &member->ending, sizeof member->ending,
                       &member->end_receive);
    if (!status && job->config->dry_run)
        goto end;
    if (!status)
        status = open_holdings(member);
    if (!status)
        status = await_start(member);
    member->start_ns = pace__now_ns();
    if (!status && member->role == PACE__WORKER && !pace__job_is_over(job))
        status = pace__worker_run(member, NULL);
    if (!status && member->role == PACE__EVALUATOR)
        status = pace__evaluator_run(member);
end:
    if (!status)
        status = await_end(member);
    if (!status)
        status = check_rows(member, member->ending.step);
    if (status)
        return status;
    fill_report(member);
    pace__link_send(member->link, 0, PACE__TAG_REPORT, member->report,
                    pace__report_bytes(pace__cluster_size(&job->cluster)), &send);
    status = pace__link_wait(member->link, &send, "its report to leave");
    return status ? status : (pace_status)member->ending.status;
}

/* --- the whole of it --- */

/* Ranks other than the chief do not speak for themselves: the chief says what went wrong, once. */
static void keep_error(void *user, pace_level level, const char *text)
{
    pace__member *member = user;

    if (level == PACE_ERROR && !member->reason[0])
        snprintf(member->reason, sizeof member->reason, "%s (rank %d, host %s), step %" PRIu64 ": %s",
                 member->name, member->rank, member->host, member->step, text);
    else if (level == PACE_WARN && member->outer_log && member->outer_log->write)
        member->outer_log->write(member->outer_log->user, level, text);
}

static void open_member(pace__member *member, pace__job *job, pace__link *link)
{
    *member = (pace__member){
        .job = job, .link = link, .log = job->log, .outer_log = job->log, .rank = pace__link_rank(link)};
    member->role = pace__role_of(&job->cluster, member->rank);
    member->exchange = pace__exchange_of(job->mode);
    pace__role_name(&job->cluster, member->rank, member->name);
    if (gethostname(member->host, sizeof member->host - 1) != 0)
        snprintf(member->host, sizeof member->host, "unknown");
    for (int rank = 0; rank < pace__cluster_size(&job->cluster); rank++)
        set_name(member, rank, rank == member->rank ? member->host : NULL);
    member->own_log = (pace_log){keep_error, member};
    if (member->rank > 0)
        member->log = job->log = &member->own_log;
    job->member = member;
    job->train = lead;
    job->end = end_job;
    job->final_scores = job->cluster.evaluator ? await_scores : NULL;
    member->report = new_report(member);
}

static pace_status run_member(pace__member *member, pace_train_result *result)
{
    pace__job *job = member->job;
    pace_status status = member->report ? PACE_OK : pace_fail(member->log, PACE_FAILED, "out of memory");

    if (!status && member->role != PACE__PS)
        status = pace__store_open(job->config->data, &job->store, member->log);
    if (!status && member->role != PACE__PS)
        status = pace__job_plan(job);
    if (!status)
        status = member->rank == 0 ? pace__job_lead(job, result) : follow(member);
    return status;
}

pace_status pace__member_run(pace__job *job, pace__link *link, pace_train_result *result)
{
    const pace_log *caller_log = job->log;
    pace__member member;

    open_member(&member, job, link);
    pace_status status = run_member(&member, result);
    bool failed = status != PACE_OK && status != PACE_INTERRUPTED;

    job->log = caller_log;
    if (failed) /* others may be waiting: they are ended, and with them whatever they were sending here */
        pace__link_fail(link, status, member.rank > 0 ? member.reason : "");
    pace__link_cancel(link, &member.verdict_receive);
    pace__link_cancel(link, &member.end_receive);
    close_holdings(&member);
    free_reports(&member);
    pace__store_close(&job->store);
    pace__link_close(link);
    return status;
}
