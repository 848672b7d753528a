/* cmd_prep.c - paceline prep clicks, paceline prep reviews, paceline prep images */
#include "cli.h"
#include "print.h"

#include <paceline/prep.h>

static void print_held_out(uint64_t test_rows, uint64_t validation_rows)
{
    char a[CLI_TEXT_MAX];

    cli_print_row(stdout, "test rows", "%s", cli_count_text(test_rows, a));
    if (validation_rows > 0)
        cli_print_row(stdout, "validation rows", "%s", cli_count_text(validation_rows, a));
}

static pace_status take_inputs(const cli_context *cli, const pace_texts *words, const char *what,
                               pace_prep_common *common)
{
    if (words->count == 0)
        return pace_fail(&cli->log, PACE_USAGE, "no input: name the %s", what);
    common->inputs = *words;
    common->stop = cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
    return PACE_OK;
}

typedef struct count {
    const char *name;
    uint64_t value;
} count;

#define ADD_COUNTS(object, counts) add_counts((object), (counts), sizeof(counts) / sizeof *(counts))

static void add_counts(cJSON *object, const count *counts, size_t number)
{
    for (size_t i = 0; i < number; i++)
        cJSON_AddNumberToObject(object, counts[i].name, (double)counts[i].value);
}

/* ---- clicks ---- */

static pace_status run_clicks(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_prep_clicks_config *prep = config;
    pace_status status = take_inputs(cli, words, "files to read, or - for standard input", &prep->common);

    return status ? status : pace_prep_clicks(prep, &cli->log, cli->registry, result);
}

static pace_status print_clicks_object(const cli_context *cli, const pace_prep_clicks_result *prep)
{
    cJSON *object = cJSON_CreateObject();
    const count counts[] = {
        {"train_rows", prep->train_rows},
        {"test_rows", prep->test_rows},
        {"validation_rows", prep->validation_rows},
        {"bad_rows", prep->bad_rows},
        {"bytes_read", prep->bytes_read},
        {"bytes_written", prep->bytes_written},
        {"bytes_spilled", prep->bytes_spilled},
        {"features", prep->features},
        {"features_seen", prep->features_seen},
        {"unseen_entries", prep->unseen_entries},
        {"ranks", prep->ranks},
        {"processes", prep->processes},
    };

    ADD_COUNTS(object, counts);
    cJSON_AddNumberToObject(object, "positive_rate", prep->positive_rate);
    cJSON_AddNumberToObject(object, "seconds", prep->seconds);
    cJSON_AddNumberToObject(object, "parse_seconds", prep->parse_seconds);
    cJSON_AddNumberToObject(object, "write_seconds", prep->write_seconds);
    cJSON_AddNumberToObject(object, "skew", prep->skew);
    return cli_print_json(object, &cli->log);
}

static pace_status print_clicks(const cli_context *cli, const void *config, void *result)
{
    const pace_prep_clicks_result *prep = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX], c[CLI_TEXT_MAX];
    double rows = (double)(prep->train_rows + prep->test_rows + prep->validation_rows);

    (void)config;
    if (prep->elsewhere)
        return PACE_OK;
    if (cli->json)
        return print_clicks_object(cli, prep);
    cli_print_row(stdout, "training rows", "%s", cli_count_text(prep->train_rows, a));
    print_held_out(prep->test_rows, prep->validation_rows);
    if (prep->bad_rows)
        cli_print_row(stdout, "bad rows left out", "%s", cli_count_text(prep->bad_rows, a));
    cli_print_row(stdout, "positive rate", "%.5f", prep->positive_rate);
    cli_print_row(stdout, "features", "%s (%s occur)", cli_count_text(prep->features, a),
                  cli_count_text(prep->features_seen, b));
    if (prep->unseen_entries)
        cli_print_row(stdout, "unseen entries", "%s", cli_count_text(prep->unseen_entries, a));
    cli_print_row(stdout, "read", "%s", cli_bytes_text((double)prep->bytes_read, a));
    cli_print_row(stdout, "written", "%s", cli_bytes_text((double)prep->bytes_written, a));
    cli_print_row(stdout, "spilled", "%s", cli_bytes_text((double)prep->bytes_spilled, a));
    cli_print_row(stdout, "time", "%s (reading %s, writing %s)", cli_seconds_text(prep->seconds, a),
                  cli_seconds_text(prep->parse_seconds, b), cli_seconds_text(prep->write_seconds, c));
    cli_print_row(stdout, "rate", "%s, %s", cli_rate_text(rows, prep->seconds, "rows", a),
                  cli_rate_text((double)prep->bytes_read, prep->seconds, "bytes", b));
    if (prep->processes > 1)
        cli_print_row(stdout, "processes", "%s, skew %.2f of rows written",
                      cli_count_text(prep->processes, a), prep->skew);
    return PACE_OK;
}

