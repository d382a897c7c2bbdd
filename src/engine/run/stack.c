#include <elf.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/memory/target.h"
#include "engine/run/stack.h"
#include "engine/sys/maps.h"
#include "engine/task.h"
#include "unwind/unwind.h"

static bool read_word(void *context, uint64_t address, uint64_t *word) {
    return target_read(word, address, sizeof *word) == 0;
}

// Where the file's own numbering puts the byte at this offset.
static bool file_address(const uint8_t *bytes, size_t size, uint64_t offset, uint64_t *address) {
    const Elf64_Ehdr *header = (const Elf64_Ehdr *)bytes;
    if (size < sizeof *header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(Elf64_Phdr) || header->e_phoff > size ||
        header->e_phnum > (size - header->e_phoff) / sizeof(Elf64_Phdr))
        return false;
    const Elf64_Phdr *segments = (const Elf64_Phdr *)(bytes + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum; i++) {
        uint64_t first = segments[i].p_offset & ~4095ul;
        if (segments[i].p_type != PT_LOAD || offset < first ||
            offset >= segments[i].p_offset + segments[i].p_filesz)
            continue;
        *address = (segments[i].p_vaddr & ~4095ul) + (offset - first);
        if (segments[i].p_flags & PF_X)
            return true;
    }
    return false;
}

// Adds the module whose code is in this mapping.
static void add_module(const struct mapped_code *code, void *space) {
    int fd = open(code->path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    if (fd < 0)
        return;
    if (fstat(fd, &st) == 0 && st.st_size > 0) {
        void *bytes = mmap(NULL, st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
        uint64_t address;
        if (bytes != MAP_FAILED) {
            if (file_address(bytes, st.st_size, code->offset, &address))
                unwind_space_add_file(space, bytes, st.st_size, code->start - address, true);
            munmap(bytes, st.st_size);
        }
    }
    close(fd);
}

size_t stack_of_task(uint64_t *pcs, size_t max) {
    static const uint8_t numbers[UNWIND_REGISTERS] = {RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP,
                                                      R8,  R9,  R10, R11, R12, R13, R14, R15};
    static struct unwind_thread thread; // a fatal signal happens once
    struct unwind_space space;
    struct unwind_registers registers;
    if (unwind_space_open(&space) != UNWIND_OK)
        return 0;
    maps_for_each_code(0, UINT64_MAX, add_module, &space);
    for (unsigned i = 0; i < UNWIND_PC; i++)
        registers.value[i] = self->gpr[numbers[i]];
    registers.value[UNWIND_PC] = self->pc;
    struct unwind_memory memory = {.read = read_word};
    size_t count = unwind_stack(&space, &thread, &registers, &memory, pcs, max, NULL);
    unwind_space_close(&space);
    return count;
}
