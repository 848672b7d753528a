/* What ranks have measured, as records and as a part of the summary. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "support.h"

#include "run/report.h"

#include <cjson/cJSON.h>

#define RANKS_MAX 6

/* --- a cluster with numbers --- */

static pace__role_report *reports[RANKS_MAX];

/* Two workers, two ps, an evaluator; rank r has sent r x 100 + p bytes to rank p, waited p seconds for it. */
static pace__cluster make_reports(void)
{
    pace__cluster cluster = {.workers = 2, .ps = 2, .evaluator = true};
    int size = pace__cluster_size(&cluster);

    for (int rank = 0; rank < size; rank++) {
        pace__role_report *report = reports[rank] = tiny_alloc(pace__report_bytes(size));

        snprintf(report->host, sizeof report->host, "host\"%d", rank); /* with something to escape */
        report->rows = (uint64_t)rank * 10;
        report->peers = (uint64_t)size;
        report->holds_shard = rank == 2 || rank == 3;
        report->requests = rank == 2 ? 30 : 10;
        report->server_bytes_received = rank == 2 ? 300 : 100;
        report->server_bytes_sent = 100;
        report->rows_repeated = rank == 3 ? 12 : 5;
        report->staleness[0] = report->holds_shard ? 7 : 0;
        report->staleness[3] = rank == 3;
        for (int peer = 0; peer < size && rank != 4; peer++) {
            if (peer == rank || peer == 4)
                continue;
            report->peer[peer] = (pace__peer_traffic){(uint64_t)(rank * 100 + peer), 1, 2, peer};
        }
    }
    return cluster;
}

static void free_reports(const pace__cluster *cluster)
{
    for (int rank = 0; rank < pace__cluster_size(cluster); rank++)
        free(reports[rank]);
}

static void bytes_of_all(void **state)
{
    pace__cluster cluster = make_reports();

    (void)state;
    /* Ranks 0 to 3, each to the three others. */
    assert_int_equal(pace__reports_bytes(&cluster, reports, true),
                     3 * (0 + 100 + 200 + 300) + 3 * (0 + 1 + 2 + 3));
    assert_int_equal(pace__reports_bytes(&cluster, reports, false), 12);
    free_reports(&cluster);
}

/* --- records --- */

typedef struct tally {
    unsigned roles, servers, peers;
    char waits_for[RANKS_MAX][PACE__ROLE_TEXT];
} tally;

static const char *text_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    require(field && field->type == PACE_FIELD_TEXT);
    return field->value.text;
}

static int64_t integer_of(const pace_record *record, const char *name)
{
    const pace_field *field = pace_record_find(record, name);

    require(field && field->type == PACE_FIELD_INT);
    return field->value.integer;
}

static void count_record(void *user, const pace_record *record)
{
    tally *self = user;

    if (strcmp(record->kind, "role") == 0) {
        int64_t rank = integer_of(record, "rank");

        require(rank == (int64_t)self->roles++ && integer_of(record, "rows") == rank * 10);
        snprintf(self->waits_for[rank], PACE__ROLE_TEXT, "%s", text_of(record, "waits_for"));
    } else if (strcmp(record->kind, "server") == 0) {
        require(strcmp(text_of(record, "role"), self->servers++ ? "ps1" : "ps0") == 0);
        require(integer_of(record, "requests") == (self->servers == 1 ? 30 : 10));
        require(integer_of(record, "rows_repeated") == (self->servers == 1 ? 5 : 12));
    } else {
        require(strcmp(record->kind, "peer") == 0 && integer_of(record, "messages") == 2);
        require(strcmp(text_of(record, "role"), text_of(record, "peer")) != 0);
        self->peers++;
    }
}

static void records(void **state)
{
    pace__cluster cluster = make_reports();
    pace_registry *registry = pace_registry_create();
    tally got = {0};
    pace_sink sink = {count_record, &got};

    (void)state;
    pace_registry_attach(registry, &sink);
    pace__reports_emit(&cluster, reports, registry);
    assert_int_equal(got.roles, 5);
    assert_int_equal(got.servers, 2);
    assert_int_equal(got.peers, 12);
    assert_string_equal(got.waits_for[0], "ps1"); /* rank 3: the longest */
    assert_string_equal(got.waits_for[3], "ps0"); /* not itself */
    assert_string_equal(got.waits_for[4], "");    /* for nobody */
    pace_registry_free(registry);
    free_reports(&cluster);
}

