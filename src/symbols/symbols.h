/*
 * symbols: turns an address in a target process into function, file and line.
 *
 * The target sends addresses and reports which files it has mapped where. Quern resolves an address
 * only when it shows it. A file is opened at the first look-up of an address in it, once for all
 * processes that map it. When too many files are open, or their tables are too large, the least
 * recently used are closed.
 *
 * Words
 *   mapping   a part of a file in a process: [start, end), the file offset of start, the path
 *   object    the file behind a mapping (executable or shared library)
 *   frame     a function at an address. Where functions are inlined, one address has several
 *             frames: the innermost comes first, the function that contains them all comes last
 *   generated code  code that no file contains. Its names come from the process's perf map
 *             (generated.h), or from a recording
 *   identity  data that shows whether the file at a path is still the one that was mapped
 *
 * Invariants
 *   - Mappings of a process do not overlap; a new one replaces what it covers.
 *   - Every returned string lives as long as the struct symbols, even after its file is closed.
 *   - Files, and the names in them, come from a hostile target: a missing, truncated or damaged
 *     file means fewer names and never a crash. Names may contain any byte but NUL
 *     (src/report/shared/stack_text.h escapes them).
 *   - A file that has been replaced since it was mapped gives no names at all.
 *
 * Supervisor only, and on one thread at a time in the whole process, because it catches signals
 * while it reads files (guard.h).
 */
#ifndef QUERN_SYMBOLS_SYMBOLS_H
#define QUERN_SYMBOLS_SYMBOLS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct symbols;

struct symbols_options {
    /* A further root searched for separate debug files, or NULL (--extra-debuginfo-path). */
    const char *extra_debug_path;
    /* Take separate debug files whose checksum differs (--allow-mismatched-debuginfo). */
    bool any_checksum;
    /* Ask the debuginfod servers of DEBUGINFOD_URLS for files that are not on this machine. */
    bool debuginfod;
    /* Continue to name addresses of unmapped objects (--keep-debuginfo). */
    bool keep_unmapped;
    /* Leave inlined functions out (--read-inline-info=no). */
    bool no_inlined;
    /* Leave out lines and inlined functions of objects with separate debug files: these are large,
     * usually compressed, and take a tenth of a second each to read. */
    bool own_debug_only;
    /* The same, but only for the C library and the dynamic linker: few users need their lines. */
    bool plain_libc;
    /* Leave out files and lines: reading only names is much faster. */
    bool no_lines;
    /* Leave names as the compiler wrote them (--demangle=no). */
    bool no_demangle;
    /* Name inlined functions with their path (a::work, not work), and tell apart functions of one
     * name in one object. Without it, an inlined function has its plain name, as Valgrind shows it
     * and suppressions expect it. */
    bool full_names;
    /* Pids are those of running processes: name the code they generate by their perf maps. */
    bool live;
    /* Limits on what is open at once; 0: the default. */
    unsigned max_open_files;
    size_t max_table_bytes;
    /* Called once for each file whose names are withheld, with the reason. May be NULL. */
    void (*note)(void *context, const char *text);
    /* Called once if debuginfod servers do not answer in time. May be NULL. */
    void (*say)(void *context, const char *text);
    /* Called when the user has to wait for a server, and with NULL when that is over. May be NULL.
     */
    void (*progress)(void *context, const char *text);
    void *note_context;
};

/* What the target knows about a file that it maps. Unknown fields are 0. */
struct symbols_identity {
    uint64_t device, inode;
    uint64_t size;
    int64_t changed_seconds; /* st_mtim */
    uint32_t changed_nanoseconds;
    uint32_t build_id_size;
    uint8_t build_id[32];
};

struct symbol_frame {
    const char *name;      /* to be shown: demangled on request; NULL if not known */
    const char *linkage;   /* as in the symbol table or DW_AT_linkage_name; NULL if not known */
    const char *file;      /* the compiler's name for the file, usually without folders */
    const char *directory; /* the rest of its path, without the final slash; may be NULL */
    const char *object;    /* path of the mapped file; NULL if the address is in none */
    uint64_t address;      /* in the object's own tables; 0 if not known */
    uint64_t offset;       /* from the start of the function; 0 for inlined frames */
    uint64_t start;        /* of a function without a name, like address; 0 if not known */
    uint32_t line;         /* 0 if not known */
    bool inlined;
};

struct symbol_data {
    const char *name;   /* demangled on request */
    const char *object; /* path of the mapped file */
    uint64_t offset;    /* of the address in the symbol */
    uint64_t size;      /* of the symbol */
};

