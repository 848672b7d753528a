/* What Open MPI leaves of a job that was killed: removed if it is that job's, and nobody's any more. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "files/file.h"
#include "launch/leftovers.h"
#include "support.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define JOB   0x7fff0001ul /* none that mpirun makes while this runs, or it would live and stay */
#define RANKS 3

static char segments[RANKS][512];

static pace__leftovers of_job(void)
{
    pace__leftovers made = {.job = JOB, .ranks = RANKS};

    gethostname(made.host, sizeof made.host - 1);
    return made;
}

static void make_segments(void)
{
    pace__leftovers own = of_job();

    for (int rank = 0; rank < RANKS; rank++) {
        snprintf(segments[rank], sizeof segments[rank], "/dev/shm/vader_segment.%s.%u.%lx.%d", own.host,
                 (unsigned)geteuid(), JOB, rank);
        put_text(segments[rank], "shared");
    }
}

static void segments_of_the_dead_go(void **state)
{
    pace__leftovers other = of_job();

    (void)state;
    make_segments();
    other.job = JOB + 1;
    pace__leftovers_remove(&other);
    other = of_job();
    strcat(other.host, ".elsewhere");
    pace__leftovers_remove(&other);
    pace__leftovers_remove(&(pace__leftovers){0});
    for (int rank = 0; rank < RANKS; rank++)
        assert_true(pace__exists(segments[rank]));
    other = of_job();
    pace__leftovers_remove(&other);
    for (int rank = 0; rank < RANKS; rank++)
        assert_false(pace__exists(segments[rank]));
}

/* Numbers come again. */
static void what_somebody_has_stays(void **state)
{
    pace__leftovers own = of_job();

    (void)state;
    make_segments();
    int fd = open(segments[1], O_RDWR | O_CLOEXEC);
    void *mapped = mmap(NULL, 1, PROT_READ, MAP_SHARED, fd, 0);

    assert_true(fd >= 0 && mapped != MAP_FAILED);
    pace__leftovers_remove(&own);
    assert_false(pace__exists(segments[0]) || pace__exists(segments[2]));
    assert_true(pace__exists(segments[1]));
    munmap(mapped, 1);
    close(fd);
    pace__leftovers_remove(&own);
    assert_false(pace__exists(segments[1]));
}

static pid_t dead_process(void)
{
    pid_t process = fork();

    if (process == 0)
        _exit(0);
    assert_int_equal(waitpid(process, NULL, 0), process);
    return process;
}

/* Makes it, with a file, and says whether it stays. */
static bool session_stays(void **state, const char *format, long process)
{
    pace__leftovers own = of_job();
    char name[600], file[1400];

    snprintf(name, sizeof name, format, own.host, (unsigned)geteuid(), process);
    snprintf(own.session, sizeof own.session, "%s/%s", (const char *)*state, name);
    assert_ok(pace__make_dirs(own.session, &said_log));
    snprintf(file, sizeof file, "%.1300s/contact.txt", own.session);
    put_text(file, "here");
    pace__leftovers_remove(&own);
    return pace__exists(file);
}

static void sessions_of_the_dead_go(void **state)
{
    pid_t dead = dead_process();

    assert_false(session_stays(state, "ompi.%s.%u/pid.%ld", dead));
    assert_true(session_stays(state, "ompi.%s.%u/pid.%ld", getpid()));
    assert_true(session_stays(state, "ompi.%s.%u/pid.%ld/0", dead));
    assert_true(session_stays(state, "ompi.%s.1%u/pid.%ld", dead));
    assert_true(session_stays(state, "mine.%s.%u/pid.%ld", dead));
    assert_true(session_stays(state, "ompi.%s.%u/pid.%ldx", dead));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(segments_of_the_dead_go),
        cmocka_unit_test(what_somebody_has_stays),
        cmocka_unit_test_setup_teardown(sessions_of_the_dead_go, make_directory, remove_directory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
