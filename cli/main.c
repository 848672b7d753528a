/* main.c - finds the verb, reads its options, runs it, and turns its status into the exit code. */
#include "cli.h"
#include "console.h"
#include "help.h"
#include "progress.h"

#include <errno.h>
#include <fcntl.h>
#include <paceline/kernels.h>
#include <paceline/relay.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

/* In the order of a first day's work; the order of --help. */
static const cli_verb *const verbs[] = {
    &cli_gen_clicks, &cli_gen_reviews, &cli_gen_images, &cli_prep_clicks, &cli_prep_reviews, &cli_prep_images,
    &cli_merge,      &cli_train,       &cli_eval,       &cli_predict,     &cli_inspect,      &cli_plan,
    &cli_report,     &cli_top,         &cli_study,      &cli_tune,        &cli_version,      NULL,
};

#define VERBS_MAX 24

/* Where messages and progress go: to the console, or, in a rank of a job, to the process that started it. */
typedef struct outlet {
    cli_console console;
    pace_relay relay;
    bool relayed;
} outlet;

/* Is what is printed all that this gives? Then nobody is served who has stopped reading. */
static volatile sig_atomic_t only_prints = 1;

typedef struct shared_options {
    bool json, quiet;
    int kernels;
} shared_options;

static const pace_option shared_table[] = {
    {"json", 0, PACE_OPT_FLAG, offsetof(shared_options, json), NULL,
     .help = "print the result as one JSON object on standard output", .group = ""},
    {"quiet", 0, PACE_OPT_FLAG, offsetof(shared_options, quiet), NULL,
     .help = "no progress and no information, only warnings and errors"},
    {"kernels", 0, PACE_OPT_CHOICE, offsetof(shared_options, kernels), "auto", "SET",
     "kernels to compute with: the best that this CPU can run (auto), those of every CPU (plain), of "
     "x86-64-v2, -v3 (AVX2), -v4 (AVX-512), or of arm64 (neon)",
     .choices = PACE_KERNELS_WORDS},
    {0},
};

/* ---- help ---- */

static void print_overview(FILE *out)
{
    fputs("paceline trains models by stochastic gradient descent.\n"
          "\n"
          "Usage: paceline VERB [options]\n"
          "\n"
          "Verbs:\n",
          out);
    for (const cli_verb *const *verb = verbs; *verb; verb++)
        cli_help_row(out, 14, (*verb)->name, (*verb)->summary);
    cli_help_text(
        out,
        "\n"
        "  paceline VERB --help explains a verb and its options; -V (--version) is the verb version.\n"
        "\n"
        "A first model, from nothing:\n"
        "  paceline gen clicks -o clicks.tsv --rows 1M\n"
        "  paceline prep clicks clicks.tsv -o data --holdout 0.1\n"
        "  paceline train --data data --model logreg --run run1\n"
        "  paceline eval --run run1 --data data\n"
        "  paceline predict --run run1 clicks.tsv > probabilities.txt\n"
        "\n"
        "Options may also stand in a YAML file (--config FILE) or in the environment (--eval-every is\n"
        "PACELINE_EVAL_EVERY). Defaults < file < environment < command line.\n"
        "\n"
        "Exit codes: 0 done, 64 usage, 65 bad data, 66 missing input, 70 bug, 74 input/output error,\n"
        "75 interrupted but resumable, 1 any other failure. What only prints ends by SIGPIPE (141) when\n"
        "nobody reads any more; a second Ctrl-C ends at once (130).");
}

/* A table whose first heading is empty goes on with the group before it. */
static void print_tables(const pace_option_table *tables, FILE *out)
{
    for (const pace_option_table *table = tables; table->rows; table++) {
        const char *group = table->rows->group;

        if (table > tables && !(group && !*group))
            fputc('\n', out);
        pace_options_print_help(table->rows, cli_help_columns(), out);
    }
}

