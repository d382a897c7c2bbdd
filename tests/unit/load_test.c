// The loader: what it maps is compared with the files, what it refuses with the kernel's own exec.
#include "engine/layout.h"
#include "engine/load/load.h"
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static struct space space;
static struct load_result result;
static char folder[64];

static char *plain_argv[] = {"zero", "one", "", "three words here", NULL};
static char *plain_envp[] = {"A=1", "PATH=/bin", "EMPTY=", NULL};

// ---- helpers

static int load_with(const char *path, char **argv, char **envp, uint64_t limit) {
    struct load_request request = {
        .space = &space, .path = path, .argv = argv, .envp = envp, .stack_limit = limit};
    return load_program(&request, &result);
}

static int load(const char *path) {
    return load_with(path, plain_argv, plain_envp, 8 << 20);
}

// After a release or a failure nothing may be left: not in the ledger, not in the kernel's list.
static void check_nothing_left(void) {
    CHECK_EQ(space.count, 0);
    CHECK_STR(space_check(&space) ?: "sound", "sound");
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start;
    bool clean = true;
    while (fscanf(maps, "%lx-%*[^\n]", &start) == 1)
        clean &= start >= CACHE_START && (start < HIGH_START || start >= HIGH_END);
    fclose(maps);
    CHECK(clean);
}

static void release(void) {
    load_release(&space, &result);
    check_nothing_left();
}

