/*
 * The leader's part of checkpoints: it has them written, and chooses the one that a run goes on from. The stages of
 * one that is written:
 *
 *     NOTHING  -> PARTS      all holders have copied their parts, and write them (save); or the directory could not be
 *                            made, and it only remains to say so
 *     NOTHING  -> NOTHING    copying has failed, and so does the job
 *     PARTS    -> MANIFEST   all parts are written (poll)
 *     PARTS    -> NOTHING    some part is not: a warning, unless it is needed; the directory is removed (conclude)
 *     MANIFEST -> NOTHING    it counts, or could not be committed (conclude)
 *
 * 1. One is under way at most: there is room for one copy of the state. `manifest` has parts from save to conclude, and
 *    a directory if it could be made.
 * 2. In MANIFEST the background has all of `saving`, and job->state. The leader looks at them again when it is idle.
 * 3. `status` and `reason` are those of the first thing that went wrong, and stay until the next one begins.
 * 4. job->state.checkpoint is a step that was committed, whatever goes wrong later.
 * 5. An incarnation that is not the newest, or whose directory has lost its name, commits and removes nothing, and ends.
 */
#include "base/clock.h"
#include "base/kept.h"
#include "data/store/checksums.h"
#include "data/store/slice.h"
#include "data/store/sums.h"
#include "files/file.h"
#include "job/job.h"
#include "options/internal.h"
#include "ranks/hello.h"
#include "run/runstate.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WORDS_TEXT  512 /* in messages */
#define NEWEST_TEXT 64

/* What the first rows of the order hold: by it, data sets of the same size that have no sums are told apart. Rows that
 * cannot be read are told of when their step comes. */
static uint64_t look_at_rows(const pace__job *job)
{
    uint64_t most = job->plan.model.look_rows;
    uint64_t rows = job->plan.order.rows < most ? job->plan.order.rows : most, sum = 0;
    pace__slice slice = {0};
    pace_status status = pace__slice_init(&slice, &job->store, PACE__TRAIN, job->config->seed, rows, NULL);

    if (!status)
        status = pace__slice_read(&slice, 0, rows);
    if (!status)
        sum = pace__rows_checksum(&slice.rows);
    pace__slice_release(&slice);
    return sum;
}

/* Words that a model is known by besides its options: what files hold rather than how they are called, if they are not
 * too large to be looked through each time. */
static char *describe_model(const pace__job *job)
{
    bool warm = job->warm.sha256[0] != '\0';
    char *own = job->plan.model.kind->words ? job->plan.model.kind->words(&job->plan.model) : strdup(""),
         *all = own ? pace__format("%s%s%.16s%s", own, warm ? " init=" : "", warm ? job->warm.sha256 : "",
                                   warm && job->config->init_state ? "+state" : "")
                    : NULL;

    free(own);
    return all;
}

char *pace__job_fingerprint(const pace__job *job)
{
    const pace__store_info *info = &job->store.info;
    uint64_t content = pace__store_content(&job->store);
    pace_train_config decided;
    pace_option_part parts[3];

    pace__plan_identity(&job->plan, job->config, &decided);
    pace__train_parts(&decided, parts);
    char *options = pace__options_marked(parts, PACE_MARK_BIT(PACE_MARK_IDENTITY)),
         *model = describe_model(job), *text = NULL, validation[48] = "";

    if (pace__store_tells(info, PACE__VALIDATION)) /* jobs without are called what they always were */
        snprintf(validation, sizeof validation, " validation-rows=%" PRIu64, info->rows[PACE__VALIDATION]);

    if (model && options)
        text = pace__format("%s rows=%" PRIu64 " test-rows=%" PRIu64 "%s entries=%" PRIu64
                            " ids=%u%s origin=%016" PRIx64 " data=%016" PRIx64 " steps=%" PRIu64,
                            options, job->plan.order.rows, info->rows[PACE__TEST], validation,
                            info->entries[PACE__TRAIN], info->ids_seen, model, info->encoding.origin,
                            content ? content : look_at_rows(job),
                            pace__plan_has_open_end(&job->plan) ? 0 : job->plan.steps);
    free(model);
    free(options);
    return text;
}

