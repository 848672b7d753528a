/*
 * Links over MPI: the only file that knows it.
 *
 * All calls are non-blocking except those at the very start and MPI_Finalize, which is called only after all
 * ranks have agreed to end: with a peer that is dead it would never return.
 *
 * Operations under way are in a list, in any order. One that was begun (keep) is
 *
 *     listed      its `native` is the number of the look in which it was last asked for
 *     OVER        a look has found its end, or it could not even begin: the next test says so
 *     NEVER       it has failed, and its peer may have died: no test ever says that it is over
 *     forgotten   given up (cancel, abandon, forget): MPI may still have it, but nobody asks
 *
 * 1. Only listed operations are in the list, each once, its natives, requests and owners at the same place.
 * 2. A request that is listed stays where it is: the list points to it. So whoever lets go of one takes it
 *    out first.
 * 3. The arrays have room for every operation in the list: a look can find all of them.
 */
#include "net/link_internal.h"

#include "base/clock.h"
#include "base/locale.h"
#include "net/sockets.h"

#include <assert.h>
#include <limits.h>
#include <mpi.h>
#include <paceline/relay.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

_Static_assert(PACE__LINK_MESSAGE_MAX <= INT_MAX, "MPI counts in int");

/*
 * Operations under way are tested all at once: a test costs a look at the network whatever it tests, and a
 * server would otherwise pay for one per worker in every turn of its loop. So test() only looks at what the
 * last look has found, and looks again when it is asked for the same operation a second time.
 */
typedef struct mpi {
    MPI_Comm all, workers; /* workers: MPI_COMM_NULL on a rank that is none */
    MPI_Request *natives;  /* (room) of the operations under way */
    pace__request **requests;
    bool *own;  /* of the link itself, not of a caller */
    int *found; /* scratch of MPI_Testsome */
    MPI_Status *statuses;
    int count, room;
    uint64_t look; /* number of the last look */
    pace__sockets sockets;
    int neighbour;
    bool alone;                               /* on its machine: whatever comes, comes over the network */
    enum { NOT_SLEPT, WOKEN, RAN_OUT } slept; /* how the last sleep ended, if nothing was found since */
    bool woken; /* what was found last behind a sleep had ended it: this network can be watched */
    uint64_t usual_spin_ns;
} mpi;

/* A rank that is woken by whatever comes need not spin for it, and sleeps for so long; then it looks for signals and signs
 * of life. */
#define WOKEN_SPIN_NS  UINT64_C(20000)
#define WOKEN_SLEEP_NS UINT64_C(1000000)

/* For what this rank has said to pass through the launcher: MPICH's stops reading when a job aborts. */
#define LAST_WORDS_NS 100000000

/* request->native: the number of the look in which it was last asked for, while under way; then: */
#define OVER  UINTPTR_MAX
#define NEVER (UINTPTR_MAX - 1) /* it has failed, and its peer may have died: link_options.outlives */

static pace_status mpi_broken(pace__link *link, int error, const char *doing)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length;

    MPI_Error_string(error, text, &length);
    return pace__link_broken(link, PACE_LOST, "MPI: %s: %s", doing, text);
}

/* --- messages --- */

static bool make_room(mpi *self)
{
    int room = self->room ? 2 * self->room : 64;
    MPI_Request *natives = realloc(self->natives, (size_t)room * sizeof *natives);
    pace__request **requests = realloc(self->requests, (size_t)room * sizeof *requests);
    bool *own = realloc(self->own, (size_t)room * sizeof *own);
    int *found = realloc(self->found, (size_t)room * sizeof *found);
    MPI_Status *statuses = realloc(self->statuses, (size_t)room * sizeof *statuses);

    self->natives = natives ? natives : self->natives;
    self->requests = requests ? requests : self->requests;
    self->own = own ? own : self->own;
    self->found = found ? found : self->found;
    self->statuses = statuses ? statuses : self->statuses;
    if (!natives || !requests || !own || !found || !statuses)
        return false;
    self->room = room;
    return true;
}