// A program built next to this test.
static const char *built(const char *name) {
    static char path[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 1);
    path[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(path, '/');
    snprintf(slash + 1, path + sizeof path - slash - 1, "%s", name);
    return path;
}

static int remove_entry(const char *path, const struct stat *status, int kind, struct FTW *ftw) {
    return remove(path);
}

static void remove_folder(void) {
    nftw(folder, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

static const char *scratch(const char *name) {
    static char paths[4][128];
    static unsigned turn;
    if (!folder[0]) {
        strcpy(folder, "/tmp/quern-load-XXXXXX");
        CHECK(mkdtemp(folder));
        chmod(folder, 0755);
        atexit(remove_folder);
    }
    char *path = paths[turn++ % 4];
    snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static const char *write_file(const char *name, const void *bytes, size_t size, mode_t mode) {
    const char *path = scratch(name);
    unlink(path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    CHECK(fd >= 0);
    CHECK_EQ(write(fd, bytes, size), size);
    fchmod(fd, mode);
    close(fd);
    return path;
}

static const char *write_text(const char *name, const char *text) {
    return write_file(name, text, strlen(text), 0755);
}

struct file {
    unsigned char *bytes;
    size_t size;
};

static struct file read_whole(const char *path) {
    struct file file = {0};
    FILE *stream = fopen(path, "r");
    CHECK(stream);
    fseek(stream, 0, SEEK_END);
    file.size = ftell(stream);
    rewind(stream);
    file.bytes = malloc(file.size + 1);
    CHECK_EQ(fread(file.bytes, 1, file.size, stream), file.size);
    fclose(stream);
    return file;
}

// What exec itself says: 0 or a negative errno.
static int native_status(const char *path) {
    int ends[2], error = 0;
    CHECK_EQ(pipe2(ends, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        int null = open("/dev/null", O_RDWR);
        dup2(null, 1);
        dup2(null, 2);
        execve(path, plain_argv, plain_envp);
        error = errno;
        _exit(write(ends[1], &error, sizeof error) < 0);
    }
    close(ends[1]);
    ssize_t size = read(ends[0], &error, sizeof error);
    close(ends[0]);
    waitpid(child, NULL, 0);
    return size == sizeof error ? -error : 0;
}

// The kernel's view of the page: its rights as PROT_*, -1 if it is not mapped.
static int native_rights(uintptr_t address) {
    FILE *maps = fopen("/proc/self/maps", "r");
    uintptr_t start, end;
    char rights[8];
    int found = -1;
    while (found < 0 && fscanf(maps, "%lx-%lx %7s%*[^\n]", &start, &end, rights) == 3)
        if (address >= start && address < end)
            found = (rights[0] == 'r' ? PROT_READ : 0) | (rights[1] == 'w' ? PROT_WRITE : 0) |
                    (rights[2] == 'x' ? PROT_EXEC : 0);
    fclose(maps);
    return found;
}

// ---- what is mapped

static void check_segment(const struct load_module *module, const Elf64_Phdr *segment,
                          const struct file *file) {
    const unsigned char *memory = (const unsigned char *)(module->bias + segment->p_vaddr);
    uintptr_t first = (uintptr_t)memory & ~(SPACE_PAGE - 1);
    uintptr_t file_end = (uintptr_t)memory + segment->p_filesz;
    uintptr_t end = ((uintptr_t)memory + segment->p_memsz + SPACE_PAGE - 1) & ~(SPACE_PAGE - 1);
    uint32_t prot = (segment->p_flags & PF_R ? PROT_READ : 0) |
                    (segment->p_flags & PF_W ? PROT_WRITE : 0) |
                    (segment->p_flags & PF_X ? PROT_EXEC : 0);
    CHECK_EQ(memcmp(memory, file->bytes + segment->p_offset, segment->p_filesz), 0);
    if (segment->p_memsz > segment->p_filesz)
        for (uintptr_t at = file_end; at < end; at++)
            CHECK_EQ(*(const char *)at, 0);
    struct space_range range;
    uintptr_t at = first;
    while (space_next(&space, &at, end, &range)) {
        CHECK_EQ(range.attributes.prot, prot);
        CHECK_EQ(range.attributes.tag, SPACE_MODULE);
        CHECK_EQ(native_rights(range.start), prot & ~PROT_EXEC);
        if (range.start == first && segment->p_filesz) {
            CHECK(range.attributes.flags & SPACE_FILE);
            CHECK_EQ(range.attributes.offset, segment->p_offset & ~(SPACE_PAGE - 1));
            CHECK_EQ(range.attributes.inode, module->inode);
        }
        if (range.start >= file_end)
            CHECK_EQ(range.attributes.flags, 0);
    }
    CHECK(space_is_mapped(&space, first, end));
}

static void check_module(const struct load_module *module, const char *path) {
    struct file file = read_whole(path);
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)file.bytes;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(file.bytes + header->e_phoff);
    char resolved[PATH_MAX];
    CHECK_STR(module->path, realpath(path, resolved));
    CHECK_EQ(module->entry, module->bias + header->e_entry);
    CHECK_EQ(module->header_count, header->e_phnum);
    CHECK_EQ(memcmp((void *)module->headers, segments, header->e_phnum * sizeof *segments), 0);
    int loaded = 0;
    for (int i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        loaded++;
        check_segment(module, &segments[i], &file);
        CHECK_EQ(module->bias % segments[i].p_align, 0);
        CHECK(module->start <= module->bias + segments[i].p_vaddr);
        CHECK(module->end >= module->bias + segments[i].p_vaddr + segments[i].p_memsz);
    }
    CHECK(loaded > 0);
    // Gaps between segments are free natively, too.
    for (uintptr_t page = module->start; page < module->end; page += SPACE_PAGE) {
        struct space_range range;
        CHECK(space_find(&space, page, &range));
        if (range.start > page)
            CHECK_EQ(native_rights(page), -1);
        page = range.end - SPACE_PAGE;
    }
    free(file.bytes);
}

static void check_place(const struct load_module *module) {
    CHECK(module->start >= LOW_START && module->end <= LOW_END);
}

TEST(maps_a_dynamic_program) {
    CHECK_EQ(load("/bin/true"), 0);
    check_module(&result.executable, "/bin/true");
    check_place(&result.executable);
    CHECK_EQ(result.executable.start, LOAD_PIE_START);
    CHECK(result.has_interpreter);
    check_module(&result.interpreter, "/lib64/ld-linux-x86-64.so.2");
    check_place(&result.interpreter);
    CHECK_EQ(result.interpreter.end, LOW_END);
    CHECK_EQ(result.entry, result.interpreter.entry);
    CHECK_STR(result.name, "true");
    struct space_range range;
    CHECK(space_find(&space, result.brk, &range));
    CHECK_EQ(range.attributes.tag, SPACE_BRK);
    CHECK(range.end - result.brk >= LOAD_BRK_ROOM);
    CHECK(!result.executable.wants_executable_stack);
    release();
}

static void check_built(const char *name, bool interpreter, bool fixed) {
    CHECK_EQ(load(built(name)), 0);
    check_module(&result.executable, built(name));
    check_place(&result.executable);
    CHECK_EQ(result.has_interpreter, interpreter);
    CHECK_EQ(result.executable.bias == 0, fixed);
    if (!interpreter)
        CHECK_EQ(result.entry, result.executable.entry);
    release();
}

TEST(maps_a_pie) {
    check_built("load_target_pie", true, false);
}

TEST(maps_a_fixed_program) {
    check_built("load_target_fixed", true, true);
}

TEST(maps_a_static_program) {
    check_built("load_target_static", false, true);
}

TEST(maps_a_static_pie) {
    check_built("load_target_static_pie", false, false);
}

TEST(maps_with_huge_alignment) {
    check_built("load_target_aligned", true, false);
}

TEST(maps_a_musl_program) {
    if (access(built("load_target_musl"), X_OK) != 0) {
        NOTE("musl-gcc is not installed");
        return;
    }
    check_built("load_target_musl", true, false);
}

TEST(maps_without_section_headers) {
    struct file file = read_whole(built("load_target_pie"));
    Elf64_Ehdr *header = (Elf64_Ehdr *)file.bytes;
    header->e_shoff = header->e_shnum = header->e_shstrndx = header->e_shentsize = 0;
    const char *path = write_file("bare", file.bytes, file.size, 0755);
    CHECK_EQ(load(path), 0);
    check_module(&result.executable, path);
    release();
    free(file.bytes);
}

TEST(records_an_executable_stack) {
    struct space_range range;
    CHECK_EQ(load(built("load_target_execstack")), 0);
    CHECK(result.executable.wants_executable_stack);
    CHECK(space_find(&space, result.rsp, &range));
    CHECK_EQ(range.attributes.prot, PROT_READ | PROT_WRITE | PROT_EXEC);
    CHECK_EQ(native_rights(result.rsp), PROT_READ | PROT_WRITE);
    release();
}

// Two programs at the same fixed address cannot both be loaded.
TEST(refuses_a_taken_address) {
    struct load_result first;
    CHECK_EQ(load(built("load_target_static")), 0);
    first = result;
    CHECK_EQ(load(built("load_target_fixed")), -ENOMEM);
    CHECK_EQ(result.fault, LOAD_ROOM);
    CHECK_STR(result.culprit, built("load_target_fixed"));
    load_release(&space, &first);
    check_nothing_left();
    // Taken by something that is not in the ledger.
    void *engine = mmap((void *)0x401000, 4096, PROT_READ,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0);
    CHECK_EQ((uintptr_t)engine, 0x401000);
    CHECK_EQ(load(built("load_target_fixed")), -ENOMEM);
    CHECK_EQ(native_rights(0x401000), PROT_READ);
    munmap(engine, 4096);
    check_nothing_left();
}

// ---- segments of unusual form

// A program of one page: the header, and segments to be filled in.
struct tiny {
    Elf64_Ehdr header;
    Elf64_Phdr segments[3];
    unsigned char rest[8192 - sizeof(Elf64_Ehdr) - 3 * sizeof(Elf64_Phdr)];
};

static struct tiny make_tiny(void) {
    struct tiny tiny = {
        .header = {.e_ident = {0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT},
                   .e_type = ET_EXEC,
                   .e_machine = EM_X86_64,
                   .e_version = EV_CURRENT,
                   .e_entry = 0x400800,
                   .e_phoff = sizeof(Elf64_Ehdr),
                   .e_ehsize = sizeof(Elf64_Ehdr),
                   .e_phentsize = sizeof(Elf64_Phdr),
                   .e_phnum = 3},
        .segments = {{.p_type = PT_LOAD,
                      .p_flags = PF_R | PF_X,
                      .p_vaddr = 0x400000,
                      .p_filesz = 4096,
                      .p_memsz = 4096,
                      .p_align = 4096},
                     {.p_type = PT_NULL},
                     {.p_type = PT_NULL}},
    };
    memset(tiny.rest, 0xcc, sizeof tiny.rest);
    return tiny;
}

static int load_tiny(const struct tiny *tiny) {
    return load(write_file("tiny", tiny, sizeof *tiny, 0755));
}

TEST(maps_segments_of_unusual_form) {
    struct tiny tiny = make_tiny();
    struct space_range range;
    // Nothing in the file, at an odd address; and bss in the last page of a file, whose tail is
    // 0xcc.
    tiny.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R | PF_W,
                                    .p_vaddr = 0x500123,
                                    .p_memsz = 0x2000,
                                    .p_align = 4096};
    tiny.segments[2] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R | PF_W,
                                    .p_offset = 0x1000,
                                    .p_vaddr = 0x601000,
                                    .p_filesz = 0x100,
                                    .p_memsz = 0x200,
                                    .p_align = 4096};
    CHECK_EQ(load_tiny(&tiny), 0);
    CHECK_EQ(space_is_mapped(&space, 0x500000, 0x503000), true);
    CHECK(space_find(&space, 0x500000, &range));
    CHECK_EQ(range.end, 0x503000);
    CHECK_EQ(range.attributes.flags, 0);
    CHECK_EQ(*(unsigned char *)0x6010ff, 0xcc);
    for (uintptr_t at = 0x601100; at < 0x602000; at++)
        CHECK_EQ(*(unsigned char *)at, 0);
    CHECK_EQ(native_rights(0x401000), -1);
    CHECK_EQ(native_rights(0x600000), -1);
    CHECK_EQ(result.executable.headers, 0x400040);
    release();
    // Code that may only be executed has to be readable for the translator.
    tiny = make_tiny();
    tiny.segments[0].p_flags = PF_X;
    CHECK_EQ(load_tiny(&tiny), 0);
    CHECK(space_find(&space, 0x400000, &range));
    CHECK_EQ(range.attributes.prot, PROT_EXEC);
    CHECK_EQ(native_rights(0x400000), PROT_READ);
    release();
    // Larger than the low area: the high one serves.
    tiny = make_tiny();
    tiny.header.e_type = ET_DYN;
    tiny.segments[1] = (Elf64_Phdr){.p_type = PT_LOAD,
                                    .p_flags = PF_R,
                                    .p_vaddr = 0x200000000,
                                    .p_memsz = 0x1000,
                                    .p_align = 4096};
    CHECK_EQ(load_tiny(&tiny), 0);
    CHECK(result.executable.start >= HIGH_START);
    CHECK_EQ(result.executable.end - result.executable.start, 0x200001000 - 0x400000);
    release();
}

static void refuses(const struct tiny *tiny, enum load_fault fault, const char *message) {
    int status = load_tiny(tiny);
    CHECK(status < 0);
    CHECK_EQ(status, fault == LOAD_ROOM ? -ENOMEM : -ENOEXEC);
    CHECK_EQ(result.fault, fault);
    CHECK(strstr(result.message, message));
    check_nothing_left();
}

TEST(refuses_bad_headers) {
    struct tiny tiny = make_tiny();
    CHECK_EQ(load_tiny(&tiny), 0);
    release();
    tiny.header.e_ident[EI_CLASS] = ELFCLASS32;
    refuses(&tiny, LOAD_CLASS, "32-bit");
    tiny = make_tiny();
    tiny.header.e_machine = EM_AARCH64;
    refuses(&tiny, LOAD_MACHINE, "another processor");
    tiny = make_tiny();
    tiny.header.e_type = ET_REL;
    refuses(&tiny, LOAD_FORMAT, "not a program");
    tiny = make_tiny();
    tiny.header.e_phentsize = 32;
    refuses(&tiny, LOAD_FORMAT, "program headers");
    tiny = make_tiny();
    tiny.header.e_phoff = 8192 - 56;
    refuses(&tiny, LOAD_FORMAT, "beyond its end");
    tiny = make_tiny();
    tiny.header.e_phoff = UINT64_MAX - 10;
    refuses(&tiny, LOAD_FORMAT, "beyond its end");
    tiny = make_tiny();
    tiny.segments[0].p_type = PT_NOTE;
    refuses(&tiny, LOAD_FORMAT, "nothing to load");
}

TEST(refuses_bad_segments) {
    struct tiny tiny = make_tiny();
    tiny.segments[0].p_offset = 16;
    refuses(&tiny, LOAD_FORMAT, "misaligned");
    tiny = make_tiny();
    tiny.segments[0].p_filesz = 5000;
    refuses(&tiny, LOAD_FORMAT, "larger in the file");
    tiny = make_tiny();
    tiny.segments[0].p_filesz = tiny.segments[0].p_memsz = 8193;
    refuses(&tiny, LOAD_FORMAT, "truncated");
    tiny = make_tiny();
    tiny.segments[0].p_memsz = UINT64_MAX - 4096;
    refuses(&tiny, LOAD_FORMAT, "outside the address space");
    tiny = make_tiny();
    tiny.segments[1] = tiny.segments[0];
    tiny.segments[1].p_vaddr += 0xff0;
    tiny.segments[1].p_filesz = 0;
    refuses(&tiny, LOAD_FORMAT, "overlapping");
    tiny = make_tiny();
    tiny.segments[0].p_vaddr = CACHE_START;
    refuses(&tiny, LOAD_ROOM, "fixed address");
    tiny = make_tiny();
    tiny.header.e_type = ET_DYN;
    tiny.segments[0].p_align = 1ul << 50;
    refuses(&tiny, LOAD_FORMAT, "alignment");
}

TEST(refuses_bad_interpreters) {
    struct tiny tiny = make_tiny();
    tiny.segments[1] = (Elf64_Phdr){.p_type = PT_INTERP, .p_offset = 0x1000, .p_filesz = 8};
    refuses(&tiny, LOAD_FORMAT, "interpreter name");
    strcpy((char *)&tiny + 0x1000, "/no/way");
    CHECK_EQ(load_tiny(&tiny), -ENOENT);
    CHECK_EQ(result.fault, LOAD_NOT_FOUND);
    CHECK_STR(result.culprit, "/no/way");
    check_nothing_left();
    // Longer than an ELF header, or the kernel calls it an error of input.
    char text[100];
    memset(text, 'x', sizeof text);
    const char *path = write_file("e", text, sizeof text, 0755);
    strcpy((char *)&tiny + 0x1000, path);
    tiny.segments[1].p_filesz = strlen(path) + 1;
    CHECK_EQ(load_tiny(&tiny), -ELIBBAD);
    CHECK_EQ(native_status(scratch("tiny")), -ELIBBAD);
    CHECK_EQ(result.fault, LOAD_INTERPRETER);
    check_nothing_left();
}

static uint64_t random_state = 7;

static uint64_t random_number(void) {
    random_state = random_state * 6364136223846793005u + 1442695040888963407u;
    return random_state >> 24;
}

static uint64_t random_value(void) {
    static const uint64_t odd[] = {0,
                                   1,
                                   4095,
                                   4096,
                                   4097,
                                   0x200000,
                                   0x70000000,
                                   1 << 30,
                                   UINT32_MAX,
                                   1l << 32,
                                   HIGH_START,
                                   1ul << 47,
                                   (1ul << 47) - 4096,
                                   1ul << 62,
                                   1ul << 63,
                                   UINT64_MAX - 4095,
                                   UINT64_MAX};
    if (random_number() % 3 == 0)
        return random_number();
    return odd[random_number() % (sizeof odd / sizeof *odd)];
}

TEST(survives_mutated_headers) {
    enum { ROUNDS = 20000 };
    struct file file = read_whole(built("load_target_pie"));
    Elf64_Ehdr original = *(Elf64_Ehdr *)file.bytes;
    size_t head = sizeof original + original.e_phnum * sizeof(Elf64_Phdr);
    const char *path = write_file("mutant", file.bytes, file.size, 0755);
    unsigned char *bytes = malloc(head);
    int loaded = 0, fd = open(path, O_WRONLY);
    for (int i = 0; i < ROUNDS; i++) {
        memcpy(bytes, file.bytes, head);
        if (random_number() % 4 == 0)
            ((Elf64_Ehdr *)bytes)->e_type = ET_EXEC;
        for (int changes = 1 + random_number() % 3; changes > 0; changes--) {
            uint64_t value = random_value();
            size_t width = random_number() % 4 ? 8 : 1 + random_number() % 7;
            // Mostly whole fields of program headers.
            size_t at = random_number() % 8 ? sizeof original + random_number() % 80 * 8
                                            : random_number() % head;
            if (at + width <= head)
                memcpy(bytes + at, &value, width);
        }
        CHECK_EQ(pwrite(fd, bytes, head, 0), head);
        int status = load(path);
        loaded += status == 0;
        if (status == 0)
            load_release(&space, &result);
        else
            CHECK(result.fault != LOAD_FINE && result.message && result.culprit[0]);
        CHECK_EQ(space.count, 0);
        if (i % 1000 == 0)
            check_nothing_left();
    }
    close(fd);
    check_nothing_left();
    NOTE("%d mutants, %d of them loadable", ROUNDS, loaded);
    CHECK(loaded > 0 && loaded < ROUNDS);
    free(bytes);
    free(file.bytes);
}

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
    struct space_range range;
    static const uint64_t sizes[][2] = {{8 << 20, 8 << 20},
                                        {(3 << 20) + 1, (3 << 20) + 4096},
                                        {4096, 1 << 20},
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

UNIT_MAIN()