/* Why a word that nobody may have typed is another one. */
static const char *explain(const char *word)
{
    if (strncmp(word, "exact=", 6) == 0)
        return " (on sparse rows logreg in modes local and local-sgd is trained row after row, in blocks, "
               "and "
               "all others once per step, as --exact does)";
    if (strncmp(word, "steps=", 6) == 0)
        return " (a rate that falls over the whole run cannot be stretched; --schedule constant and invsqrt "
               "can)";
    if (strncmp(word, "embeddings=", 11) == 0 || strncmp(word, "pretrained=", 11) == 0 ||
        strncmp(word, "init=", 5) == 0)
        return " (the file that the model begins with, by what it holds)";
    if (strncmp(word, "data=", 5) == 0 || strncmp(word, "origin=", 7) == 0)
        return " (what the rows of --data hold, test rows and classes included)";
    return "";
}

/* Words in which two jobs differ: as one has them, and as the other. */
typedef struct unlike {
    char own[WORDS_TEXT], theirs[WORDS_TEXT];
    const char *why; /* of the first that needs to be explained */
} unlike;

static void add_word(char text[WORDS_TEXT], const char *word)
{
    size_t used = strlen(text), length = strcspn(word, " ");

    snprintf(text + used, WORDS_TEXT - used, "%s%.*s", used ? " " : "", (int)length, word);
}

static const char *next_word(const char *word)
{
    word += strcspn(word, " ");
    return word + (*word == ' ');
}

/* The word "name=..." among `words` whose name is that of `word`; NULL: there is none. */
static const char *find_named(const char *words, const char *word)
{
    size_t length = strcspn(word, "= ") + 1;

    while (*words && strncmp(words, word, length) != 0)
        words = next_word(words);
    return *words ? words : NULL;
}

/* Words have their names, and each only once: versions of the program may have more of them, or other places for them. */
static void find_unlike(const char *own, const char *theirs, unlike *found)
{
    *found = (unlike){.why = ""};
    for (const char *word = own; *word; word = next_word(word)) {
        const char *other = find_named(theirs, word);
        size_t length = strcspn(word, " ");

        if (other && strcspn(other, " ") == length && memcmp(word, other, length) == 0)
            continue;
        found->why = found->why[0] ? found->why : explain(word);
        add_word(found->own, word);
        if (other)
            add_word(found->theirs, other);
    }
    for (const char *word = theirs; *word; word = next_word(word)) {
        if (!find_named(own, word))
            add_word(found->theirs, word);
    }
}

/* Checkpoints from before there was --precision do not have the word: they are of f32. */
static bool is_same(const char *own, const char *theirs)
{
    static const char word[] = "precision=f32 ";
    const char *at = strstr(own, word);

    return strcmp(own, theirs) == 0 || (at && strncmp(own, theirs, (size_t)(at - own)) == 0 &&
                                        strcmp(at + strlen(word), theirs + (at - own)) == 0);
}

pace_status pace__job_check_fingerprint(const pace__job *job, const char *where, const char *own,
                                        const char *theirs)
{
    unlike words;

    if (is_same(own, theirs))
        return PACE_OK;
    if (strncmp(theirs, "model=", 6) != 0) /* the first word, since there are marks of options */
        return pace_fail(
            job->log, PACE_USAGE,
            "%s: made by an earlier version of paceline, which says otherwise what a job is: finish it with "
            "that version, or start over with --force",
            where);
    find_unlike(own, theirs, &words);
    return pace_fail(
        job->log, PACE_USAGE,
        "%s: made by a job with other options or data: %s there, %s here%s; repeat those, or start over with "
        "--force",
        where, words.theirs[0] ? words.theirs : "nothing of it", words.own[0] ? words.own : "nothing of it",
        words.why);
}

/* --- who may write --- */

pace_status pace__job_saved_incarnation(const pace__job *job, const pace_log *log, uint64_t *incarnation)
{
    uint64_t step;
    size_t count;

    return pace__checkpoint_names(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS), log, &step, incarnation,
                                  &count);
}

static pace_status check_incarnation(const pace__job *job, const pace_log *log)
{
    uint64_t own = job->state.incarnation, saved;
    pace__kept kept;
    char reason[PACE_LOG_TEXT_MAX] = "";

    pace__kept_init(&kept, reason, sizeof reason);
    pace_status status = pace__runstate_check(job->config->run, own, &kept.log);

    if (status == PACE_FAILED)
        return pace_fail(log, status, "%s", reason);
    if (status && !pace__job_saved_incarnation(job, NULL, &saved) && saved > own)
        return pace_fail(log, PACE_FAILED,
                         "%s: incarnation %" PRIu64 " of the run has saved something, and this is %" PRIu64
                         ": it may not change the run any more",
                         job->config->run, saved, own);
    return PACE_OK;
}

