// Many live blocks, for the leak search: `blocks COUNT SHAPE`. Shapes: tree, list, graph (each
// block holds two at random and the next); with an h in front they are held, else lost.
#include <stdlib.h>
#include <string.h>

static void **volatile root;

static unsigned long draw(void) {
    static unsigned long state = 88172645463325252;
    state ^= state << 13;
    state ^= state >> 7;
    return state ^= state << 17;
}

static void **block(void) {
    return calloc(4, sizeof(void *));
}

static void **make_list(long count) {
    void **first = NULL;
    for (long i = 0; i < count; i++) {
        void **next = block();
        next[0] = first;
        first = next;
    }
    return first;
}

static void **make_many(long count, int is_graph) {
    void ***all = calloc(count, sizeof *all);
    for (long i = 0; i < count; i++)
        all[i] = block();
    for (long i = 0; i < count; i++) {
        for (int k = 0; k < 2; k++) {
            long child = is_graph ? (long)(draw() % count) : 2 * i + 1 + k;
            all[i][k] = child < count ? all[child] : NULL;
        }
        if (is_graph && i + 1 < count)
            all[i][2] = all[i + 1];
    }
    void **first = all[0];
    memset(all, 0, count * sizeof *all);
    free(all);
    return first;
}

int main(int argc, char **argv) {
    if (argc != 3)
        return 2;
    long count = atol(argv[1]);
    const char *shape = argv[2] + (argv[2][0] == 'h');
    void **first = strcmp(shape, "list") == 0 ? make_list(count)
                                              : make_many(count, strcmp(shape, "graph") == 0);
    if (argv[2][0] == 'h')
        root = first;
    return 0;
}
