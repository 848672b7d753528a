/* Which directories a run may take, what it removes, its records and its log. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/file.h"
#include "run/records.h"
#include "run/rundir.h"

#include <cjson/cJSON.h>
#include <fcntl.h>
#include <math.h>
#include <paceline/train.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

static char said[PACE_LOG_TEXT_MAX];
static int said_count;

static void remember(void *user, pace_level level, const char *message)
{
    (void)user;
    (void)level;
    snprintf(said, sizeof said, "%s", message);
    said_count++;
}

static const pace_log outer = {.write = remember};

/* Each test has a directory of its own; *state is its path. */
static int make_directory(void **state)
{
    char *directory = strdup("/tmp/test_rundir.XXXXXX");

    *state = directory;
    said[0] = '\0';
    said_count = 0;
    return directory && mkdtemp(directory) ? 0 : -1;
}

static int remove_directory(void **state)
{
    pace_status status = pace__remove_tree(*state, NULL);

    free(*state);
    return status ? -1 : 0;
}

static const char *in(void **state, const char *name)
{
    static char path[16][512]; /* enough for the texts that a test holds at a time */
    static unsigned turn;
    char *here = path[turn++ % 16];

    snprintf(here, sizeof path[0], "%s/%s", (const char *)*state, name);
    return here;
}

static void put(const char *path, const char *content)
{
    assert_int_equal(pace__write_file_atomically(path, content, strlen(content), NULL), PACE_OK);
}

static char *get(const char *path)
{
    char *bytes;
    size_t size;

    assert_int_equal(pace__read_file(path, 1 << 20, &bytes, &size, NULL), PACE_OK);
    return bytes;
}

static pace__rundir *open_run(const char *path, pace__run_start start)
{
    pace__rundir *run;
    pace_status status = pace__rundir_open(path, start, &outer, &run);

    if (status)
        fail_msg("%d: %s", status, said);
    return run;
}

static void assert_refused(const char *path, pace__run_start start, pace_status expected, const char *message)
{
    pace__rundir *run = NULL;

    assert_int_equal(pace__rundir_open(path, start, &outer, &run), expected);
    assert_null(run);
    if (strncmp(said, path, strlen(path)) != 0 || !strstr(said, message))
        fail_msg("\"%s\" lacks \"%s\"", said, message);
}

/* Directories -------------------------------------------------------------------------------------------- */

static void a_new_run_makes_its_directory(void **state)
{
    const char *path = in(state, "a/b/run");
    pace__rundir *run = open_run(path, PACE__RUN_NEW);

    assert_true(pace__exists(in(state, "a/b/run/metrics.jsonl")));
    assert_true(pace__exists(in(state, "a/b/run/logs/paceline.log")));
    assert_string_equal(pace__rundir_path(run, PACE__RUN_MODEL), in(state, "a/b/run/model.safetensors"));
    assert_string_equal(pace__rundir_path(run, PACE__RUN_CHECKPOINTS), in(state, "a/b/run/checkpoints"));
    pace__rundir_close(run);
    char *outside = pace__run_path(path, PACE__RUN_CONFIG);

    assert_string_equal(outside, in(state, "a/b/run/config.yaml"));
    free(outside);
}

static void an_empty_directory_is_taken(void **state)
{
    pace__rundir_close(open_run(*state, PACE__RUN_NEW));
    assert_int_equal(said_count, 0);
}

static void a_run_is_not_overwritten(void **state)
{
    const char *path = in(state, "run");

    pace__rundir_close(open_run(path, PACE__RUN_NEW));
    put(in(state, "run/model.safetensors"), "precious");
    assert_refused(path, PACE__RUN_NEW, PACE_USAGE, "already holds a run");
    assert_true(pace__exists(in(state, "run/model.safetensors")));
}

static void a_run_is_not_found_by_another_way(void **state)
{
    const char *around = in(state, "not/../run");

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    for (pace__run_start start = PACE__RUN_NEW; start <= PACE__RUN_RESUME; start++) {
        assert_refused(around, start, PACE_IO, "not does not exist");
        assert_int_equal(pace__rundir_check(around, start, &outer), PACE_IO);
    }
    assert_false(pace__exists(in(state, "not")));
}

