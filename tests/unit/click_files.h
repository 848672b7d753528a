/*
 * click_files.h - a directory for generated click logs, and the last message about them. Include it behind <cmocka.h>.
 *
 *     char *bytes = generate(*state, PACE_FORMAT_CRITEO, 1000, 7, 2, &size, NULL);
 *     ...
 *     cmocka_unit_test_setup_teardown(my_test, set_up, tear_down)
 */
#ifndef UNIT_CLICK_FILES_H
#define UNIT_CLICK_FILES_H

#include "files/file.h"

#include <dirent.h>
#include <paceline/gen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FILE_BYTES_MAX ((size_t)1 << 28)

typedef struct fixture {
    char dir[64];
    char message[PACE_LOG_TEXT_MAX]; /* the last one */
    pace_log log;
} fixture;

static inline void remember(void *user, pace_level level, const char *text)
{
    (void)level;
    snprintf(((fixture *)user)->message, PACE_LOG_TEXT_MAX, "%s", text);
}

static inline int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    assert_non_null(f);
    strcpy(f->dir, "/tmp/paceline-test-gen-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    f->log = (pace_log){remember, f};
    *state = f;
    return 0;
}

static inline int tear_down(void **state)
{
    fixture *f = *state;

    assert_int_equal(pace__remove_tree(f->dir, NULL), PACE_OK);
    free(f);
    return 0;
}

static inline char *path_of(const fixture *f, const char *name)
{
    char *path = pace__format("%s/%s", f->dir, name);

    assert_non_null(path);
    return path;
}

static inline size_t count_files(const fixture *f)
{
    DIR *dir = opendir(f->dir);
    size_t count = 0;

    assert_non_null(dir);
    for (struct dirent *entry; (entry = readdir(dir));)
        count += entry->d_name[0] != '.';
    closedir(dir);
    return count;
}

/* Generates and reads back; the caller frees the bytes. `result` may be NULL. */
static inline char *generate(fixture *f, int format, int64_t rows, int64_t seed, int64_t threads,
                             size_t *size, pace_gen_clicks_result *result)
{
    char *path = path_of(f, "clicks"), *bytes;
    pace_gen_clicks_result ignored;
    pace_gen_clicks_config config = {
        .output = path, .rows = rows, .seed = seed, .format = format, .threads = threads, .force = true};

    assert_int_equal(pace_gen_clicks(&config, &f->log, NULL, result ? result : &ignored), PACE_OK);
    assert_int_equal(pace__read_file(path, FILE_BYTES_MAX, &bytes, size, &f->log), PACE_OK);
    assert_int_equal(count_files(f), 1); /* no temporary is left */
    free(path);
    return bytes;
}

#endif
