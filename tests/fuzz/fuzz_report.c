/*
 * A run directory of which one file has other bytes, as a report shows it: whatever they are, there is a page, its data are
 * JSON, and nothing of the run has become an element of it. The first byte says which file, the rest is the file.
 */
#include "fuzzing.h"

#include "report/page.h"

#include <cjson/cJSON.h>

static const char *const names[] = {"metrics.jsonl", "summary.json",     "config.yaml",      "state.json",
                                    "cluster.json",  "profile/ops.json", "model.safetensors"};

#define NAMES (sizeof names / sizeof *names)

static const char steps[] =
    "{\"kind\":\"start\",\"t\":0,\"step\":0,\"steps\":100}\n"
    "{\"kind\":\"step\",\"t\":1,\"step\":10,\"loss\":0.7,\"rows_per_s\":1000}\n"
    "{\"kind\":\"sample\",\"t\":1,\"role\":\"chief\",\"seconds\":1,\"compute_s\":0.5,\"wait_s\":0.5,\"rows\":"
    "9}\n"
    "{\"kind\":\"sample\",\"t\":2,\"role\":\"chief\",\"seconds\":2,\"compute_s\":1,\"wait_s\":1,\"rows\":19}"
    "\n"
    "{\"kind\":\"eval\",\"t\":2,\"step\":20,\"logloss\":0.6,\"auc\":0.7,\"accuracy\":0.8}\n";

static char *the_run, *paths[NAMES];

static void free_paths(void)
{
    for (size_t i = 0; i < NAMES; i++)
        free(paths[i]);
    free(the_run);
}

static void make_run(void)
{
    static const char *const directories[] = {"logs", "profile"};

    the_run = pace__format("%s/run", scratch());
    for (size_t i = 0; i < 2; i++) {
        char *path = pace__format("%s/%s", the_run, directories[i]);

        assert(pace__make_dirs(path, NULL) == PACE_OK);
        free(path);
    }
    char *log = pace__format("%s/logs/paceline.log", the_run);

    put_file(log, "", 0);
    free(log);
    for (size_t i = 0; i < NAMES; i++)
        paths[i] = pace__format("%s/%s", the_run, names[i]);
    atexit(free_paths);
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text++)
        count++;
    return count;
}

static void check_page(const char *html, size_t size)
{
    const char *begin = strstr(html, "id=\"data\">");

    assert(strlen(html) == size && begin);
    begin += strlen("id=\"data\">");
    const char *end = strstr(begin, "</script>");
    cJSON *data = cJSON_ParseWithLength(begin, (size_t)(end - begin));

    assert(data);
    cJSON_Delete(data);
    /* Its own: the data, Chart.js, the page's. */
    assert(count_of(html, "<script") == 3 && count_of(html, "</script>") == 3);
    assert(count_of(html, "<body>") == 1 && !strstr(html, "<img") && !strstr(html, "<iframe"));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    pace__history *history;
    size_t which = size ? data[0] % NAMES : 0, html_size;
    char *html;

    if (!the_run)
        make_run();
    for (size_t i = 0; i < NAMES; i++)
        unlink(paths[i]);
    put_file(paths[0], steps, sizeof steps - 1);
    if (size > 0)
        put_file(paths[which], data + 1, size - 1);
    assert(pace__history_open(the_run, NULL, &history) == PACE_OK);
    assert(pace__page_make(&(pace__page){.runs = &history, .count = 1}, NULL, &html, &html_size) == PACE_OK);
    check_page(html, html_size);
    free(html);
    pace__history_close(history);
    return 0;
}
