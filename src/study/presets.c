#include "study/presets.h"

#include <paceline/train.h>

#define OF(list) .published = list, .published_count = sizeof list / sizeof *list

#define SYNC  PACE_MODE_PS_SYNC
#define ASYNC PACE_MODE_PS_ASYNC

/* --- sparse logistic regression on clicks, two groups, 2017 --- */

/* 50,000 steps took 23.75 and 4.75 minutes. */
static const pace__published clicks_modes[] = {
    {SYNC, .metric = PACE__M_SECONDS, .value = 23.75 * 60 / 10},
    {ASYNC, .metric = PACE__M_SECONDS, .value = 4.75 * 60 / 10},
    {SYNC, .metric = PACE__M_ACCURACY, .value = 0.7248},
    {ASYNC, .metric = PACE__M_ACCURACY, .value = 0.7473},
    {SYNC, .metric = PACE__M_CPU_S, .value = 1.29},
    {ASYNC, .metric = PACE__M_CPU_S, .value = 0.58},
    {SYNC, .metric = PACE__M_SENT, .value = 92e6},
    {ASYNC, .metric = PACE__M_SENT, .value = 248e6},
    {SYNC, .metric = PACE__M_DISK_READ, .value = 1.3e6},
    {ASYNC, .metric = PACE__M_DISK_READ, .value = 0.31e6},
    {SYNC, .metric = PACE__M_DISK_WRITTEN, .value = 2.1e6},
    {ASYNC, .metric = PACE__M_DISK_WRITTEN, .value = 12.13e6},
};

#define BATCH_FIGURES(mode, batch, seconds)                                                                  \
    {mode, 0, batch, PACE__M_SECONDS, seconds},                                                              \
    {                                                                                                        \
        mode, 0, batch, PACE__M_ROWS_S, 20000 / (seconds)                                                    \
    }

static const pace__published clicks_batches[] = {
    BATCH_FIGURES(SYNC, 1, 135.7),    BATCH_FIGURES(SYNC, 100, 67.9),    BATCH_FIGURES(SYNC, 1000, 63.4),
    BATCH_FIGURES(SYNC, 10000, 64.8), BATCH_FIGURES(ASYNC, 1, 145.5),    BATCH_FIGURES(ASYNC, 100, 65.5),
    BATCH_FIGURES(ASYNC, 1000, 62.3), BATCH_FIGURES(ASYNC, 10000, 62.1),
};

/* 200,000 rows in about 100 minutes. */
static const pace__published clicks_rows[] = {
    {.metric = PACE__M_SECONDS, .value = 6000},
    {.metric = PACE__M_ROWS_S, .value = 200000 / 6000.0},
};

/* --- sentiment of reviews, 2019 --- */

static const pace__published reviews_scaling[] = {
    {.workers = 1, .metric = PACE__M_SECONDS, .value = 35920},
    {.workers = 4, .metric = PACE__M_SECONDS, .value = 13973},
    {.workers = 8, .metric = PACE__M_SECONDS, .value = 9531},
};

/* --- quality of pictures, 2021 --- */

static const pace__published images_top[] = {
    {.workers = 1, .metric = PACE__M_SECONDS, .value = 57 * 60 + 8},
    {.workers = 4, .metric = PACE__M_SECONDS, .value = 21 * 60 + 28},
    {.workers = 1, .metric = PACE__M_ACCURACY, .value = 0.651},
    {.workers = 4, .metric = PACE__M_ACCURACY, .value = 0.666},
};

static const pace__published images_all[] = {
    {.workers = 1, .metric = PACE__M_SECONDS, .value = 5 * 3600 + 24 * 60},
    {.workers = 4, .metric = PACE__M_SECONDS, .value = 3600 + 9 * 60},
    {.workers = 1, .metric = PACE__M_ACCURACY, .value = 0.749},
    {.workers = 4, .metric = PACE__M_ACCURACY, .value = 0.743},
};

/* --- all of them --- */

