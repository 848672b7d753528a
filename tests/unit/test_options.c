/* The option engine: precedence, values, messages, YAML there and back. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <inttypes.h>
#include <paceline/options.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct settings {
    int64_t batch;
    int64_t shift;
    uint64_t memory;
    double lr;
    const char *run;
    const char *like;
    int schedule;
    bool exact;
    bool hashed;
    pace_texts test;
    pace_texts words;
    int64_t profile;
    const char *dashboard;
} settings;

static const pace_option table[] = {
    {"batch", 'b', PACE_OPT_INT, offsetof(settings, batch), "512", "N", "rows in a step", .min = 1,
     .max = 1e9},
    {"shift", 0, PACE_OPT_INT, offsetof(settings, shift), NULL, "N", .help = "moves by N"},
    {"memory", 0, PACE_OPT_SIZE, offsetof(settings, memory), "1G", "BYTES", .help = "limit of memory"},
    {"lr", 0, PACE_OPT_REAL, offsetof(settings, lr), "0.1", "X", "learning rate", .min = -1, .max = 1e6,
     .group = "Training"},
    {"run", 'o', PACE_OPT_TEXT, offsetof(settings, run), NULL, "DIR", "run directory", .required = true},
    {"like", 0, PACE_OPT_TEXT, offsetof(settings, like), "other", "DIR", .help = "take it from there"},
    {"schedule", 0, PACE_OPT_CHOICE, offsetof(settings, schedule), "constant", "NAME", "course of the rate",
     .choices = "constant|linear|off"},
    {"exact", 0, PACE_OPT_FLAG, offsetof(settings, exact), NULL, .help = "one update per step"},
    {"hashed", 0, PACE_OPT_FLAG, offsetof(settings, hashed), "true", .help = "hash the ids"},
    {"test", 0, PACE_OPT_LIST, offsetof(settings, test), NULL, "FILE", .help = "test rows"},
    {"words", 0, PACE_OPT_LIST, offsetof(settings, words), "a:b", "WORD", .help = "some words"},
    {"profile", 0, PACE_OPT_INT, offsetof(settings, profile), "0", "STEPS", "look at so many", .min = 0,
     .max = 1e9, .implied = "100"},
    {"dashboard", 0, PACE_OPT_TEXT, offsetof(settings, dashboard), NULL, "ADDRESS", .help = "show it there",
     .implied = "127.0.0.1"},
    {0},
};

typedef struct shared {
    bool json;
} shared;

static const pace_option shared_table[] = {
    {"json", 0, PACE_OPT_FLAG, offsetof(shared, json), NULL, .help = "as JSON"},
    {0},
};

static const pace_option other_table[] = {
    {"rows", 0, PACE_OPT_INT, 0, NULL, "N", .help = "rows"},
    {0},
};

typedef struct fixture {
    char directory[64];
    char file[96];
    char errors[2048], warnings[2048];
    pace_log log;
    settings settings;
    shared shared;
    bool help;
    pace_texts positional;
    pace_options *options;
} fixture;

static void collect(void *user, pace_level level, const char *text)
{
    fixture *f = user;
    char *into = level == PACE_ERROR ? f->errors : f->warnings;
    size_t used = strlen(into);

    snprintf(into + used, sizeof f->errors - used, "%s\n", text);
}

static int set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);

    strcpy(f->directory, "/tmp/paceline-options-XXXXXX");
    if (!mkdtemp(f->directory))
        return -1;
    snprintf(f->file, sizeof f->file, "%s/a.yaml", f->directory);
    f->log = (pace_log){collect, f};
    *state = f;
    return 0;
}

static int tear_down(void **state)
{
    fixture *f = *state;

    pace_options_free(f->options);
    unlink(f->file);
    rmdir(f->directory);
    free(f);
    unsetenv("PACELINE_BATCH");
    unsetenv("PACELINE_TEST");
    unsetenv("PACELINE_CONFIG");
    return 0;
}

/* Parses the words of `line` (separated by blanks) from a fresh start. */
static pace_status parse(fixture *f, const char *line)
{
    char copy[512], *words[64], *rest = copy;
    int count = 0;

    snprintf(copy, sizeof copy, "%s", line);
    for (char *word; (word = strsep(&rest, " "));) {
        if (*word)
            words[count++] = word;
    }
    f->errors[0] = f->warnings[0] = '\0';
    pace_options_free(f->options);
    f->options = pace_options_create(table, &f->settings, &f->log);
    assert_non_null(f->options);
    assert_int_equal(pace_options_add(f->options, shared_table, &f->shared), PACE_OK);
    assert_int_equal(pace_options_add(f->options, other_table, NULL), PACE_OK);
    return pace_options_parse(f->options, count, words, &f->help, &f->positional);
}

