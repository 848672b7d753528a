/*
 * walk.h - threads that walk rows of a linear model together, each with the columns of its own.
 *
 * Every thread walks all rows, block by block. For block b it computes the dot products of its own columns,
 * publishes them, and, while the others do the same, is already at block b + 1; then it adds up everyone's
 * sums of block b, and updates its own parameters. So the dot products of a block are computed before the
 * update of the block in front of it: at most one block late, for any number of threads, one included. A piece
 * of rows (data/store/reader.h) ends with everything applied, and the next one starts from there.
 *
 * In the exact rule gradients of a step are added up, and applied where it ends, or where all meet before that: what was walked of
 * it is then a step of its own. Of texts every thread makes rows of features for itself, and owns some of these.
 *
 * Whoever walks says where all threads are to meet. There one of them, the *lead*, acts while nobody computes; else they
 * wait for each other only for sums.
 *
 *     status = pace__column_walk_run(&walk);       // from walk.rows.first to walk.rows.last, or as long as act wants
 */
#ifndef COLUMNS_WALK_H
#define COLUMNS_WALK_H

#include "data/store/reader.h"
#include "job/plan.h"
#include "model/linear/logreg.h"

/* A piece that was trained. */
typedef struct pace__walked {
    uint64_t first, last; /* its places in the order */
    uint64_t step;
    bool ends_step;
    double loss; /* of its rows */
    uint64_t data_ns, work_ns;
} pace__walked;

typedef struct pace__column_walk {
    const pace__job_plan *plan; /* model, threads, order, rate, rule */
    const pace__store *store;
    const pace_log *log;
    pace__logreg *model; /* stands where the walk begins; at a meeting, where it is, and may be changed */
    pace__reader_plan rows;
    int lead;
    int before; /* walks of other processes on the same machine that have their cores in front of these */
    void *user;
    /* The lead, behind each piece: it must not wait for others. */
    void (*passed)(void *user, const pace__walked *piece);
    /* Every thread, behind each piece: do all meet here? Everyone has to find the same. */
    bool (*meets)(void *user, int thread, const pace__walked *piece);
    /* The lead, at a meeting. False: the walk ends here. What it fails with is its own matter. */
    bool (*act)(void *user, const pace__walked *piece);
} pace__column_walk;

/* PACE_OK, or what reading rows, threads or memory have failed with. */
pace_status pace__column_walk_run(const pace__column_walk *walk);

#endif
