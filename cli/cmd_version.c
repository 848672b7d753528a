/* cmd_version.c - paceline version, -V, --version */
#include "cli.h"
#include "print.h"

#include <paceline/kernels.h>
#include <paceline/version.h>

typedef struct nothing {
    char unused; /* C has no empty struct */
} nothing;

static const pace_option no_options[] = {{0}};

static bool always(const void *config)
{
    (void)config;
    return true;
}

static pace_status run(const cli_context *cli, void *config, const pace_texts *words, void *result)
{
    (void)cli, (void)config, (void)words, (void)result;
    return PACE_OK;
}

/* Every set that this CPU runs, from narrow to wide. */
static cJSON *list_kernels(void)
{
    cJSON *sets = cJSON_CreateArray();

    for (int set = PACE_KERNELS_PLAIN; set <= PACE_KERNELS_NEON; set++) {
        if (pace_kernels_run(set))
            cJSON_AddItemToArray(sets, cJSON_CreateString(pace_kernels_name(set)));
    }
    return sets;
}

static void print_words(const cJSON *words)
{
    const cJSON *word;

    cJSON_ArrayForEach(word, words) printf(" %s", word->valuestring);
}

static pace_status print(const cli_context *cli, const void *config, void *result)
{
    const char *in_use = pace_kernels_name(pace_kernels_in_use()), *bf16 = pace_kernels_bf16();
    cJSON *sets = list_kernels();

    (void)config, (void)result;
    if (cli->json) {
        cJSON *object = cJSON_CreateObject();

        cJSON_AddStringToObject(object, "version", pace_version());
        cJSON_AddStringToObject(object, "kernels", in_use);
        cJSON_AddItemToObject(object, "runs", sets);
        cJSON_AddItemToObject(object, "bf16_by", bf16 ? cJSON_CreateString(bf16) : cJSON_CreateNull());
        return cli_print_json(object, &cli->log);
    }
    printf("paceline %s (kernels %s)\n", pace_version(), in_use);
    printf("this CPU runs");
    print_words(sets);
    printf("; --precision bf16 with %s: %s\n", in_use, bf16 ? bf16 : "no");
    cJSON_Delete(sets);
    return PACE_OK;
}

const cli_verb cli_version = {
    .name = "version",
    .arguments = "[options]",
    .summary = "say which paceline this is, and what it computes with here",
    .manual =
        "Prints the version, the set of kernels in use, the sets that this CPU runs (--kernels takes one of\n"
        "them), and by which instructions --precision bf16 is computed.\n"
        "\n"
        "Examples:\n"
        "  paceline version --kernels v3\n"
        "  paceline version --json",
    .tables = CLI_TABLE(no_options),
    .config_bytes = sizeof(nothing),
    .result_bytes = sizeof(nothing),
    .only_prints = always,
    .run = run,
    .print = print,
};
