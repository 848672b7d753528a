#include "base/clock.h"
#include "base/locale.h"
#include "files/file.h"
#include "files/open.h"
#include "files/output.h"
#include "files/staging.h"
#include "gen/canvas.h"
#include "gen/jpeg.h"
#include "threads/thread.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <paceline/gen.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS_MAX      1e6 /* six digits in a name */
#define CLASSES_MIN   2
#define CLASSES_USUAL 4
#define SIDE_MIN      24
#define SIDE_MAX      4096
/* Progress records come once in so many pictures, and at the end. */
#define PROGRESS_ROWS 64

const pace_option pace_gen_images_options[] = {
    {"output", 'o', PACE_OPT_TEXT, offsetof(pace_gen_images_config, output), NULL, "DIR",
     "directory to make, with a folder per class", .required = true},
    {"rows", 0, PACE_OPT_INT, offsetof(pace_gen_images_config, rows), "2000", "N", "pictures to draw",
     .min = 1, .max = ROWS_MAX},
    {"seed", 0, PACE_OPT_INT, offsetof(pace_gen_images_config, seed), "1", "N", "which pictures", .min = 0,
     .max = 0x1p53},
    {"variant", 0, PACE_OPT_CHOICE, offsetof(pace_gen_images_config, variant), "shapes", NULL,
     "what the class is: the shape drawn, or how good the picture is", .choices = "shapes|quality"},
    {"classes", 0, PACE_OPT_INT, offsetof(pace_gen_images_config, classes), "4", "N",
     "of shapes: disc, square, triangle, ring, cross, stripes, checks, dots, star, moon", .min = CLASSES_MIN,
     .max = PACE__SHAPES},
    {"size", 0, PACE_OPT_INT, offsetof(pace_gen_images_config, size), "192", "N",
     "pixels of a side, about: from 3/4 to 4/3 of it", .min = SIDE_MIN, .max = SIDE_MAX},
    {"threads", 0, PACE_OPT_INT, offsetof(pace_gen_images_config, threads), "0", "N", "0: one per core",
     .min = 0, .max = PACE_THREADS_MAX},
    {"force", 0, PACE_OPT_FLAG, offsetof(pace_gen_images_config, force), "false", NULL,
     "replace an existing directory of such pictures", .required = false},
    {0}};

static const char *const qualities[] = {"good", "bad"};

enum { BLUR, NOISE, COMPRESSION, EXPOSURE, DAMAGES };

typedef struct generation {
    const pace_gen_images_config *config;
    const char *directory;
    uint64_t classes;
    const pace_log *log;
    pace_registry *registry;
    _Atomic uint64_t next, done, bytes;
    _Atomic int failed;
} generation;

static const char *class_name(const pace_gen_images_config *config, uint64_t class)
{
    return config->variant == PACE_GEN_QUALITY ? qualities[class] : pace__shape_name((unsigned)class);
}

/* ---- one picture ---- */

static uint32_t draw_side(const pace_gen_images_config *config, pace__random *random)
{
    uint64_t low = (uint64_t)config->size * 3 / 4, high = (uint64_t)config->size * 4 / 3;

    return (uint32_t)(low + pace__random_below(random, high - low + 1));
}

static double smaller_side(const pace__canvas *canvas)
{
    return canvas->height < canvas->width ? canvas->height : canvas->width;
}

/* Returns the quality to encode it with. */
static int draw_shape(pace__canvas *canvas, unsigned shape, pace__random *random)
{
    pace__canvas_clutter(canvas, random);
    pace__canvas_shape(canvas, shape, smaller_side(canvas) * pace__random_between(random, 0.24, 0.42),
                       random);
    return 75 + (int)pace__random_below(random, 21);
}

/* Blur depends on the size, so that a larger picture made small again is still blurred. */
static int damage(pace__canvas *canvas, uint64_t kind, double size, pace__random *random)
{
    double enlarged = size > 192 ? size / 192 : 1;

    switch (kind) {
    case BLUR:
        pace__canvas_blur(canvas, pace__random_between(random, 1.5, 4) * enlarged);
        break;
    case NOISE:
        pace__canvas_noise(canvas, pace__random_between(random, 15, 40), random);
        break;
    case COMPRESSION:
        return 3 + (int)pace__random_below(random, 10);
    default:
        pace__canvas_overexpose(canvas, pace__random_between(random, 0.45, 0.75));
    }
    return 0;
}