const cli_verb cli_prep_clicks = {
    .name = "prep clicks",
    .arguments = "IN... -o DIR [options]",
    .summary = "turn click logs into a shuffled data set",
    .manual =
        "Reads Criteo rows, svmlight or TFRecord files, or tables with a header (plain, .gz or .zst; - is\n"
        "standard input), shuffles the rows once over all inputs and writes them as HDF5 parts into a new\n"
        "directory. --holdout or --test set rows apart on which models are scored in the end, --validation\n"
        "others by which train stops and chooses.\n"
        "\n"
        "Of a table (--format csv or tsv), --label-field names the label's column. The others are numbers\n"
        "or categories, as they are named, or as the first rows look, which is said. Files may have their\n"
        "columns in any order; with --like, the model's are found by name.\n"
        "\n"
        "With --processes, or inside mpirun or srun, several processes share the work; inputs and --output\n"
        "must then be on a file system that all of them see. The result is the same bytes for any number of\n"
        "processes or threads and any memory limit. When interrupted it leaves nothing behind.\n"
        "\n"
        "Examples:\n"
        "  paceline prep clicks clicks.tsv -o data --holdout 0.1\n"
        "  paceline prep clicks day_*.gz -o data --test week2.gz --memory 2G -n 4\n"
        "  paceline prep clicks cars.csv -o cars --label-field sold --ignore-fields id,note\n"
        "  paceline prep clicks today.tsv -o today --like run1   (encoded as the model of run1 expects)",
    .takes_words = true,
    .tables = pace_prep_clicks_tables,
    .config_bytes = sizeof(pace_prep_clicks_config),
    .result_bytes = sizeof(pace_prep_clicks_result),
    .run = run_clicks,
    .print = print_clicks,
};

/* ---- reviews ---- */

static bool is_filter(const void *config)
{
    const pace_prep_reviews_config *prep = config;

    return prep->map || prep->reduce;
}

static pace_status run_reviews(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_prep_reviews_config *prep = config;

    prep->common.inputs = *words;
    if (!prep->reduce) /* that leaves nothing behind: a signal may end it at once */
        prep->common.stop = cli_stop_on_signals(cli, &cli_stop_nothing_kept, CLI_STOP_S);
    if (is_filter(prep))
        return pace_prep_reviews_filter(prep, stdin, stdout, &cli->log);
    if (words->count == 0)
        return pace_fail(&cli->log, PACE_USAGE, "no input: name the files to read, or - for standard input");
    return pace_prep_reviews(prep, &cli->log, cli->registry, result);
}

static double share(uint64_t part, uint64_t whole)
{
    return whole > 0 ? (double)part / (double)whole : 0;
}

static double megabytes_per_second(uint64_t bytes, double seconds)
{
    return seconds > 0 ? (double)bytes / 1e6 / seconds : 0;
}

static double map_seconds(const pace_prep_reviews_result *prep)
{
    return prep->phases[PACE_PREP_MAP].seconds + prep->phases[PACE_PREP_MAP_TEST].seconds;
}