const pace__preset pace__presets[] = {
    {.name = "reviews-2019",
     .summary = "reviews by an LSTM on 1 to 8 workers: prep, scaling, convergence, balance",
     .makes = {{"gen reviews", "data/reviews.jsonl", .words = {"--rows", "24000", "--seed", "1"}},
               {"prep reviews", "data/reviews",
                .words = {"--holdout", "0.1", "--vocab", "10000", "--length", "100", "--",
                          "@/data/reviews.jsonl"}}},
     .section_count = 5,
     .sections = {{.name = "prep",
                   .title = "Preparing reviews by more processes",
                   .kind = PACE__PREP,
                   .prep = "prep reviews",
                   .data = "data/reviews.jsonl",
                   .model = "rnn",
                   .words = {"--holdout", "0.1", "--vocab", "10000", "--length", "100"},
                   .axes = {[PACE__AXIS_WORKERS] = "1,2,4"}},
                  {.name = "scaling",
                   .title = "Strong scaling of an LSTM",
                   .about = "Published: 142 million reviews, 10 epochs on 1, 4 and 8 GPUs, batch 128 for "
                            "each. Here: generated "
                            "reviews, one epoch, batch 512 in all.",
                   .kind = PACE__SCALING,
                   .data = "data/reviews",
                   .model = "rnn",
                   .words = {"--preset", "reviews-2019", "--epochs", "1"},
                   .axes = {"allreduce", "1,2,4,8", NULL, "512"},
                   OF(reviews_scaling)},
                  {.name = "weak",
                   .title = "Weak scaling: 128 rows a step for each worker",
                   .kind = PACE__WEAK,
                   .data = "data/reviews",
                   .model = "rnn",
                   .words = {"--preset", "reviews-2019"},
                   .axes = {"allreduce", "1,2,4", NULL, "128"},
                   .rows = 2560},
                  {.name = "converge",
                   .title = "Convergence by workers and mode, batch 128",
                   .about =
                       "Published: 128 rows a step for each worker, a loss of 0.13 as threshold, on other "
                       "data. Here with Adam: their rule, SGD with a rate of 0.1, needs more steps than "
                       "there are.",
                   .kind = PACE__CONVERGE,
                   .data = "data/reviews",
                   .model = "rnn",
                   .words = {"--preset", "reviews-2019", "--optimizer", "adam", "--lr", "0.003", "--epochs",
                             "2", "--eval-every", "25", "--eval-rows", "1000"},
                   .axes = {"allreduce,ps-async", "1,2,4", NULL, "128"}},
                  {.name = "balance",
                   .title = "Three fast workers and a slow one",
                   .about = "Published: 24,256 s with equal shares, 23,007 s with shares by measured speed "
                            "at each epoch's "
                            "start: 1.05 times as fast. Here the last of four workers is three times slower.",
                   .kind = PACE__BALANCE,
                   .data = "data/reviews",
                   .model = "rnn",
                   .words = {"--preset", "reviews-2019", "--epochs", "2", "--inject", "slow:worker3=3x"},
                   .axes = {"allreduce", "4", NULL, "512"}}}},
    {.name = "criteo-2017",
     .summary = "clicks by logistic regression, synchronous or not, on 4 workers and a server",
     .makes = {{"gen clicks", "data/clicks.tsv", .words = {"--rows", "550000", "--seed", "1"}},
               {"prep clicks", "data/clicks", .words = {"--holdout", "0.09", "--", "@/data/clicks.tsv"}}},
     .section_count = 3,
     .sections = {{.name = "modes",
                   .title = "Time, accuracy and resources by mode: 5,000 steps of 100 rows",
                   .about = "Published (5 machines): 50,000 steps; their times are divided by ten here, "
                            "their amounts are not. They "
                            "found synchronous training bound by CPUs and stragglers, asynchronous by the "
                            "network; the other group "
                            "the reverse.",
                   .kind = PACE__MODES,
                   .data = "data/clicks",
                   .model = "logreg",
                   .axes = {"ps-sync,ps-async,ps-ssp,allreduce,local-sgd,local", "4", "1", "100"},
                   .rows = 500000,
                   OF(clicks_modes)},
                  {.name = "batch",
                   .title = "Batch sizes: 20,000 rows",
                   .kind = PACE__BATCH,
                   .data = "data/clicks",
                   .model = "logreg",
                   .axes = {"ps-sync,ps-async", "4", "1", "1,100,1000,10000"},
                   .rows = 20000,
                   OF(clicks_batches)},
                  {.name = "rows",
                   .title = "200,000 rows in steps of 100",
                   .about = "Published (the other group): about 100 minutes.",
                   .kind = PACE__MODES,
                   .data = "data/clicks",
                   .model = "logreg",
                   .axes = {"ps-sync,ps-async", "4", "1", "100"},
                   .rows = 200000,
                   OF(clicks_rows)}}},
    {.name = "images-2021",
     .summary = "pictures by MobileNetV2, its top layer or all of it, on 4 workers and 2 servers",
     .makes = {{"gen images", "data/pictures", .words = {"--rows", "1200", "--seed", "1"}},
               {"prep images", "data/images",
                .words = {"--holdout", "0.1", "--size", "64", "--", "@/data/pictures"}},
               {"train", "data/weights", "--run",
                .words = {"--data", "@/data/images", "--model", "cnn", "--arch", "mobilenet-v2", "--width",
                          "0.25", "--epochs", "1"}}},
     .section_count = 4,
     .sections =
         {{.name = "top",
           .title = "The top layer only",
           .about = "Published: 40,000 pictures of 160 x 160, batch 512, 50 epochs; one GPU machine, and a "
                    "cluster of 6. Here: "
                    "generated pictures of 64 x 64, batch 128, 10 epochs, MobileNetV2 of a quarter of the "
                    "width, on an epoch of "
                    "its own.",
           .kind = PACE__SCALING,
           .data = "data/images",
           .model = "cnn",
           .words = {"--arch", "mobilenet-v2", "--width", "0.25", "--train", "top", "--pretrained",
                     "@/data/weights/model.safetensors", "--epochs", "10"},
           .axes = {"ps-sync", "1,4", "2", "128"},
           OF(images_top)},
          {.name = "entire",
           .title = "The entire network",
           .about = "Published: batch 128, 1,560 steps. Here: batch 128, one epoch.",
           .kind = PACE__SCALING,
           .data = "data/images",
           .model = "cnn",
           .words = {"--arch", "mobilenet-v2", "--width", "0.25", "--epochs", "1"},
           .axes = {"ps-sync", "1,4", "2", "128"},
           OF(images_all)},
          {.name = "servers",
           .title = "Are the servers the bottleneck?",
           .about = "Published: they were, at 1 GB/s towards the workers, and did not share the load evenly.",
           .kind = PACE__SERVERS,
           .data = "data/images",
           .model = "cnn",
           .words = {"--arch", "mobilenet-v2", "--width", "0.25", "--epochs", "1"},
           .axes = {"ps-sync", "4", "0,1,2", "128"}},
          {.name = "batch",
           .title = "Traffic by batch size",
           .about = "Published: going from batch 32 to 512 cut the traffic.",
           .kind = PACE__BATCH,
           .data = "data/images",
           .model = "cnn",
           .words = {"--arch", "mobilenet-v2", "--width", "0.25", "--epochs", "1"},
           .axes = {"ps-sync", "4", "2", "32,128,512"}}}},
};

const int pace__preset_count = sizeof pace__presets / sizeof *pace__presets;