/* `kind` of damage, or DAMAGES for none. Returns the quality to encode it with. */
static int draw_scene(pace__canvas *canvas, uint64_t kind, double size, pace__random *random)
{
    uint64_t shapes = 3 + pace__random_below(random, 4);

    for (uint64_t i = 0; i < shapes; i++) {
        unsigned shape = (unsigned)pace__random_below(random, PACE__SHAPES);

        pace__canvas_shape(canvas, shape, smaller_side(canvas) * pace__random_between(random, 0.1, 0.26),
                           random);
    }
    pace__canvas_clutter(canvas, random);
    int usual = 85 + (int)pace__random_below(random, 11);
    int quality = kind < DAMAGES ? damage(canvas, kind, size, random) : 0;

    return quality ? quality : usual;
}

/* Picture `number`, a function of it and the config; the bytes are the caller's. False: out of memory. */
static bool draw(const generation *job, pace__canvas *canvas, uint64_t number, uint8_t **bytes, size_t *size)
{
    const pace_gen_images_config *config = job->config;
    pace__random random = pace__random_at((uint64_t)config->seed, number);
    uint64_t class = number % job->classes;
    bool scene = config->variant == PACE_GEN_QUALITY;
    uint32_t height = draw_side(config, &random), width = draw_side(config, &random);
    int quality;

    pace__canvas_background(canvas, height, width, scene, &random);
    if (scene) /* bad pictures take turns in what is wrong with them */
        quality =
            draw_scene(canvas, class == 1 ? number / 2 % DAMAGES : DAMAGES, (double)config->size, &random);
    else
        quality = draw_shape(canvas, (unsigned)class, &random);
    pace__canvas_finish(canvas);
    return pace__jpeg_encode(canvas->bytes, height, width, quality, bytes, size);
}

/* ---- files ---- */

static pace_status write_file(const char *path, const uint8_t *bytes, size_t size, const pace_log *log)
{
    int fd;
    pace_status status = pace__open(path, PACE__TO_CREATE, log, &fd);

    if (status)
        return status;
    status = pace__write_all(fd, bytes, size, path, log);
    if (close(fd) != 0 && !status)
        status = pace_fail(log, PACE_IO, "%s: cannot write: %s", path, strerror(errno));
    return status;
}

static pace_status make_picture(generation *job, pace__canvas *canvas, uint64_t number)
{
    char *path = pace__format("%s/%s/%06llu.jpg", job->directory,
                              class_name(job->config, number % job->classes), (unsigned long long)number);
    uint8_t *bytes = NULL;
    size_t size = 0;
    pace_status status = path && draw(job, canvas, number, &bytes, &size)
                             ? PACE_OK
                             : pace_fail(job->log, PACE_FAILED, "out of memory for a picture");

    if (!status)
        status = write_file(path, bytes, size, job->log);
    job->bytes += size;
    free(bytes);
    free(path);
    return status;
}

static void tell_progress(generation *job)
{
    uint64_t done = ++job->done;
    pace_field fields[] = {PACE_TEXT("phase", "gen"), PACE_INT("done", done),
                           PACE_INT("total", job->config->rows), PACE_TEXT("unit", "pictures")};

    if (done % PROGRESS_ROWS == 0 || done == (uint64_t)job->config->rows)
        pace_registry_emit(job->registry, "progress", fields, sizeof fields / sizeof *fields);
}

static pace_status make_pictures(void *arg, int thread)
{
    generation *job = arg;
    pace__canvas *canvas = pace__canvas_create((uint32_t)(job->config->size * 4 / 3));
    pace_status status =
        canvas ? PACE_OK
               : pace_fail(job->log, PACE_FAILED, "out of memory for a picture of %lld pixels a side",
                           (long long)job->config->size);

    const _Atomic int *stop = job->config->stop;

    (void)thread;
    while (!status && !job->failed) {
        uint64_t number = job->next++;

        if (number >= (uint64_t)job->config->rows)
            break;
        status = stop && *stop ? PACE_INTERRUPTED : make_picture(job, canvas, number);
        if (!status)
            tell_progress(job);
    }
    if (status)
        job->failed = 1;
    pace__canvas_free(canvas);
    return status;
}

static pace_status make_folders(const generation *job)
{
    pace_status status = PACE_OK;

    for (uint64_t class = 0; class < job->classes && !status; class ++) {
        char *path = pace__format("%s/%s", job->directory, class_name(job->config, class));

        status = path ? pace__make_dirs(path, job->log) : pace_fail(job->log, PACE_FAILED, "out of memory");
        free(path);
    }
    return status;
}

/* ---- which directories may be replaced ---- */

