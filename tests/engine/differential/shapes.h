// Gives an instruction its operand shapes: every addressing form, segment and address-size prefix,
// register corner and branch distance under which a translator must treat it differently.
#ifndef DIFFERENTIAL_SHAPES_H
#define DIFFERENTIAL_SHAPES_H

#include "draft.h"
#include "enumerate.h"
#include "random.h"

// Adds all drafts of one base form. Sequences are made of these later (special.h).
void shapes_expand(const struct base_form *base, struct random *random);

// Adds the drafts of an encoding that the decoder rejects.
void shapes_rejected(const struct encoding *e);

#endif