static void force_removes_what_a_run_writes(void **state)
{
    static const char *const files[] = {"config.yaml",  "cluster.json",
                                        "summary.json", "model.safetensors",
                                        "report.html",  "model.safetensors.tmp-0123456789abcdef",
                                        "state.json",   "rows",
                                        "faults",       "shares.jsonl"};
    const size_t count = sizeof files / sizeof *files;
    static const char *const directories[] = {"events", "checkpoints", "profile"};
    static const char *const own[] = {
        "run/checkpoints/step-000000000010.0001/manifest.json",
        "run/checkpoints/step-000000000010.0001/part-00000-of-00001.safetensors",
        "run/checkpoints/step-000000000020.0001/part-00000-of-00001.safetensors",
        "run/events/worker1/events.out.tfevents.0000000001.paceline"};
    const char *path = in(state, "run");
    char name[64];

    pace__rundir_close(open_run(path, PACE__RUN_NEW));
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "run/%s", files[i]);
        put(in(state, name), "old");
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "run/%s", directories[i]);
        assert_int_equal(pace__make_dirs(in(state, name), NULL), PACE_OK);
    }
    assert_int_equal(pace__make_dirs(in(state, "run/checkpoints/step-000000000010.0001"), NULL), PACE_OK);
    assert_int_equal(pace__make_dirs(in(state, "run/checkpoints/step-000000000020.0001"), NULL), PACE_OK);
    assert_int_equal(pace__make_dirs(in(state, "run/events/worker1"), NULL), PACE_OK);
    for (size_t i = 0; i < 4; i++)
        put(in(state, own[i]), "old");
    put(in(state, "run/profile/trace.json.gz"), "old");
    put(in(state, "run/profile/ops.json"), "old");
    put(in(state, "run/metrics.jsonl"), "{}\n");
    put(in(state, "run/notes.txt"), "mine");
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_REPLACE));
    for (size_t i = 0; i < count; i++) {
        snprintf(name, sizeof name, "run/%s", files[i]);
        assert_false(pace__exists(in(state, name)));
    }
    for (size_t i = 0; i < 3; i++) {
        snprintf(name, sizeof name, "run/%s", directories[i]);
        assert_false(pace__exists(in(state, name)));
    }
    char *notes = get(in(state, "run/notes.txt")), *metrics = get(in(state, "run/metrics.jsonl"));

    assert_string_equal(notes, "mine");
    assert_string_equal(metrics, "");
    free(notes);
    free(metrics);
}

/* Neither beside a run's files nor in its directories. */
static void force_leaves_what_is_not_its_own(void **state)
{
    static const char *const directories[] = {"run/checkpoints/best",
                                              "run/checkpoints/step-000000000010.0001", "run/events"};
    static const char *const kept[] = {"run/checkpoints/best/manifest.json", "run/checkpoints/notes",
                                       "run/checkpoints/step-000000000010.0001/notes", "run/logs/notes",
                                       "run/events/notes"};

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(pace__make_dirs(in(state, directories[i]), NULL), PACE_OK);
    for (size_t i = 0; i < 5; i++)
        put(in(state, kept[i]), "mine");
    put(in(state, "run/checkpoints/step-000000000010.0001/manifest.json"), "old");
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_REPLACE));
    for (size_t i = 0; i < 5; i++)
        assert_true(pace__exists(in(state, kept[i])));
    assert_false(pace__exists(in(state, "run/checkpoints/step-000000000010.0001/manifest.json")));
}

static void links_are_removed_not_followed(void **state)
{
    assert_int_equal(pace__make_dirs(in(state, "elsewhere"), NULL), PACE_OK);
    put(in(state, "elsewhere/file"), "mine");
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    assert_int_equal(symlink(in(state, "elsewhere"), in(state, "run/checkpoints")), 0);
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_REPLACE));
    assert_false(pace__exists(in(state, "run/checkpoints")));
    assert_true(pace__exists(in(state, "elsewhere/file")));
}

/* A disk that had no room for the log has left its directory. */
static void one_that_was_only_begun_is_taken(void **state)
{
    assert_int_equal(mkdir(in(state, "run"), 0777), 0);
    assert_int_equal(mkdir(in(state, "run/logs"), 0777), 0);
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
}

