// Writes profiles for pprof: the protocol buffers of profile.proto, not compressed, which its
// readers accept. Each function at a source line is a location.
//
// Order: pprof_new, all types, then samples, pprof_write. Supervisor context.
#ifndef QUERN_REPORT_PPROF_H
#define QUERN_REPORT_PPROF_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct pprof;

struct pprof *pprof_new(void);
// A number that samples have; the one shown first says so.
void pprof_type(struct pprof *, const char *name, const char *unit, bool is_default);
// For profiles that sample: the distance between two samples, in a unit.
void pprof_period(struct pprof *, const char *name, const char *unit, uint64_t period);
// The next frame of a sample, from the innermost outwards.
void pprof_frame(struct pprof *, const char *name, const char *file, uint32_t line);
// The next number of a sample, in the order of the types.
void pprof_value(struct pprof *, uint64_t value);
// Ends a sample.
void pprof_sample(struct pprof *);
// Nanoseconds: when it began (since 1970) and how long it took; 0: not known.
void pprof_times(struct pprof *, uint64_t began, uint64_t took);
// Writes it and frees it.
void pprof_write(struct pprof *, FILE *out);

#endif