pace_status pace__job_check_ours(pace__job *job, const pace_log *log)
{
    pace_status status = pace__rundir_is_there(job->run, log);

    if (!status)
        status = check_incarnation(job, log);
    if (!status) /* again: that reads files, and what is written next goes by the path */
        status = pace__rundir_is_there(job->run, log);
    job->saving.superseded = status != PACE_OK;
    return status;
}

/* --- writing --- */

pace_status pace__job_open_saving(pace__job *job)
{
    job->saving = (pace__saving){.last_ns = pace__clock_now_ns(&job->clock)};
    job->fingerprint = pace__job_fingerprint(job);
    pace_status status = job->fingerprint ? PACE_OK : pace_fail(job->log, PACE_FAILED, "out of memory");

    return status ? status : pace__background_create(job->log, &job->saving.background);
}

static void drop_saving(pace__saving *saving)
{
    free(saving->directory);
    saving->directory = NULL;
    pace__manifest_release(&saving->manifest);
    saving->stage = PACE__SAVING_NOTHING;
}

void pace__job_close_saving(pace__job *job)
{
    pace__background_free(job->saving.background);
    drop_saving(&job->saving);
    job->saving.background = NULL;
    free(job->fingerprint);
    job->fingerprint = NULL;
}

void pace__job_save_failed(pace__job *job, pace_status status, const char *reason)
{
    pace__saving *saving = &job->saving;

    assert(status != PACE_OK && saving->stage != PACE__SAVING_MANIFEST); /* invariant 2 */
    if (saving->status)                                                  /* invariant 3 */
        return;
    saving->status = status;
    snprintf(saving->reason, sizeof saving->reason, "%s", reason);
}

static pace_status make_manifest(pace__job *job)
{
    pace__manifest *manifest = &job->saving.manifest;

    *manifest = (pace__manifest){.incarnation = job->state.incarnation,
                                 .position = job->position,
                                 .keys = job->plan.model.shape.keys,
                                 .width = (unsigned)job->plan.floats,
                                 .job = strdup(job->fingerprint),
                                 .parts = job->strategy->parts(job)};
    manifest->position.seconds += pace__seconds_since(job->start_ns);
    manifest->part = calloc(manifest->parts, sizeof *manifest->part);
    if (!manifest->job || !manifest->part || !pace__job_copy_divisions(job, &manifest->divisions))
        return pace_fail(job->log, PACE_FAILED, "out of memory");
    return PACE_OK;
}

static pace_status make_directory(void *user)
{
    pace__job *job = user;
    pace__kept kept;

    pace__kept_init(&kept, job->saving.reason, sizeof job->saving.reason);
    pace_status status = pace__job_check_ours(job, &kept.log);

    return status ? status
                  : pace__checkpoint_begin(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS),
                                           job->position.step, job->state.incarnation, &kept.log,
                                           &job->saving.directory);
}

pace_status pace__job_save(pace__job *job)
{
    pace__saving *saving = &job->saving;
    pace_status status = pace__job_save_finish(job); /* at most one copy of the state */
    uint64_t begin_ns = pace__now_ns();

    if (status)
        return status;
    assert(saving->stage == PACE__SAVING_NOTHING && !saving->directory && !saving->manifest.part); /* 1 */
    saving->begun_ns = begin_ns;
    saving->last_ns = pace__clock_now_ns(&job->clock);
    status = make_manifest(job);
    if (status) {
        drop_saving(saving);
        return status;
    }
    saving->status = pace__job_aside(job, "making the directory of a checkpoint", make_directory, job);
    if (!saving->status)
        status = job->strategy->save(job, saving->directory);
    if (status) { /* the job ends; whoever looks after checkpoints until then must find none to go on with */
        drop_saving(saving);
        return status;
    }
    saving->stage = PACE__SAVING_PARTS;
    saving->stall_s = pace__seconds_since(begin_ns);
    saving->stalled_s += saving->stall_s;
    return status;
}