static void a_foreign_directory_is_refused_even_with_force(void **state)
{
    put(in(state, "config.yaml"), "mine");
    put(in(state, "metrics.jsonl"), "mine");
    assert_refused(*state, PACE__RUN_NEW, PACE_USAGE, "holds files, but no run");
    assert_refused(*state, PACE__RUN_REPLACE, PACE_USAGE, "holds files, but no run");
    assert_refused(*state, PACE__RUN_RESUME, PACE_NO_INPUT, "no run to resume");
    assert_refused(in(state, "config.yaml"), PACE__RUN_REPLACE, PACE_USAGE, "not a directory");
    assert_true(pace__exists(in(state, "config.yaml")));
    assert_false(pace__exists(in(state, "logs")));
}

static void nothing_to_resume(void **state)
{
    pace__rundir *run;

    assert_refused(in(state, "missing"), PACE__RUN_RESUME, PACE_NO_INPUT, "no such directory");
    assert_false(pace__exists(in(state, "missing")));
    assert_refused(*state, PACE__RUN_RESUME, PACE_NO_INPUT, "no run to resume");
    assert_int_equal(pace__rundir_open("", PACE__RUN_NEW, &outer, &run), PACE_USAGE);
}

static void a_run_in_use_is_refused(void **state)
{
    const char *path = in(state, "run");
    pace__rundir *run = open_run(path, PACE__RUN_NEW);

    put(in(state, "run/config.yaml"), "in use");
    char own[64];

    snprintf(own, sizeof own, "process %ld on ", (long)getpid());
    assert_refused(path, PACE__RUN_RESUME, PACE_USAGE, own);
    assert_refused(path, PACE__RUN_REPLACE, PACE_USAGE, own);
    assert_int_equal(unlink(in(state, "run/logs/holder")), 0); /* a courtesy */
    assert_refused(path, PACE__RUN_RESUME, PACE_USAGE, "another process");
    assert_true(pace__exists(in(state, "run/config.yaml")));
    pace__rundir_close(run);
    pace__rundir_close(open_run(path, PACE__RUN_REPLACE));
}

/* Who has the run replaces it, while another one waits for the lock of a log that is no more. */
typedef struct replacing {
    const char *log;
    pace__rundir *run;
    int fd;
} replacing;

