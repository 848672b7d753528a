#include "math/gemm.h"

#include <assert.h>

/* The thread sanitizer sees neither oneDNN's generated code nor the inside of OpenMP. */
#ifdef __SANITIZE_THREAD__

void pace__gemm_alone(void)
{
}

/* Not watched either, as it would not be there; and for speed. */
__attribute__((no_sanitize("thread"))) void pace__gemm(bool turned, size_t m, size_t n, size_t k,
                                                       const float *a, size_t a_stride, const float *b,
                                                       size_t b_stride, bool add, float *c, size_t c_stride)
{
    for (size_t i = 0; i < m; i++) {
        float *to = c + i * c_stride;

        for (size_t j = 0; !add && j < n; j++)
            to[j] = 0;
        for (size_t l = 0; l < k; l++) {
            float x = turned ? a[l * a_stride + i] : a[i * a_stride + l];

            for (size_t j = 0; j < n; j++)
                to[j] += x * b[l * b_stride + j];
        }
    }
}

#else

#include "base/cpu.h"

#include <oneapi/dnnl/dnnl.h>

/* Of the runtime that oneDNN is linked with; the header would be the compiler's. */
void omp_set_num_threads(int threads);

/* Kernels of a CPU without AVX-512 are asked for, and oneDNN's have to be, too. It listens to this until it
 * is asked for something; that it was not too late can be seen. */
static void stay_narrow(void)
{
#if defined __x86_64__ /* elsewhere it does not listen, and names no abilities */
    dnnl_set_max_cpu_isa(dnnl_cpu_isa_avx2);
    assert((dnnl_get_effective_cpu_isa() & ~dnnl_cpu_isa_avx2) == 0);
#endif
}

void pace__gemm_alone(void)
{
    if (pace_kernels_in_use() < PACE_KERNELS_V4)
        stay_narrow();
    omp_set_num_threads(1);
}

void pace__gemm(bool turned, size_t m, size_t n, size_t k, const float *a, size_t a_stride, const float *b,
                size_t b_stride, bool add, float *c, size_t c_stride)
{
    dnnl_status_t status =
        dnnl_sgemm(turned ? 'T' : 'N', 'N', (dnnl_dim_t)m, (dnnl_dim_t)n, (dnnl_dim_t)k, 1, a,
                   (dnnl_dim_t)a_stride, b, (dnnl_dim_t)b_stride, add ? 1 : 0, c, (dnnl_dim_t)c_stride);

    assert(status == dnnl_success); /* anything else is a wrong argument */
    (void)status;
}

#endif
