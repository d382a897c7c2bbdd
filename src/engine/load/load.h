// Loads a program into the engine's process, as execve would have: the executable, its interpreter,
// the initial stack and the break where space/place.h has them, a copy of the vdso. Nothing is
// executed; the result says where execution is to start.
//
// Words
//   module       an ELF file that is mapped: the executable, its interpreter (the dynamic loader)
//   bias         what is added to an address of the ELF file to get the address in memory
//   interpreter  of a module: its PT_INTERP; of a script: the program named after #!
//
// Memory is mapped with space_native_prot, while the ledger holds the rights that the target sees.
// A file that the kernel would refuse is refused, and a damaged one is never more than an error.
//
// Functions return 0 or a negative errno. They are called before the target starts, in ordinary
// context with all of libc, and with the ledger's lock held (or needless).
#ifndef QUERN_ENGINE_LOAD_H
#define QUERN_ENGINE_LOAD_H

#include <elf.h>
#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "engine/space/space.h"

enum load_fault {
    LOAD_FINE,
    LOAD_NOT_FOUND,   // the program or one of its interpreters does not exist
    LOAD_FORBIDDEN,   // no right to execute, or not a regular file
    LOAD_UNREADABLE,  // may be executed but not read, so cannot be translated
    LOAD_FORMAT,      // neither a program nor a script, or damaged
    LOAD_CLASS,       // a 32-bit program
    LOAD_MACHINE,     // a program for another processor
    LOAD_INTERPRETER, // the ELF interpreter is unusable
    LOAD_ROOM,        // no place at its address, or no memory
    LOAD_SYSTEM,      // anything else: see the status
};

struct load_module {
    uintptr_t start; // whole pages, from the first segment to the end of the last
    uintptr_t end;
    uintptr_t bias;
    uintptr_t entry;
    uintptr_t headers; // program headers in memory; 0 if no segment holds them
    uint16_t header_count;
    bool wants_executable_stack;
    uint64_t dev;
    uint64_t inode;
    char path[PATH_MAX]; // resolved
};

#define LOAD_VDSO_SYMBOLS 64

struct load_vdso {
    uintptr_t real; // where the kernel put it; 0 if it did not
    uintptr_t copy; // where the target sees it
    size_t size;    // of the mapping, whole pages
    size_t symbol_count;
    struct load_symbol {
        const char *name; // in the real one
        uint64_t offset;  // from either base
        uint64_t size;
    } symbols[LOAD_VDSO_SYMBOLS]; // defined functions; aliases have entries of their own
};

struct load_request {
    struct space *space;
    const char *path; // as given to exec: relative to the working directory, no search
    char *const *argv;
    char *const *envp;
    uint64_t stack_limit;     // soft RLIMIT_STACK, RLIM_INFINITY included
    const Elf64_auxv_t *auxv; // the engine's own; NULL: from /proc/self/auxv
};

struct load_result {
    enum load_fault fault;
    const char *message;    // static text for the fault, NULL if there is none
    char culprit[PATH_MAX]; // the file it is about

    uintptr_t entry; // of the interpreter if there is one
    uintptr_t rsp;
    uintptr_t brk; // room for the break: in the ledger with tag SPACE_BRK and no rights, not mapped
    uintptr_t brk_end;

    uintptr_t stack_start; // without the room below
    uintptr_t stack_end;
    uintptr_t arg_start; // the strings of argv, then those of envp
    uintptr_t arg_end;
    uintptr_t env_start;
    uintptr_t env_end;
    uintptr_t auxv; // the auxiliary vector, AT_NULL included
    uint32_t auxv_size;

    struct load_module executable; // of a script: the program that interprets it
    struct load_module interpreter;
    bool has_interpreter;
    struct load_vdso vdso;
    char name[16]; // what exec makes of the path for /proc/PID/comm
};

// Kept free below the stack, for a program that raises its limit: in the ledger with tag
// SPACE_GUARD. Its last page is mapped without rights.
#define LOAD_STACK_ROOM (1ul << 30)
// The size of the stack with this soft limit. arguments: bytes that it has to hold in any case.
uint64_t load_stack_size(uint64_t limit, uint64_t arguments);

// On failure everything mapped so far is gone again; fault, message and culprit say why.
int load_program(const struct load_request *request, struct load_result *result);

// Undoes load_program. For tests, and for an exec that turns out to be impossible.
void load_release(struct space *space, struct load_result *result);

// Part of load_program. real is AT_SYSINFO_EHDR; with 0 nothing is mapped.
int load_vdso(struct space *space, uintptr_t real, struct load_vdso *vdso);

// Makes /proc/PID/cmdline, environ, auxv and comm the target's own. Failure does no harm and is
// ignored.
void load_announce(const struct load_result *result);

#endif