/* In the background: everything but the job's own counters belongs to it meanwhile. */
static void commit(void *user)
{
    pace__job *job = user;
    pace__saving *saving = &job->saving;
    const pace__position *at = &saving->manifest.position;
    pace__runstate next = job->state;
    pace__kept kept;

    assert(saving->stage == PACE__SAVING_MANIFEST && saving->directory && !saving->status);
    pace__kept_init(&kept, saving->reason, sizeof saving->reason);
    pace_status status = pace__job_check_ours(job, &kept.log);

    if (!status)
        status = pace__checkpoint_commit(saving->directory, &saving->manifest, &kept.log);
    next.has_checkpoint = true;
    next.checkpoint = at->step;
    if (!status) /* invariant 4: it counts, whether or not that can be noted */
        job->state = next;
    /* Invariant 5. Not over the word of one that has taken over meanwhile. */
    if (!status && !pace__job_check_ours(job, NULL) && !pace__runstate_write(job->config->run, &next, NULL))
        pace__checkpoint_prune(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS),
                               (unsigned)job->config->faults.keep, at->step, job->state.incarnation);
    saving->status = status;
}

static void emit_saved(const pace__job *job)
{
    const pace__saving *saving = &job->saving;
    uint64_t bytes = 0, step = saving->manifest.position.step;
    double write_s = pace__seconds_since(saving->begun_ns);

    for (unsigned i = 0; i < saving->manifest.parts; i++)
        bytes += saving->manifest.part[i].bytes;
    pace_field fields[] = {PACE_INT("step", step), PACE_INT("bytes", bytes),
                           PACE_INT("parts", saving->manifest.parts), PACE_REAL("stall_s", saving->stall_s),
                           PACE_REAL("write_s", write_s)};

    pace_registry_emit(job->registry, "checkpoint", fields, sizeof fields / sizeof *fields);
    pace_say(job->log, PACE_DEBUG,
             "checkpoint of step %" PRIu64 ": %" PRIu64
             " bytes, training stood still for %.3f s, written in %.3f s",
             step, bytes, saving->stall_s, write_s);
}

/* What there is to go on from without the one that was not written. */
static const char *name_newest(const pace__job *job, char text[NEWEST_TEXT])
{
    if (job->state.has_checkpoint)
        snprintf(text, NEWEST_TEXT, "the newest is that of step %" PRIu64, job->state.checkpoint);
    else
        snprintf(text, NEWEST_TEXT, "there is none before it");
    return text;
}

/* What was written, or why it was not: training goes on. */
static pace_status conclude(pace__job *job)
{
    pace__saving *saving = &job->saving;
    uint64_t step = saving->manifest.position.step;
    char newest[NEWEST_TEXT];

    assert(saving->stage != PACE__SAVING_NOTHING && saving->manifest.part);
    if (!saving->status) {
        saving->written++;
        saving->is_saved = true;
        saving->written_step = step;
        emit_saved(job);
        pace__faults_corrupt(&job->faults, saving->directory, step);
        drop_saving(saving);
        return PACE_OK;
    }
    pace_status ours = pace__job_check_ours(job, job->log); /* if not, that is why, and nothing of it is */

    if (!ours && saving->directory)
        pace__checkpoint_discard(saving->directory);
    drop_saving(saving);
    if (ours)
        return ours;
    if (!saving->needed)
        pace_say(job->log, PACE_WARN, "no checkpoint of step %" PRIu64 ": %s; %s, and %s", step,
                 saving->reason, pace__job_is_over(job) ? "it would have been the last" : "training goes on",
                 name_newest(job, newest));
    pace__job_forget_best(job, step);
    return PACE_OK;
}

pace_status pace__job_save_poll(pace__job *job)
{
    pace__saving *saving = &job->saving;
    bool all = false;

    if (saving->stage == PACE__SAVING_PARTS) {
        pace_status status = saving->directory ? job->strategy->saved(job, &all) : PACE_OK;

        all |= !saving->directory; /* it could not even be made */
        if (status || !all)
            return status;
        if (saving->status)
            return conclude(job);
        pace__faults_at(&job->faults, PACE__AT_CHECKPOINT, saving->manifest.position.step);
        saving->stage = PACE__SAVING_MANIFEST;
        pace__background_start(saving->background, commit, job);
    }
    if (saving->stage == PACE__SAVING_MANIFEST && pace__background_idle(saving->background))
        return conclude(job);
    return PACE_OK;
}

pace_status pace__job_save_finish(pace__job *job)
{
    unsigned turns = 0;
    pace_status status = PACE_OK;

    while (!status && job->saving.stage != PACE__SAVING_NOTHING) {
        status = pace__job_save_poll(job);
        if (!status && job->saving.stage != PACE__SAVING_NOTHING)
            status = job->strategy->rest(job, &turns);
    }
    return status;
}

/* Whether that of this step is there already; first waits for what is under way. */
static pace_status look_at_saved(pace__job *job, bool *there)
{
    pace_status status = pace__job_save_finish(job);

    *there = job->saving.is_saved && job->saving.written_step == job->position.step;
    return status;
}

