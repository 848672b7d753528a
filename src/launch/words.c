#include "files/file.h"
#include "launch/internal.h"

#include <assert.h>
#include <paceline/kernels.h>
#include <paceline/relay.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PROGRAM_BYTES 4096

/* ---- lists of words ---- */

typedef struct word_list {
    char **words; /* NULL-terminated, from the first word on */
    size_t count, room;
    bool failed; /* out of memory: nothing is added any more */
} word_list;

/* Takes over `word`. */
static void add_owned(word_list *list, char *word)
{
    assert(list->count <= list->room);
    if (list->count == list->room) {
        size_t room = list->room ? 2 * list->room : 64;
        char **grown = realloc(list->words, (room + 1) * sizeof *grown);

        list->failed = list->failed || !grown;
        list->words = grown ? grown : list->words;
        list->room = grown ? room : list->room;
    }
    if (list->failed || !word) {
        list->failed = true;
        free(word);
        return;
    }
    list->words[list->count++] = word;
    list->words[list->count] = NULL;
}

static void add(word_list *list, const char *word)
{
    add_owned(list, strdup(word));
}

/* Up to a NULL. */
static void add_all(word_list *list, ...)
{
    va_list words;

    va_start(words, list);
    for (const char *word; (word = va_arg(words, const char *));)
        add(list, word);
    va_end(words);
}

static char **finish(word_list *list)
{
    assert(list->failed || (list->words && !list->words[list->count]));
    if (!list->failed)
        return list->words;
    pace_options_free_words(list->words);
    return NULL;
}

/* ---- the command line ---- */

pace__engine pace__engine_of(const char *launcher, const char *version_text)
{
    const char *slash = strrchr(launcher, '/'), *name = slash ? slash + 1 : launcher;

    if (strstr(version_text, "Open MPI") || strstr(version_text, "OpenRTE"))
        return PACE__OPEN_MPI;
    if (strstr(version_text, "HYDRA") || strstr(version_text, "MPICH"))
        return PACE__MPICH;
    return strstr(name, "mpich") || strstr(name, "hydra") ? PACE__MPICH : PACE__OPEN_MPI;
}

static void add_command(word_list *list, int ranks, char *const *words)
{
    add(list, "-n");
    add_owned(list, pace__format("%d", ranks));
    for (; *words; words++)
        add(list, *words);
}

/* Consecutive ranks on the same host, from `first` on. */
static int run_length(const int *host_of, int first, int ranks)
{
    int last = first + 1;

    assert(first >= 0 && first < ranks);
    while (last < ranks && host_of[last] == host_of[first])
        last++;
    return last - first;
}

/* One application context: so many ranks, there. */
static void add_context(word_list *list, const char *host, int ranks, const char *directory,
                        char *const *words)
{
    add_all(list, "-x", PACE_RELAY_VARIABLE, "-wdir", directory, "--host", NULL);
    add_owned(list, pace__format("%s:%d", host, ranks));
    add_command(list, ranks, words);
}

/* The others live on when a rank dies, and mpirun tells of it. A host that is cut off is noticed by the
 * kernels, who ask each other while nothing else is said: within 25 s, instead of 8 minutes. Daemons give
 * ranks a second between SIGTERM and SIGKILL, one daemon after the other; but we end a job only when that is
 * of no use any more. */
static void add_recovery(word_list *list)
{
    add_all(list, "--enable-recovery", "--mca", "odls_base_sigkill_timeout", "0", NULL);
    add_all(list, "--mca", "state_base_verbose", "1", "--mca", "oob_tcp_keepalive_time", "10", "--mca",
            "oob_tcp_keepalive_intvl", "5", "--mca", "oob_tcp_keepalive_probes", "3", NULL);
}

/* mpirun numbers the ranks of its contexts in their order: that is what places each rank exactly. */
static void add_open_mpi(word_list *list, const pace__launch_plan *plan, const char *directory,
                         const pace__host *hosts, const int *host_of)
{
    int ranks = pace__cluster_size(&plan->cluster);

    /* Ranks die with the thread that has started them (<paceline/relay.h>): it should be mpirun's first. */
    add_all(list, "--bind-to", "none", "--mca", "odls_base_num_threads", "0", NULL);
    if (plan->outlives_workers)
        add_recovery(list);
    if (!hosts)
        add_context(list, "localhost", ranks, directory, plan->words);
    for (int rank = 0, length; hosts && rank < ranks; rank += length) {
        length = run_length(host_of, rank, ranks);
        if (rank > 0)
            add(list, ":");
        add_context(list, hosts[host_of[rank]].name, length, directory, plan->words);
    }
}

/* "a:2,b:1"; NULL when out of memory. */
static char *host_list(const pace__host *hosts, const int *host_of, int ranks)
{
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);

    if (!memory)
        return NULL;
    for (int rank = 0, length; rank < ranks; rank += length) {
        length = run_length(host_of, rank, ranks);
        fprintf(memory, "%s%s:%d", rank ? "," : "", hosts[host_of[rank]].name, length);
    }
    if (fclose(memory) != 0) {
        free(text);
        return NULL;
    }
    return text;
}

