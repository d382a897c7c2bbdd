// The words that tables of options are written with. Only files that hold such a table include it.
//
//   {BOOL("stacks", "no"), .help = "profile stacks"},
//
// Order is the order of help.
#ifndef QUERN_BASE_OPTION_TABLE_H
#define QUERN_BASE_OPTION_TABLE_H

#include <limits.h>

#include "base/option.h"

#define V1              .since = "0.1"
#define FLAG(n, l)      .name = n, .letter = l, .type = OPTION_FLAG, V1
#define BOOL(n, i)      .name = n, .type = OPTION_BOOL, .initial = i, .choices = "no|yes", V1
#define CHOICE(n, c, i) .name = n, .type = OPTION_CHOICE, .choices = c, .initial = i, V1
#define SET(n, c, i)    .name = n, .type = OPTION_SET, .choices = c, .initial = i, V1
#define NUMBER(n, i, lo, hi)                                                                       \
    .name = n, .type = OPTION_NUMBER, .initial = i, .least = lo, .most = hi, V1
#define SIZE(n, i) NUMBER(n, i, 0, LONG_MAX)
#define DECIMAL(n, i, lo, hi)                                                                      \
    .name = n, .type = OPTION_DECIMAL, .initial = i, .least = lo, .most = hi, V1
#define HEX(n, i)         .name = n, .type = OPTION_HEX, .initial = i, .most = LONG_MAX, V1
#define BYTE(n)           .name = n, .type = OPTION_BYTE, .value = "HEX", .most = 255, V1
#define STRING(n, v, i)   .name = n, .type = OPTION_STRING, .value = v, .initial = i, V1
#define NAMED(n, i)       .name = n, .type = OPTION_FILE, .initial = i, .value = "FILE", V1
#define NO_EFFECT(reason) .state = OPTION_NO_EFFECT, .why = reason
#define LOCAL             .local = true
#define DYNAMIC           .dynamic = true
#define ALL_MANY          .repeats = true

#endif
