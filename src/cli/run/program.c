#include "cli/run/program.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/text.h"

// The kernel reads no more of a file than this to find out what it is.
#define HEAD_SIZE 256
// A script may name a script as its interpreter; the kernel gives up after a few.
#define INTERPRETERS_MAX 5

// The verdict on a file that cannot be run.
struct verdict {
    int status;
    struct text reason;
};

static char *check_file(const char *path, int depth, struct verdict *verdict);

// What execvp would find. The path, to be freed; NULL with errno set.
static char *search(const char *name) {
    if (strchr(name, '/'))
        return base_copy(name);
    const char *path = getenv("PATH");
    if (!path)
        path = "/bin:/usr/bin";
    int error = ENOENT;
    while (true) {
        const char *end = strchrnul(path, ':');
        struct text candidate = {0};
        if (end != path)
            text_format(&candidate, "%.*s/", (int)(end - path), path);
        text_string(&candidate, name);
        struct stat info;
        if (stat(candidate.bytes, &info) == 0 && S_ISREG(info.st_mode)) {
            if (access(candidate.bytes, X_OK) == 0)
                return text_take(&candidate);
            error = EACCES;
        }
        text_free(&candidate);
        if (!*end)
            break;
        path = end + 1;
    }
    errno = error;
    return NULL;
}

static const char *machine_name(unsigned machine) {
    switch (machine) {
    case EM_386:
        return "32-bit x86";
    case EM_AARCH64:
        return "AArch64";
    case EM_ARM:
        return "ARM";
    case EM_RISCV:
        return "RISC-V";
    case EM_PPC64:
        return "PowerPC";
    case EM_S390:
        return "s390";
    case EM_MIPS:
        return "MIPS";
    default:
        return "another processor";
    }
}

static void reject(struct verdict *verdict, int status, const char *reason) {
    verdict->status = status;
    text_string(&verdict->reason, reason);
}

// A dynamically linked program is no good without its loader.
static void check_loader(int fd, const Elf64_Ehdr *header, struct verdict *verdict) {
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    size_t count = elf_file_segments(fd, header, segments);
    if (count == 0) {
        reject(verdict, STATUS_NOT_RUNNABLE, "is a damaged ELF file");
        return;
    }
    for (size_t i = 0; i < count; i++) {
        char loader[4096];
        if (segments[i].p_type != PT_INTERP || segments[i].p_filesz < 2 ||
            segments[i].p_filesz > sizeof loader)
            continue;
        if (!elf_file_read(fd, segments[i].p_offset, loader, segments[i].p_filesz))
            break;
        loader[segments[i].p_filesz - 1] = 0;
        if (access(loader, F_OK) < 0) {
            verdict->status = STATUS_NOT_FOUND;
            text_format(&verdict->reason, "needs the loader '%s', which is not installed", loader);
        }
        return;
    }
}

static void check_elf(int fd, const char *head, ssize_t size, struct verdict *verdict) {
    Elf64_Ehdr header;
    if (head[EI_CLASS] == ELFCLASS32) {
        reject(verdict, STATUS_NOT_RUNNABLE,
               "is a 32-bit program; Quern runs 64-bit x86 programs only");
        return;
    }
    if (size < (ssize_t)sizeof header) {
        reject(verdict, STATUS_NOT_RUNNABLE, "is a damaged ELF file");
        return;
    }
    memcpy(&header, head, sizeof header);
    if (header.e_machine != EM_X86_64) {
        verdict->status = STATUS_NOT_RUNNABLE;
        text_format(&verdict->reason, "is built for %s; Quern runs x86-64 programs only",
                    machine_name(header.e_machine));
    } else if (header.e_type != ET_EXEC && header.e_type != ET_DYN) {
        reject(verdict, STATUS_NOT_RUNNABLE,
               header.e_type == ET_REL ? "is an object file, not a program; link it first"
                                       : "is not a program");
    } else {
        check_loader(fd, &header, verdict);
    }
}

// What the #! line names, to be freed; NULL: nothing.
static char *interpreter_of(const char *head, ssize_t size) {
    const char *end = memchr(head, '\n', (size_t)size);
    const char *start = head + 2;
    if (!end)
        end = head + size;
    while (start < end && (*start == ' ' || *start == '\t'))
        start++;
    const char *stop = start;
    while (stop < end && *stop != ' ' && *stop != '\t')
        stop++;
    return stop == start ? NULL : strndup(start, (size_t)(stop - start));
}

static void check_script(const char *head, ssize_t size, int depth, struct verdict *verdict) {
    char *interpreter = depth < INTERPRETERS_MAX ? interpreter_of(head, size) : NULL;
    if (!interpreter) {
        reject(verdict, STATUS_NOT_RUNNABLE, "is a script with a bad #! line");
        return;
    }
    struct verdict inner = {0};
    free(check_file(interpreter, depth + 1, &inner));
    if (inner.status) {
        verdict->status = inner.status;
        text_format(&verdict->reason, "is a script for '%s', which %s", interpreter,
                    inner.reason.bytes);
    }
    text_free(&inner.reason);
    free(interpreter);
}