static void print_manual(const cli_verb *verb, FILE *out)
{
    int columns = cli_help_columns(), column = fprintf(out, "Usage: paceline %s ", verb->name);

    pace_print_wrapped(verb->arguments, strlen(verb->arguments), column, column, columns, out);
    fputc('\n', out);
    cli_help_text(out, verb->manual);
    fputc('\n', out);
    print_tables(verb->tables, out);
    fputc('\n', out);
    if (verb->print_topic)
        verb->print_topic(NULL, out, NULL);
    pace_options_print_help(pace_common_options, columns, out);
    pace_options_print_help(shared_table, columns, out);
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

/* The word behind --help; else what the verb's option for topics says. */
static const char *topic_of(const cli_verb *verb, int argc, char **argv)
{
    const char *topic = NULL;
    size_t length = verb->topic_option ? strlen(verb->topic_option) : 0;

    for (int i = 0; i < argc; i++) {
        const char *next = i + 1 < argc && argv[i + 1][0] != '-' ? argv[i + 1] : NULL;

        if (is_help(argv[i]) && next)
            return next;
        if (length && strcmp(argv[i], verb->topic_option) == 0)
            topic = next;
        else if (length && strncmp(argv[i], verb->topic_option, length) == 0 && argv[i][length] == '=')
            topic = argv[i] + length + 1;
    }
    return topic;
}

static pace_status print_help(const cli_verb *verb, const char *topic, const pace_log *log)
{
    if (topic && verb->print_topic)
        return verb->print_topic(topic, stdout, log);
    print_manual(verb, stdout);
    return PACE_OK;
}

/* ---- which verb ---- */

static size_t first_word_length(const cli_verb *verb)
{
    return strcspn(verb->name, " ");
}

static bool has_first_word(const cli_verb *verb, const char *word)
{
    size_t length = first_word_length(verb);

    return strlen(word) == length && strncmp(verb->name, word, length) == 0;
}

/* The second word of the name, or NULL. */
static const char *second_word(const cli_verb *verb)
{
    const char *blank = strchr(verb->name, ' ');

    return blank ? blank + 1 : NULL;
}

static bool verb_exists(const char *word)
{
    for (const cli_verb *const *verb = verbs; *verb; verb++) {
        if (has_first_word(*verb, word))
            return true;
    }
    return false;
}

/* What other tools call a verb; NULL: nobody knows. */
static const char *translated_verb(const char *word)
{
    static const char *const pairs[][2] = {
        {"fit", "train"},    {"learn", "train"},   {"test", "eval"},     {"evaluate", "eval"},
        {"score", "eval"},   {"infer", "predict"}, {"apply", "predict"}, {"inference", "predict"},
        {"generate", "gen"}, {"make", "gen"},      {"prepare", "prep"},  {"preprocess", "prep"},
        {"convert", "prep"}, {"info", "inspect"},  {"show", "inspect"},  {"describe", "inspect"},
        {"watch", "top"},    {"status", "top"},    {"monitor", "top"},   {"search", "tune"},
        {"sweep", "tune"},   {"optimize", "tune"},
    };

    for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
        if (strcmp(word, pairs[i][0]) == 0)
            return pairs[i][1];
    }
    return NULL;
}

static pace_status unknown_verb(const char *word, const pace_log *log)
{
    char words[VERBS_MAX][16];
    const char *names[VERBS_MAX + 1];
    size_t count = 0;

    for (; verbs[count]; count++) {
        snprintf(words[count], sizeof words[count], "%.*s", (int)first_word_length(verbs[count]),
                 verbs[count]->name);
        names[count] = words[count];
    }
    names[count] = NULL;
    const char *nearest = translated_verb(word) ? translated_verb(word) : pace_nearest_name(word, names);

    if (nearest)
        return pace_fail(log, PACE_USAGE, "unknown verb %s (did you mean %s?)", word, nearest);
    return pace_fail(log, PACE_USAGE, "unknown verb %s; paceline --help lists them", word);
}

/* "gen" needs to know what to make: says what there is. */
static pace_status unknown_kind(const char *word, const char *kind, const pace_log *log)
{
    char list[128] = "";

    for (const cli_verb *const *verb = verbs; *verb; verb++) {
        size_t used = strlen(list);

        if (has_first_word(*verb, word))
            snprintf(list + used, sizeof list - used, "%s%s", used ? ", " : "", (*verb)->name);
    }
    if (!kind || kind[0] == '-')
        return pace_fail(log, PACE_USAGE, "%s must be followed by what it works on; there is: %s", word,
                         list);
    return pace_fail(log, PACE_USAGE, "%s %s is not known; there is: %s", word, kind, list);
}