static bool replace_log(void *user)
{
    replacing *self = user;

    if (self->run) {
        assert_int_equal(unlink(self->log), 0);
        self->fd = open(self->log, O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
        assert_int_equal(flock(self->fd, LOCK_EX | LOCK_NB), 0);
        pace__rundir_close(self->run);
        self->run = NULL;
    }
    return true;
}

static void a_lock_counts_while_its_file_is_the_log(void **state)
{
    const char *path = in(state, "run");
    replacing other = {in(state, "run/logs/paceline.log"), open_run(path, PACE__RUN_NEW), -1};
    pace__run_patience patience = {0.2, replace_log, &other};
    pace__rundir *run;

    assert_int_equal(pace__rundir_open_patiently(path, PACE__RUN_RESUME, &patience, &outer, &run),
                     PACE_USAGE);
    assert_null(other.run);
    close(other.fd);
    pace__rundir_close(open_run(path, PACE__RUN_RESUME));
}

static void assert_not_there(const pace__rundir *run, const char *text)
{
    assert_int_equal(pace__rundir_is_there(run, &outer), PACE_IO);
    if (!strstr(said, "moved, removed or replaced") || !strstr(said, text))
        fail_msg("\"%s\" lacks \"%s\"", said, text);
}

/* Whoever has the name now keeps what is its own, and the other knows. */
static void a_run_knows_its_directory(void **state)
{
    const char *path = in(state, "run"), *moved = in(state, "moved");
    pace__rundir *run = open_run(path, PACE__RUN_NEW);

    assert_int_equal(pace__rundir_is_there(run, &outer), PACE_OK);
    assert_int_equal(rename(path, moved), 0);
    assert_not_there(run, moved);
    pace__rundir *second = open_run(path, PACE__RUN_NEW);

    assert_not_there(run, moved);
    assert_int_equal(pace__rundir_is_there(second, &outer), PACE_OK);
    pace__rundir_close(run);
    assert_true(pace__exists(in(state, "run/logs/holder")));
    assert_int_equal(unlink(in(state, "run/logs/paceline.log")), 0); /* alone it is missed, and no more */
    assert_int_equal(pace__rundir_is_there(second, &outer), PACE_OK);
    assert_int_equal(pace__remove_tree(path, NULL), PACE_OK);
    assert_not_there(second, path);
    assert_null(strstr(said, "--resume"));
    pace__rundir_close(second);
}

/* Records ------------------------------------------------------------------------------------------------ */

static void emit(const pace__rundir *run, const char *kind, const pace_field *fields, size_t count)
{
    const pace_sink *sink = pace__rundir_sink(run);

    sink->record(sink->user, &(pace_record){kind, 1.5, fields, count});
}

static void records_are_lines(void **state)
{
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_NEW);
    pace_registry *registry = pace_registry_create();
    const pace_field fields[] = {PACE_INT("step", -3), PACE_REAL("loss", 0.1), PACE_REAL("bad", NAN),
                                 PACE_REAL("worse", -INFINITY), PACE_TEXT("set", "a\"\\\n\x02\xff")};

    emit(run, "step", fields, 5);
    emit(run, "progress", fields, 5);
    emit(run, "none", NULL, 0);
    pace_registry_attach(registry, pace__rundir_sink(run));
    pace_registry_emit(registry, "eval", fields, 1);
    pace_registry_detach(registry, pace__rundir_sink(run));
    /* Lines are there at once, not only after closing. */
    char *text = get(in(state, "run/metrics.jsonl"));
    static const char expected[] =
        "{\"kind\":\"step\",\"t\":1.5,\"step\":-3,\"loss\":0.1,\"bad\":null,\"worse\":null,"
        "\"set\":\"a\\\"\\\\\\n\\u0002\\ufffd\"}\n{\"kind\":\"none\",\"t\":1.5}\n{\"kind\":\"eval\",\"t\":";

    assert_memory_equal(text, expected, sizeof expected - 1);
    assert_string_equal(text + strlen(text) - strlen(",\"step\":-3}\n"), ",\"step\":-3}\n");
    free(text);
    pace_registry_free(registry);
    pace__rundir_close(run);
}

static void long_records_are_cut_but_valid(void **state)
{
    static char text[2 * PACE__RECORD_LINE_MAX];
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_NEW);

    /* Every length around the limit, so that each way of just fitting occurs. */
    for (size_t length = PACE__RECORD_LINE_MAX - 200; length < PACE__RECORD_LINE_MAX + 20; length++) {
        memset(text, 'x', length);
        text[length] = '\0';
        emit(run, "long", (const pace_field[]){PACE_INT("a", 1), PACE_TEXT("b", text), PACE_INT("c", 2)}, 3);
    }
    pace__rundir_close(run);
    char *lines = get(in(state, "run/metrics.jsonl")), *rest = lines;
    int whole = 0, cut = 0;

    for (char *line; (line = strsep(&rest, "\n")) && *line;) {
        cJSON *json = cJSON_Parse(line);

        assert_true(strlen(line) < PACE__RECORD_LINE_MAX);
        assert_non_null(json);
        assert_non_null(cJSON_GetObjectItem(json, "a"));
        if (cJSON_GetObjectItem(json, "cut"))
            cut++;
        else
            whole += cJSON_GetObjectItem(json, "b") && cJSON_GetObjectItem(json, "c");
        cJSON_Delete(json);
    }
    assert_int_equal(whole + cut, 220);
    assert_true(whole > 50 && cut > 50);
    free(lines);
}

static void resume_appends_after_whole_lines(void **state)
{
    static const char *const before[] = {"", "{\"a\":1}\n", "{\"a\":1}\n{\"b\":", "{\"b\":"};
    static const char *const after[] = {"", "{\"a\":1}\n", "{\"a\":1}\n", ""};
    static const char line[] = "{\"kind\":\"on\",\"t\":1.5}\n";
    char expected[256];

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    put(in(state, "run/config.yaml"), "kept");
    for (size_t i = 0; i < 4; i++) {
        put(in(state, "run/metrics.jsonl"), before[i]);
        pace__rundir *run = open_run(in(state, "run"), PACE__RUN_RESUME);

        emit(run, "on", NULL, 0);
        pace__rundir_close(run);
        char *text = get(in(state, "run/metrics.jsonl"));

        snprintf(expected, sizeof expected, "%s%s", after[i], line);
        assert_string_equal(text, expected);
        free(text);
    }
    assert_true(pace__exists(in(state, "run/config.yaml")));
}