static void add_phases(cJSON *object, const pace_prep_reviews_result *prep)
{
    cJSON *phases = cJSON_AddArrayToObject(object, "phases");

    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        const pace_prep_phase *phase = &prep->phases[i];
        cJSON *each = phase->seconds > 0 ? cJSON_CreateObject() : NULL;

        if (!each)
            continue;
        cJSON_AddStringToObject(each, "phase", pace_prep_phase_names[i]);
        cJSON_AddNumberToObject(each, "seconds", phase->seconds);
        cJSON_AddNumberToObject(each, "rows", (double)phase->rows);
        cJSON_AddNumberToObject(each, "bytes", (double)phase->bytes);
        cJSON_AddNumberToObject(each, "megabytes_per_second",
                                megabytes_per_second(phase->bytes, phase->seconds));
        cJSON_AddNumberToObject(each, "skew", phase->skew);
        cJSON_AddItemToArray(phases, each);
    }
}

static void add_shares(cJSON *object, const char *name, const uint64_t *shares, uint64_t ranks)
{
    cJSON *list = cJSON_AddArrayToObject(object, name);

    for (uint64_t i = 0; i < ranks; i++)
        cJSON_AddItemToArray(list, cJSON_CreateNumber((double)shares[i]));
}

static pace_status print_reviews_object(const cli_context *cli, const pace_prep_reviews_result *prep)
{
    cJSON *object = cJSON_CreateObject();
    const count counts[] = {
        {"train_rows", prep->train_rows},
        {"test_rows", prep->test_rows},
        {"validation_rows", prep->validation_rows},
        {"train_positives", prep->train_positives},
        {"test_positives", prep->test_positives},
        {"validation_positives", prep->validation_positives},
        {"bad_rows", prep->bad_rows},
        {"dropped", prep->dropped},
        {"duplicates", prep->duplicates},
        {"words", prep->words},
        {"stop_words", prep->stop_words},
        {"distinct_words", prep->distinct},
        {"vocabulary", prep->vocabulary},
        {"stored_words", prep->stored},
        {"unknown_words", prep->unknown},
        {"cut_texts", prep->cut},
        {"length", prep->length},
        {"length_of_95_percent", prep->length_whole},
        {"empty_texts", prep->empty},
        {"too_long_words", prep->too_long},
        {"bytes_read", prep->bytes_read},
        {"bytes_written", prep->bytes_written},
        {"bytes_spilled", prep->bytes_spilled},
        {"word_bytes", prep->word_bytes},
        {"ranks", prep->ranks},
        {"processes", prep->processes},
    };

    ADD_COUNTS(object, counts);
    cJSON_AddNumberToObject(object, "positive", prep->positive);
    cJSON_AddNumberToObject(object, "positive_rate", share(prep->train_positives, prep->train_rows));
    cJSON_AddNumberToObject(object, "unknown_rate", share(prep->unknown, prep->stored));
    cJSON_AddNumberToObject(object, "seconds", prep->seconds);
    cJSON_AddNumberToObject(object, "map_seconds", map_seconds(prep));
    cJSON_AddNumberToObject(object, "reduce_seconds", prep->phases[PACE_PREP_REDUCE].seconds);
    cJSON_AddNumberToObject(object, "write_seconds", prep->phases[PACE_PREP_WRITE].seconds);
    cJSON_AddNumberToObject(object, "megabytes_per_second",
                            megabytes_per_second(prep->bytes_read, prep->seconds));
    cJSON_AddNumberToObject(object, "skew", prep->bytes_skew);
    cJSON_AddNumberToObject(object, "rows_skew", prep->rows_skew);
    add_phases(object, prep);
    add_shares(object, "rank_bytes", prep->rank_bytes, prep->ranks);
    add_shares(object, "rank_rows", prep->rank_rows, prep->ranks);
    return cli_print_json(object, &cli->log);
}

static void print_left_out(const pace_prep_reviews_result *prep)
{
    char a[CLI_TEXT_MAX];

    if (prep->bad_rows)
        cli_print_row(stdout, "bad rows left out", "%s", cli_count_text(prep->bad_rows, a));
    if (prep->dropped)
        cli_print_row(stdout, "dropped by rating", "%s", cli_count_text(prep->dropped, a));
    if (prep->duplicates)
        cli_print_row(stdout, "duplicates left out", "%s", cli_count_text(prep->duplicates, a));
}

