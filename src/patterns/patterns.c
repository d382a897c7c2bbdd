// Patterns of allocation, each a program of its own: what `quern bench` runs over allocators.
//
//     quern-patterns NAME      runs one
//     quern-patterns --list    NAME and what it does, a line each
//
// Each does the same work every time, a tenth of a second or so.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 88172645463325252ull;

static uint32_t chance(uint32_t below) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return (uint32_t)(state >> 32) % below;
}

// Keeps the compiler from leaving out what nobody looks at.
static void use(void *pointer) {
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

static void *get(size_t size) {
    void *block = malloc(size);
    if (!block) {
        fputs("quern-patterns: out of memory\n", stderr);
        exit(1);
    }
    return block;
}

// ---- patterns ----------------------------------------------------------------------------------

static void strings(void) {
    enum { KEPT = 1000 };
    static char *kept[KEPT];
    for (unsigned i = 0; i < 2000000; i++) {
        unsigned at = chance(KEPT), size = 8 + chance(56);
        free(kept[at]);
        kept[at] = get(size);
        memset(kept[at], 'a', size - 1);
        kept[at][size - 1] = '\0';
        use(kept[at]);
    }
    for (unsigned i = 0; i < KEPT; i++)
        free(kept[i]);
}

static void vectors(void) {
    for (unsigned round = 0; round < 5000; round++) {
        int *numbers = NULL;
        size_t room = 0;
        for (size_t count = 0; count < 10000; count++) {
            if (count == room) {
                room = room ? room * 2 : 4;
                numbers = realloc(numbers, room * sizeof *numbers);
                if (!numbers)
                    exit(1);
            }
            numbers[count] = (int)count;
        }
        use(numbers);
        free(numbers);
    }
}

struct entry {
    struct entry *next;
    uint32_t key;
    char value[20];
};

static void maps(void) {
    enum { BUCKETS = 1 << 15 };
    static struct entry *buckets[BUCKETS];
    for (unsigned i = 0; i < 1000000; i++) {
        uint32_t key = chance(100000);
        struct entry **at = &buckets[key % BUCKETS];
        while (*at && (*at)->key != key)
            at = &(*at)->next;
        if (*at) {
            struct entry *gone = *at;
            *at = gone->next;
            free(gone);
        } else {
            struct entry *entry = get(sizeof *entry);
            *entry = (struct entry){.key = key};
            *at = entry;
        }
    }
    for (unsigned i = 0; i < BUCKETS; i++) {
        for (struct entry *entry = buckets[i], *next; entry; entry = next) {
            next = entry->next;
            free(entry);
        }
    }
}

struct shared {
    unsigned count;
    char content[40];
};

static void references(void) {
    enum { HOLDERS = 256 };
    static struct shared *held[HOLDERS];
    for (unsigned i = 0; i < 2000000; i++) {
        unsigned to = chance(HOLDERS), from = chance(HOLDERS);
        if (held[to] && --held[to]->count == 0)
            free(held[to]);
        if (held[from] && from != to && chance(2)) {
            held[to] = held[from];
        } else {
            held[to] = get(sizeof *held[to]);
            held[to]->count = 0;
        }
        held[to]->count++;
    }
}

static void requests(void) {
    for (unsigned i = 0; i < 100000; i++) {
        void *parts[20];
        for (unsigned part = 0; part < 20; part++) {
            parts[part] = get(16u << chance(6));
            memset(parts[part], 0, 16);
        }
        void *answer = get(4096);
        memset(answer, 1, 1000);
        use(answer);
        free(answer);
        for (unsigned part = 20; part-- > 0;)
            free(parts[part]);
    }
}

struct object {
    struct object *next;
    char content[56];
};

static void objects(void) {
    for (unsigned round = 0; round < 500; round++) {
        struct object *list = NULL;
        for (unsigned i = 0; i < 4000; i++) {
            struct object *object = get(sizeof *object);
            object->next = list;
            list = object;
        }
        for (struct object *next; list; list = next) {
            next = list->next;
            free(list);
        }
    }
}

// The same with a pool: blocks of many, and a list of free ones.
static void pool(void) {
    enum { MANY = 256 };
    struct object *spare = NULL, *blocks[64];
    unsigned block_count = 0;
    for (unsigned round = 0; round < 500; round++) {
        struct object *list = NULL;
        for (unsigned i = 0; i < 4000; i++) {
            if (!spare) {
                struct object *block = get(MANY * sizeof *block);
                blocks[block_count++] = block;
                for (unsigned j = 0; j < MANY; j++) {
                    block[j].next = spare;
                    spare = &block[j];
                }
            }
            struct object *object = spare;
            spare = object->next;
            object->next = list;
            list = object;
        }
        for (struct object *next; list; list = next) {
            next = list->next;
            list->next = spare;
            spare = list;
        }
    }
    while (block_count)
        free(blocks[--block_count]);
}

static void leaks(void) {
    for (unsigned i = 0; i < 1000000; i++) {
        char *block = get(24 + chance(100));
        block[0] = 1;
        use(block);
        if (i % 10)
            free(block);
    }
}

static void sizes(void) {
    for (unsigned i = 0; i < 2000000; i++) {
        char *block = get((size_t)1 << chance(17));
        block[0] = 1;
        use(block);
        free(block);
    }
}

// All is allocated first and freed later, in another order.
static void late(void) {
    enum { BLOCKS = 200000 };
    void **blocks = get(BLOCKS * sizeof *blocks);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < BLOCKS; i++) {
            blocks[i] = get(16 + chance(112));
            *(char *)blocks[i] = 1;
        }
        for (unsigned i = BLOCKS; i > 1; i--) {
            unsigned other = chance(i);
            void *moved = blocks[other];
            blocks[other] = blocks[i - 1];
            blocks[i - 1] = moved;
        }
        for (unsigned i = 0; i < BLOCKS; i++)
            free(blocks[i]);
    }
    free(blocks);
}

// ---- choosing ----------------------------------------------------------------------------------

static const struct {
    const char *name, *help;
    void (*run)(void);
} patterns[] = {
    {"strings", "a thousand short texts, replaced at random", strings},
    {"vectors", "arrays that are doubled as they grow", vectors},
    {"maps", "a hash map whose entries come and go", maps},
    {"references", "objects shared by counts", references},
    {"requests", "twenty parts and an answer, all freed at the end", requests},
    {"objects", "lists of equal objects by malloc", objects},
    {"pool", "the same lists from a pool of objects", pool},
    {"leaks", "every tenth block is never freed", leaks},
    {"sizes", "one block at a time, from one byte to 64 KiB", sizes},
    {"late", "many blocks, freed late and in another order", late},
};

int main(int argc, char **argv) {
    const char *wanted = argc == 2 ? argv[1] : "";
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        if (strcmp(wanted, "--list") == 0)
            printf("%s %s\n", patterns[i].name, patterns[i].help);
        if (strcmp(wanted, patterns[i].name) == 0) {
            patterns[i].run();
            return 0;
        }
    }
    if (strcmp(wanted, "--list") == 0)
        return 0;
    fputs("usage: quern-patterns NAME | --list\n", stderr);
    return 2;
}
