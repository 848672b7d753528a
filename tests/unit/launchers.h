/*
 * launchers.h - jobs under a launcher that is a shell script, which says what ranks would say. Include it
 * behind <cmocka.h>.
 *
 *     assert_ok(run(state, (setting){0}, "hello; done_well\n"));
 */
#ifndef UNIT_LAUNCHERS_H
#define UNIT_LAUNCHERS_H

#include "launch/internal.h"

#include "support.h"

#include <paceline/version.h>

/* Chief, worker1, ps0. */
static const pace__cluster three = {.workers = 2, .ps = 1};
static char *const command[] = {(char[]){"/opt/paceline"}, (char[]){"train"}, (char[]){"--run=a b"}, NULL};

/* What every script starts with: who it is, frames, and the ranks' first words. */
static const char *const preamble =
    "[ \"$1\" = --version ] && { echo \"$engine\"; exit 0; }\n"
    "printf '%s\\n' \"$@\" >\"$0.words\"; env >\"$0.env\"\n"
    "frame() { printf '@paceline %05d %s. %-236s\\n' \"$1\" \"$2\" \"$3\" >&2; }\n"
    "hello() { frame 0 H \"nodea 101 - $version\"; frame 1 H \"nodeb 102 - $version\"; frame 2 H \"nodec 103 "
    "- $version\"; }\n"
    "done_well() { frame 0 X 0; frame 1 X 0; frame 2 X 0; }\n"
    "started() { hello; frame 0 R '{\"kind\":\"start\",\"fields\":[]}'; }\n"
    "state() { echo \"[nodea:00083] [[46,0],${3:-0}] ACTIVATE PROC [[46,1],$1] STATE $2 AT ../a.c:1\" >&2; "
    "}\n"
    "no_host() { echo \"[nodea:00083] [[46,0],0] ACTIVATE PROC [[46,0],$1] STATE COMMUNICATION FAILURE AT "
    "../a.c:1\" >&2; }\n";

static inline const char *put_script(void **state, const char *engine, const char *body)
{
    const char *path = in(state, "mpirun");
    char *text =
        pace__format("#!/bin/sh\nengine='%s'\nversion='%s'\n%s%s", engine, pace_version(), preamble, body);

    assert_non_null(text);
    put_text(path, text);
    assert_int_equal(chmod(path, 0755), 0);
    free(text);
    return path;
}

typedef struct setting {
    const char *engine; /* NULL: Open MPI */
    const char *hosts;
    double contact_s; /* 0: 30 */
    double ending_s;
    bool outlives;
    bool again;
    bool says_start;
    const _Atomic int *stop;
    pace_registry *registry;
} setting;

static inline pace_status run(void **state, setting with, const char *body)
{
    pace__launch_plan plan = {
        .cluster = three,
        .hosts = with.hosts,
        .words = command,
        .launcher = put_script(state, with.engine ? with.engine : "mpirun (Open MPI) 4.1.4", body),
        .first_contact_s = with.contact_s > 0 ? with.contact_s : 30,
        .ending_s = with.ending_s,
        .outlives_workers = with.outlives,
        .again = with.again,
        .says_start = with.says_start,
        .stop = with.stop};

    said_clear();
    return pace__launch(&plan, &said_log, with.registry);
}

/* The job failed with one error, which is the last line, and begins like this. */
static inline void assert_last_words(pace_status status, pace_status expected, const char *words)
{
    if (status != expected || errors_said() != 1)
        fail_msg("status %d, not %d, with %d errors; the messages are:\n%s", status, expected, errors_said(),
                 said);
    const char *last = said + strlen(said) - 1;

    while (last > said && last[-1] != '\n')
        last--;
    if (last[0] != 'E' || strncmp(last + 2, words, strlen(words)) != 0)
        fail_msg("the last words do not begin with \"%s\"; the messages are:\n%s", words, said);
}

static inline void assert_not_said(const char *part)
{
    if (strstr(said, part))
        fail_msg("something says \"%s\"; the messages are:\n%s", part, said);
}

#endif
