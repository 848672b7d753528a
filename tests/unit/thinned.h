/*
 * thinned.h - of cases that are many and alike, sanitizers are shown some: they take ten times as long, and what they look for,
 * in memory and between threads, is in any of a kind or in none. Builds without one go through all.
 *
 *     for (size_t i = 0; i < count; i += THINNED(7))   // a step that has nothing in common with sizes of tables
 *     for (seed = 1; seed <= 20000 / THINNED(10); seed++)
 */
#ifndef UNIT_THINNED_H
#define UNIT_THINNED_H

#ifdef SANITIZED
#define THINNED(step) (step)
#else
#define THINNED(step) 1
#endif

#endif
