#include "symbols_help.h"

#include <fcntl.h>
#include <gelf.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static char folder[256];

static void remove_folder(void) {
    char command[512];
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    if (system(command) != 0)
        fprintf(stderr, "%s stays behind\n", folder);
}

const char *help_folder(void) {
    if (!folder[0]) {
        const char *base = getenv("TMPDIR");
        snprintf(folder, sizeof folder, "%s/quern-symbols-XXXXXX", base ? base : "/tmp");
        if (!mkdtemp(folder))
            abort();
        atexit(remove_folder);
    }
    return folder;
}

const char *help_path(const char *name) {
    static char paths[16][512];
    static unsigned next;
    char *path = paths[next++ % 16];
    snprintf(path, sizeof paths[0], "%s/%s", help_folder(), name);
    return path;
}

bool help_run(const char *format, ...) {
    char command[4096], whole[8192];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(command, sizeof command, format, arguments);
    va_end(arguments);
    snprintf(whole, sizeof whole, "cd '%s' && T='%s' && R=$T/../../../.. && { %s; } >output 2>&1 </dev/null",
             help_folder(), SYMBOLS_TARGETS, command);
    return system(whole) == 0;
}

bool help_has(const char *program) {
    return help_run("command -v %s", program);
}

static Elf *open_elf(const char *path, int *fd) {
    elf_version(EV_CURRENT);
    *fd = open(path, O_RDONLY | O_CLOEXEC);
    return *fd < 0 ? NULL : elf_begin(*fd, ELF_C_READ, NULL);
}

bool help_map(struct symbols *symbols, pid_t pid, const char *path, uint64_t bias) {
    int fd;
    Elf *elf = open_elf(path, &fd);
    size_t count = 0;
    bool found = false;
    if (elf && elf_getphdrnum(elf, &count) == 0)
        for (size_t i = 0; i < count; i++) {
            GElf_Phdr segment;
            if (!gelf_getphdr(elf, (int)i, &segment) || segment.p_type != PT_LOAD)
                continue;
            uint64_t low = segment.p_vaddr & ~4095ull;
            uint64_t high = (segment.p_vaddr + segment.p_filesz + 4095) & ~4095ull;
            symbols_map(symbols, pid, low + bias, high + bias, segment.p_offset & ~4095ull, path,
                        NULL);
            found = true;
        }
    elf_end(elf);
    close(fd);
    return found;
}

size_t help_text_addresses(const char *path, size_t max, uint64_t **addresses) {
    int fd;
    Elf *elf = open_elf(path, &fd);
    size_t names, count = 0;
    *addresses = calloc(max, sizeof **addresses);
    if (elf && elf_getshdrstrndx(elf, &names) == 0)
        for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section));) {
            GElf_Shdr header;
            if (!gelf_getshdr(section, &header) ||
                strcmp(elf_strptr(elf, names, header.sh_name), ".text"))
                continue;
            uint64_t step = header.sh_size / max + 1;
            for (uint64_t at = 0; at < header.sh_size && count < max; at += step)
                (*addresses)[count++] = header.sh_addr + at;
        }
    elf_end(elf);
    close(fd);
    return count;
}

uint64_t help_symbol(const char *path, const char *name) {
    int fd;
    Elf *elf = open_elf(path, &fd);
    uint64_t value = 0;
    for (Elf_Scn *section = NULL; elf && (section = elf_nextscn(elf, section));) {
        GElf_Shdr header;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_SYMTAB)
            continue;
        Elf_Data *data = elf_getdata(section, NULL);
        GElf_Sym symbol;
        for (int i = 0; gelf_getsym(data, i, &symbol); i++)
            if (!strcmp(elf_strptr(elf, header.sh_link, symbol.st_name), name))
                value = symbol.st_value;
    }
    elf_end(elf);
    close(fd);
    return value;
}

double help_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}