/* Keeps what MPI has begun; an error is found by whoever asks next. */
static void keep(pace__link *link, pace__request *request, MPI_Request native, int error, const char *doing)
{
    mpi *self = link->carried;

    assert(self->count <= self->room && self->look < NEVER);
    request->native = error ? OVER : self->look;
    if (error && link->options.outlives && request->peer > 0) {
        request->native = NEVER;
        return;
    }
    if (error) {
        mpi_broken(link, error, doing);
        return;
    }
    if (self->count == self->room && !make_room(self)) {
        pace__link_broken(link, PACE_FAILED, "out of memory for messages");
        return;
    }
    self->natives[self->count] = native;
    self->own[self->count] = request->tag >= PACE__LINK_TAGS_MAX;
    self->requests[self->count++] = request;
}

/* Takes the operation at a place out of the list. */
static void drop(mpi *self, int place)
{
    assert(place >= 0 && place < self->count);
    self->count--;
    self->natives[place] = self->natives[self->count];
    self->own[place] = self->own[self->count];
    self->requests[place] = self->requests[self->count];
}

static void mpi_send(pace__link *link, int peer, int tag, const void *bytes, size_t size,
                     pace__request *request)
{
    const mpi *self = link->carried;
    MPI_Request native = MPI_REQUEST_NULL;
    int error = MPI_Isend(bytes, (int)size, MPI_BYTE, peer, tag, self->all, &native);

    keep(link, request, native, error, "cannot send");
}

static void mpi_receive(pace__link *link, void *buffer, pace__request *request)
{
    const mpi *self = link->carried;
    MPI_Request native = MPI_REQUEST_NULL;
    int from = request->peer == PACE__LINK_ANY ? MPI_ANY_SOURCE : request->peer;
    int error = MPI_Irecv(buffer, (int)request->bytes, MPI_BYTE, from, request->tag, self->all, &native);

    keep(link, request, native, error, "cannot receive");
}

static void mpi_sum(pace__link *link, float *buffer, size_t count, pace__request *request)
{
    const mpi *self = link->carried;
    MPI_Request native = MPI_REQUEST_NULL;

    assert(self->workers != MPI_COMM_NULL);
    int error = MPI_Iallreduce(MPI_IN_PLACE, buffer, (int)count, MPI_FLOAT, MPI_SUM, self->workers, &native);

    keep(link, request, native, error, "cannot sum");
}

static bool is_truncation(int error)
{
    int class = MPI_SUCCESS;

    MPI_Error_class(error, &class);
    return class == MPI_ERR_TRUNCATE;
}

static pace_status tell_error(pace__link *link, const pace__request *request, int error)
{
    if (!is_truncation(error))
        return mpi_broken(link, error, request->receives ? "cannot receive" : "cannot send");
    return pace__link_broken(link, PACE_BUG, "a message of %s with tag %d is longer than %zu bytes",
                             request->peer >= 0 ? pace__link_name(link, request->peer) : "some rank",
                             request->tag, request->bytes);
}

/* An operation is over. */
static pace_status note(pace__link *link, pace__request *request, const MPI_Status *status, int error)
{
    int bytes = 0;

    assert(request->active && request->native < NEVER);
    request->native = OVER;
    if (error && link->options.outlives && request->peer > 0 && !is_truncation(error)) {
        request->native = NEVER;
        return PACE_OK;
    }
    if (error)
        return tell_error(link, request, error);
    if (request->receives) {
        request->peer = status->MPI_SOURCE;
        MPI_Get_count(status, MPI_BYTE, &bytes);
        request->bytes = (size_t)bytes;
    }
    return PACE_OK;
}

/* Not every network has connections that can be watched, and not every connection is found: what comes without a sign
 * must not wait for long sleeps. */
static void learn_of_sleep(pace__link *link)
{
    mpi *self = link->carried;

    if (self->slept != NOT_SLEPT)
        self->woken = self->alone && self->slept == WOKEN;
    self->slept = NOT_SLEPT;
    link->spin_ns = self->woken ? WOKEN_SPIN_NS : self->usual_spin_ns;
}

static pace_status look(pace__link *link)
{
    mpi *self = link->carried;
    int found = 0, error = MPI_Testsome(self->count, self->natives, &found, self->found, self->statuses);
    pace_status status = PACE_OK;

    self->look++;
    if (error && error != MPI_ERR_IN_STATUS)
        return mpi_broken(link, error, "cannot test");
    if (found == MPI_UNDEFINED)
        return PACE_OK;
    assert(found >= 0 && found <= self->count);
    if (found > 0)
        learn_of_sleep(link);
    for (int i = 0; i < found; i++) {
        pace_status noted = note(link, self->requests[self->found[i]], &self->statuses[i],
                                 error ? self->statuses[i].MPI_ERROR : MPI_SUCCESS);

        status = status ? status : noted;
    }
    for (int place = self->count - 1; found > 0 && place >= 0; place--) {
        if (self->requests[place]->native >= NEVER) /* invariant 1 */
            drop(self, place);
    }
    return status;
}

