#include "ranks/hello.h"

#include "ranks/ranks.h"

#include <inttypes.h>
#include <paceline/version.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Changes when ranks of different builds could misunderstand each other. */
#define PROTOCOL 4

/* Followed by the words, with the NUL behind them. */
typedef struct hello {
    uint64_t protocol, words_bytes;
    char version[32];
    char host[PACE__HOST_TEXT];
} hello;

bool pace__words_agree(const char *own, const char *theirs, size_t *word)
{
    size_t i = 0;

    for (*word = 0; own[i] && own[i] == theirs[i]; i++) {
        if (own[i] == ' ')
            *word = i + 1;
    }
    bool ends = own[i] == '\0' || theirs[i] == '\0';

    return ends && (i == 0 || own[i] == ' ' || theirs[i] == ' ' || own[i] == theirs[i]);
}

static hello make_hello(const pace__rank *self, const char *words)
{
    hello own = {.protocol = PROTOCOL, .words_bytes = strlen(words) + 1};

    snprintf(own.version, sizeof own.version, "%s", pace_version());
    memcpy(own.host, self->host, sizeof own.host);
    return own;
}

/* --- rank 0 --- */

static pace_status check_version(const pace__rank *self, const char *name, const hello *theirs,
                                 const hello *own)
{
    if (theirs->protocol == own->protocol && strcmp(theirs->version, own->version) == 0)
        return PACE_OK;
    return pace_fail(self->log, PACE_USAGE,
                     "%s runs paceline %.31s (protocol %" PRIu64 "), the chief runs %s (protocol %" PRIu64
                     "): install the same program everywhere",
                     name, theirs->version, theirs->protocol, own->version, own->protocol);
}

static pace_status check_words(const pace__rank *self, const char *name, const char *theirs, const char *own,
                               const char *what)
{
    size_t word;

    if (pace__words_agree(own, theirs, &word))
        return PACE_OK;
    return pace_fail(
        self->log, PACE_USAGE,
        "%s has another job: %.*s there, %.*s on the chief; start all ranks with the same options "
        "and the same %s",
        name, (int)strcspn(theirs + word, " "), theirs + word, (int)strcspn(own + word, " "), own + word,
        what);
}

static pace_status take_words(const pace__rank *self, int from, size_t bytes, const char *own,
                              const char *what)
{
    const char *name = pace__link_name(self->link, from);
    char *words = malloc(bytes + 1);
    size_t got;
    pace_status status =
        words ? pace__ranks_receive(self->link, from, words, bytes, "its options", &got)
              : pace_fail(self->log, PACE_FAILED, "out of memory: %zu bytes of options of %s", bytes, name);

    if (!status) {
        words[got] = '\0';
        status = check_words(self, name, words, own, what);
    }
    free(words);
    return status;
}

static pace_status hear(pace__rank *self, int from, const hello *own, const char *words, const char *what)
{
    hello theirs;
    size_t got;
    pace_status status =
        pace__ranks_receive(self->link, from, &theirs, sizeof theirs, "its first message", &got);

    if (status)
        return status;
    if (got != sizeof theirs)
        return pace_fail(self->log, PACE_USAGE,
                         "%s runs another version of paceline: install the same program everywhere",
                         pace__link_name(self->link, from));
    theirs.version[sizeof theirs.version - 1] = theirs.host[sizeof theirs.host - 1] = '\0';
    memcpy(self->hosts[from], theirs.host, sizeof theirs.host);
    pace__rank_set_name(self, from, theirs.host);
    status = check_version(self, pace__link_name(self->link, from), &theirs, own);
    if (!status && theirs.words_bytes > PACE__WORDS_BYTES_MAX)
        status = pace_fail(self->log, PACE_USAGE, "%s sends %" PRIu64 " bytes of options, the limit is %zu",
                           pace__link_name(self->link, from), theirs.words_bytes, PACE__WORDS_BYTES_MAX);
    return status ? status : take_words(self, from, theirs.words_bytes, words, what);
}

/* --- everyone --- */

static pace_status say_hello(const pace__rank *self, const hello *own, const char *words)
{
    pace_status status = pace__ranks_send(self->link, 0, own, sizeof *own, "its first message to leave");

    return status ? status : pace__ranks_send(self->link, 0, words, own->words_bytes, "its options to leave");
}

pace_status pace__rank_greet(pace__rank *self, const char *words, const char *what)
{
    int ranks = pace__link_size(self->link);
    hello own = make_hello(self, words);
    pace_status status = PACE_OK;

    if (own.words_bytes > PACE__WORDS_BYTES_MAX)
        return pace_fail(self->log, PACE_USAGE, "%" PRIu64 " bytes of options are more than the limit of %zu",
                         own.words_bytes, PACE__WORDS_BYTES_MAX);
    self->hosts = calloc((size_t)ranks, sizeof *self->hosts);
    if (!self->hosts)
        return pace_fail(self->log, PACE_FAILED, "out of memory");
    memcpy(self->hosts[self->number], self->host, sizeof self->host);
    if (self->number > 0)
        status = say_hello(self, &own, words);
    for (int from = 1; from < ranks && !status && self->number == 0; from++)
        status = hear(self, from, &own, words, what);
    if (!status)
        status = pace__ranks_share(self->link, self->hosts, (size_t)ranks * sizeof *self->hosts);
    for (int rank = 0; rank < ranks && !status; rank++)
        pace__rank_set_name(self, rank, self->hosts[rank]);
    return status;
}