pace_status pace__job_save_last(pace__job *job)
{
    /* Of a run that keeps its best, that would be the newest: it does not go on from there. */
    bool there, wanted = job->config->faults.checkpoint_every > 0 ||
                         job->config->faults.checkpoint_seconds > 0 || job->plan.keeps_best;
    pace_status status = look_at_saved(job, &there);

    return status || there || !wanted ? status : pace__job_save(job);
}

pace_status pace__job_save_now(pace__job *job)
{
    char newest[NEWEST_TEXT];
    bool there;
    pace_status status = look_at_saved(job, &there);

    if (status || there)
        return status;
    job->saving.needed = true;
    status = pace__job_save(job);
    if (!status)
        status = pace__job_save_finish(job);
    job->saving.needed = false;
    if (status || !job->saving.status)
        return status;
    return pace_fail(job->log, job->saving.status,
                     "no checkpoint of step %" PRIu64 ": the state could not be saved: %s; %s",
                     job->position.step, job->saving.reason, name_newest(job, newest));
}

/* --- going on from one --- */

static pace_status check_manifest(const pace__job *job, const char *path, const pace__manifest *manifest)
{
    pace_status status = pace__job_check_fingerprint(job, path, job->fingerprint, manifest->job);

    if (!status && manifest->keys != job->plan.model.shape.keys)
        status = pace_fail(job->log, PACE_BAD_DATA, "%s: has %" PRIu64 " keys, this job %" PRIu64, path,
                           manifest->keys, job->plan.model.shape.keys);
    if (!status && manifest->width != job->plan.floats) /* the mode decides it, too */
        status = pace_fail(
            job->log, PACE_USAGE,
            "%s: has %u floats of a key, this job %zu: of sgd and of networks, workers that merge (--mode "
            "local-sgd) keep other state than others; repeat mode and --workers, or start over with --force",
            path, manifest->width, job->plan.floats);
    if (!status && manifest->position.step > job->plan.steps)
        status =
            pace_fail(job->log, PACE_USAGE, "%s: is at step %" PRIu64 ", but this job ends at step %" PRIu64,
                      path, manifest->position.step, job->plan.steps);
    return status;
}

pace_status pace__job_load(pace__job *job, const char *path, pace__manifest *manifest)
{
    pace_status status = pace__manifest_read(path, job->log, manifest);

    if (status)
        return status;
    status = check_manifest(job, path, manifest);
    if (!status)
        status = pace__checkpoint_load(path, manifest, job->parameters, job->log);
    if (status)
        pace__manifest_release(manifest);
    return status;
}

/* PACE_BAD_DATA: damaged, an older one may do. */
static pace_status load(pace__job *job, const char *path)
{
    pace__manifest manifest;
    pace_status status = pace__job_load(job, path, &manifest);

    if (status)
        return status;
    job->position = manifest.position;
    job->saving.is_saved = true;
    job->saving.written_step = manifest.position.step;
    pace__divisions_release(&job->divisions);
    job->divisions = manifest.divisions;
    manifest.divisions = (pace__divisions){0};
    if (job->strategy->restored)
        job->strategy->restored(job);
    pace__manifest_release(&manifest);
    return PACE_OK;
}

/* Damaged, or on a disk that does not give it back: an older one may do. */
static bool passes_on(pace_status status)
{
    return status == PACE_BAD_DATA || status == PACE_IO;
}

/* No run ever comes here with parameters of a damaged checkpoint: it ends. */
static pace_status load_newest(pace__job *job, const pace__checkpoint_entry *entries, size_t count)
{
    pace_status status = PACE_BAD_DATA;
    bool unread = false; /* one could not be read, which may pass */

    for (size_t i = 0; i < count && passes_on(status); i++) {
        const pace_log *log = job->log;
        pace__kept kept;

        pace__kept_init(&kept, job->saving.reason, sizeof job->saving.reason);
        job->log = &kept.log; /* what is wrong with this one is a warning if there is another */
        status = load(job, entries[i].path);
        job->log = log;
        unread |= status == PACE_IO;
        if (passes_on(status))
            pace_say(log, PACE_WARN, "%s%s", job->saving.reason,
                     i + 1 < count ? "; trying the one before" : "");
        else if (status)
            pace_say(log, PACE_ERROR, "%s", job->saving.reason);
        else
            pace_say(log, PACE_INFO, "resuming from %s", entries[i].path);
        if (!status)
            pace__job_look_at_best(job);
        /* What was removed by halves when the last incarnation died: no other checkpoint may follow. */
        if (!status && !unread && !pace__job_check_ours(job, NULL))
            pace__checkpoint_prune(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS),
                                   (unsigned)job->config->faults.keep, entries[i].step,
                                   entries[i].incarnation);
    }
    return status;
}

