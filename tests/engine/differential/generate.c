// Writes the table of instruction forms: generate PATH makes PATH.bin and PATH.txt.
#include "compose.h"
#include "draft.h"
#include "enumerate.h"
#include "shapes.h"

#include <err.h>
#include <stdio.h>

#define SEED           20240229
#define SEQUENCE_COUNT 12000

int main(int argc, char **argv) {
    struct random random = {SEED};
    if (argc != 2)
        errx(1, "usage: %s PATH", argv[0]);
    struct base_forms all = enumerate();
    for (size_t i = 0; i < all.count; i++)
        shapes_expand(&all.form[i], &random);
    for (size_t i = 0; i < all.rejected_count; i++)
        shapes_rejected(&all.rejected[i]);
    compose_special();
    compose_sequences(SEQUENCE_COUNT, &random);
    draft_write(argv[1]);
    printf("%zu entries of the decoder's tables\n", all.count);
}
