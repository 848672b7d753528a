/* Sums of gradients over MPI: ordered ones to the bit, and by MPI within rounding. The last of four or more
 * ranks is no worker. */
#include "base/random.h"
#include "net/reduce.h"

#include "ranks.h"

#define COUNT ((size_t)300007)
#define STEPS 3

static float gradient_of(int worker, int step, size_t at)
{
    pace__random random = pace__random_at((uint64_t)step * 1000 + (uint64_t)worker, at);

    return (float)ldexp(pace__random_unit(&random) - 0.5, (int)pace__random_below(&random, 20));
}

static void check(const float *gradients, int workers, int step, bool by_mpi)
{
    for (size_t i = 0; i < COUNT; i++) {
        float total = gradient_of(0, step, i), largest = fabsf(total);

        for (int w = 1; w < workers; w++) {
            total += gradient_of(w, step, i);
            largest = fmaxf(largest, fabsf(gradient_of(w, step, i)));
        }
        require(by_mpi ? fabsf(gradients[i] - total) <= 1e-5f * largest : gradients[i] == total);
    }
}

static void run(pace__link *link, int workers, bool by_mpi, size_t bucket_floats)
{
    static size_t bounds[PACE__REDUCE_BUCKETS_MAX + 1];
    float *gradients = malloc(COUNT * sizeof *gradients);
    pace__reduce_plan plan = {.workers = workers,
                              .by_mpi = by_mpi,
                              .gradients = gradients,
                              .bounds = bounds,
                              .buckets = pace__reduce_cut(COUNT, bucket_floats, bounds)};
    pace__reduce *reduce;

    require(gradients && pace__reduce_create(link, &plan, &stderr_log, &reduce) == PACE_OK);
    for (int step = 0; step < STEPS; step++) {
        for (size_t i = 0; i < COUNT; i++)
            gradients[i] = gradient_of(pace__link_rank(link), step, i);
        for (size_t b = plan.buckets; b-- > 0;)
            require(pace__reduce_start(reduce, b) == PACE_OK);
        require(pace__reduce_finish(reduce) == PACE_OK);
        check(gradients, workers, step, by_mpi);
    }
    pace__reduce_free(reduce);
    free(gradients);
}

int main(int argc, char **argv)
{
    static const size_t sizes[] = {2000, 100000, COUNT}; /* more buckets than the window holds; few; one */
    int ranks = argc == 2 ? atoi(argv[1]) : 0, workers = ranks > 3 ? ranks - 1 : ranks;
    pace__link *link = open_link(workers, LONG_NS);

    require(pace__link_size(link) == ranks);
    for (size_t s = 0; s < 3 && pace__link_rank(link) < workers; s++) {
        run(link, workers, false, sizes[s]);
        run(link, workers, true, sizes[s]);
    }
    pace__link_close(link);
    return 0;
}
