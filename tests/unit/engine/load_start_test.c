// How a program starts: scripts, the initial stack, the vdso. Where the kernel can be asked what it
// would do, it is; and programs that the loader has mapped are really run, natively.
#include "load_common.h"

#include <elf.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

// ---- files and scripts

static void agrees_with_exec(const char *path, int expected, enum load_fault fault) {
    CHECK_EQ(native_status(path), expected);
    CHECK_EQ(load(path), expected);
    CHECK_EQ(result.fault, fault);
    if (expected == 0)
        load_release(&space, &result);
    check_nothing_left();
}

TEST(refuses_what_exec_refuses) {
    forget();
    agrees_with_exec(scratch("nothing"), -ENOENT, LOAD_NOT_FOUND);
    agrees_with_exec("/bin/true/x", -ENOTDIR, LOAD_NOT_FOUND);
    agrees_with_exec("/tmp", -EACCES, LOAD_FORBIDDEN);
    agrees_with_exec("/dev/null", -EACCES, LOAD_FORBIDDEN);
    agrees_with_exec(write_file("data", "hello", 5, 0644), -EACCES, LOAD_FORBIDDEN);
    agrees_with_exec(write_text("text", "hello\n"), -ENOEXEC, LOAD_FORMAT);
    agrees_with_exec(write_text("empty", ""), -ENOEXEC, LOAD_FORMAT);
    agrees_with_exec(write_text("magic", "\177ELF"), -ENOEXEC, LOAD_FORMAT);
    agrees_with_exec(write_text("a", "#!"), -EACCES, LOAD_FORMAT);
    agrees_with_exec(write_text("b", "#! \t \n"), -ENOEXEC, LOAD_FORMAT);
    agrees_with_exec(write_text("c", "#!/no/such/thing -x\n"), -ENOENT, LOAD_NOT_FOUND);
    CHECK_STR(result.culprit, "/no/such/thing");
    agrees_with_exec(write_text("d", "#!/tmp\n"), -EACCES, LOAD_FORBIDDEN);
    agrees_with_exec(write_text("f", "#!/bin/true"), 0, LOAD_FINE);
    char text[400];
    snprintf(text, sizeof text, "#!/%0300d\n", 7);
    agrees_with_exec(write_text("g", text), -ENOEXEC, LOAD_FORMAT);
    snprintf(text, sizeof text, "#!/bin/true %0300d\n", 7);
    agrees_with_exec(write_text("h", text), 0, LOAD_FINE);
}

static const char *argument(size_t index) {
    return ((char **)result.rsp)[1 + index];
}

TEST(resolves_scripts) {
    forget();
    char path[128];
    snprintf(path, sizeof path, "%s", write_text("script", "#! /bin/true  -a b\tc \t\nrest\n"));
    CHECK_EQ(load(path), 0);
    CHECK_EQ(*(size_t *)result.rsp, 6);
    CHECK_STR(argument(0), "/bin/true");
    CHECK_STR(argument(1), "-a b\tc");
    CHECK_STR(argument(2), path);
    CHECK_STR(argument(3), "one");
    CHECK_STR(argument(4), "");
    CHECK_STR(argument(5), "three words here");
    CHECK(!argument(6));
    char resolved[PATH_MAX];
    CHECK_STR(result.executable.path, realpath("/bin/true", resolved));
    CHECK_STR(result.name, "script");
    release();
    // Without an argument, and started without even argv[0].
    char *none[] = {NULL};
    snprintf(path, sizeof path, "%s", write_text("script", "#!/bin/true\n"));
    CHECK_EQ(load_with(path, none, none, 0), 0);
    CHECK_EQ(*(size_t *)result.rsp, 2);
    CHECK_STR(argument(0), "/bin/true");
    CHECK_STR(argument(1), path);
    release();
    CHECK_EQ(load_with("/bin/true", none, none, 0), 0);
    CHECK_EQ(*(size_t *)result.rsp, 1);
    CHECK_STR(argument(0), "");
    release();
}

TEST(resolves_nested_scripts) {
    forget();
    char text[256];
    write_text("nest1", "#!/bin/true x\n");
    for (int i = 2; i <= 6; i++) {
        char name[16], inner[16];
        snprintf(name, sizeof name, "nest%d", i);
        snprintf(inner, sizeof inner, "nest%d", i - 1);
        snprintf(text, sizeof text, "#!%s\n", scratch(inner));
        write_text(name, text);
    }
    agrees_with_exec(scratch("nest6"), -ELOOP, LOAD_FORMAT);
    agrees_with_exec(scratch("nest5"), 0, LOAD_FINE);
    CHECK_EQ(load(scratch("nest3")), 0);
    CHECK_EQ(*(size_t *)result.rsp, 8);
    CHECK_STR(argument(0), "/bin/true");
    CHECK_STR(argument(1), "x");
    CHECK_STR(argument(2), scratch("nest1"));
    CHECK_STR(argument(3), scratch("nest2"));
    CHECK_STR(argument(4), scratch("nest3"));
    CHECK_STR(argument(5), "one");
    release();
}

