/*
 * kernels.h - which set of kernels this process computes with.
 *
 * Inner loops exist in plain C, for every CPU, and again, written once and compiled for each, for instruction
 * sets that do more at a time. Left alone, a process takes the widest set that its CPU can run. Whoever wants
 * another one, to see what a lesser machine would do or to have its results, says so before anything else:
 *
 *     status = pace_kernels_use(PACE_KERNELS_V3, &log);
 *
 * This is the one setting of the library that belongs to the whole process (docs/decisions/0021): a choice
 * that is made once, by this call or by the first thing that asks, and stays.
 *
 * What is read and prepared has the same bytes with every set, and so have models of logistic regression. What
 * else is computed in floating point is the same up to rounding, and the same bits only with the same set.
 */
#ifndef PACELINE_KERNELS_H
#define PACELINE_KERNELS_H

#include <paceline/log.h>
#include <stdbool.h>

/* From narrow to wide. */
typedef enum pace_kernels {
    PACE_KERNELS_AUTO,  /* the last of these that this CPU can run */
    PACE_KERNELS_PLAIN, /* C for every CPU: what the others are compared with */
    PACE_KERNELS_V2,    /* x86-64-v2: SSE4.2 */
    PACE_KERNELS_V3,    /* x86-64-v3: AVX2 and FMA */
    PACE_KERNELS_V4,    /* x86-64-v4: AVX-512 */
    PACE_KERNELS_NEON,  /* arm64 */
} pace_kernels;

/* Their names in this order, as a PACE_OPT_CHOICE lists them. */
#define PACE_KERNELS_WORDS "auto|plain|v2|v3|v4|neon"

/*
 * Before anything else. PACE_USAGE with a message if this CPU cannot run that set, or if another one is in
 * use already.
 */
pace_status pace_kernels_use(int kernels, const pace_log *log);

/* Never PACE_KERNELS_AUTO: what is left open is settled now. Cheap; on any thread. */
int pace_kernels_in_use(void);

/* As it was given to pace_kernels_use; PACE_KERNELS_AUTO if nobody has asked. */
int pace_kernels_asked(void);

/* Whether this CPU can run them, in use or not. */
bool pace_kernels_run(int kernels);

/* By which instructions products of bf16 are computed with the kernels in use: "amx", "avx512-bf16", "emulated"; NULL: by
 * none, and --precision bf16 is refused. */
const char *pace_kernels_bf16(void);

/* "plain" */
const char *pace_kernels_name(int kernels);

#endif
