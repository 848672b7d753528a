/*
 * registry.h - what a job measures, and who listens.
 *
 * A job emits records: a kind ("step", "eval", "phase", "progress", ...) and a few named values. Every sink
 * that is attached gets every record: the run directory's metrics.jsonl, the progress line on a terminal, the
 * summary. The trainer knows none of them, so a new reader is a new sink and nothing else.
 *
 * pace_registry_emit may be called from any thread: sinks are called one at a time, in order of attachment,
 * under the registry's lock. It allocates nothing. Fields live on the caller's stack; a sink copies what it
 * keeps.
 *
 *     pace_field fields[] = {PACE_INT("step", step), PACE_REAL("loss", loss)};
 *     pace_registry_emit(registry, "step", fields, 2);
 *
 * The kinds, and what a reader may rely on:
 *     progress   phase (text), done, total (0: unknown), unit (text); before (may be missing: what of `done` an earlier
 *                start has done), still_s (may be missing: seconds of the phase in which it stood still for something
 *                else); more values are shown behind the rate
 *     phase      phase (text), seconds, rows, bytes: a stage of prep has ended. Rows are those of all
 *                ranks. Of prep reviews also skew: pace_prep_phase in prep.h says of what
 *     prepared   at the end of a prep by several processes: what its result (prep.h) holds
 *     prepared rank   of prep reviews by several processes, for each: rank, bytes (read), rows (written)
 *     ping       of `plan --ping`, for every other process: peer, small_s and large_s (that a small message, and one of
 *                large_bytes, take there and back)
 *     start      step, steps, threads (of each worker), incarnation, restarts, kernels (the chief's): training begins, or
 *                goes on, from here
 *     planned    of a dry run: steps of the whole job, open_end (1: it may become longer later: --resume),
 *                validation_rows
 *     expected   rows_per_s, alone_rows_per_s (of one machine in mode local): what a job of several processes is expected
 *                to reach, before it starts
 *     checkpoint step, bytes, parts, stall_s (training stood still), write_s: one has become whole
 *     step       step, epoch, rows, loss (progressive, since the last such record), lr, data_s, compute_s,
 *                rows_per_s; but where threads split the columns also communicate_s and wait_s,
 *                all of them the chief's
 *     eval       step, epoch, set (text), n, accuracy, auc, logloss, ...
 *     resources  rss_bytes, cpu_s, read_bytes, write_bytes
 *     sample     of every rank, once a second and at its end, what it has measured since training began (user_s to
 *                write_bytes: since its process did), which only grows:
 *                role, seconds, rows, data_s, compute_s, communicate_s, still_s (the chief scores, or saves), save_s (of that), wait_s,
 *                waits_for (whom, longest, since the sample before), waited_for (the same, of all), user_s, system_s,
 *                delay_s (no processor was free),
 *                rss_bytes, rss_max_bytes, minor_faults, major_faults, read_bytes, write_bytes (disks), net_sent_bytes,
 *                net_received_bytes (all interfaces of its host but loopback); and of one that holds a shard requests,
 *                looks (requests / looks is how many wait, on average), pushes, stale_pushes (their quotient is the mean
 *                staleness)
 *     flow       with a sample, for every rank with which something was exchanged since the one before: role, peer,
 *                seconds, bytes_sent, bytes_received, messages, wait_s, since training began
 *     shares     step, gain (the part by which steps are expected to become shorter), rows (of a whole step, of each worker): shares of
 *                the workers have changed
 *     cost       of every worker before such a change, and once a second: role, step, rows (that it has of a whole step), step_s (what
 *                such a step is believed to cost it, waiting left out), fixed_s (of that: what does not depend on its rows),
 *                error (relative standard error of both)
 *     profile    first_step, end_step (of what was profiled), seconds (that it took, behind the last step), memory_share (of
 *                the time of workers' operations that compute: in those that are bound by memory), gbytes_s (of those),
 *                peak_gbytes_s (that a core can read)
 *     thinned    one_in: of samples, those of every so many seconds are recorded from now on, and fewer steps (metrics.jsonl
 *                has grown; see run/records.h)
 *     role       at the end, for every rank: role, rank, host, seconds, data_s, compute_s, communicate_s,
 *                wait_s, waits_for (whom it waited for longest), cpu_s, rss_max_bytes, rows
 *     server     at the end, for every shard: role, rank, requests, bytes_received, bytes_sent,
 *                repeats_dropped, rows_repeated
 *     peer       at the end, for every two ranks that exchanged something: role, peer, bytes_sent,
 *                bytes_received, messages, wait_s; bytes are those of training steps
 */
#ifndef PACELINE_REGISTRY_H
#define PACELINE_REGISTRY_H

#include <stddef.h>
#include <stdint.h>

typedef struct pace_field {
    const char *name;
    enum { PACE_FIELD_INT, PACE_FIELD_REAL, PACE_FIELD_TEXT } type;
    union {
        int64_t integer;
        double real;
        const char *text;
    } value;
} pace_field;

#define PACE_INT(n, v)  ((pace_field){.name = (n), .type = PACE_FIELD_INT, .value.integer = (int64_t)(v)})
#define PACE_REAL(n, v) ((pace_field){.name = (n), .type = PACE_FIELD_REAL, .value.real = (v)})
#define PACE_TEXT(n, v) ((pace_field){.name = (n), .type = PACE_FIELD_TEXT, .value.text = (v)})

typedef struct pace_record {
    const char *kind;
    double seconds; /* since the registry was created */
    const pace_field *fields;
    size_t count;
} pace_record;

typedef struct pace_sink {
    void (*record)(void *user, const pace_record *record);
    void *user;
} pace_sink;

#define PACE_REGISTRY_SINKS_MAX 16

typedef struct pace_registry pace_registry;

/* NULL when out of memory. */
pace_registry *pace_registry_create(void);
void pace_registry_free(pace_registry *registry); /* NULL is allowed */

/* The sink must outlive the registry or be detached. Aborts beyond PACE_REGISTRY_SINKS_MAX: that is a bug. */
void pace_registry_attach(pace_registry *registry, const pace_sink *sink);
void pace_registry_detach(pace_registry *registry, const pace_sink *sink);

/* A NULL registry is allowed: nobody listens. */
void pace_registry_emit(pace_registry *registry, const char *kind, const pace_field *fields, size_t count);

/* The field of that name, or NULL. */
const pace_field *pace_record_find(const pace_record *record, const char *name);

#endif