static void a_long_incomplete_line_is_cut_too(void **state)
{
    enum { LONG = 10000 };
    char *text = malloc(LONG + 1);

    assert_non_null(text);
    memset(text, 'x', LONG);
    memcpy(text, "{}\n", 3);
    text[LONG] = '\0';
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    put(in(state, "run/metrics.jsonl"), text);
    free(text);
    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_RESUME));
    text = get(in(state, "run/metrics.jsonl"));
    assert_string_equal(text, "{}\n");
    free(text);
}

static void limit_files_to(rlim_t bytes)
{
    struct rlimit limit;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    limit.rlim_cur = bytes;
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
}

static void a_full_disk_is_told_once(void **state)
{
    static const char line[] = "{\"kind\":\"early\",\"t\":1.5}\n";
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_NEW);
    struct rlimit old;

    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    signal(SIGXFSZ, SIG_IGN);
    emit(run, "early", NULL, 0);
    limit_files_to(strlen(line) + 10); /* the next line is written in part */
    emit(run, "lost", NULL, 0);
    emit(run, "lost", NULL, 0);
    limit_files_to(old.rlim_cur);
    emit(run, "later", NULL, 0);
    assert_int_equal(said_count, 1);
    assert_non_null(strstr(said, "metrics.jsonl: cannot write: File too large"));
    assert_int_equal(pace__rundir_records_lost(run), 2);
    pace__rundir_close(run);
    char *text = get(in(state, "run/metrics.jsonl"));

    assert_string_equal(text, "{\"kind\":\"early\",\"t\":1.5}\n{\"kind\":\"later\",\"t\":1.5}\n");
    free(text);
}

/* Going back --------------------------------------------------------------------------------------------- */

/* Resumes with these records, goes back to the step, adds one record, and compares. */
static void check_going_back(void **state, const char *before, uint64_t step, const char *after)
{
    put(in(state, "run/metrics.jsonl"), before);
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_RESUME);

    assert_int_equal(pace__rundir_go_back(run, step), PACE_OK);
    char *text = get(in(state, "run/metrics.jsonl"));

    assert_string_equal(text, after);
    free(text);
    pace__rundir_close(run);
}

static void later_records_are_removed(void **state)
{
    static const char before[] = "{\"kind\":\"start\",\"t\":0.1,\"step\":0}\n"
                                 "{\"kind\":\"step\",\"t\":1,\"step\":10}\n"
                                 "{\"kind\":\"step\",\"t\":2,\"step\":20}\n"
                                 "{\"kind\":\"eval\",\"t\":2.5,\"step\":20}\n"
                                 "{\"kind\":\"step\",\"t\":3,\"step\":21}\n"
                                 "{\"kind\":\"checkpoint\",\"t\":3.25,\"step\":20}\n"
                                 "{\"kind\":\"note\",\"t\":3.5}\n"
                                 "{\"kind\":\"step\",\"t\":4,\"step\":30}\n";
    static const char after[] = "{\"kind\":\"start\",\"t\":0.1,\"step\":0}\n"
                                "{\"kind\":\"step\",\"t\":1,\"step\":10}\n"
                                "{\"kind\":\"step\",\"t\":2,\"step\":20}\n"
                                "{\"kind\":\"eval\",\"t\":2.5,\"step\":20}\n"
                                "{\"kind\":\"checkpoint\",\"t\":3.25,\"step\":20}\n"
                                "{\"kind\":\"note\",\"t\":3.5}\n";

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    check_going_back(state, before, 20, after);
    check_going_back(state, before, 30, before);
    check_going_back(state, "{\"kind\":\"step\",\"t\":1,\"step\":10}\n", 0, ""); /* not even one stays */
    check_going_back(state, "", 0, "");
    assert_int_equal(said_count, 0);
}

