// The initial stack, laid out as the kernel does it. From the top:
//
//   8 zero bytes, the path given to exec
//   strings of envp, strings of argv below them, each in order of address: a contiguous block
//   platform name, 16 random bytes
//   auxiliary vector, envp and its NULL, argv and its NULL
//   argc, at the initial rsp, a multiple of 16
//
// In one piece (space/place.h) it is as Valgrind has it: the platform's name and the random bytes
// lie above the strings. Between them Valgrind has the name as it was typed, where the path may be
// longer; so the path lies above all that.
#include "engine/load/internal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <unistd.h>

#define STACK_MIN       (32ul << 10)  // beside arguments
#define ARGUMENTS_MIN   (128ul << 10) // however small the stack is
#define STACK_UNLIMITED (1ul << 30)
#define STACK_MAX       (1ul << 40)
#define AUXV_MAX        64
#define RANDOM_SIZE     16
// Numbers of the rseq entries, which older headers lack.
#define AUX_RSEQ_FEATURE_SIZE 27
#define AUX_RSEQ_ALIGN        28

static const char platform[] = "x86_64";

// The addresses of strings that the vectors point to.
struct strings {
    uintptr_t execfn;
    uintptr_t platform;
    uintptr_t random;
};

// ---- auxiliary vector

static size_t read_own_auxv(Elf64_auxv_t *auxv) {
    int fd = open("/proc/self/auxv", O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    ssize_t size = read(fd, auxv, AUXV_MAX * sizeof *auxv);
    close(fd);
    return size > 0 ? size / sizeof *auxv : 0;
}

static size_t copy_auxv(Elf64_auxv_t *auxv, const Elf64_auxv_t *from) {
    size_t count = 0;
    if (!from)
        count = read_own_auxv(auxv);
    else
        for (; count < AUXV_MAX - 1 && from[count].a_type != AT_NULL; count++)
            auxv[count] = from[count];
    size_t end = 0;
    while (end < count && auxv[end].a_type != AT_NULL)
        end++;
    return end;
}

// What the target must not see is to be ignored: rseq areas are registered by the engine's libc,
// and a descriptor of the engine's executable is not the target's. No entry is left out, so that
// the stack lies where the kernel would have put it: where it meets other data in a cache goes by
// that.
static void translate_entry(Elf64_auxv_t *entry, const struct load_result *result,
                            const struct strings *strings) {
    switch (entry->a_type) {
    case AT_PHDR:
        entry->a_un.a_val = result->executable.headers;
        break;
    case AT_PHENT:
        entry->a_un.a_val = sizeof(Elf64_Phdr);
        break;
    case AT_PHNUM:
        entry->a_un.a_val = result->executable.header_count;
        break;
    case AT_BASE:
        entry->a_un.a_val = result->has_interpreter ? result->interpreter.bias : 0;
        break;
    case AT_ENTRY:
        entry->a_un.a_val = result->executable.entry;
        break;
    case AT_EXECFN:
        entry->a_un.a_val = strings->execfn;
        break;
    case AT_RANDOM:
        entry->a_un.a_val = strings->random;
        break;
    case AT_PLATFORM:
        entry->a_un.a_val = strings->platform;
        break;
    case AT_SYSINFO_EHDR:
        entry->a_un.a_val = result->vdso.copy;
        if (!result->vdso.copy)
            entry->a_type = AT_IGNORE;
        break;
    case AUX_RSEQ_FEATURE_SIZE:
    case AUX_RSEQ_ALIGN:
    case AT_BASE_PLATFORM:
    case AT_EXECFD:
        entry->a_type = AT_IGNORE;
        break;
    }
}

static size_t translate_auxv(Elf64_auxv_t *auxv, size_t count, const struct load_result *result,
                             const struct strings *strings) {
    for (size_t i = 0; i < count; i++)
        translate_entry(&auxv[i], result, strings);
    auxv[count] = (Elf64_auxv_t){.a_type = AT_NULL};
    return count + 1;
}

// ---- place

uint64_t load_stack_size(uint64_t limit, uint64_t arguments) {
    uint64_t size = limit == RLIM_INFINITY ? STACK_UNLIMITED : limit;
    if (size < arguments + STACK_MIN)
        size = arguments + STACK_MIN;
    return size > STACK_MAX ? STACK_MAX : page_ceiling(size);
}

static int map_stack(struct space *space, uint64_t size, bool executable,
                     struct load_result *result) {
    uintptr_t room = place_pick(space, PLACE_STACK, size + LOAD_STACK_ROOM, SPACE_PAGE);
    if (!room)
        return -ENOMEM;
    uintptr_t start = room + LOAD_STACK_ROOM, guard = start - SPACE_PAGE, end = start + size;
    int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK | MAP_FIXED_NOREPLACE;
    void *mapped = mmap((void *)guard, size + SPACE_PAGE, PROT_READ | PROT_WRITE, flags, -1, 0);
    if (mapped == MAP_FAILED)
        return -errno;
    const struct space_attributes guarding = {.tag = SPACE_GUARD};
    const struct space_attributes attributes = {.prot = PROT_READ | PROT_WRITE |
                                                        (executable ? PROT_EXEC : 0),
                                                .flags = SPACE_GROWSDOWN | SPACE_NORESERVE,
                                                .tag = SPACE_STACK};
    int status = mapped == (void *)guard ? 0 : -EEXIST;
    if (status == 0 && mprotect(mapped, SPACE_PAGE, PROT_NONE) != 0)
        status = -errno;
    if (status == 0)
        status = space_map(space, room, start, &guarding);
    if (status == 0)
        status = space_map(space, start, end, &attributes);
    if (status < 0) {
        munmap(mapped, size + SPACE_PAGE);
        space_unmap(space, room, end);
        return status;
    }
    result->stack_start = start;
    result->stack_end = end;
    return 0;
}

// ---- contents

static size_t strings_size(char *const *strings) {
    size_t size = 0;
    for (; *strings; strings++)
        size += strlen(*strings) + 1;
    return size;
}

static size_t strings_count(char *const *strings) {
    size_t count = 0;
    while (strings[count])
        count++;
    return count;
}

// Copies the strings to `at` and the addresses of the copies to *vector, which moves behind its
// NULL. Returns the end of the copies.
static uintptr_t place_strings(uintptr_t at, char *const *strings, uintptr_t **vector) {
    for (; *strings; strings++) {
        size_t size = strlen(*strings) + 1;
        memcpy((void *)at, *strings, size);
        *(*vector)++ = at;
        at += size;
    }
    *(*vector)++ = 0;
    return at;
}

static uintptr_t push(uintptr_t *at, const void *bytes, size_t size) {
    *at -= size;
    memcpy((void *)*at, bytes, size);
    return *at;
}

// In one piece: where the environment ends, of so many bytes down to the auxiliary vector. Valgrind
// has random bytes, the name and the platform's above it, leaves a byte free and rounds the whole
// up.
static uintptr_t place_above(uintptr_t stack_end, const char *name, size_t size,
                             const unsigned char random[RANDOM_SIZE], struct strings *strings) {
    size_t name_size = strlen(name) + 1;
    size_t whole = size + RANDOM_SIZE + name_size + sizeof platform;
    size_t rounded = (whole + sizeof(int) - 1) & ~(sizeof(int) - 1);
    uintptr_t end = stack_end - PLACE_PATH_ROOM - 1 - (rounded - size);
    strings->random = end;
    memcpy((void *)strings->random, random, RANDOM_SIZE);
    strings->platform = end + RANDOM_SIZE + name_size;
    memcpy((void *)strings->platform, platform, sizeof platform);
    return end;
}

static int fill_random(unsigned char bytes[RANDOM_SIZE]) {
    ssize_t size;
    do
        size = getrandom(bytes, RANDOM_SIZE, GRND_NONBLOCK);
    while (size < 0 && errno == EINTR);
    return size == RANDOM_SIZE ? 0 : -EIO;
}

int load_stack_make(const struct load_request *request, char *const *argv, size_t argc,
                    struct load_result *result) {
    static char *const no_strings[] = {NULL};
    char *const *envp = request->envp ? request->envp : no_strings;
    size_t envc = strings_count(envp), arg_size = strings_size(argv), env_size = strings_size(envp);
    size_t path_size = strlen(request->path) + 1;
    size_t pointers = (argc + envc + 3) * sizeof(uintptr_t);
    size_t arguments = arg_size + env_size + pointers + path_size;
    size_t size = load_stack_size(request->stack_limit, arguments);
    int status = map_stack(request->space, size, result->executable.wants_executable_stack, result);
    if (status < 0)
        return load_fail(result, LOAD_ROOM, status, request->path, "has no room for its stack");
    // As the kernel: arguments may take a quarter of the stack.
    if (arguments > size / 4 && arguments > ARGUMENTS_MIN)
        return load_fail(result, LOAD_ROOM, -E2BIG, request->path, "has too many arguments");

    Elf64_auxv_t auxv[AUXV_MAX + 1];
    size_t auxv_count = copy_auxv(auxv, request->auxv);
    unsigned char random[RANDOM_SIZE];
    status = fill_random(random);
    if (status < 0 || auxv_count == 0)
        return load_fail(result, LOAD_SYSTEM, status < 0 ? status : -EIO, request->path,
                         "cannot be started: no auxiliary vector or no random bytes");

    struct strings strings = {0};
    uintptr_t at = result->stack_end - sizeof(uintptr_t);
    strings.execfn = push(&at, request->path, path_size);
    if (is_in_one_piece())
        at = place_above(result->stack_end, argc ? argv[0] : "", env_size + arg_size, random,
                         &strings);
    result->env_end = at;
    result->env_start = result->arg_end = result->env_end - env_size;
    result->arg_start = result->arg_end - arg_size;
    if (is_in_one_piece()) {
        at = ((result->arg_start + 1) & ~(sizeof(uintptr_t) - 1)) - 1; // so much it reckons with
    } else {
        at = result->arg_start & ~15ul;
        strings.platform = push(&at, platform, sizeof platform);
        strings.random = push(&at, random, RANDOM_SIZE);
    }
    auxv_count = translate_auxv(auxv, auxv_count, result, &strings);
    result->rsp = (at - auxv_count * sizeof *auxv - pointers) & ~15ul;

    uintptr_t *vector = (uintptr_t *)result->rsp;
    *vector++ = argc;
    place_strings(result->arg_start, argv, &vector);
    place_strings(result->env_start, envp, &vector);
    memcpy(vector, auxv, auxv_count * sizeof *auxv);
    result->auxv = (uintptr_t)vector;
    result->auxv_size = auxv_count * sizeof *auxv;
    return 0;
}
