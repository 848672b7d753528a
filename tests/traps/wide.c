/* What takes the place of every kernel that not all CPUs can run: see tests/traps/options. */
#include <stdio.h>
#include <stdlib.h>

typedef void kernel(void);

kernel wide_kernel;

void wide_kernel(void)
{
    fputs("a wide kernel was called\n", stderr);
    abort();
}

/* A table of kernels. */
#define FOUR wide_kernel, wide_kernel, wide_kernel, wide_kernel
extern kernel *const wide_table[16];

kernel *const wide_table[16] = {FOUR, FOUR, FOUR, FOUR};