/* What is there stays as it is, whatever it is; only an incomplete last line goes. */
static void other_lines_stay(void **state)
{
    static const char odd[] = "\n  {\"step\" : 3 }\r\nno json\n[1,2]\n{\"step\":\"99\"}\n{\"Step\":99}\n";
    char before[256];

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    check_going_back(state, odd, 3, odd);
    snprintf(before, sizeof before, "%s{\"step\":99}\n{\"step\":3", odd);
    check_going_back(state, before, 3, odd);
}

/* The file itself: not written again if nothing goes. */
static void nothing_to_remove_is_nothing_to_write(void **state)
{
    struct stat old, now;

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    put(in(state, "run/metrics.jsonl"), "{\"t\":1,\"step\":5}\n");
    assert_int_equal(stat(in(state, "run/metrics.jsonl"), &old), 0);
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_RESUME);

    assert_int_equal(pace__rundir_go_back(run, 5), PACE_OK);
    assert_int_equal(stat(in(state, "run/metrics.jsonl"), &now), 0);
    assert_true(old.st_ino == now.st_ino && old.st_size == now.st_size);
    assert_true(old.st_mtim.tv_sec == now.st_mtim.tv_sec && old.st_mtim.tv_nsec == now.st_mtim.tv_nsec);
    pace__rundir_close(run);
}

/* Records that follow go behind those that stayed, and their time goes on from there. */
static void time_goes_on(void **state)
{
    static const char *const before[] = {"{\"t\":10.25,\"step\":5}\n{\"t\":99,\"step\":6}\n",
                                         "{\"t\":10.25,\"step\":5}\n", ""};
    static const char *const after[] = {"{\"t\":10.25,\"step\":5}\n{\"kind\":\"on\",\"t\":11.75}\n",
                                        "{\"t\":10.25,\"step\":5}\n{\"kind\":\"on\",\"t\":11.75}\n",
                                        "{\"kind\":\"on\",\"t\":1.5}\n"};

    pace__rundir_close(open_run(in(state, "run"), PACE__RUN_NEW));
    for (size_t i = 0; i < 3; i++) {
        put(in(state, "run/metrics.jsonl"), before[i]);
        pace__rundir *run = open_run(in(state, "run"), PACE__RUN_RESUME);

        assert_int_equal(pace__rundir_go_back(run, 5), PACE_OK);
        emit(run, "on", NULL, 0);
        pace__rundir_close(run);
        char *text = get(in(state, "run/metrics.jsonl"));

        assert_string_equal(text, after[i]);
        free(text);
    }
}

/* The log and the summary -------------------------------------------------------------------------------- */

static void messages_go_both_ways(void **state)
{
    char stamp[64], level[16], message[64], longest[2 * PACE_LOG_TEXT_MAX];
    int used = 0;

    memset(longest, 'y', sizeof longest);
    longest[sizeof longest - 1] = '\0';
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_NEW);

    pace_say(pace__rundir_log(run), PACE_INFO, "hello %d", 7);
    assert_string_equal(said, "hello 7");
    assert_int_equal(pace_fail(pace__rundir_log(run), PACE_IO, "%s", longest), PACE_IO);
    assert_int_equal(said_count, 2);
    pace__rundir_close(run);
    run = open_run(in(state, "run"), PACE__RUN_RESUME);
    pace_say(pace__rundir_log(run), PACE_WARN, "again");
    pace__rundir_close(run);

    char *text = get(in(state, "run/logs/paceline.log"));

    assert_int_equal(sscanf(text, "%63s %15s %63[^\n]\n%n", stamp, level, message, &used), 3);
    assert_int_equal(strlen(stamp), strlen("2000-01-01T00:00:00.000Z"));
    assert_true(stamp[4] == '-' && stamp[10] == 'T' && stamp[19] == '.' && stamp[23] == 'Z');
    assert_string_equal(level, "info");
    assert_string_equal(message, "hello 7");
    assert_non_null(strstr(text + used, " error   yyyy"));
    assert_non_null(strstr(text + used, "yyyy\n"));
    assert_string_equal(text + strlen(text) - strlen(" warning again\n"), " warning again\n");
    free(text);
}