static pace_status mpi_test(pace__link *link, pace__request *request, bool *over)
{
    mpi *self = link->carried;
    pace_status status = PACE_OK;

    if (request->native == self->look)
        status = look(link);
    *over = request->native == OVER;
    if (request->native < NEVER)
        request->native = self->look;
    return status;
}

/* Cancelling a receive is a local matter: the wait ends at once, with a message or without. (A send is given
 * up only after a failure, which over MPI nobody survives.) */
static void mpi_cancel(pace__link *link, pace__request *request)
{
    mpi *self = link->carried;

    for (int place = 0; place < self->count; place++) {
        if (self->requests[place] != request)
            continue;
        MPI_Cancel(&self->natives[place]);
        MPI_Wait(&self->natives[place], MPI_STATUS_IGNORE);
        drop(self, place);
        return;
    }
}

/* MPI keeps the operation, and may yet write to its buffer: it is only not asked for any more. */
static bool mpi_abandon(pace__link *link, pace__request *request)
{
    mpi *self = link->carried;

    for (int place = 0; place < self->count; place++) {
        if (self->requests[place] == request) {
            drop(self, place);
            break;
        }
    }
    return false;
}

/* --- the end --- */

static pace_status mpi_ended(const pace__link *link)
{
    (void)link; /* a rank that ends the job ends this process as well */
    return PACE_OK;
}

static void mpi_forget(pace__link *link)
{
    mpi *self = link->carried;

    for (int place = self->count - 1; place >= 0; place--) {
        if (!self->own[place])
            drop(self, place);
    }
}

/* The exit code of a process that ends here. A supervisor is told by a frame, too, since a launcher that lets
 * the others live loses the code; PACE_LOST is a word between it and its ranks, and a failure for everybody
 * else. */
static int last_word(pace_status status)
{
    pace_relay relay;

    if (!pace_relay_wanted())
        return status == PACE_LOST ? PACE_FAILED : (int)status;
    pace_relay_init(&relay, STDERR_FILENO);
    pace_relay_exit(&relay, status);
    return (int)status;
}

