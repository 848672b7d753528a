/*
 * peak.h - what one core of this machine can do at most, by trying it: what a profile is compared with.
 *
 * Takes a fraction of a second of the calling thread, and for that time memory of twice the last cache, at least 128 MiB;
 * less, if the machine has little to spare. Other work on the machine makes both figures smaller: the best of several
 * tries counts.
 */
#ifndef MATH_PEAK_H
#define MATH_PEAK_H

/* 10^9 f32 operations a second (a multiplication and an addition are two), in a product of matrices that stay in the
 * cache, with the kernels in use. */
double pace__peak_gflops(void);

/* 10^9 bytes a second, read in order from memory that no cache holds; 0: there was no memory to try it with. */
double pace__peak_gbytes_s(void);

#endif