static void a_run_without_listeners(void **state)
{
    pace__rundir *run;

    assert_int_equal(pace__rundir_open(in(state, "run"), PACE__RUN_NEW, NULL, &run), PACE_OK);
    pace_say(pace__rundir_log(run), PACE_INFO, "only in the file");
    pace__rundir_close(run);
    char *text = get(in(state, "run/logs/paceline.log"));

    assert_non_null(strstr(text, "only in the file\n"));
    free(text);
}

/* The supervisor's, while the chief may have the log open, or nobody. */
static void notes_go_into_the_log(void **state)
{
    pace__run_note(in(state, "run"), PACE_WARN, "too early"); /* no run: none is made */
    assert_false(pace__exists(in(state, "run")));
    pace__rundir *run = open_run(in(state, "run"), PACE__RUN_NEW);

    pace_say(pace__rundir_log(run), PACE_INFO, "first");
    pace__run_note(in(state, "run"), PACE_WARN, "worker1 was killed");
    pace_say(pace__rundir_log(run), PACE_INFO, "third");
    pace__rundir_close(run);
    pace__run_note(in(state, "run"), PACE_ERROR, "gave up");
    assert_string_equal(said, "third"); /* notes are for the file alone */
    assert_int_equal(said_count, 2);
    char *text = get(in(state, "run/logs/paceline.log")), *rest = text;
    static const char *const ends[] = {"Z info    first", "Z warning worker1 was killed", "Z info    third",
                                       "Z error   gave up"};

    for (size_t i = 0; i < 4; i++) {
        char *line = strsep(&rest, "\n");

        assert_non_null(line);
        assert_true(strlen(line) > strlen(ends[i]));
        assert_string_equal(line + strlen(line) - strlen(ends[i]), ends[i]);
    }
    assert_string_equal(rest, "");
    free(text);
}

static void summaries(void **state)
{
    char *json = NULL;
    char *large = malloc(PACE__SUMMARY_BYTES_MAX + 2);

    assert_non_null(large);
    memset(large, ' ', PACE__SUMMARY_BYTES_MAX + 1);
    large[PACE__SUMMARY_BYTES_MAX + 1] = '\0';
    assert_int_equal(pace_train_summary(in(state, "missing"), &outer, &json), PACE_NO_INPUT);
    assert_non_null(strstr(said, "missing: there is no such run directory"));
    assert_int_equal(pace_train_summary(*state, &outer, &json), PACE_NO_INPUT);
    assert_non_null(strstr(said, "summary.json: missing: the run did not finish"));
    put(in(state, "summary.json"), large);
    assert_int_equal(pace_train_summary(*state, &outer, &json), PACE_BAD_DATA);
    assert_null(json);
    put(in(state, "summary.json"), "{\"steps\": 1}\n");
    assert_int_equal(pace_train_summary(*state, &outer, &json), PACE_OK);
    assert_string_equal(json, "{\"steps\": 1}\n");
    free(json);
    free(large);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_new_run_makes_its_directory),
        TEST(an_empty_directory_is_taken),
        TEST(a_run_is_not_overwritten),
        TEST(a_run_is_not_found_by_another_way),
        TEST(force_removes_what_a_run_writes),
        TEST(force_leaves_what_is_not_its_own),
        TEST(links_are_removed_not_followed),
        TEST(one_that_was_only_begun_is_taken),
        TEST(a_foreign_directory_is_refused_even_with_force),
        TEST(nothing_to_resume),
        TEST(a_run_in_use_is_refused),
        TEST(a_lock_counts_while_its_file_is_the_log),
        TEST(a_run_knows_its_directory),
        TEST(records_are_lines),
        TEST(long_records_are_cut_but_valid),
        TEST(resume_appends_after_whole_lines),
        TEST(a_long_incomplete_line_is_cut_too),
        TEST(a_full_disk_is_told_once),
        TEST(later_records_are_removed),
        TEST(other_lines_stay),
        TEST(nothing_to_remove_is_nothing_to_write),
        TEST(time_goes_on),
        TEST(messages_go_both_ways),
        TEST(notes_go_into_the_log),
        TEST(a_run_without_listeners),
        TEST(summaries),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