static void mpi_abort(pace__link *link, pace_status status)
{
    int code = last_word(status);

    (void)link;
    nanosleep(&(struct timespec){.tv_nsec = LAST_WORDS_NS}, NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
    _exit(code); /* where MPI_Abort does return */
}

/* What was said passes through the launcher first. Open MPI's ends the others and itself by that code: well, if it is 0. */
static void end_others(int code, void *unused)
{
    (void)unused;
    fflush(NULL);
    nanosleep(&(struct timespec){.tv_nsec = LAST_WORDS_NS}, NULL);
    MPI_Abort(MPI_COMM_WORLD, code);
}

static void mpi_dismiss(void)
{
    on_exit(end_others,
            NULL); /* if there is no room for it, the launcher ends whoever is left, and complains */
}

static pace_status wait_for_all(pace__link *link, MPI_Request native, int error)
{
    mpi *self = link->carried;
    pace__request request = {.peer = PACE__LINK_EVERYONE, .active = true};

    keep(link, &request, native, error, "cannot end");
    pace_status status = pace__link_wait(link, &request, "the end of the job");

    for (int place = self->count - 1; status && place >= 0; place--) {
        if (self->requests[place] == &request) /* it ends with this function: invariant 2 */
            drop(self, place);
    }
    return status;
}

/* Receives every "alive" that anybody has sent to this rank: MPI wants no message left over. */
static pace_status drain(pace__link *link, uint64_t due)
{
    pace_status status = PACE_OK;
    unsigned turns = 0;

    while (!status && link->alives_got < due)
        status = pace__link_turn(link, link->ranks, (size_t)link->size, "the end of the job", &turns);
    for (int i = 0; i < link->size && !status; i++)
        status = pace__link_wait(link, &link->peers[i].alive, "the end of the job");
    return status;
}

/*
 * First all ranks wait for each other, with signs of life, for as long as it takes. Then signs stop, all tell
 * each other how many they have sent, and those are received.
 */
static pace_status mpi_part(pace__link *link)
{
    const mpi *self = link->carried;
    uint64_t *sent = calloc((size_t)link->size, sizeof *sent), due = 0;
    MPI_Request native = MPI_REQUEST_NULL;

    if (!sent)
        return pace__link_broken(link, PACE_FAILED, "out of memory at the end of the job");
    for (int i = 0; i < link->size; i++)
        pace__link_relate(link, i);
    link->alive_ns = 0;
    int error = MPI_Ibarrier(self->all, &native);
    pace_status status = wait_for_all(link, native, error);

    link->quiet = true;
    link->listening_ns = pace__now_ns();
    for (int i = 0; i < link->size; i++)
        sent[i] = link->peers[i].alives_sent; /* and no more, since it is quiet */
    if (!status) {
        error = MPI_Ireduce_scatter_block(sent, &due, 1, MPI_UINT64_T, MPI_SUM, self->all, &native);
        status = wait_for_all(link, native, error);
    }
    if (!status)
        status = drain(link, due);
    if (!status)
        free(sent); /* else MPI may still read it */
    return status;
}

static void mpi_sleep(pace__link *link, uint64_t ns)
{
    mpi *self = link->carried;

    bool woken =
        pace__sockets_sleep(&self->sockets, self->woken && ns < WOKEN_SLEEP_NS ? WOKEN_SLEEP_NS : ns);

    self->slept = woken ? WOKEN : RAN_OUT;
}

static void mpi_release(pace__link *link)
{
    mpi *self = link->carried;

    if (!link->leaves_alone) { /* else MPI_Finalize might wait for the dead */
        assert(self->count == 0);
        if (self->workers != MPI_COMM_NULL)
            MPI_Comm_free(&self->workers);
        MPI_Comm_free(&self->all);
        MPI_Finalize();
    }
    pace__sockets_close(&self->sockets);
    free(self->natives);
    free(self->requests);
    free(self->own);
    free(self->found);
    free(self->statuses);
    free(self);
}

static const pace__carrier mpi_carrier = {
    .send = mpi_send,
    .receive = mpi_receive,
    .test = mpi_test,
    .cancel = mpi_cancel,
    .abandon = mpi_abandon,
    .sum = mpi_sum,
    .sleep = mpi_sleep,
    .ended = mpi_ended,
    .forget = mpi_forget,
    .abort = mpi_abort,
    .dismiss = mpi_dismiss,
    .part = mpi_part,
    .release = mpi_release,
};

/* --- the start --- */

static pace_status start_mpi(const pace_log *log, int *rank, int *size)
{
    int provided, started, launched_rank;

    if (MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &provided) || provided < MPI_THREAD_FUNNELED)
        return pace_fail(log, PACE_FAILED, "MPI cannot run beside other threads (MPI_THREAD_FUNNELED)");
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
    MPI_Comm_rank(MPI_COMM_WORLD, rank);
    MPI_Comm_size(MPI_COMM_WORLD, size);
    if (!pace__launched(&launched_rank, &started) || started <= 0 || started == *size)
        return PACE_OK;
    MPI_Finalize(); /* every process finds this, alone; one tells */
    pace_say(launched_rank > 0 ? NULL : log, PACE_ERROR,
             "the launcher has started %d processes, but MPI knows of %d: it belongs to another MPI (or srun "
             "needs --mpi=pmix or --mpi=pmi2)",
             started, *size);
    return PACE_USAGE;
}

static int count_neighbours(mpi *self)
{
    MPI_Comm here;
    int ranks = 0, error = MPI_Comm_split_type(self->all, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &here);

    if (!error)
        error = MPI_Comm_size(here, &ranks);
    if (!error)
        error = MPI_Comm_rank(here, &self->neighbour);
    if (!error)
        error = MPI_Comm_free(&here);
    self->alone = ranks == 1;
    return error;
}

static pace_status make_communicators(mpi *self, int rank, int workers, const pace_log *log)
{
    char text[MPI_MAX_ERROR_STRING] = "";
    int length, error = MPI_Comm_dup(MPI_COMM_WORLD, &self->all);

    if (!error)
        error = MPI_Comm_split(self->all, rank < workers ? 0 : MPI_UNDEFINED, rank, &self->workers);
    if (!error)
        error = count_neighbours(self);
    if (!error)
        return PACE_OK;
    MPI_Error_string(error, text, &length);
    return pace_fail(log, PACE_FAILED, "MPI: cannot start: %s", text);
}