static void write_config(const fixture *f, const char *text)
{
    FILE *file = fopen(f->file, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static pace_status parse_config(fixture *f, const char *yaml, const char *line)
{
    char words[512];

    write_config(f, yaml);
    snprintf(words, sizeof words, "--config %s %s", f->file, line);
    return parse(f, words);
}

static void assert_ok(const fixture *f, pace_status status)
{
    if (status)
        print_error("%s", f->errors);
    assert_int_equal(status, PACE_OK);
    assert_string_equal(f->errors, "");
}

/* Exactly one message, and it contains all of the texts (up to a NULL). */
static void assert_refused(fixture *f, pace_status status, ...)
{
    va_list texts;

    assert_int_equal(status, PACE_USAGE);
    const char *end = strchr(f->errors, '\n');

    assert_true(end && end[1] == '\0');
    va_start(texts, status);
    for (const char *text; (text = va_arg(texts, const char *));) {
        if (!strstr(f->errors, text))
            fail_msg("\"%s\" is not in: %s", text, f->errors);
    }
    va_end(texts);
}

static void test_defaults(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r"));
    assert_int_equal(f->settings.batch, 512);
    assert_int_equal(f->settings.shift, 0);
    assert_true(f->settings.memory == (uint64_t)1 << 30);
    assert_true(f->settings.lr == 0.1);
    assert_string_equal(f->settings.like, "other");
    assert_int_equal(f->settings.schedule, 0);
    assert_false(f->settings.exact);
    assert_true(f->settings.hashed);
    assert_int_equal(f->settings.test.count, 0);
    assert_int_equal(f->settings.words.count, 2);
    assert_string_equal(f->settings.words.items[1], "b");
    assert_true(pace_options_given(f->options, "run"));
    assert_false(pace_options_given(f->options, "batch"));
    assert_false(pace_options_given(f->options, "nonsense"));
}

static void test_forms(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "in1 -b 7 --lr=0.5 -o out --exact --no-hashed --json - in2 -- --batch"));
    assert_int_equal(f->settings.batch, 7);
    assert_true(f->settings.lr == 0.5);
    assert_string_equal(f->settings.run, "out");
    assert_true(f->settings.exact);
    assert_false(f->settings.hashed);
    assert_true(f->shared.json);
    assert_int_equal(f->positional.count, 4);
    assert_string_equal(f->positional.items[0], "in1");
    assert_string_equal(f->positional.items[1], "-");
    assert_string_equal(f->positional.items[2], "in2");
    assert_string_equal(f->positional.items[3], "--batch");

    assert_ok(f,
              parse(f, "--batch 3 --batch 4 --exact --no-exact --exact=on --run=--odd --shift -5 --lr -.5"));
    assert_int_equal(f->settings.batch, 4);
    assert_true(f->settings.exact);
    assert_string_equal(f->settings.run, "--odd");
    assert_int_equal(f->settings.shift, -5);
    assert_true(f->settings.lr == -0.5);

    assert_ok(f, parse(f, "--run - --like=")); /* "-" is a value; an empty text is a text */
    assert_string_equal(f->settings.run, "-");
    assert_string_equal(f->settings.like, "");
}

static void test_precedence(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", ""));
    assert_int_equal(f->settings.batch, 2);
    assert_true(pace_options_given(f->options, "batch"));
    setenv("PACELINE_BATCH", "3", 1);
    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", ""));
    assert_int_equal(f->settings.batch, 3);
    assert_ok(f, parse_config(f, "batch: 2\nrun: file\n", "--batch 4"));
    assert_int_equal(f->settings.batch, 4);
    assert_string_equal(f->settings.run, "file");

    setenv("PACELINE_BATCH", "", 1); /* as good as unset */
    setenv("PACELINE_CONFIG", f->file, 1);
    assert_ok(f, parse(f, "--run r"));
    assert_int_equal(f->settings.batch, 2);
    setenv("PACELINE_CONFIG", "/nonexistent/a.yaml", 1);
    char words[128];

    snprintf(words, sizeof words, "--config=%s", f->file);
    assert_ok(f, parse(f, words));
    assert_int_equal(parse(f, "--run r"), PACE_NO_INPUT);
    assert_non_null(strstr(f->errors, "/nonexistent/a.yaml"));
}