static void print_words(const pace_prep_reviews_result *prep)
{
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    cli_print_row(stdout, "words", "%s (%s of them stop words)", cli_count_text(prep->words, a),
                  cli_count_text(prep->stop_words, b));
    if (prep->distinct)
        cli_print_row(stdout, "distinct words", "%s", cli_count_text(prep->distinct, a));
    cli_print_row(stdout, "vocabulary", "%s", cli_count_text(prep->vocabulary, a));
    cli_print_row(stdout, "unknown words", "%s of those stored (%.2f %%)", cli_count_text(prep->unknown, a),
                  100 * share(prep->unknown, prep->stored));
    cli_print_row(stdout, "texts cut", "%s at %s words", cli_count_text(prep->cut, a),
                  cli_count_text(prep->length, b));
    if (prep->empty)
        cli_print_row(stdout, "texts without words", "%s", cli_count_text(prep->empty, a));
    if (prep->too_long)
        cli_print_row(stdout, "too long for words", "%s", cli_count_text(prep->too_long, a));
}

static void print_phases(const pace_prep_reviews_result *prep)
{
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    for (int i = 0; i < PACE_PREP_PHASES; i++) {
        const pace_prep_phase *phase = &prep->phases[i];

        if (phase->seconds > 0)
            cli_print_row(stdout, pace_prep_phase_names[i], "%s, %s %s, %.0f MB/s, skew %.2f",
                          cli_seconds_text(phase->seconds, a), cli_count_text(phase->rows, b),
                          i == PACE_PREP_REDUCE ? "words" : "rows",
                          megabytes_per_second(phase->bytes, phase->seconds), phase->skew);
    }
}

static pace_status print_reviews(const cli_context *cli, const void *config, void *result)
{
    const pace_prep_reviews_result *prep = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    if (is_filter(config) || prep->elsewhere)
        return PACE_OK;
    if (cli->json)
        return print_reviews_object(cli, prep);
    cli_print_row(stdout, "training rows", "%s", cli_count_text(prep->train_rows, a));
    print_held_out(prep->test_rows, prep->validation_rows);
    print_left_out(prep);
    cli_print_row(stdout, "positive rate", "%.5f (ratings of %g and more)",
                  share(prep->train_positives, prep->train_rows), prep->positive);
    print_words(prep);
    cli_print_row(stdout, "read", "%s", cli_bytes_text((double)prep->bytes_read, a));
    cli_print_row(stdout, "written", "%s", cli_bytes_text((double)prep->bytes_written, a));
    cli_print_row(stdout, "spilled", "%s of rows, %s of words",
                  cli_bytes_text((double)prep->bytes_spilled, a),
                  cli_bytes_text((double)prep->word_bytes, b));
    print_phases(prep);
    cli_print_row(stdout, "time", "%s", cli_seconds_text(prep->seconds, a));
    cli_print_row(stdout, "rate", "%.0f MB/s, %s", megabytes_per_second(prep->bytes_read, prep->seconds),
                  cli_rate_text((double)(prep->train_rows + prep->test_rows + prep->validation_rows),
                                prep->seconds, "rows", a));
    cli_print_row(stdout, prep->processes > 1 ? "processes" : "threads",
                  "%s, skew %.2f of bytes read, %.2f of rows written", cli_count_text(prep->ranks, a),
                  prep->bytes_skew, prep->rows_skew);
    return PACE_OK;
}