// Running such a file natively changes who the process is; a translated process cannot do that.
static bool gains_privilege(const struct stat *info) {
    return (info->st_mode & S_ISUID && info->st_uid != geteuid()) ||
           ((info->st_mode & (S_ISGID | S_IXGRP)) == (S_ISGID | S_IXGRP) &&
            info->st_gid != getegid());
}

// Neither a program nor a script for the kernel, but a text.
static bool is_shell_text(const char *head, ssize_t size) {
    return size > 0 && !(size > 2 && head[0] == '#' && head[1] == '!') &&
           !memchr(head, 0, (size_t)size) && memcmp(head, ELFMAG, 1) != 0;
}

static void check_contents(const char *path, int depth, struct verdict *verdict) {
    char head[HEAD_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (size < 0)
        reject(verdict, STATUS_NOT_RUNNABLE, "cannot be read; Quern must read a program to run it");
    else if (size >= EI_NIDENT && memcmp(head, ELFMAG, SELFMAG) == 0)
        check_elf(fd, head, size, verdict);
    else if (size > 2 && head[0] == '#' && head[1] == '!')
        check_script(head, size, depth, verdict);
    else if (depth || !is_shell_text(head, size))
        reject(verdict, STATUS_NOT_RUNNABLE,
               size ? "is neither an ELF program nor a script with a #! line" : "is empty");
    if (fd >= 0)
        close(fd);
}

static char *check_file(const char *path, int depth, struct verdict *verdict) {
    struct stat info;
    if (stat(path, &info) < 0) {
        bool missing = errno == ENOENT || errno == ENOTDIR;
        reject(verdict, missing ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE,
               missing && depth ? "is not there" : strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        reject(verdict, STATUS_NOT_RUNNABLE, "is a directory");
    } else if (!S_ISREG(info.st_mode)) {
        reject(verdict, STATUS_NOT_RUNNABLE, "is not a regular file");
    } else if (access(path, X_OK) < 0) {
        reject(verdict, STATUS_NOT_RUNNABLE,
               errno == EACCES ? "Permission denied (is it executable? chmod +x)"
                               : strerror(errno));
    } else if (depth == 0 && gains_privilege(&info)) {
        reject(verdict, STATUS_NOT_RUNNABLE,
               "is set-user-ID or set-group-ID; run Quern as that user");
    } else {
        check_contents(path, depth, verdict);
    }
    return verdict->status ? NULL : base_copy(path);
}

char *program_find(const char *name, int *status, char **reason) {
    struct verdict verdict = {0};
    char *path = search(name);
    char *checked = NULL;
    if (path)
        checked = check_file(path, 0, &verdict);
    else
        reject(&verdict, errno == ENOENT ? STATUS_NOT_FOUND : STATUS_NOT_RUNNABLE,
               errno == ENOENT ? "command not found" : strerror(errno));
    if (!checked) {
        struct text message = {0};
        // System errors after a colon, as everywhere; the others read as a sentence.
        bool sentence = strncmp(verdict.reason.bytes, "is ", 3) == 0 ||
                        strncmp(verdict.reason.bytes, "needs ", 6) == 0 ||
                        strncmp(verdict.reason.bytes, "cannot ", 7) == 0;
        text_format(&message, "%s%s%s", path ? path : name, sentence ? " " : ": ",
                    verdict.reason.bytes);
        *reason = text_take(&message);
        *status = verdict.status;
    }
    text_free(&verdict.reason);
    free(path);
    return checked;
}

bool program_is_shell_text(const char *path) {
    char head[HEAD_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, head, sizeof head);
    if (fd >= 0)
        close(fd);
    return is_shell_text(head, size);
}

static bool has_loader(int fd, const char *head) {
    Elf64_Ehdr header;
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    memcpy(&header, head, sizeof header);
    size_t count = elf_file_segments(fd, &header, segments);
    for (size_t i = 0; i < count; i++)
        if (segments[i].p_type == PT_INTERP)
            return true;
    return count == 0;
}

static bool is_static(const char *path, int depth) {
    char head[HEAD_SIZE];
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? -1 : read(fd, head, sizeof head);
    bool answer = false;
    if (size >= (ssize_t)sizeof(Elf64_Ehdr) && memcmp(head, ELFMAG, SELFMAG) == 0) {
        answer = !has_loader(fd, head);
    } else if (size > 2 && head[0] == '#' && head[1] == '!' && depth < INTERPRETERS_MAX) {
        char *interpreter = interpreter_of(head, size);
        answer = interpreter && is_static(interpreter, depth + 1);
        free(interpreter);
    }
    if (fd >= 0)
        close(fd);
    return answer;
}

bool program_is_static(const char *path) {
    return is_static(path, 0);
}
