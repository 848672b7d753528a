#include "base/clock.h"
#include "base/locale.h"
#include "gen/chunks.h"
#include "gen/elementary.h"
#include "gen/review_text.h"
#include "gen/zipf.h"
#include "threads/thread.h"

#include <paceline/gen.h>
#include <stdlib.h>
#include <string.h>

#define CHUNK_ROWS 128
/* What a row has besides text and title, and a word that is copied with the zeros behind it. */
#define FIELDS_BYTES_MAX 512

#define REVIEWERS          21000000
#define REVIEWERS_EXPONENT 0.6
#define PRODUCTS           9400000
#define PRODUCTS_EXPONENT  0.9
#define DAY_SECONDS        86400
#define FIRST_DAY          9636  /* 1996-05-20 */
#define LAST_DAY           16274 /* 2014-07-23 */

const pace_option pace_gen_reviews_options[] = {
    {"output", 'o', PACE_OPT_TEXT, offsetof(pace_gen_reviews_config, output), NULL, "FILE",
     "file to write; - for standard output", .required = true},
    {"rows", 0, PACE_OPT_INT, offsetof(pace_gen_reviews_config, rows), "100000", "N", "reviews to write",
     .min = 1, .max = PACE__GEN_ROWS_MAX},
    {"seed", 0, PACE_OPT_INT, offsetof(pace_gen_reviews_config, seed), "1", "N",
     "which reviews; the language that they are written in is always the same", .min = 0, .max = 0x1p53},
    {"threads", 0, PACE_OPT_INT, offsetof(pace_gen_reviews_config, threads), "0", "N", "0: one per core",
     .min = 0, .max = PACE_THREADS_MAX},
    {"force", 0, PACE_OPT_FLAG, offsetof(pace_gen_reviews_config, force), "false", NULL,
     "replace an existing file", .required = false},
    {0}};

typedef struct population {
    pace__review_language *language;
    pace__zipf reviewers, products;
} population;

#define PUT(at, literal) ((at) = put((at), (literal), sizeof(literal) - 1))

static inline char *put(char *at, const char *bytes, size_t size)
{
    memcpy(at, bytes, size);
    return at + size;
}

/* So many digits and capital letters, the text of a number. */
static char *put_code(char *at, uint64_t number, unsigned digits)
{
    for (unsigned i = 0; i < digits; i++, number /= 36)
        *at++ = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"[number % 36];
    return at;
}

static char *put_number(char *at, uint64_t number)
{
    char digits[20];
    unsigned count = 0;

    do {
        digits[count++] = (char)('0' + number % 10);
        number /= 10;
    } while (number > 0);
    while (count > 0)
        *at++ = digits[--count];
    return at;
}

static char *put_who_and_what(const population *reviews, pace__random *random, char *at)
{
    uint64_t reviewer = pace__zipf_draw(&reviews->reviewers, pace__random_next(random), random);
    uint64_t product = pace__zipf_draw(&reviews->products, pace__random_next(random), random);
    uint64_t votes = pace__random_below(random, 1 + pace__random_below(random, 12));

    PUT(at, "{\"reviewerID\": \"A");
    at = put_code(at, pace__mix64(reviewer + 1), 13);
    PUT(at, "\", \"asin\": \"B00");
    at = put_code(at, pace__mix64(product << 32), 7);
    PUT(at, "\", \"helpful\": [");
    at = put_number(at, pace__random_below(random, votes + 1));
    PUT(at, ", ");
    at = put_number(at, votes);
    PUT(at, "], \"reviewText\": \"");
    return at;
}

/* Five or four stars are positive. Which of them, or of the other three, does not depend on the text. */
static char draw_stars(bool positive, pace__random *random)
{
    uint64_t of_twenty = pace__random_below(random, 20);

    if (positive)
        return of_twenty < 15 ? '5' : '4';
    return of_twenty < 11 ? '1' : of_twenty < 16 ? '2' : '3';
}

/* Draws a label, and notes how well it could have been guessed. */
static bool draw_label(double log_odds, pace__random *random, pace__made *made)
{
    double whole = 1 + pace__portable_exp(-log_odds); /* 1 / probability */
    bool positive = pace__random_unit(random) * whole < 1;

    made->positives += positive;
    made->loss += pace__portable_log(whole) + (positive ? 0 : log_odds);
    made->right += (log_odds > 0 ? 1 : whole - 1) / whole;
    return positive;
}

/* Later days have more reviews. */
static uint64_t draw_day(pace__random *random)
{
    uint64_t days = LAST_DAY + 1 - FIRST_DAY;
    uint64_t a = pace__random_below(random, days), b = pace__random_below(random, days);

    return FIRST_DAY + (a > b ? a : b);
}

static char *make_row(const void *user, pace__random *random, char *at, pace__made *made)
{
    const population *reviews = user;
    pace__tone tone;

    at = put_who_and_what(reviews, random, at);
    at = pace__review_text(reviews->language, random, at, &tone);
    PUT(at, "\", \"overall\": ");
    *at++ = draw_stars(draw_label(pace__tone_log_odds(&tone), random, made), random);
    PUT(at, ".0, \"summary\": \"");
    at = pace__review_title(reviews->language, random, at);
    PUT(at, "\", \"unixReviewTime\": ");
    at = put_number(at, draw_day(random) * DAY_SECONDS);
    PUT(at, "}\n");
    return at;
}

static void describe(const pace__made *made, uint64_t start_ns, pace_gen_reviews_result *result)
{
    double rate = pace__made_rate(made), rows = (double)made->rows;

    *result = (pace_gen_reviews_result){
        .rows = made->rows,
        .bytes = made->bytes,
        .positive_rate = rate,
        .best_accuracy = made->right / rows,
        .null_accuracy = rate > 0.5 ? rate : 1 - rate,
        .best_logloss = made->loss / rows,
        .null_logloss = pace__made_null_logloss(made),
        .seconds = pace__seconds_since(start_ns),
    };
}

static population *create_population(void)
{
    population *reviews = malloc(sizeof *reviews);

    if (!reviews)
        return NULL;
    reviews->language = pace__review_language_create();
    if (!reviews->language) {
        free(reviews);
        return NULL;
    }
    pace__zipf_init(&reviews->reviewers, REVIEWERS, REVIEWERS_EXPONENT);
    pace__zipf_init(&reviews->products, PRODUCTS, PRODUCTS_EXPONENT);
    return reviews;
}

pace_status pace_gen_reviews(const pace_gen_reviews_config *config, const pace_log *log,
                             pace_registry *registry, pace_gen_reviews_result *result)
{
    PACE__C_LOCALE();
    uint64_t start_ns = pace__now_ns();
    population *reviews = create_population();
    pace__chunk_plan plan = {.output = config->output,
                             .force = config->force,
                             .stop = config->stop,
                             .rows = config->rows,
                             .seed = config->seed,
                             .threads = config->threads,
                             .chunk_rows = CHUNK_ROWS,
                             .row_bytes_max =
                                 PACE__REVIEW_TEXT_MAX + PACE__REVIEW_TITLE_MAX + FIELDS_BYTES_MAX,
                             .make_row = make_row,
                             .population = reviews};
    pace__made made;

    if (!reviews)
        return pace_fail(log, PACE_FAILED, "out of memory for the words of reviews");
    pace_status status = pace__write_chunks(&plan, log, registry, &made);

    if (!status)
        describe(&made, start_ns, result);
    pace__review_language_free(reviews->language);
    free(reviews);
    return status;
}
