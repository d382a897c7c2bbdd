// The loader's front: puts the parts together and takes them apart again.
#include "engine/load/internal.h"

#include <errno.h>
#include <linux/prctl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "engine/space/place.h"

int load_fail(struct load_result *result, enum load_fault fault, int status, const char *culprit,
              const char *message) {
    result->fault = fault;
    result->message = message;
    snprintf(result->culprit, sizeof result->culprit, "%s", culprit);
    return status;
}

static int map_interpreter(struct space *space, const char *path, struct load_result *result) {
    int fd = load_open(path, result);
    if (fd < 0)
        return fd;
    char ignored[PATH_MAX]; // an interpreter's interpreter means nothing
    int status =
        load_module_map(space, &result->interpreter, fd, path, ignored, PLACE_MODULE, result);
    close(fd);
    if (status == -ENOEXEC)
        return load_fail(result, LOAD_INTERPRETER, -ELIBBAD, path,
                         "is named as an interpreter but is no usable ELF file");
    result->has_interpreter = status == 0;
    return status;
}

static int map_modules(struct space *space, const struct load_plan *plan,
                       struct load_result *result) {
    char interpreter[PATH_MAX];
    int status = load_module_map(space, &result->executable, plan->fd, plan->path, interpreter,
                                 PLACE_PROGRAM, result);
    if (status == 0 && interpreter[0])
        status = map_interpreter(space, interpreter, result);
    if (status < 0)
        return status;
    result->entry = result->has_interpreter ? result->interpreter.entry : result->executable.entry;
    return 0;
}

static int reserve_break(struct space *space, struct load_result *result, const char *path) {
    const struct space_attributes attributes = {.flags = SPACE_NORESERVE, .tag = SPACE_BRK};
    size_t room = place_break_room();
    uintptr_t start = place_pick(space, PLACE_BREAK, room, SPACE_PAGE);
    if (!start || space_map(space, start, start + room, &attributes) < 0)
        return load_fail(result, LOAD_ROOM, -ENOMEM, path, "has no room for its break");
    result->brk = start;
    result->brk_end = start + room;
    return 0;
}

// In one piece there is none, as in Valgrind: what it would run goes by the time that passes.
static uintptr_t real_vdso(const struct load_request *request) {
    if (is_in_one_piece())
        return 0;
    if (!request->auxv)
        return getauxval(AT_SYSINFO_EHDR);
    for (const Elf64_auxv_t *entry = request->auxv; entry->a_type != AT_NULL; entry++)
        if (entry->a_type == AT_SYSINFO_EHDR)
            return entry->a_un.a_val;
    return 0;
}

int load_program(const struct load_request *request, struct load_result *result) {
    *result = (struct load_result){0};
    struct load_plan plan;
    int status = load_plan_make(&plan, request->path, request->argv, result);
    if (status < 0)
        return status;
    status = map_modules(request->space, &plan, result);
    if (status == 0 && (status = load_vdso(request->space, real_vdso(request), &result->vdso)) < 0)
        load_fail(result, LOAD_ROOM, status, request->path, "has no room for the vdso");
    if (status == 0)
        status = reserve_break(request->space, result, request->path);
    if (status == 0)
        status = load_stack_make(request, plan.argv, plan.argc, result);
    load_plan_free(&plan);
    if (status < 0) {
        load_release(request->space, result);
        return status;
    }
    const char *slash = strrchr(request->path, '/');
    snprintf(result->name, sizeof result->name, "%.15s", slash ? slash + 1 : request->path);
    return 0;
}

static void release_range(struct space *space, uintptr_t start, uintptr_t end) {
    munmap((void *)start, end - start);
    space_unmap(space, start, end);
}

void load_release(struct space *space, struct load_result *result) {
    load_module_unmap(space, &result->executable);
    load_module_unmap(space, &result->interpreter);
    if (result->vdso.copy)
        release_range(space, result->vdso.copy, result->vdso.copy + result->vdso.size);
    if (result->brk)
        release_range(space, result->brk, result->brk_end);
    if (result->stack_end)
        release_range(space, result->stack_start - LOAD_STACK_ROOM, result->stack_end);
    result->vdso.copy = result->brk = result->stack_end = result->stack_start = 0;
}

// ---- telling the kernel

// The kernel takes all fields of its description of the process at once, so those that stay have to
// be told it again. They are in /proc/self/stat, by the numbers of proc(5).
static bool read_description(struct prctl_mm_map *map) {
    char text[2048];
    FILE *file = fopen("/proc/self/stat", "re");
    if (!file)
        return false;
    size_t size = fread(text, 1, sizeof text - 1, file);
    fclose(file);
    text[size] = '\0';
    // The name in parentheses may contain anything: what follows its end is field 3.
    char *at = strrchr(text, ')');
    for (int field = 3; at && *at && field <= 47; field++) {
        at += strcspn(at, " ");
        at += *at == ' ';
        unsigned long long value = strtoull(at, NULL, 10);
        switch (field) {
        case 26:
            map->start_code = value;
            break;
        case 27:
            map->end_code = value;
            break;
        case 28:
            map->start_stack = value;
            break;
        case 45:
            map->start_data = value;
            break;
        case 46:
            map->end_data = value;
            break;
        case 47:
            map->start_brk = value;
        }
    }
    return map->start_brk != 0;
}

void load_announce(const struct load_result *result) {
    struct prctl_mm_map map = {.exe_fd = -1};
    if (read_description(&map)) {
        map.brk = syscall(SYS_brk, 0);
        map.arg_start = result->arg_start;
        map.arg_end = result->arg_end;
        map.env_start = result->env_start;
        map.env_end = result->env_end;
        map.auxv = (void *)result->auxv;
        map.auxv_size = result->auxv_size;
        prctl(PR_SET_MM, PR_SET_MM_MAP, &map, sizeof map, 0);
    }
    prctl(PR_SET_NAME, result->name);
}