const cli_verb cli_prep_reviews = {
    .name = "prep reviews",
    .arguments = "IN... -o DIR [options]",
    .summary = "turn texts with ratings into a shuffled data set",
    .manual =
        "Reads texts with a rating, counts their words, numbers the most frequent ones, and writes each "
        "text\n"
        "as a row of numbers, shuffled once over all inputs, into HDF5 parts in a new directory.\n"
        "\n"
        "Inputs (plain, .gz or .zst; - is standard input) are JSON-lines; CSV or TSV with a header; lines "
        "of\n"
        "LABEL<TAB>TEXT (--format tab); one text a line with the label behind the name (FILE=LABEL); or a\n"
        "folder with a sub-folder of text files for each label (pos and neg, or numbers).\n"
        "\n"
        "A word is a run of letters and digits, lower-cased, with apostrophes inside; HTML tags are left "
        "out\n"
        "and entities understood. Words that are not in the vocabulary become one and the same number; "
        "those\n"
        "of --test inputs are not counted.\n"
        "\n"
        "With --processes, or inside mpirun or srun, several processes share the work; --output must then "
        "be\n"
        "on a file system that all of them see. The result is the same bytes for any number of processes or\n"
        "threads and any memory limit. Each of them writes parts of its own: more than --parts do not write\n"
        "faster. When interrupted it leaves nothing behind.\n"
        "\n"
        "Examples:\n"
        "  paceline prep reviews reviews.jsonl -o data --holdout 0.1\n"
        "  paceline prep reviews part-*.jsonl.gz -o data --test late.jsonl --vocab 20k --length 200 -n 4\n"
        "  paceline prep reviews rt-polarity.pos=1 rt-polarity.neg=0 -o data --holdout 0.1\n"
        "  paceline prep reviews sst2-train.tsv --text-field sentence --label-field label -o data\n"
        "  paceline prep reviews today.jsonl -o today --like run1   (encoded as the model of run1 expects)\n"
        "\n"
        "The counting alone runs under another map-reduce, Hadoop Streaming for instance; its result is the\n"
        "vocabulary of a prep:\n"
        "  hadoop jar hadoop-streaming.jar -input reviews -output counts \\\n"
        "      -mapper 'paceline prep reviews --map --format jsonl' -reducer 'paceline prep reviews "
        "--reduce'\n"
        "  paceline prep reviews reviews.jsonl -o data --vocabulary counts/part-00000\n"
        "On one machine: paceline prep reviews a.jsonl b.jsonl --map | LC_ALL=C sort |\n"
        "paceline prep reviews --reduce > counts",
    .takes_words = true,
    .tables = pace_prep_reviews_tables,
    .config_bytes = sizeof(pace_prep_reviews_config),
    .result_bytes = sizeof(pace_prep_reviews_result),
    .only_prints = is_filter,
    .run = run_reviews,
    .print = print_reviews,
};

/* ---- images ---- */

static pace_status run_images(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    pace_prep_images_config *prep = config;
    pace_status status = take_inputs(cli, words, "folders or files to read", &prep->common);

    return status ? status : pace_prep_images(prep, &cli->log, cli->registry, result);
}

static pace_status print_images_object(const cli_context *cli, const pace_prep_images_result *prep)
{
    cJSON *object = cJSON_CreateObject();
    uint64_t rows = prep->train_rows + prep->test_rows + prep->validation_rows;
    const count counts[] = {
        {"train_rows", prep->train_rows},
        {"test_rows", prep->test_rows},
        {"validation_rows", prep->validation_rows},
        {"bad_rows", prep->bad_rows},
        {"classes", prep->classes},
        {"height", prep->height},
        {"width", prep->width},
        {"channels", prep->channels},
        {"turned", prep->turned},
        {"bytes_read", prep->bytes_read},
        {"bytes_written", prep->bytes_written},
        {"ranks", prep->ranks},
        {"processes", prep->processes},
    };

    ADD_COUNTS(object, counts);
    cJSON_AddNumberToObject(object, "seconds", prep->seconds);
    cJSON_AddNumberToObject(object, "images_per_second",
                            prep->seconds > 0 ? (double)rows / prep->seconds : 0);
    cJSON_AddNumberToObject(object, "megabytes_per_second",
                            megabytes_per_second(prep->bytes_read, prep->seconds));
    cJSON_AddNumberToObject(object, "skew", prep->skew);
    return cli_print_json(object, &cli->log);
}