/* The verb that argv[0..argc) starts with; *used is how many words its name took. */
static pace_status find_verb(int argc, char **argv, const pace_log *log, const cli_verb **found, int *used)
{
    const char *kind = argc > 1 ? argv[1] : NULL;

    for (const cli_verb *const *verb = verbs; *verb; verb++) {
        const char *second = second_word(*verb);

        if (!has_first_word(*verb, argv[0]) || (second && (!kind || strcmp(second, kind) != 0)))
            continue;
        *found = *verb;
        *used = second ? 2 : 1;
        return PACE_OK;
    }
    return verb_exists(argv[0]) ? unknown_kind(argv[0], kind, log) : unknown_verb(argv[0], log);
}

/* "help", "help gen", "help gen clicks", "gen --help": the manuals of all verbs that fit. */
static pace_status show_help(int argc, char **argv, const pace_log *log)
{
    const cli_verb *verb;
    int used, shown = 0;

    if (argc == 0) {
        print_overview(stdout);
        return PACE_OK;
    }
    if (argc > 1) {
        pace_status status = find_verb(argc, argv, log, &verb, &used);

        return status ? status : print_help(verb, used < argc ? argv[used] : NULL, log);
    }
    for (size_t i = 0; verbs[i]; i++) {
        if (!has_first_word(verbs[i], argv[0]))
            continue;
        if (shown++)
            putchar('\n');
        print_manual(verbs[i], stdout);
    }
    return shown ? PACE_OK : unknown_verb(argv[0], log);
}

/* ---- running it ---- */

bool cli_is_standard(const char *path)
{
    return path && strcmp(path, "-") == 0;
}

/* The tables of a verb; without a config, only their names. */
static pace_status add_tables(pace_options *options, const pace_option_table *tables, char *config)
{
    pace_status status = PACE_OK;

    for (; tables->rows && !status; tables++)
        status = pace_options_add(options, tables->rows, config ? config + tables->offset : NULL);
    return status;
}

/* The verb's own tables, what all verbs share, and the names of the other verbs' variables. */
static pace_options *create_options(const cli_verb *verb, void *config, shared_options *shared,
                                    const pace_log *log)
{
    const pace_option_table *first = verb->tables;
    pace_options *options =
        config ? pace_options_create(first->rows, (char *)config + first->offset, log) : NULL;
    pace_status status = options ? add_tables(options, first + 1, config) : PACE_FAILED;

    if (!status && verb->add_tables)
        status = verb->add_tables(options, config);
    if (!status)
        status = pace_options_add(options, shared_table, shared);
    for (size_t i = 0; verbs[i] && !status; i++) {
        if (verbs[i] == verb)
            continue;
        status = add_tables(options, verbs[i]->tables, NULL);
        if (!status && verbs[i]->add_tables)
            status = verbs[i]->add_tables(options, NULL);
    }
    if (status) {
        pace_options_free(options);
        pace_fail(log, PACE_FAILED, "out of memory");
        return NULL;
    }
    return options;
}

static pace_status run_job(const cli_verb *verb, cli_context *cli, outlet *out, void *config,
                           const pace_texts *words)
{
    cli_progress progress;
    pace_sink sink = {cli_progress_record, &progress};
    pace_sink relay_sink = {pace_relay_record, &out->relay};
    pace_status status = PACE_FAILED;
    void *result = calloc(1, verb->result_bytes);

    cli->registry = pace_registry_create();
    if (!result || !cli->registry) {
        pace_fail(&cli->log, PACE_FAILED, "out of memory");
        goto free_both;
    }
    cli_progress_init(&progress, &out->console);
    pace_registry_attach(cli->registry, out->relayed ? &relay_sink : &sink);
    only_prints = verb->only_prints && verb->only_prints(config);
    status = verb->run(cli, config, words, result);
    cli_progress_end(&progress, status == PACE_OK);
    if (!status && !out->relayed) /* the result of a job is printed once, by who started it */
        status = verb->print(cli, config, result);
free_both:
    pace_registry_free(cli->registry);
    free(result);
    return status;
}

static pace_status run_verb(const cli_verb *verb, cli_context *cli, outlet *out, int argc, char **argv)
{
    shared_options shared;
    pace_texts words = {0};
    bool help;
    pace_status status = PACE_FAILED;
    void *config = calloc(1, verb->config_bytes);
    pace_options *options = create_options(verb, config, &shared, &cli->log);

    if (!options)
        goto free_config;
    status = pace_options_parse(options, argc, argv, &help, verb->takes_words ? &words : NULL);
    if (!status && help) {
        status = print_help(verb, topic_of(verb, argc, argv), &cli->log);
    } else if (!status) {
        cli->json = shared.json;
        cli->quiet = out->console.quiet = shared.quiet;
        status = pace_kernels_use(shared.kernels, &cli->log);
        if (!status)
            status = run_job(verb, cli, out, config, &words);
    }
    pace_options_free(options);
free_config:
    free(config);
    return status;
}