/* MPI's start blocks, and has no deadline of its own: a process that cannot reach another would wait for
 * ever. */
typedef struct watchdog {
    const pace__link_options *options;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    pthread_t thread;
    bool started, called_off;
} watchdog;

static void *watch(void *user)
{
    PACE__C_LOCALE();
    watchdog *self = user;
    struct timespec until;
    int result = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += (time_t)(self->options->first_deadline_ns / 1000000000u);
    pthread_mutex_lock(&self->lock);
    while (!self->called_off && result == 0)
        result = pthread_cond_timedwait(&self->changed, &self->lock, &until);
    bool called_off = self->called_off;

    pthread_mutex_unlock(&self->lock);
    if (called_off)
        return NULL;
    pace_fail(self->options->log, PACE_LOST,
              "MPI could not connect all processes within %.3g s: some host cannot be reached by some other",
              (double)self->options->first_deadline_ns * 1e-9);
    _exit(last_word(PACE_LOST));
}

static void call_off(watchdog *self)
{
    if (!self->started)
        return;
    pthread_mutex_lock(&self->lock);
    self->called_off = true;
    pthread_cond_signal(&self->changed);
    pthread_mutex_unlock(&self->lock);
    pthread_join(self->thread, NULL);
}

static pace_status open_mpi(int workers, const pace__link_options *options, pace__link **link)
{
    int rank, size;
    pace_status status = start_mpi(options->log, &rank, &size);

    if (status)
        return status;
    mpi *self = calloc(1, sizeof *self);
    pace__link *opened = pace__link_create(&mpi_carrier, rank, size, workers, options);

    if (!self || !opened)
        status = self ? PACE_FAILED : pace_fail(options->log, PACE_FAILED, "out of memory");
    else
        status = make_communicators(self, rank, workers, options->log);
    if (status) {
        pace__link_free(opened);
        free(self);
        return status;
    }
    pace__sockets_open(&self->sockets);
    opened->carried = self;
    opened->neighbour = self->neighbour;
    opened->alone = self->alone;
    self->usual_spin_ns = opened->spin_ns;
    pace__link_begin(opened);
    *link = opened;
    return PACE_OK;
}

pace_status pace__link_open_mpi(int workers, const pace__link_options *options, pace__link **link)
{
    watchdog dog = {
        .options = options, .lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

    dog.started = pthread_create(&dog.thread, NULL, watch, &dog) == 0;
    pace_status status = open_mpi(workers, options, link);

    call_off(&dog);
    return status;
}

/* --- launchers --- */

/* The variable's value if it is a number from 0 on, else `otherwise`. */
static int number_of(const char *variable, int otherwise)
{
    const char *text = getenv(variable);
    char *behind;

    if (!text || *text < '0' || *text > '9')
        return otherwise;
    long value = strtol(text, &behind, 10);

    return *behind || value > INT_MAX ? otherwise : (int)value;
}

/*
 * srun has started this process as a task of a step. The body of an sbatch script has a SLURM_PROCID as well,
 * but no step; batch and interactive steps have numbers beyond those of srun.
 */
static bool is_slurm_task(void)
{
    return getenv("SLURM_PROCID") && number_of("SLURM_STEP_ID", -1) >= 0;
}

bool pace__launched(int *rank, int *size)
{
    static const struct {
        const char *rank, *size;
    } launchers[] = {
        {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"}, /* mpirun of Open MPI */
        {"PMI_RANK", "PMI_SIZE"},                         /* mpiexec of MPICH; srun --mpi=pmi2 */
        {"PMIX_RANK", "SLURM_STEP_NUM_TASKS"},            /* srun --mpi=pmix */
        {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},         /* srun without either */
    };
    size_t count = sizeof launchers / sizeof *launchers, from = 0;

    while (from < count && !getenv(launchers[from].rank))
        from++;
    if (from == count || (from == count - 1 && !is_slurm_task()))
        return false;
    *rank = number_of(launchers[from].rank, -1);
    *size = number_of(launchers[from].size, 0);
    return true;
}