static pace_status print_images(const cli_context *cli, const void *config, void *result)
{
    const pace_prep_images_result *prep = result;
    char a[CLI_TEXT_MAX], b[CLI_TEXT_MAX];

    (void)config;
    if (prep->elsewhere)
        return PACE_OK;
    if (cli->json)
        return print_images_object(cli, prep);
    cli_print_row(stdout, "training rows", "%s", cli_count_text(prep->train_rows, a));
    print_held_out(prep->test_rows, prep->validation_rows);
    if (prep->bad_rows)
        cli_print_row(stdout, "bad pictures", "%s left out", cli_count_text(prep->bad_rows, a));
    cli_print_row(stdout, "classes", "%s", cli_count_text(prep->classes, a));
    cli_print_row(stdout, "pixels", "%u x %u %s", (unsigned)prep->width, (unsigned)prep->height,
                  prep->channels == 1 ? "grey" : "rgb");
    if (prep->turned)
        cli_print_row(stdout, "turned by EXIF", "%s", cli_count_text(prep->turned, a));
    cli_print_row(stdout, "read", "%s", cli_bytes_text((double)prep->bytes_read, a));
    cli_print_row(stdout, "written", "%s", cli_bytes_text((double)prep->bytes_written, a));
    cli_print_row(stdout, "time", "%s", cli_seconds_text(prep->seconds, a));
    cli_print_row(stdout, "rate", "%s, %s",
                  cli_rate_text((double)(prep->train_rows + prep->test_rows + prep->validation_rows),
                                prep->seconds, "pictures", a),
                  cli_rate_text((double)prep->bytes_read, prep->seconds, "bytes", b));
    cli_print_row(stdout, "threads", "%s in %s process%s, skew %.2f", cli_count_text(prep->ranks, a),
                  cli_count_text(prep->processes, b), prep->processes == 1 ? "" : "es", prep->skew);
    return PACE_OK;
}

const cli_verb cli_prep_images = {
    .name = "prep images",
    .arguments = "IN... -o DIR [options]",
    .summary = "turn pictures into a shuffled data set",
    .manual =
        "Reads pictures, brings them to one size, and writes them as rows of 8-bit pixels with their class,\n"
        "shuffled once over all inputs, into HDF5 parts in a new directory.\n"
        "\n"
        "An input is a folder with a sub-folder of .jpg, .jpeg and .png files for each class; IDX files or\n"
        "their folder (MNIST and its family); CIFAR-10 or CIFAR-100 in its binary form, files or folder; a\n"
        "csv file with a header, and a path and a class (label) in each row, paths from its own folder on; "
        "or\n"
        "TFRecords of tf.Example with image/encoded (or image_raw, image) and image/class/label (or label).\n"
        "Files other than pictures may be .gz or .zst. Test files of IDX and CIFAR become the test set.\n"
        "\n"
        "Pictures are turned as their EXIF orientation says. Those that cannot be read are named, counted\n"
        "and left out. images.txt in the new directory names the picture of each row, classes.txt the\n"
        "classes.\n"
        "\n"
        "With --processes, or inside mpirun or srun, several processes share the work; inputs and --output\n"
        "must then be on a file system that all of them see. The result is the same bytes for any number of\n"
        "processes or threads. When interrupted it leaves nothing behind.\n"
        "\n"
        "Examples:\n"
        "  paceline prep images photos -o data --holdout 0.1 --size 160\n"
        "  paceline prep images photos/train -o data --test photos/test -n 4\n"
        "  paceline prep images /usr/share/mnist -o data   (train-images-idx3-ubyte.gz and so on)\n"
        "  paceline prep images cifar-10-batches-bin -o data\n"
        "  paceline prep images train.csv -o data --path-field image --label-field breed\n"
        "  paceline prep images today -o today.set --like run1   (as the model of run1 expects)",
    .takes_words = true,
    .tables = pace_prep_images_tables,
    .config_bytes = sizeof(pace_prep_images_config),
    .result_bytes = sizeof(pace_prep_images_result),
    .run = run_images,
    .print = print_images,
};