static pace_status dispatch(cli_context *cli, outlet *out, int argc, char **argv)
{
    const cli_verb *verb;
    int used;

    if (argc == 0) {
        print_overview(stderr);
        return PACE_USAGE;
    }
    if (strcmp(argv[0], "help") == 0 || is_help(argv[0]))
        return show_help(argc - 1, argv + 1, &cli->log);
    if (strcmp(argv[0], "--version") == 0 || strcmp(argv[0], "-V") == 0)
        return run_verb(&cli_version, cli, out, argc - 1, argv + 1);
    if (argc == 2 && is_help(argv[1]))
        return show_help(1, argv, &cli->log);
    pace_status status = find_verb(argc, argv, &cli->log, &verb, &used);

    return status ? status : run_verb(verb, cli, out, argc - used, argv + used);
}

/* ---- the process ---- */

/* A closed standard stream would be taken by the next file that is opened, and messages would land in it. The
 * stand-in cannot be used either (its direction is wrong), so that writing results to it is still an error.
 */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) >= 0)
            continue;
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            abort();
    }
}

/* Is standard output a pipe whose reader has left? */
static bool nobody_reads(void)
{
    struct pollfd output = {.fd = STDOUT_FILENO};

    return poll(&output, 1, 0) == 1 && output.revents & (POLLERR | POLLHUP);
}

/* `paceline inspect run | head` has what it wanted: whoever only prints ends as other programs do, by SIGPIPE, and says
 * nothing. But work that was begun goes on, whoever has left: a message to a closed pipe is lost, like that, and so is
 * the summary of what is on disk by then. */
static void take_closed_pipe(int signal_number)
{
    int error = errno;

    if (only_prints && nobody_reads()) {
        signal(signal_number, SIG_DFL);
        raise(signal_number);
    }
    errno = error;
}

static void do_nothing(int signal_number)
{
    (void)signal_number;
}

/* Writing to a closed pipe, or more than ulimit -f allows, is an error like any other. A handler, unlike SIG_IGN, is not
 * inherited by the programs that prep --on-part starts. */
static void survive_failed_writes(void)
{
    struct sigaction closed = {.sa_handler = take_closed_pipe, .sa_flags = SA_RESTART},
                     too_much = {.sa_handler = do_nothing, .sa_flags = SA_RESTART};

    sigaction(SIGPIPE, &closed, NULL);
    sigaction(SIGXFSZ, &too_much, NULL);
}

/* What was printed counts only once it is out, or if nobody wanted it. */
static pace_status close_output(pace_status status, const pace_log *log)
{
    bool failed = ferror(stdout) != 0;

    errno = 0;
    failed = fflush(stdout) != 0 || failed;
    bool unwanted = failed && !only_prints && nobody_reads();

    failed = fclose(stdout) != 0 || failed;
    if (!failed || unwanted || status)
        return status;
    return pace_fail(log, PACE_IO, "cannot write to standard output%s%s", errno ? ": " : "",
                     errno ? strerror(errno) : "");
}

/* Parts, spill files and inputs are open at the same time: more than the 1,024 that shells allow. */
static void allow_many_files(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) != 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

/* A rank says hello only when it can be stopped: its launcher waits for that before it passes a signal on. */
static void start_relay(outlet *out, cli_context *cli)
{
    out->relayed = true;
    cli_stop_on_signals(cli, &cli_stop_nothing_kept, 0); /* a rank answers through its relay */
    pace_relay_init(&out->relay, STDERR_FILENO);
    pace_relay_hello(&out->relay);
    cli->log = (pace_log){pace_relay_log, &out->relay};
}

int main(int argc, char **argv)
{
    outlet out = {.relayed = false};
    cli_context cli = {.log = {cli_console_log, &out.console}};

    occupy_closed_streams();
    allow_many_files();
    survive_failed_writes();
    cli_answer_interrupt();
    cli_console_init(&out.console);
    if (pace_relay_wanted())
        start_relay(&out, &cli);
    pace_status status = argc > 0 ? dispatch(&cli, &out, argc - 1, argv + 1) : PACE_USAGE;

    status = close_output(status, &cli.log);
    if (out.relayed)
        pace_relay_exit(&out.relay, status);
    return status;
}