/* There is no checkpoint: may the run begin at step 0? */
static pace_status check_beginning(pace__job *job, const char *directory)
{
    if (job->state.has_checkpoint)
        return pace_fail(job->log, PACE_BAD_DATA,
                         "%s: there is no checkpoint any more, but there was one of step %" PRIu64
                         "; --force starts over",
                         directory, job->state.checkpoint);
    if (job->was_done)
        return pace_fail(
            job->log, PACE_BAD_DATA,
            "%s: has finished without a checkpoint to go on from (--checkpoint-seconds 0 writes none); "
            "--force starts over",
            job->config->run);
    return pace__resume_check_options(job);
}

pace_status pace__job_check_restore(pace__job *job)
{
    char *directory = pace__run_path(job->config->run, PACE__RUN_CHECKPOINTS);
    pace__checkpoint_entry *entries = NULL;
    size_t count = 0;
    pace__manifest manifest;
    pace_status status = directory ? pace__checkpoint_list(directory, job->log, &entries, &count, NULL)
                                   : pace_fail(job->log, PACE_FAILED, "out of memory");

    job->fingerprint = status ? NULL : pace__job_fingerprint(job);
    if (!status && !job->fingerprint)
        status = pace_fail(job->log, PACE_FAILED, "out of memory");
    if (!status && count == 0)
        status = check_beginning(job, directory);
    if (!status && count > 0)
        status = pace__manifest_read(entries[0].path, job->log, &manifest);
    if (!status && count > 0) {
        status = check_manifest(job, entries[0].path, &manifest);
        pace__manifest_release(&manifest);
    }
    if (!status)
        pace_say(job->log, PACE_INFO, "would go on from %s", count > 0 ? entries[0].path : "step 0");
    pace__checkpoint_list_free(entries, count);
    free(job->fingerprint);
    free(directory);
    job->fingerprint = NULL;
    return status;
}

pace_status pace__job_check_same(const pace__job *job)
{
    pace__checkpoint_entry *entries;
    size_t count;
    bool compared = false;
    pace__manifest manifest;
    char *own = pace__job_fingerprint(job);
    pace_status status = own ? pace__checkpoint_list(pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS),
                                                     job->log, &entries, &count, NULL)
                             : pace_fail(job->log, PACE_FAILED, "out of memory");

    if (!status) {
        for (size_t i = 0; i < count && !compared; i++) { /* of a damaged one is told when it is restored */
            compared = pace__manifest_read(entries[i].path, NULL, &manifest) == PACE_OK;
            if (compared) {
                status = pace__job_check_fingerprint(job, entries[i].path, own, manifest.job);
                pace__manifest_release(&manifest);
            }
        }
        pace__checkpoint_list_free(entries, count);
        if (!compared)
            status = pace__resume_check_options(job);
    }
    free(own);
    return status;
}

pace_status pace__job_restore(pace__job *job)
{
    const char *directory = pace__rundir_path(job->run, PACE__RUN_CHECKPOINTS);
    pace__checkpoint_entry *entries;
    size_t count;
    pace_status status = pace__checkpoint_list(directory, job->log, &entries, &count, NULL);

    if (status)
        return status;
    /* Without its manifest it does not count, so nothing else would say that it is missing. */
    if (count > 0 && job->state.has_checkpoint && entries[0].step < job->state.checkpoint)
        pace_say(job->log, PACE_WARN,
                 "%s: the checkpoint of step %" PRIu64 " is gone, or its " PACE__MANIFEST_NAME " is",
                 directory, job->state.checkpoint);
    status = count > 0 ? load_newest(job, entries, count) : check_beginning(job, directory);
    pace__checkpoint_list_free(entries, count);
    if (count == 0 && !status)
        pace_say(job->log, PACE_WARN, "%s: the run ended before its first checkpoint: it begins at step 0",
                 job->config->run);
    if (count > 0 && passes_on(status))
        pace_fail(job->log, status, "%s: none of its %zu checkpoints %s", directory, count,
                  status == PACE_IO ? "can be read now: try again when the disk answers"
                                    : "is usable; --force starts over");
    return status;
}