/* The cost of the files opened so far. */
struct symbols_statistics {
    unsigned open_files;   /* now */
    uint64_t opened_files; /* so far; a reopened file counts again */
    uint64_t closed_files; /* to keep within the limits */
    uint64_t faults;       /* files abandoned because reading them raised a signal */
    size_t table_bytes;    /* estimate for what is open now */
};

/* How a function is shown where it may have no name: module+0x1234 where only its start is known,
 * else [module], else [unknown]. To be freed. */
char *symbol_frame_label(const struct symbol_frame *frame);

/* options may be NULL: all defaults. Its strings are copied. */
struct symbols *symbols_new(const struct symbols_options *options);
void symbols_free(struct symbols *symbols);

/*
 * Process pid has mapped the file at path, from offset on, to [start, end). Without an identity
 * (NULL), the function calls stat on the file now. The first mapping of a process creates it.
 */
void symbols_map(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end, uint64_t offset,
                 const char *path, const struct symbols_identity *identity);
void symbols_unmap(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end);
/* child starts with the mappings of parent. */
void symbols_fork(struct symbols *symbols, pid_t parent, pid_t child);
/* pid has ended, or has called exec and starts with nothing mapped. */
void symbols_end(struct symbols *symbols, pid_t pid);

/* Names code that pid generates by the perf map of process writer. For callers whose pids are not
 * those of processes; with the option `live`, writers are known. */
void symbols_generated_by(struct symbols *symbols, pid_t pid, pid_t writer);
/* Names code of pid at [start, end) that is in no file. file may be NULL. */
void symbols_add_code(struct symbols *symbols, pid_t pid, uint64_t start, uint64_t end,
                      const char *name, const char *file, uint32_t line);
/* A piece of generated code. */
struct symbol_code {
    uint64_t start, end;
    const char *name;
    const char *file; /* NULL if not known */
    uint32_t line;
};
/* The piece of generated code at address; false if there is none. Of pieces whose times are known,
 * the latest at `time` (CLOCK_MONOTONIC; UINT64_MAX: of all). */
bool symbols_code(struct symbols *symbols, pid_t pid, uint64_t address, uint64_t time,
                  struct symbol_code *code);

/* Whether a file that a process maps is a jit dump, which names its generated code with times. */
bool symbols_is_jit_dump(const char *path);

/* The object of frames in generated code. */
#define SYMBOLS_GENERATED_CODE "[generated code]"

/* Addresses from here on are the kernel's, in any process. Frames there have the object
 * SYMBOLS_KERNEL, or a module's name in brackets. */
#define SYMBOLS_KERNEL_START 0xffff800000000000u
#define SYMBOLS_KERNEL       "[kernel]"
/* Whether the kernel shows its addresses, so that its functions have names. */
bool symbols_kernel_is_named(struct symbols *symbols);

/*
 * Writes the frames at address, innermost first, and returns their number, at most max. For a
 * return address, they are those of the call before it. 0: no file is mapped there. If the file has
 * no name for the address, or the address is in the file's data, there is one frame with only its
 * object. If max is too small, outer frames are left out.
 */
size_t symbols_resolve(struct symbols *symbols, pid_t pid, uint64_t address, bool return_address,
                       struct symbol_frame *frames, size_t max);

/* The variable at address, in data, bss or read-only data; false if there is none. */
bool symbols_resolve_data(struct symbols *symbols, pid_t pid, uint64_t address,
                          struct symbol_data *data);

/* A variable of the program's source, or the part of it at an address. */
struct symbol_variable {
    const char *path; /* name, or name[3].member */
    const char *file; /* where it is declared, NULL if not known */
    uint32_t line;
    uint64_t offset; /* of the address in it */
    bool is_whole;   /* the path is the name alone */
};

/* The global variable at address. */
bool symbols_global(struct symbols *symbols, pid_t pid, uint64_t address,
                    struct symbol_variable *variable);
/* The local variable at address, in a frame that ends at frame_end, of the function at pc. */
bool symbols_local(struct symbols *symbols, pid_t pid, uint64_t pc, uint64_t frame_end,
                   uint64_t address, struct symbol_variable *variable);

/*
 * What the section at address holds: Text, Data, BSS, GOT, GOTPLT or PLT, and its object. NULL if
 * it is none of these.
 */
const char *symbols_section(struct symbols *symbols, pid_t pid, uint64_t address,
                            const char **object);

/* A copy that lives as long as the struct symbols; equal texts share one copy. */
const char *symbols_keep(struct symbols *symbols, const char *text);

struct symbols_statistics symbols_statistics(const struct symbols *symbols);

/* Aborts if an invariant does not hold. For tests. */
void symbols_check(const struct symbols *symbols);

#endif
