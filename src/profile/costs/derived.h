// Events that are computed from those of a file: sums of misses, and an estimate of cycles.
//
//   L1m    misses of the first level: I1mr + D1mr + D1mw
//   LLm    misses of the last level: ILmr + DLmr + DLmw
//   Bm     mispredicted branches: Bcm + Bim
//   CEst   estimated cycles: Ir + 10 L1m + 100 LLm + 10 Bm + 20 Ge, which is KCachegrind's formula
//
// Further ones are formulas: sums of events with weights, such as "Ir + 10 D1mr + 100 * DLmr".
//
// A file that lacks all events behind a sum does not get it, nor one that has an event of that
// name.
#ifndef QUERN_PROFILE_DERIVED_H
#define QUERN_PROFILE_DERIVED_H

#include "profile/costs/costs.h"

// Adds the derived events behind the file's own. Nothing can be read into the profile afterwards.
void costs_derive(struct cost_profile *profile);
// Adds an event that a formula describes, under the formula as its name, which must outlive the
// profile. Sums that were made of the profile before (inclusive.h) have to be made again. False: it
// is no formula of this profile's events, or there are COST_EVENTS already.
bool costs_add_formula(struct cost_profile *profile, const char *formula);
// What a derived event is, for people; NULL: it is none.
const char *costs_derived_help(const char *event);

#endif
