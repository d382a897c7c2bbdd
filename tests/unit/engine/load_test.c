// What the loader maps, compared with the files; and what it refuses.
#include "load_common.h"

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
    forget();
    CHECK_EQ(load("/bin/true"), 0);
    check_module(&result.executable, "/bin/true");
    check_place(&result.executable);
    CHECK_EQ(result.executable.start, 0x5c000000);
    CHECK(result.has_interpreter);
    check_module(&result.interpreter, "/lib64/ld-linux-x86-64.so.2");
    check_place(&result.interpreter);
    CHECK_EQ(result.interpreter.end, LOW_END);
    CHECK_EQ(result.entry, result.interpreter.entry);
    CHECK_STR(result.name, "true");
    struct space_range range;
    CHECK(space_find(&space, result.brk, &range));
    CHECK_EQ(range.attributes.tag, SPACE_BRK);
    CHECK_EQ(range.end, result.brk_end);
    CHECK(range.end - result.brk >= 64ul << 30);
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
    forget();
    check_built("load_target_pie", true, false);
}

TEST(maps_a_fixed_program) {
    forget();
    check_built("load_target_fixed", true, true);
}

TEST(maps_a_static_program) {
    forget();
    check_built("load_target_static", false, true);
}

TEST(maps_a_static_pie) {
    forget();
    check_built("load_target_static_pie", false, false);
}

TEST(maps_with_huge_alignment) {
    forget();
    check_built("load_target_aligned", true, false);
}

TEST(maps_a_musl_program) {
    forget();
    if (access(built("load_target_musl"), X_OK) != 0)
        SKIP("musl-gcc was not installed when this was built");
    check_built("load_target_musl", true, false);
}

TEST(maps_without_section_headers) {
    forget();
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
    forget();
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
    forget();
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
    forget();
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
    // A first address that is not a multiple of the alignment: the bias still is.
    tiny = make_tiny();
    tiny.header.e_type = ET_DYN;
    tiny.segments[0].p_vaddr = 0x5000;
    tiny.segments[0].p_align = 0x200000;
    CHECK_EQ(load_tiny(&tiny), 0);
    CHECK_EQ(result.executable.bias % 0x200000, 0);
    CHECK_EQ(result.executable.start, result.executable.bias + 0x5000);
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
    forget();
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

static uint64_t random_state = 7;

TEST(refuses_bad_segments) {
    forget();
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
    tiny.segments[0].p_vaddr = (uint64_t)&random_state & ~4095ul;
    refuses(&tiny, LOAD_ROOM, "taken by the engine");
    tiny = make_tiny();
    tiny.header.e_type = ET_DYN;
    tiny.segments[0].p_align = 1ul << 50;
    refuses(&tiny, LOAD_FORMAT, "alignment");
}

TEST(refuses_bad_interpreters) {
    forget();
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
    forget();
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

UNIT_MAIN()
