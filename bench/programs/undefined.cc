// Work on data that is partly undefined, as records with padding and half-filled structures are.
// No decision depends on an undefined bit. Arguments: which work, and how much of it.
//   sort     std::sort of records with padding and a field that was never set
//   qsort    the same by the C library
//   fields   bit fields that share words with bits that were never set
//   copies   structures of which a part is set, copied whole
//   frames   calls of a function with a large frame, of which one byte is used
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

struct record {
    int key;
    char tag;
    double value;
    long never_set;
    int last;
};

static unsigned next_random(unsigned *state) {
    return (*state = *state * 1103515245u + 12345) >> 8;
}

static record *make_records(long count) {
    record *records = (record *)malloc(count * sizeof *records);
    unsigned state = 1;
    for (long i = 0; i < count; i++) {
        records[i].key = next_random(&state);
        records[i].tag = state;
        records[i].value = state;
        records[i].last = i;
    }
    return records;
}

static unsigned long sum_keys(record *records, long count) {
    unsigned long sum = 0;
    for (long i = 0; i < count; i += 100)
        sum += records[i].key;
    free(records);
    return sum;
}

static unsigned long sort_records(long count) {
    record *records = make_records(count);
    std::sort(records, records + count,
              [](const record &a, const record &b) { return a.key < b.key; });
    return sum_keys(records, count);
}

static int compare_keys(const void *a, const void *b) {
    int x = ((const record *)a)->key, y = ((const record *)b)->key;
    return x < y ? -1 : x > y;
}

static unsigned long qsort_records(long count) {
    record *records = make_records(count);
    qsort(records, count, sizeof *records, compare_keys);
    return sum_keys(records, count);
}

struct node {
    unsigned code : 8, is_seen : 1, is_used : 1, never_set : 22;
    int line;
    node *next[2];
};

static unsigned long set_fields(long rounds) {
    enum { NODES = 1024 };
    node *nodes = (node *)malloc(NODES * sizeof *nodes);
    unsigned long sum = 0;
    for (int i = 0; i < NODES; i++) {
        nodes[i].code = i;
        nodes[i].is_seen = nodes[i].is_used = 0;
        nodes[i].line = i;
    }
    for (long round = 0; round < rounds; round++) {
        for (int i = 0; i < NODES; i++) {
            node copy = nodes[i];
            copy.is_seen = round & 1;
            copy.is_used |= copy.is_seen;
            nodes[(i * 7) % NODES] = copy;
            if (copy.is_used)
                sum += copy.line;
            sum += copy.code == 77;
        }
    }
    free(nodes);
    return sum;
}

struct message {
    int kind, size;
    char text[120];
};

static unsigned long copy_messages(long count) {
    enum { QUEUE = 64 };
    message *queue = (message *)malloc(QUEUE * sizeof *queue);
    unsigned long sum = 0;
    for (long i = 0; i < count; i++) {
        message sent;
        sent.kind = i & 3;
        sent.size = snprintf(sent.text, 24, "%ld", i & 1023);
        memcpy(&queue[i % QUEUE], &sent, sizeof sent);
        message received = queue[i < QUEUE ? i : (i * 5) % QUEUE];
        sum += received.kind + received.size;
    }
    free(queue);
    return sum;
}

__attribute__((noinline)) static unsigned use_frame(unsigned value) {
    volatile unsigned char frame[500];
    frame[value % sizeof frame] = value;
    return frame[value % sizeof frame];
}

static unsigned long call_frames(long count) {
    unsigned long sum = 0;
    for (long i = 0; i < count; i++)
        sum += use_frame(i);
    return sum;
}

int main(int argc, char **argv) {
    static const struct {
        const char *name;
        unsigned long (*work)(long);
        long size; // that takes about as long as the others
    } works[] = {{"sort", sort_records, 4000},
                 {"qsort", qsort_records, 4000},
                 {"fields", set_fields, 30},
                 {"copies", copy_messages, 4000},
                 {"frames", call_frames, 100000}};
    for (auto &work : works) {
        if (argc == 3 && !strcmp(argv[1], work.name)) {
            printf("%lu\n", work.work(work.size * atol(argv[2])));
            return 0;
        }
    }
    return 1;
}
