/* print_profile.h - the table of a profile. */
#ifndef CLI_PRINT_PROFILE_H
#define CLI_PRINT_PROFILE_H

#include <stdio.h>

/* `json` is what pace_train_profile gives. */
void cli_print_profile(FILE *out, const char *run, const char *json);

#endif
