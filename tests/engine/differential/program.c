// The target of the differential test: runs forms and leaves a result for each.
//
//   program TABLE RESULTS [--code=low|high] [--first=N] [--end=N] [--high=ADDRESS]
//   program TABLE --show=N [--code=low|high]
//
// RESULTS is a file of struct form_results, filled in place, so that what is known survives a
// crash. With --show the states of one form are printed in full. Low code is a mapped file, as that
// of a program or library; high code is anonymous memory filled first and made executable then, as
// a just-in-time compiler does it.
//
// DIFFERENTIAL_BREAK=N in the environment falsifies rax in form N, to see the comparer find it.
#include "digest.h"
#include "execute.h"
#include "memory.h"
#include "state.h"

#include <err.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct options {
    const char *table, *results;
    uint64_t high;
    bool code_high;
    long first, end, show;
};

static struct options parse(int argc, char **argv) {
    struct options o = {.high = AREA_HIGH, .end = -1, .show = -1};
    for (int i = 1; i < argc; i++) {
        const char *a = argv[i];
        if (!strncmp(a, "--first=", 8))
            o.first = atol(a + 8);
        else if (!strncmp(a, "--end=", 6))
            o.end = atol(a + 6);
        else if (!strncmp(a, "--show=", 7))
            o.show = atol(a + 7);
        else if (!strncmp(a, "--high=", 7))
            o.high = strtoul(a + 7, NULL, 0);
        else if (!strcmp(a, "--code=high") || !strcmp(a, "--code=low"))
            o.code_high = a[7] == 'h';
        else if (!o.table)
            o.table = a;
        else if (!o.results && a[0] != '-')
            o.results = a;
        else
            errx(2, "unknown argument %s", a);
    }
    if (!o.table || (!o.results && o.show < 0))
        errx(2, "usage: %s TABLE RESULTS [OPTION...]", argv[0]);
    return o;
}

// Instructions that tell the number of the CPU must always tell the same.
static void stay_on_one_cpu(void) {
    cpu_set_t set;
    sched_getaffinity(0, sizeof set, &set);
    for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
        if (CPU_ISSET(cpu, &set)) {
            CPU_ZERO(&set);
            CPU_SET(cpu, &set);
            sched_setaffinity(0, sizeof set, &set);
            return;
        }
}

static void *map_file(int fd, void *at, size_t size, off_t offset, int protection, int flags) {
    void *got = mmap(at, size, protection, flags | (at ? MAP_FIXED_NOREPLACE : 0), fd, offset);
    if (got == MAP_FAILED || (at && got != at))
        err(2, "cannot map a file");
    return got;
}

static void map_code(int fd, const struct form_file *file, uint64_t area, bool anonymous) {
    void *at = (void *)(area + AREA_CODE);
    if (!anonymous) {
        map_file(fd, at, file->code_size, file->code_offset, PROT_READ | PROT_EXEC, MAP_PRIVATE);
        return;
    }
    map_file(-1, at, file->code_size, 0, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS);
    memcpy(at, (const char *)file + file->code_offset, file->code_size);
    if (mprotect(at, file->code_size, PROT_READ | PROT_EXEC))
        err(2, "mprotect");
}

static struct form_results *map_results(const char *path, size_t count) {
    size_t size = sizeof(struct form_results) + count * sizeof(struct form_result);
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (fd < 0 || ftruncate(fd, size))
        err(2, "%s", path);
    return map_file(fd, NULL, size, 0, PROT_READ | PROT_WRITE, MAP_SHARED);
}

static void run_form(const struct form *form, uint32_t id, uint64_t area, bool falsify,
                     struct digest *digest, struct form_result *result) {
    for (unsigned state = 0; state < form->states; state++) {
        state_make(form, id, state, area, (struct cpu_state *)(uintptr_t)CONTEXT_IN);
        execute(form, area + AREA_CODE + form->code);
        if (falsify)
            ((struct cpu_state *)(uintptr_t)CONTEXT_OUT)->gpr[GPR_RAX] ^= 1;
        if (result)
            result->outcome[state] = digest_outcome();
        digest_add(digest, form, state);
    }
    if (!result)
        return;
    result->hash = digest->hash;
    result->pointer_hash = digest->pointer_hash;
}

int main(int argc, char **argv) {
    struct options o = parse(argc, argv);
    int fd = open(o.table, O_RDONLY | O_CLOEXEC);
    off_t size = fd < 0 ? -1 : lseek(fd, 0, SEEK_END);
    if (size < (off_t)sizeof(struct form_file))
        err(2, "%s", o.table);
    const struct form_file *file = map_file(fd, NULL, size, 0, PROT_READ, MAP_PRIVATE);
    if (file->magic != FORM_MAGIC)
        errx(2, "%s is not a table of forms", o.table);
    const struct form *forms = (const struct form *)(file + 1);
    const char *falsified = getenv("DIFFERENTIAL_BREAK");
    long falsify = falsified ? atol(falsified) : -1;
    uint64_t area = o.code_high ? o.high : AREA_LOW;
    stay_on_one_cpu();
    state_init(o.high);
    memory_map(o.high);
    map_code(fd, file, area, o.code_high);
    execute_init();
    if (o.show >= 0) {
        struct digest digest = {.print = true};
        run_form(&forms[o.show], o.show, area, o.show == falsify, &digest, NULL);
        return 0;
    }
    struct form_results *results = map_results(o.results, file->form_count);
    long end = o.end < 0 || o.end > file->form_count ? file->form_count : o.end;
    for (long id = o.first; id < end; id++) {
        struct digest digest = {0};
        results->current = id;
        run_form(&forms[id], id, area, id == falsify, &digest, &results->result[id]);
    }
    results->done = 1;
}