/* --- the summary --- */

static double number_at(const cJSON *object, const char *name)
{
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);

    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

static cJSON *summary_of(const pace__cluster *cluster)
{
    static char text[65536];
    pace__json json = {.text = text, .capacity = sizeof text - 1};

    pace__json_raw(&json, "{\"mode\": \"ps-async\"");
    pace__reports_put(&json, cluster, reports);
    pace__json_raw(&json, "}");
    assert_true(json.size <= json.capacity);
    text[json.size] = '\0';
    cJSON *parsed = cJSON_Parse(text);

    assert_non_null(parsed);
    return parsed;
}

static void summary(void **state)
{
    pace__cluster cluster = make_reports();
    cJSON *all = summary_of(&cluster);
    const cJSON *roles = cJSON_GetObjectItemCaseSensitive(all, "roles");
    const cJSON *servers = cJSON_GetObjectItemCaseSensitive(all, "servers");
    const cJSON *spread = cJSON_GetObjectItemCaseSensitive(all, "imbalance");
    const cJSON *staleness = cJSON_GetObjectItemCaseSensitive(all, "staleness");
    static const double bins[] = {14, 0, 0, 1};

    (void)state;
    assert_int_equal(cJSON_GetArraySize(roles), 5);
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(roles, 1), "role")->valuestring, "worker1");
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(roles, 1), "host")->valuestring, "host\"1");
    assert_string_equal(cJSON_GetObjectItem(cJSON_GetArrayItem(roles, 4), "role")->valuestring, "evaluator");
    assert_int_equal(cJSON_GetArraySize(servers), 2);
    assert_true(number_at(cJSON_GetArrayItem(servers, 0), "bytes_received") == 300);
    assert_true(number_at(spread, "bytes") == 400.0 / 300);
    assert_true(number_at(spread, "requests") == 1.5);
    assert_int_equal(cJSON_GetArraySize(staleness), 4);
    for (int i = 0; i < 4; i++)
        assert_true(cJSON_GetArrayItem(staleness, i)->valuedouble == bins[i]);
    assert_null(cJSON_GetObjectItem(all, "rows_computed_twice")); /* of the run, not of its last processes */
    cJSON_Delete(all);
    free_reports(&cluster);
}

/* Of a worker that died nothing is known: it is named, and the rest adds up without it. */
static void summary_with_a_loss(void **state)
{
    pace__cluster cluster = make_reports();

    (void)state;
    assert_int_equal(pace__reports_lost(&cluster, reports), 0);
    memset(reports[1], 0, sizeof *reports[1]);
    reports[1]->lost = true;
    assert_int_equal(pace__reports_lost(&cluster, reports), 1);
    cJSON *all = summary_of(&cluster);
    const cJSON *roles = cJSON_GetObjectItemCaseSensitive(all, "roles");

    assert_int_equal(cJSON_GetArraySize(roles), 5);
    for (int rank = 0; rank < 5; rank++)
        assert_int_equal(cJSON_IsTrue(cJSON_GetObjectItem(cJSON_GetArrayItem(roles, rank), "lost")),
                         rank == 1);
    assert_true(number_at(cJSON_GetArrayItem(roles, 1), "rows") == 0);
    assert_int_equal(pace__reports_bytes(&cluster, reports, false), 9);
    cJSON_Delete(all);
    free_reports(&cluster);
}

/* Nothing measured, no shard that says so: still a summary. */
static void summary_of_nothing(void **state)
{
    pace__cluster cluster = {.workers = 1};

    (void)state;
    reports[0] = tiny_alloc(pace__report_bytes(1));
    cJSON *all = summary_of(&cluster);

    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "servers")), 0);
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(all, "staleness")), 0);
    assert_true(number_at(cJSON_GetObjectItem(all, "imbalance"), "bytes") == 1);
    cJSON_Delete(all);
    free_reports(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_of_all),
        cmocka_unit_test(records),
        cmocka_unit_test(summary),
        cmocka_unit_test(summary_with_a_loss),
        cmocka_unit_test(summary_of_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
