/*
 * bench_mobilenet FILE SIDE PICTURES [THREADS]: what a pretrained mobilenet-v1 of width 0.25 says about
 * pictures, to be compared with what others compute: bench/mobilenet_numpy.py runs it. PICTURES holds SIDE x
 * SIDE x 3 bytes for each. Prints the logits, a line for each picture, of the plain network and then of the
 * fast one:
 *
 *     plain 0 -1.25 0.5 ...
 */
#include "data/formats/encoding.h"
#include "files/file.h"
#include "model/cnn/pretrained.h"

#include <stdio.h>
#include <stdlib.h>

#define CLASSES 1000

typedef struct network {
    pace__cnn_config config;
    pace__cnn_net net;
    float *weights, *stats;
} network;

static void print_message(void *user, pace_level level, const char *text)
{
    (void)user;
    if (level <= PACE_INFO)
        fprintf(stderr, "bench_mobilenet: %s\n", text);
}

static const pace_log to_stderr = {.write = print_message};

static void end_on(pace_status status)
{
    if (status)
        exit(status);
}

static network load(const char *path, uint32_t side)
{
    network self = {.config = {.arch = PACE_ARCH_MOBILENET_V1,
                               .width = 0.25f,
                               .height = side,
                               .side = side,
                               .channels = 3,
                               .classes = CLASSES,
                               .weight = {1, 1}}};
    pace__pretrained *file = NULL;
    pace__pretrained_report report;

    end_on(pace__pretrained_open(path, NULL, pace__describe_encoding, &to_stderr, &file));
    end_on(pace__pretrained_settle(file, &self.config));
    end_on(pace__cnn_net_make(&self.config, &to_stderr, &self.net));
    self.weights = malloc((self.net.weights + self.net.stats) * sizeof *self.weights);
    if (!self.weights)
        end_on(pace_fail(&to_stderr, PACE_FAILED, "out of memory"));
    self.stats = self.weights + self.net.weights;
    pace__cnn_init(&self.config, &self.net, self.weights, self.stats);
    end_on(pace__pretrained_load(file, &self.config, &self.net, self.weights, self.stats, &report));
    fprintf(stderr, "%s: %u tensors by %s names, head %s, padding %s, epsilon %g, (x - %g) / %g\n", path,
            report.tensors, pace__pretrained_layout(file), report.head ? "taken" : "not taken",
            self.config.same ? "same" : "symmetric", (double)self.config.epsilon, (double)self.config.mean[0],
            (double)self.config.deviation[0]);
    pace__pretrained_close(file);
    return self;
}

static void print_logits(const network *self, const pace__rows *rows, int threads, bool plain)
{
    pace__cnn_plan plan = {.config = &self->config, .rows_max = 8, .threads = threads, .plain = plain};
    float *logits = malloc(rows->rows * CLASSES * sizeof *logits);
    pace__cnn *cnn = NULL;

    if (!logits)
        end_on(pace_fail(&to_stderr, PACE_FAILED, "out of memory"));
    end_on(pace__cnn_create(&plan, &to_stderr, &cnn));
    end_on(pace__cnn_logits(cnn, rows, self->weights, self->stats, logits));
    for (size_t row = 0; row < rows->rows; row++) {
        printf("%s %zu", plain ? "plain" : "fast", row);
        for (size_t i = 0; i < CLASSES; i++)
            printf(" %.9g", (double)logits[row * CLASSES + i]);
        printf("\n");
    }
    pace__cnn_free(cnn);
    free(logits);
}

int main(int argc, char **argv)
{
    char *bytes = NULL;
    size_t size = 0;

    if (argc < 4 || argc > 5 || atoi(argv[2]) < 32) {
        fprintf(stderr, "usage: bench_mobilenet FILE SIDE PICTURES [THREADS]\n");
        return PACE_USAGE;
    }
    network self = load(argv[1], (uint32_t)atoi(argv[2]));

    end_on(pace__read_file(argv[3], (size_t)1 << 30, &bytes, &size, &to_stderr));
    pace__rows rows = {.columns = self.config.side * self.config.side * 3, .pixels = (const uint8_t *)bytes};

    rows.rows = size / rows.columns;
    print_logits(&self, &rows, 1, true);
    print_logits(&self, &rows, argc == 5 ? atoi(argv[4]) : 2, false);
    free(bytes);
    free(self.weights);
    return 0;
}
