/*
 * locale.h - numbers have a point, whatever language the program around the library speaks.
 *
 * A program that has called setlocale(LC_ALL, "de_DE.UTF-8") makes printf write 0,5 and strtod stop at the point of 0.5:
 * in ours, in cJSON and in every other library here. All that is read and written are files, options and messages, which
 * are the same everywhere. So whoever comes in by a public function speaks the "C" locale until it returns, and so does
 * every thread that is started:
 *
 *     pace_status pace_eval(...)
 *     {
 *         PACE__C_LOCALE();                  // to the end of this function, however it is left
 *         ...
 *
 * It is the calling thread's locale that changes, not the process's; logs and sinks of the caller that are called
 * meanwhile see it, too. tests/lint/locale finds public functions and threads that do without.
 */
#ifndef BASE_LOCALE_H
#define BASE_LOCALE_H

#include <locale.h>

/* For the rest of this thread. The one "C" locale of the C library: nothing is allocated. Returns what was before. */
static inline locale_t pace__use_c_locale(void)
{
    return uselocale(newlocale(LC_ALL_MASK, "C", (locale_t)0));
}

static inline void pace__leave_c_locale(const locale_t *before)
{
    uselocale(*before);
}

#define PACE__C_LOCALE()                                                                                     \
    __attribute__((cleanup(pace__leave_c_locale))) const locale_t locale_of_caller = pace__use_c_locale();   \
    (void)locale_of_caller

#endif