/* mpiexec takes one list of hosts for all ranks, and fills it in its order. */
static void add_mpich(word_list *list, const pace__launch_plan *plan, const char *directory,
                      const pace__host *hosts, const int *host_of)
{
    int ranks = pace__cluster_size(&plan->cluster);

    add_all(list, "-print-all-exitcodes", "-genv", PACE_RELAY_VARIABLE, NULL);
    add_owned(list, pace__format("%d", plan->attempts + 1));
    add_all(list, "-wdir", directory, "-hosts", NULL);
    add_owned(list, hosts ? host_list(hosts, host_of, ranks) : pace__format("localhost:%d", ranks));
    add_command(list, ranks, plan->words);
}

char **pace__launcher_words(pace__engine engine, const char *launcher, const pace__launch_plan *plan,
                            const char *directory, const pace__host *hosts, const int *host_of)
{
    word_list list = {0};

    assert(plan->words[0] && (!hosts || host_of));
    add(&list, launcher);
    if (engine == PACE__OPEN_MPI)
        add_open_mpi(&list, plan, directory, hosts, host_of);
    else
        add_mpich(&list, plan, directory, hosts, host_of);
    return finish(&list);
}

/* ---- the environment ---- */

static bool has_variable(char *const *variables, const char *name)
{
    size_t length = strlen(name);

    for (; *variables; variables++) {
        if (strncmp(*variables, name, length) == 0 && (*variables)[length] == '=')
            return true;
    }
    return false;
}

static void add_variable(word_list *list, char *const *variables, const char *name, const char *value)
{
    if (!has_variable(variables, name))
        add_owned(list, pace__format("%s=%s", name, value));
}

char **pace__launcher_environment(char *const *variables, int attempts, int ranks, int cores, bool here,
                                  bool root)
{
    word_list list = {0};

    for (char *const *variable = variables; *variable; variable++) {
        if (strncmp(*variable, "PACELINE_", 9) != 0)
            add(&list, *variable);
    }
    add_owned(&list, pace__format("%s=%d", PACE_RELAY_VARIABLE, attempts + 1));
    /* Open MPI: containers run as root, and a job may have more processes than the machine has cores;
     * then waiting ranks should let others run. MPICH knows none of these. */
    if (root) {
        add_variable(&list, variables, "OMPI_ALLOW_RUN_AS_ROOT", "1");
        add_variable(&list, variables, "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
    }
    add_variable(&list, variables, "OMPI_MCA_rmaps_base_oversubscribe", "1");
    add_variable(&list, variables, "OMPI_MCA_orte_keep_fqdn_hostnames", "1"); /* else cut at the first dot */
    if (ranks > cores)
        add_variable(&list, variables, "OMPI_MCA_mpi_yield_when_idle", "1");
    /* Within a machine it comes to this anyway, but looking for networks first takes 0.2 s. */
    if (here)
        add_variable(&list, variables, "OMPI_MCA_pml", "ob1");
    return finish(&list);
}

/* ---- the ranks' command ---- */

/* The path of this program. Once another file has taken its place, the kernel puts a word behind it; the ranks run that
 * file then. */
static pace_status find_program(char program[PROGRAM_BYTES], const pace_log *log)
{
    static const char mark[] = " (deleted)";
    ssize_t length = readlink("/proc/self/exe", program, PROGRAM_BYTES - 1);

    if (length <= 0 || length == PROGRAM_BYTES - 1)
        return pace_fail(log, PACE_FAILED,
                         "cannot find out where this program is: /proc/self/exe is not readable");
    program[length] = '\0';
    size_t bare = (size_t)length > sizeof mark - 1 ? (size_t)length - (sizeof mark - 1) : 0;

    if (bare > 0 && strcmp(program + bare, mark) == 0 && !pace__exists(program))
        program[bare] = '\0';
    return PACE_OK;
}

pace_status pace__launch_words(const char *verb, const pace_option_part *parts, const pace_texts *arguments,
                               const pace_log *log, char ***words)
{
    char program[PROGRAM_BYTES], **options;
    size_t count, first = strcspn(verb, " ");
    word_list list = {0};
    pace_status status = find_program(program, log);

    if (!status)
        status = pace_options_to_words(parts, log, &options, &count);
    if (status)
        return status;
    add(&list, program);
    add_owned(&list, strndup(verb, first));
    if (verb[first])
        add(&list, verb + first + 1);
    for (size_t i = 0; i < count; i++)
        add(&list, options[i]);
    pace_options_free_words(options);
    if (pace_kernels_asked() != PACE_KERNELS_AUTO)
        add_owned(&list, pace__format("--kernels=%s", pace_kernels_name(pace_kernels_asked())));
    if (arguments)
        add(&list, "--");
    for (size_t i = 0; arguments && i < arguments->count; i++)
        add(&list, arguments->items[i]);
    *words = finish(&list);
    return *words ? PACE_OK : pace_fail(log, PACE_FAILED, "out of memory");
}

/* Measured with Open MPI 4.1: 25 and 3 for each rank while it runs, some more while it starts them; a chief has 29 and one
 * for each worker. */
uint64_t pace__launcher_files(int ranks_here)
{
    return 32 + 4 * (uint64_t)ranks_here;
}