static void test_lists(void **state)
{
    fixture *f = *state;
    const char *yaml = "run: r\ntest: [x, \"y z\"]\nwords: one\n";

    assert_ok(f, parse_config(f, yaml, ""));
    assert_int_equal(f->settings.test.count, 2);
    assert_string_equal(f->settings.test.items[1], "y z");
    assert_int_equal(f->settings.words.count, 1); /* replaces the default a:b */
    assert_string_equal(f->settings.words.items[0], "one");

    setenv("PACELINE_TEST", "p:q:r", 1);
    assert_ok(f, parse_config(f, yaml, ""));
    assert_int_equal(f->settings.test.count, 3);
    assert_string_equal(f->settings.test.items[2], "r");

    assert_ok(f, parse_config(f, yaml, "--test 1 --test=2 --test 3 --test 4 --test 5"));
    assert_int_equal(f->settings.test.count, 5);
    for (int i = 0; i < 5; i++)
        assert_int_equal(f->settings.test.items[i][0], '1' + i);

    assert_ok(f, parse_config(f, "run: r\nwords: []\n", ""));
    assert_int_equal(f->settings.words.count, 0);
    assert_refused(f, parse_config(f, "run: r\nbatch: [1, 2]\n", ""), "a.yaml:2", "batch", "list", NULL);
}

static void test_whole_numbers(void **state)
{
    static const struct {
        const char *text;
        int64_t value;
    } good[] = {
        {"0", 0},
        {"10k", 10000},
        {"10K", 10000},
        {"3M", 3000000},
        {"1e6", 1000000},
        {"1.5e3", 1500},
        {"2.3M", 2300000},
        {"0.001k", 1},
        {"1e-2k", 10},
        {"2G", 2000000000},
        {"1T", 1000000000000},
        {"+7", 7},
        {"007", 7},
        {"-12", -12},
        {"5.0", 5},
        {"0e999", 0},
        {"9007199254740993", 9007199254740993},
        {"9223372036854775807", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
    };
    static const char *const bad[] = {"",    "k",    "1.5", "1e",  "e3",    "0x10", "1 ",   "--1", "1kk",
                                      "1ki", "1e6x", "nan", "inf", "1,000", ".",    "1..2", "1b",  "ten"};
    static const char *const large[] = {"9223372036854775808", "-9223372036854775809", "1e19", "1e400",
                                        "10000000T"};
    fixture *f = *state;
    char words[128];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(words, sizeof words, "--run r --shift=%s", good[i].text);
        assert_ok(f, parse(f, words));
        if (f->settings.shift != good[i].value)
            fail_msg("%s was read as %" PRId64, good[i].text, f->settings.shift);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *argv[] = {(char[]){"--run=r"}, words};

        snprintf(words, sizeof words, "--shift=%s", bad[i]);
        parse(f, "--run r");
        pace_options_free(f->options);
        f->options = pace_options_create(table, &f->settings, &f->log);
        assert_refused(f, pace_options_parse(f->options, 2, argv, &f->help, &f->positional), "--shift",
                       "whole number", NULL);
        f->errors[0] = '\0';
    }
    for (size_t i = 0; i < sizeof large / sizeof *large; i++) {
        snprintf(words, sizeof words, "--run r --shift=%s", large[i]);
        assert_refused(f, parse(f, words), "--shift", large[i], "64 bits", NULL);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t value;
    } good[] = {
        {"4096", 4096},
        {"512M", 512ull << 20},
        {"1G", 1ull << 30},
        {"1GiB", 1ull << 30},
        {"1gib", 1ull << 30},
        {"1.5G", 3ull << 29},
        {"2T", 2ull << 40},
        {"1e6", 1000000},
        {"64k", 65536},
        {"0.3k", 307},
        {"18446744073709551615", UINT64_MAX},
    };
    static const char *const bad[] = {"-1", "1GB", "1X", "1Gi", "0.5", "G", "1.5.G"};
    fixture *f = *state;
    char words[128];

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        snprintf(words, sizeof words, "--run r --memory %s", good[i].text);
        assert_ok(f, parse(f, words));
        if (f->settings.memory != good[i].value)
            fail_msg("%s was read as %" PRIu64, good[i].text, f->settings.memory);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(words, sizeof words, "--run r --memory=%s", bad[i]);
        assert_refused(f, parse(f, words), "--memory", bad[i], "not a size", NULL);
    }
    assert_refused(f, parse(f, "--run r --memory 18446744073709551616"), "64 bits", NULL);
}