TEST(tells_execute_only_files) {
    forget();
    struct file file = read_whole("/bin/true");
    const char *path = write_file("secret", file.bytes, file.size, 0711);
    free(file.bytes);
    if (geteuid() != 0)
        CHECK_EQ(chmod(path, 0111), 0);
    pid_t child = fork();
    if (child == 0) {
        bool lowered = geteuid() != 0 || seteuid(65534) == 0;
        _exit(lowered && load(path) == -EACCES && result.fault == LOAD_UNREADABLE ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
}

// ---- stack, vdso, announcement

static uint64_t aux(const uint64_t *auxv, uint64_t type, bool *found) {
    for (; auxv[0] != AT_NULL; auxv += 2)
        if (auxv[0] == type) {
            *found = true;
            return auxv[1];
        }
    *found = false;
    return 0;
}

static void check_auxv(const uint64_t *auxv, const char *path) {
    static const uint64_t same[] = {AT_HWCAP, AT_HWCAP2, AT_PAGESZ,     AT_CLKTCK,
                                    AT_FLAGS, AT_UID,    AT_EUID,       AT_GID,
                                    AT_EGID,  AT_SECURE, AT_MINSIGSTKSZ};
    // Not getauxval: libc puts its own value in the place of AT_HWCAP.
    uint64_t own[128] = {0};
    int fd = open("/proc/self/auxv", O_RDONLY);
    CHECK(read(fd, own, sizeof own - 16) > 0);
    close(fd);
    bool found, expected;
    for (size_t i = 0; i < sizeof same / sizeof *same; i++) {
        uint64_t value = aux(own, same[i], &expected);
        CHECK_EQ(aux(auxv, same[i], &found), value);
        CHECK_EQ(found, expected);
    }
    CHECK_EQ(aux(auxv, AT_PHDR, &found), result.executable.headers);
    CHECK_EQ(aux(auxv, AT_PHENT, &found), 56);
    CHECK_EQ(aux(auxv, AT_PHNUM, &found), result.executable.header_count);
    CHECK_EQ(aux(auxv, AT_BASE, &found), result.interpreter.start);
    CHECK_EQ(aux(auxv, AT_ENTRY, &found), result.executable.entry);
    CHECK_EQ(aux(auxv, AT_SYSINFO_EHDR, &found), result.vdso.copy);
    CHECK_STR((char *)aux(auxv, AT_EXECFN, &found), path);
    CHECK_STR((char *)aux(auxv, AT_PLATFORM, &found), "x86_64");
    uintptr_t random = aux(auxv, AT_RANDOM, &found);
    CHECK(random > result.rsp && random + 16 <= result.arg_start);
    CHECK(memcmp((void *)random, (void *)getauxval(AT_RANDOM), 16) != 0);
    aux(auxv, 27, &found);
    CHECK(!found);
    aux(auxv, 28, &found);
    CHECK(!found);
}

TEST(lays_out_the_stack) {
    forget();
    CHECK_EQ(load("/bin/true"), 0);
    const uint64_t *word = (const uint64_t *)result.rsp;
    CHECK_EQ(result.rsp % 16, 0);
    CHECK_EQ(*word++, 4);
    uintptr_t at = result.arg_start;
    for (int i = 0; plain_argv[i]; i++, word++) {
        CHECK_EQ(*word, at);
        CHECK_STR((char *)at, plain_argv[i]);
        at += strlen(plain_argv[i]) + 1;
    }
    CHECK_EQ(*word++, 0);
    CHECK_EQ(result.arg_end, at);
    CHECK_EQ(result.env_start, at);
    for (int i = 0; plain_envp[i]; i++, word++) {
        CHECK_EQ(*word, at);
        CHECK_STR((char *)at, plain_envp[i]);
        at += strlen(plain_envp[i]) + 1;
    }
    CHECK_EQ(*word++, 0);
    CHECK_EQ(result.env_end, at);
    check_auxv(word, "/bin/true");
    CHECK_STR((char *)at, "/bin/true");
    CHECK_EQ(at + strlen("/bin/true") + 1 + 8, result.stack_end);
    release();
}

TEST(sizes_the_stack) {
    forget();
    struct space_range range;
    static const uint64_t sizes[][2] = {{8 << 20, 8 << 20},
                                        {(3 << 20) + 1, (3 << 20) + 4096},
                                        {100000, 102400},
                                        {4096, 36864}, // arguments and 32 KiB
                                        {RLIM_INFINITY, 1 << 30}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        CHECK_EQ(load_with("/bin/true", plain_argv, plain_envp, sizes[i][0]), 0);
        CHECK_EQ(result.stack_end - result.stack_start, sizes[i][1]);
        CHECK_EQ(result.stack_end, HIGH_END);
        CHECK(space_find(&space, result.stack_start - 1, &range));
        CHECK_EQ(range.attributes.tag, SPACE_GUARD);
        CHECK_EQ(native_rights(result.stack_start - 1), PROT_NONE);
        CHECK_EQ(native_rights(result.stack_start), PROT_READ | PROT_WRITE);
        CHECK(space_find(&space, result.stack_start, &range));
        CHECK_EQ(range.attributes.prot, PROT_READ | PROT_WRITE);
        CHECK_EQ(range.attributes.tag, SPACE_STACK);
        release();
    }
    static char large[300000];
    memset(large, 'x', sizeof large - 1);
    char *argv[] = {"true", large, NULL};
    CHECK_EQ(load_with("/bin/true", argv, plain_envp, 0), -E2BIG);
    check_nothing_left();
}

TEST(keeps_stack_alignment_for_any_count) {
    forget();
    char *argv[16];
    for (int count = 1; count < 16; count++) {
        for (int i = 0; i < count; i++)
            argv[i] = "abcdefghijklmno" + i;
        argv[count] = NULL;
        CHECK_EQ(load_with("/bin/true", argv, plain_envp, 0), 0);
        CHECK_EQ(result.rsp % 16, 0);
        CHECK_STR(argument(count - 1), argv[count - 1]);
        load_release(&space, &result);
    }
    check_nothing_left();
}

TEST(copies_the_vdso) {
    forget();
    struct load_vdso vdso;
    struct space_range range;
    uintptr_t real = getauxval(AT_SYSINFO_EHDR);
    CHECK_EQ(load_vdso(&space, real, &vdso), 0);
    CHECK_EQ(vdso.real, real);
    CHECK(vdso.copy >= LOW_START && vdso.copy + vdso.size <= LOW_END);
    CHECK_EQ(memcmp((void *)vdso.copy, (void *)real, vdso.size), 0);
    CHECK_EQ(native_rights(vdso.copy), PROT_READ);
    CHECK(space_find(&space, vdso.copy, &range));
    CHECK_EQ(range.attributes.prot, PROT_READ | PROT_EXEC);
    CHECK_EQ(range.attributes.tag, SPACE_VDSO);
    int (*get_time)(clockid_t, struct timespec *) = NULL;
    for (size_t i = 0; i < vdso.symbol_count; i++)
        if (strcmp(vdso.symbols[i].name, "__vdso_clock_gettime") == 0)
            get_time = (int (*)(clockid_t, struct timespec *))(real + vdso.symbols[i].offset);
    CHECK(get_time);
    struct timespec time = {0};
    CHECK_EQ(get_time(CLOCK_MONOTONIC, &time), 0);
    CHECK(time.tv_sec > 0);
    NOTE("vdso: %zu bytes, %zu functions", vdso.size, vdso.symbol_count);
    munmap((void *)vdso.copy, vdso.size);
    space_unmap(&space, vdso.copy, vdso.copy + vdso.size);
    CHECK_EQ(load_vdso(&space, 0, &vdso), 0);
    CHECK_EQ(vdso.copy, 0);
    check_nothing_left();
}

static bool file_holds(const char *path, const char *bytes, size_t size) {
    struct file file = {.bytes = malloc(4096)};
    int fd = open(path, O_RDONLY);
    file.size = read(fd, file.bytes, 4096);
    close(fd);
    bool same = file.size == size && memcmp(file.bytes, bytes, size) == 0;
    free(file.bytes);
    return same;
}

TEST(announces_the_target) {
    forget();
    pid_t child = fork();
    if (child == 0) {
        static const char line[] = "zero\0one\0\0three words here";
        static const char environment[] = "A=1\0PATH=/bin\0EMPTY=";
        const char *path = write_text("a-rather-long-name", "#!/bin/true\n");
        bool sound = load("/bin/true") == 0;
        snprintf(result.name, sizeof result.name, "%.15s", strrchr(path, '/') + 1);
        load_announce(&result);
        sound &= file_holds("/proc/self/cmdline", line, sizeof line);
        sound &= file_holds("/proc/self/environ", environment, sizeof environment);
        sound &= file_holds("/proc/self/comm", "a-rather-long-n\n", 16);
        // The engine's own heap still grows.
        void *before = sbrk(0);
        sound &= sbrk(1 << 20) == before;
        _exit(sound ? 0 : 1);
    }
    int status;
    waitpid(child, &status, 0);
    CHECK_EQ(status, 0);
}

// ---- running what was loaded

// Gives the code its right to be executed and jumps to the entry, as the kernel would.
__attribute__((noreturn)) static void run_natively(void) {
    struct space_range range;
    uintptr_t at = 0;
    while (space_next(&space, &at, UINTPTR_MAX, &range))
        if (range.attributes.prot & PROT_EXEC)
            mprotect((void *)range.start, range.end - range.start, range.attributes.prot);
    __asm__ volatile("mov %0, %%rsp\n\t"
                     "xor %%edx, %%edx\n\t"
                     "xor %%ebp, %%ebp\n\t"
                     "jmp *%1"
                     :
                     : "r"(result.rsp), "r"(result.entry)
                     : "rdx", "memory");
    __builtin_unreachable();
}

// The output of a program, started by exec or by the loader, and its status.
static size_t output_of(const char *path, char **argv, bool loaded, char *output, size_t size,
                        int *status) {
    int ends[2];
    CHECK_EQ(pipe(ends), 0);
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        dup2(ends[1], 1);
        close(ends[0]);
        close(ends[1]);
        if (!loaded) {
            execve(path, argv, plain_envp);
            _exit(100);
        }
        // Without a vdso: only the engine can make calls of the copy work.
        Elf64_auxv_t auxv[64];
        int fd = open("/proc/self/auxv", O_RDONLY), kept = 0;
        int count = read(fd, auxv, sizeof auxv) / sizeof *auxv;
        close(fd);
        for (int i = 0; i < count; i++)
            if (auxv[i].a_type != AT_SYSINFO_EHDR)
                auxv[kept++] = auxv[i];
        struct load_request request = {.space = &space,
                                       .path = path,
                                       .argv = argv,
                                       .envp = plain_envp,
                                       .stack_limit = 8 << 20,
                                       .auxv = auxv};
        if (load_program(&request, &result) < 0)
            _exit(101);
        run_natively();
    }
    close(ends[1]);
    size_t used = 0;
    for (ssize_t got; (got = read(ends[0], output + used, size - used)) > 0;)
        used += got;
    close(ends[0]);
    waitpid(child, status, 0);
    return used;
}

static void runs_alike(const char *path, char **argv) {
    char expected[65536], actual[65536];
    int expected_status, status;
    size_t size = output_of(path, argv, false, expected, sizeof expected, &expected_status);
    size_t actual_size = output_of(path, argv, true, actual, sizeof actual, &status);
    if (status != expected_status || actual_size != size || memcmp(actual, expected, size) != 0)
        unit_fail(__FILE__, __LINE__, "%s: status %#x with \"%.*s\", not %#x with \"%.*s\"", path,
                  status, (int)actual_size, actual, expected_status, (int)size, expected);
}

TEST(runs_what_it_loaded) {
    static const char *const forms[] = {"pie",        "fixed",   "static",
                                        "static_pie", "aligned", "execstack"};
    forget();
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        char name[64];
        snprintf(name, sizeof name, "load_target_%s", forms[i]);
        runs_alike(built(name), plain_argv);
    }
    if (access(built("load_target_musl"), X_OK) == 0)
        runs_alike(built("load_target_musl"), plain_argv);
    runs_alike("/bin/cat", (char *[]){"cat", "/etc/passwd", NULL});
    runs_alike("/bin/false", plain_argv);
    runs_alike("/bin/bash", (char *[]){"bash", "-c", "echo $0 $# $EMPTY $PATH; exit 3", NULL});
    runs_alike(write_text("sh", "#!/bin/sh -e\necho $0 \"$@\"; false; true\n"), plain_argv);
}

TEST(agrees_with_exec_on_random_script_heads) {
    static const char *const pieces[] = {" ", "\t", "  ", "-x", "a b", "\n", "#!", "é", "/", "\r"};
    char text[512];
    int run = 0;
    forget();
    for (int i = 0; i < 200; i++) {
        size_t used =
            snprintf(text, sizeof text, "#!%s%s", i % 3 ? "" : " ", built("load_target_static"));
        for (int count = rand() % 8; count > 0; count--)
            used += snprintf(text + used, sizeof text - used, "%s", pieces[rand() % 10]);
        if (i % 10 == 0)
            text[rand() % used] = '\0';
        const char *path = write_file("head", text, used, 0755);
        int status = native_status(path);
        CHECK_EQ(load(path), status);
        if (status < 0)
            continue;
        load_release(&space, &result);
        runs_alike(path, plain_argv);
        run++;
    }
    NOTE("200 heads, %d of them runnable", run);
    CHECK(run > 20 && run < 200);
}

UNIT_MAIN()