static bool is_class_name(const char *name)
{
    for (unsigned shape = 0; shape < PACE__SHAPES; shape++) {
        if (strcmp(name, pace__shape_name(shape)) == 0)
            return true;
    }
    return strcmp(name, qualities[0]) == 0 || strcmp(name, qualities[1]) == 0;
}

/* "000123.jpg" */
static bool is_picture_name(const char *name)
{
    return strlen(name) == 10 && strspn(name, "0123456789") == 6 && strcmp(name + 6, ".jpg") == 0;
}

/* Every entry of the directory, the dots aside, is as `is_good` wants it. */
static bool all_entries(const char *path, bool (*is_good)(const char *directory, const char *name))
{
    DIR *directory = opendir(path);
    bool good = directory != NULL;

    for (struct dirent *entry; good && (entry = readdir(directory));) {
        if (!pace__is_dots(entry->d_name))
            good = is_good(path, entry->d_name);
    }
    if (directory)
        closedir(directory);
    return good;
}

static bool is_our_picture(const char *directory, const char *name)
{
    (void)directory;
    return is_picture_name(name);
}

static bool is_our_folder(const char *directory, const char *name)
{
    char *path = is_class_name(name) ? pace__format("%s/%s", directory, name) : NULL;
    bool good = path && all_entries(path, is_our_picture);

    free(path);
    return good;
}

static pace_status check_older(const char *target, const pace_log *log)
{
    return all_entries(target, is_our_folder)
               ? PACE_OK
               : pace_fail(log, PACE_USAGE,
                           "%s: exists and holds other things than generated files: choose another directory",
                           target);
}

/* ---- the job ---- */

static pace_status check_config(const pace_gen_images_config *config, const pace_log *log)
{
    if (!config->output || !*config->output)
        return pace_fail(log, PACE_USAGE, "no output: name a directory to make");
    if (config->rows < 1 || config->rows > ROWS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld rows: between 1 and %.0f are possible",
                         (long long)config->rows, ROWS_MAX);
    if (config->classes < CLASSES_MIN || config->classes > PACE__SHAPES)
        return pace_fail(log, PACE_USAGE, "%lld classes: between %d and %d are possible",
                         (long long)config->classes, CLASSES_MIN, PACE__SHAPES);
    if (config->variant == PACE_GEN_QUALITY && config->classes != 2 && config->classes != CLASSES_USUAL)
        return pace_fail(log, PACE_USAGE,
                         "--classes %lld is for --variant shapes: quality has two, good and bad",
                         (long long)config->classes);
    if (config->size < SIDE_MIN || config->size > SIDE_MAX)
        return pace_fail(log, PACE_USAGE, "a size of %lld: between %d and %d are possible",
                         (long long)config->size, SIDE_MIN, SIDE_MAX);
    if (config->threads < 0 || config->threads > PACE_THREADS_MAX)
        return pace_fail(log, PACE_USAGE, "%lld threads: between 0 and %d are possible",
                         (long long)config->threads, PACE_THREADS_MAX);
    return PACE_OK;
}

static pace_status run(generation *job)
{
    int64_t threads = job->config->threads ? job->config->threads : pace__cores();
    pace_status status = make_folders(job);

    if (threads > job->config->rows)
        threads = job->config->rows;
    return status ? status : pace__team((int)threads, make_pictures, job, job->log);
}

pace_status pace_gen_images(const pace_gen_images_config *config, const pace_log *log,
                            pace_registry *registry, pace_gen_images_result *result)
{
    PACE__C_LOCALE();
    static const pace__staging_kind kind = {"gen", "set of pictures", check_older};
    uint64_t start_ns = pace__now_ns();
    pace__staging staging = {.lock = -1};
    pace_status status = check_config(config, log);

    if (!status)
        status = pace__staging_begin(&kind, config->output, config->force, &staging, log);
    if (status)
        return status;
    generation job = {.config = config,
                      .directory = staging.directory,
                      .classes = config->variant == PACE_GEN_QUALITY ? 2 : (uint64_t)config->classes,
                      .log = log,
                      .registry = registry};

    status = run(&job);
    if (!status)
        status = pace__staging_commit(&staging, log);
    pace__staging_abandon(&staging, log); /* what was committed stays */
    if (status == PACE_INTERRUPTED)
        pace_say(log, PACE_ERROR, PACE__INTERRUPTED_TEXT);
    if (!status)
        *result = (pace_gen_images_result){(uint64_t)config->rows, job.bytes, job.classes,
                                           pace__seconds_since(start_ns)};
    return status;
}