static void test_reals(void **state)
{
    static const char *const bad[] = {"nan", "inf", "-inf", "0x1p3", "1e", "abc", "1k", "infinity"};
    fixture *f = *state;
    char words[128];

    assert_ok(f, parse(f, "--run r --lr 1e-4"));
    assert_true(f->settings.lr == 1e-4);
    assert_ok(f, parse(f, "--run r --lr 5."));
    assert_true(f->settings.lr == 5);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        snprintf(words, sizeof words, "--run r --lr=%s", bad[i]);
        assert_refused(f, parse(f, words), "--lr", bad[i], "not a number", NULL);
    }
    assert_refused(f, parse(f, "--run r --lr 1e309"), "too large", NULL);
}

static void test_out_of_range_says_where(void **state)
{
    fixture *f = *state;

    assert_refused(f, parse(f, "--run r --batch 0"), "--batch", " 0", "1 and 1000000000", NULL);
    assert_refused(f, parse(f, "--run r -b 2G"), "--batch", "2G", "1 and 1000000000", NULL);
    assert_refused(f, parse(f, "--run r --lr -1.5"), "--lr", "-1.5", "-1 and 1000000", NULL);
    assert_refused(f, parse_config(f, "# comment\n\nrun: r\nbatch: -3\n", ""), "a.yaml:4", "batch", "-3",
                   "1 and 1000000000", NULL);
    setenv("PACELINE_BATCH", "1e10", 1);
    assert_refused(f, parse(f, "--run r"), "PACELINE_BATCH", "1e10", "1 and 1000000000", NULL);
}

static void test_choices_and_flags(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r --schedule off"));
    assert_int_equal(f->settings.schedule, 2);
    assert_refused(f, parse(f, "--run r --schedule linaer"), "--schedule", "linaer", "constant|linear|off",
                   "did you mean linear?", NULL);
    assert_refused(f, parse(f, "--run r --schedule zebra"), "constant|linear|off", NULL);
    assert_null(strstr(f->errors, "did you mean"));
    assert_refused(f, parse(f, "--run r --exact=maybe"), "--exact", "maybe", "true or false", NULL);
    assert_ok(f, parse_config(f, "run: r\nexact: Yes\nhashed: off\nschedule: off\n", ""));
    assert_true(f->settings.exact);
    assert_false(f->settings.hashed);
}

static void test_usage_errors(void **state)
{
    fixture *f = *state;

    assert_refused(f, parse(f, ""), "--run", "missing", NULL);
    assert_refused(f, parse(f, "--run r --bacth 3"), "--bacth", "did you mean --batch?", NULL);
    assert_refused(f, parse(f, "--run r --sched linear"), "did you mean --schedule?", NULL);
    assert_refused(f, parse(f, "--run r --no-exat"), "did you mean --no-exact?", NULL);
    assert_refused(f, parse(f, "--run r --no-batch"), "--no-batch", NULL);
    assert_refused(f, parse(f, "--run r --no-exact=1"), "--no-exact", NULL);
    assert_refused(f, parse(f, "--run r --zzz"), "unknown option --zzz", NULL);
    assert_refused(f, parse(f, "--run r -run"), "unknown option -run", "--run", NULL);
    assert_refused(f, parse(f, "--run r -x"), "unknown option -x", NULL);
    assert_refused(f, parse(f, "--run r --rows 3"), "unknown option --rows", NULL);
    assert_refused(f, parse(f, "--run"), "--run", "needs a value", NULL);
    assert_refused(f, parse(f, "--run --exact"), "--run", "--exact", NULL);
    assert_refused(f, parse(f, "-o -b 3"), "-o", "-b", NULL);
    assert_refused(f, parse(f, "--run --"), "--run", NULL);
    assert_refused(f, parse(f, "--=3"), "--=3", NULL);
    assert_refused(f, parse_config(f, "run: ~\n", ""), "--run", "missing", NULL);
}

