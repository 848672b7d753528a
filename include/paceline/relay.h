/*
 * relay.h - what the ranks of a job write on standard error for the process that started them, and how it
 * reads that.
 *
 * `paceline train --workers 4` starts its ranks through a launcher (mpirun), whose pipes carry whatever
 * anybody writes, cut and mixed between lines as it pleases. With PACELINE_RELAY=1 in its environment a
 * rank says everything in frames:
 *
 *     @paceline 00003 W. the text, filled up with blanks
 *
 * the rank, the kind (E W I: a message of that level; R: a record; H: hello; X: exit) and "." or, if the
 * text goes on in the rank's next frame, "+". A frame has exactly PACE_RELAY_FRAME bytes with its newline.
 * That is a divisor of the pieces that launchers read and write, so none of them cuts a frame in two, and a
 * line of any other length is no frame.
 *
 * In a rank:                                     In its launcher:
 *     pace_relay_init(&relay, STDERR_FILENO);        reader = pace_relay_reader_create(ranks, &target);
 *     pace_relay_hello(&relay);                      while ((size = read(fd, bytes, sizeof bytes)) > 0)
 *     pace_log log = {pace_relay_log, &relay};           pace_relay_reader_feed(reader, bytes, size);
 *     ...                                            pace_relay_reader_end(reader);
 *     pace_relay_exit(&relay, status);
 */
#ifndef PACELINE_RELAY_H
#define PACELINE_RELAY_H

#include <paceline/log.h>
#include <paceline/registry.h>
#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* All frames of a text are one write. Longer messages are cut, longer records left out. */
#define PACE_RELAY_TEXT_MAX  3072
#define PACE_RELAY_FRAME     256
#define PACE_RELAY_RANKS_MAX 65536
#define PACE_RELAY_VARIABLE  "PACELINE_RELAY"

/* ---- the rank's end ---- */

typedef struct pace_relay {
    pthread_mutex_t lock;
    int fd, rank;
    uint64_t passed_ns[4]; /* when a record of each limited kind was last written */
} pace_relay;

/* Does the environment ask for it? It says which attempt this is to start the job: 1, 2, ... */
bool pace_relay_wanted(void);
/* Attempts before this one that ended before the chief had done anything; 0 where there is no supervisor. */
int pace_relay_attempts(void);

/* The number that a launcher has given this process among those that it has started; 0 where there is none. */
int pace_relay_rank(void);

/* The rank is the one that the launcher has put into the environment. If that asks for a relay, this process
 * is killed from now on when the one that has started it ends: ranks do not outlive their launcher. */
void pace_relay_init(pace_relay *relay, int fd);

/* The first thing that a rank says: its host, its process, its launcher's name of the job, its version. */
void pace_relay_hello(pace_relay *relay);

/* The write function of a pace_log, and the record function of a pace_sink, whose user is the relay.
 * Debug messages stay behind. Only rank 0 passes records on; of the frequent kinds, ten a second and
 * those that end a phase. */
void pace_relay_log(void *user, pace_level level, const char *text);
void pace_relay_record(void *user, const pace_record *record);

/* The last thing that a rank says: a rank that ends without it was ended by something else. */
void pace_relay_exit(pace_relay *relay, pace_status status);

/* ---- the launcher's end ---- */

typedef enum pace_relay_kind {
    PACE_RELAY_HELLO,
    PACE_RELAY_LOG,
    PACE_RELAY_RECORD,
    PACE_RELAY_EXIT
} pace_relay_kind;

typedef struct pace_relay_message {
    pace_relay_kind kind;
    int rank;
    pace_level level; /* of LOG */
    const char *text; /* of LOG: the message; of RECORD: for pace_relay_emit */
    int status;       /* of EXIT */
    struct {
        const char *host, *job, *version; /* job: "-" if the launcher gives none */
        long process;
    } hello;
} pace_relay_message;

/* The texts are gone when the function returns. */
typedef struct pace_relay_target {
    void (*message)(void *user, const pace_relay_message *message);
    void (*other)(void *user, const char *line); /* a line of somebody else */
    void *user;
} pace_relay_target;

typedef struct pace_relay_reader pace_relay_reader;

/* Frames of ranks from `ranks` on are lines of somebody else. NULL when out of memory. */
pace_relay_reader *pace_relay_reader_create(int ranks, const pace_relay_target *target);
void pace_relay_reader_free(pace_relay_reader *reader); /* NULL is allowed */
void pace_relay_reader_feed(pace_relay_reader *reader, const char *bytes, size_t size);
void pace_relay_reader_end(pace_relay_reader *reader); /* hands over a last line that has no end */

/* The record in the text of a RECORD, to the sinks of the registry. False: it is no record. */
bool pace_relay_emit(const char *text, pace_registry *registry);

#endif
