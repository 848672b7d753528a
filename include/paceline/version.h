/* version.h - which paceline this is. */
#ifndef PACELINE_VERSION_H
#define PACELINE_VERSION_H

/* "0.1.0" */
const char *pace_version(void);

#endif