static void test_help_stops(void **state)
{
    fixture *f = *state;

    assert_ok(f, parse(f, "--batch 3 --help --nonsense")); /* and the missing --run does not matter */
    assert_true(f->help);
    assert_ok(f, parse(f, "-h"));
    assert_true(f->help);
    assert_ok(f, parse(f, "--run r"));
    assert_false(f->help);
}

static void test_yaml_errors(void **state)
{
    static const struct {
        const char *yaml, *place, *words;
    } cases[] = {
        {"run: r\n\nbacth: 3\n", "a.yaml:3", "did you mean batch?"},
        {"run: r\nconfig: other.yaml\n", "a.yaml:2", "unknown key config"},
        {"run: r\nbatch: 3\nbatch: 4\n", "a.yaml:3", "first in line 2"},
        {"run: r\nbatch:\n  deep: 1\n", "a.yaml:3", "batch"},
        {"run: r\nbatch: \n", "a.yaml:2", "no value"},
        {"run: r\ntest: [a, [b]]\n", "a.yaml:2", "items"},
        {"run: r\nbatch: x7\n", "a.yaml:2", "whole number"},
        {"- run\n- r\n", "a.yaml:1", "name: value"},
        {"just text\n", "a.yaml:1", "name: value"},
        {"run: \"open\nbatch: 3\n", "a.yaml:", "not valid YAML"},
        {"run: r\n\tbatch: 3\n", "a.yaml:2", "not valid YAML"},
        {"run: r\n---\nbatch: 3\n", "a.yaml:2", "second document"},
        {"run: &a r\nlike: *a\n", "a.yaml:2", "alias"},
        {"run: \"a\\0b\"\n", "a.yaml:1", "zero byte"},
        {"run: \xff\xfe\n", "a.yaml", "not a YAML text"},
        {"? [a, b]\n: c\n", "a.yaml:1", "key"},
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_refused(f, parse_config(f, cases[i].yaml, ""), cases[i].place, cases[i].words, NULL);
    assert_ok(f, parse_config(f, "", "--run r"));
    assert_ok(f, parse_config(f, "# nothing here\n", "--run r"));
    assert_ok(f, parse_config(f, "{run: r, batch: 9}", ""));
    assert_int_equal(f->settings.batch, 9);
}

static void test_unknown_variables(void **state)
{
    fixture *f = *state;

    setenv("PACELINE_BACTH", "3", 1);
    setenv("PACELINE_ROWS", "3", 1);       /* of another verb */
    setenv("PACELINE_PART", "file.h5", 1); /* set by prep --on-part */
    setenv("PACELINE_RELAY", "0", 1);      /* set for the ranks of a job */
    setenv("PACELINERS", "3", 1);
    pace_status status = parse(f, "--run r");

    unsetenv("PACELINE_BACTH");
    unsetenv("PACELINE_ROWS");
    unsetenv("PACELINE_PART");
    unsetenv("PACELINE_RELAY");
    unsetenv("PACELINERS");
    assert_ok(f, status);
    assert_string_equal(f->warnings, "environment variable PACELINE_BACTH is not known and was ignored "
                                     "(did you mean PACELINE_BATCH?)\n");
}

static void test_nearest_name(void **state)
{
    static const char *const names[] = {
        "gen", "prep", "train", "eval", "predict", "inspect", "checkpoint-every", NULL};
    static const struct {
        const char *word, *nearest;
    } cases[] = {
        {"train", "train"},
        {"tarin", "train"}, /* swapped */
        {"trian", "train"},
        {"trin", "train"},   /* left out */
        {"trainn", "train"}, /* doubled */
        {"TRAIN", "train"},
        {"predcit", "predict"},
        {"predi", "predict"}, /* cut off */
        {"evel", "eval"},
        {"eavl", "eval"}, /* one edit only if a swap counts as one */
        {"checkpoint_evry", "checkpoint-every"},
        {"fly", NULL},
        {"", NULL},
        {"t", NULL},
        {"completely-different-from-everything-else-and-much-longer-than-sixty-four-letters", NULL},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *found = pace_nearest_name(cases[i].word, names);

        if ((found == NULL) != (cases[i].nearest == NULL) || (found && strcmp(found, cases[i].nearest) != 0))
            fail_msg("\"%s\" gave %s", cases[i].word, found ? found : "nothing");
    }
}

static void test_help_is_complete(void **state)
{
    char *text = NULL;
    size_t size = 0;
    FILE *memory = open_memstream(&text, &size);

    (void)state;
    pace_options_print_help(table, memory);
    pace_options_print_help(pace_common_options, memory);
    assert_int_equal(fclose(memory), 0);
    for (const pace_option *row = table; row->name; row++) {
        char wanted[128];

        snprintf(wanted, sizeof wanted, "--%s", row->name);
        assert_non_null(strstr(text, wanted));
        assert_non_null(strstr(text, row->help));
        snprintf(wanted, sizeof wanted, "default %s", row->kind == PACE_OPT_FLAG ? "on" : row->fallback);
        if (row->fallback)
            assert_non_null(strstr(text, wanted));
    }
    assert_non_null(strstr(text, "  -o, --run DIR "));
    assert_non_null(strstr(text, "required"));
    assert_non_null(strstr(text, "constant, linear, off"));
    assert_non_null(strstr(text, "Training:\n"));
    assert_non_null(strstr(text, "--config FILE"));
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
        assert_true(strcspn(line, "\n") <= 100);
    free(text);
}

static void test_yaml_round_trip(void **state)
{
    /* What a careless writer would spoil: quotes, comments, truth values, nulls, blanks, controls, line ends,
     * long lines. */
    static const char *const texts[] = {"",     " a ",      "null",         "~",
                                        "yes",  "a: b # c", "\"q\" 'p' \\", "a\nb\n",
                                        "\t\r", "\x01\x7f", "é 字 😀",       "\xc2\x85\xef\xbb\xbf",
                                        "- x",  "{}",       "*a &b !c",     "%d",
                                        "-5",   "1e3",      "a  b",         "#"};
    static const double reals[] = {0.1, 1.0 / 3, 1e-300, -0.5, 123456.78125, 5e-324, 0, 1e5};
    fixture *f = *state;
    char words[128], longest[5000];

    memset(longest, 'x', sizeof longest);
    memcpy(longest + 300, " y ", 3);
    longest[sizeof longest - 1] = '\0';
    snprintf(words, sizeof words, "--config %s", f->file);
    size_t count = sizeof texts / sizeof *texts;

    for (size_t i = 0; i <= count; i++) {
        const char *text = i < count ? texts[i] : longest;
        settings written = {.batch = 1 + (int64_t)i * 123456,
                            .shift = i % 2 ? INT64_MIN : INT64_MAX,
                            .memory = UINT64_MAX - i,
                            .lr = reals[i % 8],
                            .run = text,
                            .like = i % 2 ? NULL : text,
                            .schedule = (int)(i % 3),
                            .exact = i % 2,
                            .hashed = i % 3,
                            .test = {(const char **)texts, i},
                            .words = {0}};

        assert_int_equal(pace_options_write_yaml(PACE_PARTS(table, &written), f->file, &f->log), PACE_OK);
        assert_ok(f, parse(f, words));
        assert_true(f->settings.batch == written.batch && f->settings.shift == written.shift);
        assert_true(f->settings.memory == written.memory && f->settings.lr == written.lr);
        assert_string_equal(f->settings.run, text);
        if (written.like)
            assert_string_equal(f->settings.like, text);
        else
            assert_null(f->settings.like);
        assert_int_equal(f->settings.schedule, written.schedule);
        assert_true(f->settings.exact == written.exact && f->settings.hashed == written.hashed);
        assert_int_equal(f->settings.test.count, i);
        for (size_t j = 0; j < i; j++)
            assert_string_equal(f->settings.test.items[j], texts[j]);
        assert_int_equal(f->settings.words.count, 0);
    }
}

static void test_yaml_write_errors(void **state)
{
    fixture *f = *state;
    settings written = {.run = "caf\xe9"};

    assert_refused(f, pace_options_write_yaml(PACE_PARTS(table, &written), f->file, &f->log), "--run",
                   "UTF-8", NULL);
    assert_int_equal(access(f->file, F_OK), -1);
    written.run = "r";
    assert_int_equal(pace_options_write_yaml(PACE_PARTS(table, &written), "/nonexistent/x.yaml", &f->log),
                     PACE_IO);
}

/* Settings as words, and the words read again. */
static void assert_same_by_words(fixture *f, const settings *written, size_t words_wanted)
{
    char **words;
    size_t count;

    assert_int_equal(pace_options_to_words(PACE_PARTS(table, written), &f->log, &words, &count), PACE_OK);
    assert_null(words[count]);
    if (words_wanted != SIZE_MAX)
        assert_int_equal(count, words_wanted);
    pace_options_free(f->options);
    f->options = pace_options_create(table, &f->settings, &f->log);
    assert_ok(f, pace_options_parse(f->options, (int)count, words, &f->help, &f->positional));
    assert_int_equal(f->positional.count, 0);
    assert_true(f->settings.batch == written->batch && f->settings.shift == written->shift);
    assert_true(f->settings.memory == written->memory && f->settings.lr == written->lr);
    assert_string_equal(f->settings.run, written->run);
    assert_string_equal(f->settings.like, written->like);
    assert_int_equal(f->settings.schedule, written->schedule);
    assert_true(f->settings.exact == written->exact && f->settings.hashed == written->hashed);
    assert_int_equal(f->settings.test.count, written->test.count);
    for (size_t i = 0; i < written->test.count; i++)
        assert_string_equal(f->settings.test.items[i], written->test.items[i]);
    assert_int_equal(f->settings.words.count, written->words.count);
    for (size_t i = 0; i < written->words.count; i++)
        assert_string_equal(f->settings.words.items[i], written->words.items[i]);
    pace_options_free_words(words);
}

static void test_words_round_trip(void **state)
{
    static const char *texts[] = {"",         " a ", "--run", "-5", "a=b", "x:y",     "a\nb",
                                  "\xff\xfe", "é",   "--",    "-",  "=",   "\"q\" '", "$HOME;*"};
    static const double reals[] = {0.1, 1.0 / 3, 1e-300, -0.5, 123456.78125, 5e-324, 0, 1e5};
    fixture *f = *state;
    size_t count = sizeof texts / sizeof *texts;

    for (size_t i = 0; i < count; i++) {
        settings written = {.batch = 1 + (int64_t)i * 123456,
                            .shift = i % 2 ? INT64_MIN : INT64_MAX,
                            .memory = UINT64_MAX - i,
                            .lr = reals[i % 8],
                            .run = texts[i],
                            .like = texts[count - 1 - i],
                            .schedule = (int)(i % 3),
                            .exact = i % 2,
                            .hashed = i % 3,
                            .test = {texts, i},
                            .words = {texts + i, count - i}};

        assert_same_by_words(f, &written, SIZE_MAX);
    }
}

/* Only what is not the default, and a required option always. */
static void test_words_are_few(void **state)
{
    static const char *ab[] = {"a", "b", "c"};
    fixture *f = *state;

    assert_ok(f, parse(f, "--run r"));
    settings written = f->settings;

    written.run = "r"; /* the parser's own texts go with the next one */
    written.words = (pace_texts){ab, 2};
    written.like = (char[]){"other"};
    assert_same_by_words(f, &written, 1);
    written.words.count = 3;
    assert_same_by_words(f, &written, 1 + 3);
    written.words.count = 1;
    written.hashed = false;
    assert_same_by_words(f, &written, 1 + 1 + 1);
}

typedef struct must {
    int model;
} must;

static void test_required_words_stay(void **state)
{
    static const pace_option must_table[] = {
        {"model", 0, PACE_OPT_CHOICE, offsetof(must, model), NULL, "M", "the model", .choices = "logreg|cnn",
         .required = true},
        {0},
    };
    must config = {0};
    char **words;
    size_t count;

    (void)state;
    assert_int_equal(pace_options_to_words(PACE_PARTS(must_table, &config), NULL, &words, &count), PACE_OK);
    assert_int_equal(count, 1);
    assert_string_equal(words[0], "--model=logreg");
    pace_options_free_words(words);
    assert_int_equal(pace_options_to_words(PACE_PARTS(other_table, (int64_t[]){0}), NULL, &words, &count),
                     PACE_OK);
    assert_int_equal(count, 0);
    assert_null(words[0]);
    pace_options_free_words(words);
    pace_options_free_words(NULL);
}

static void test_what_words_cannot_say(void **state)
{
    fixture *f = *state;
    char **words = NULL;
    size_t count;

    assert_ok(f, parse(f, "--run r"));
    settings written = f->settings;

    written.like = NULL;
    assert_refused(f, pace_options_to_words(PACE_PARTS(table, &written), &f->log, &words, &count), "--like",
                   "other", NULL);
    f->errors[0] = '\0';
    written = f->settings;
    written.words.count = 0;
    assert_refused(f, pace_options_to_words(PACE_PARTS(table, &written), &f->log, &words, &count), "--words",
                   "a:b", NULL);
    assert_null(words);
}

/* --profile [STEPS]: alone, with a value, by words of a flag, and taken back. */
static void test_values_that_may_be_left_out(void **state)
{
    static const struct {
        const char *yaml, *line;
        int64_t profile;
        const char *dashboard;
    } cases[] = {
        {"", "--run r", 0, NULL},
        {"", "--run r --profile", 100, NULL},
        {"", "--profile --run r", 100, NULL},
        {"", "--profile 7 --run r", 7, NULL},
        {"", "--profile=0 --run r", 0, NULL},
        {"", "--profile=on --dashboard=off --run r", 100, NULL},
        {"", "--run r --profile 7 --no-profile", 0, NULL},
        {"", "--run r --no-profile --profile", 100, NULL},
        {"", "--run r --dashboard --profile 3", 3, "127.0.0.1"},
        {"", "--run r --dashboard 0.0.0.0", 0, "0.0.0.0"},
        {"", "--run r --dashboard --no-dashboard", 0, NULL},
        {"profile: 5\ndashboard: on\n", "--run r", 5, "127.0.0.1"},
        {"profile: true\ndashboard: here\n", "--run r", 100, "here"},
        {"profile: 1\n", "--run r", 1, NULL},
        {"profile: off\n", "--run r", 0, NULL},
        {"profile: true\n", "--run r --no-profile", 0, NULL},
    };
    fixture *f = *state;

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_int_equal(parse_config(f, cases[i].yaml, cases[i].line), PACE_OK);
        assert_int_equal(f->settings.profile, cases[i].profile);
        assert_int_equal(!f->settings.dashboard, !cases[i].dashboard);
        if (cases[i].dashboard)
            assert_string_equal(f->settings.dashboard, cases[i].dashboard);
    }
    assert_int_equal(parse(f, "--run r --profile some"), PACE_USAGE);
    assert_non_null(strstr(f->errors, "option --profile some: not a whole number"));
    assert_int_equal(parse(f, "--run r --profile -1"), PACE_USAGE);
    assert_int_equal(parse(f, "--run r --no-batch"), PACE_USAGE);
    setenv("PACELINE_PROFILE", "yes", 1);
    assert_int_equal(parse(f, "--run r"), PACE_OK);
    assert_int_equal(f->settings.profile, 100);
    setenv("PACELINE_PROFILE", "12", 1);
    assert_int_equal(parse(f, "--run r"), PACE_OK);
    assert_int_equal(f->settings.profile, 12);
    unsetenv("PACELINE_PROFILE");
}

int main(void)
{
#define OPTIONS_TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        OPTIONS_TEST(test_defaults),
        OPTIONS_TEST(test_forms),
        OPTIONS_TEST(test_precedence),
        OPTIONS_TEST(test_lists),
        OPTIONS_TEST(test_whole_numbers),
        OPTIONS_TEST(test_sizes),
        OPTIONS_TEST(test_reals),
        OPTIONS_TEST(test_out_of_range_says_where),
        OPTIONS_TEST(test_choices_and_flags),
        OPTIONS_TEST(test_usage_errors),
        OPTIONS_TEST(test_help_stops),
        OPTIONS_TEST(test_yaml_errors),
        OPTIONS_TEST(test_unknown_variables),
        OPTIONS_TEST(test_yaml_round_trip),
        OPTIONS_TEST(test_yaml_write_errors),
        OPTIONS_TEST(test_words_round_trip),
        OPTIONS_TEST(test_words_are_few),
        OPTIONS_TEST(test_what_words_cannot_say),
        OPTIONS_TEST(test_values_that_may_be_left_out),
        cmocka_unit_test(test_required_words_stay),
        cmocka_unit_test(test_nearest_name),
        cmocka_unit_test(test_help_is_complete),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
