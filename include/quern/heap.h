/* The heap, as a program sees its own: statistics, markers and named scopes for Quern's recorder,
 * budgets for tests, words about allocators of the program's own, and two such allocators, an arena
 * and a pool, that every tool of Quern can look into.
 *
 * Nothing has to be linked. Under `quern --tool=heap` and `--tool=massif` calls reach the recorder;
 * under memcheck (Quern's or Valgrind's) what concerns memory reaches that; in a run without a tool
 * a call costs a load and a branch. With NQUERN defined before the header is included, nothing but
 * the two allocators is left.
 *
 * C99 and C++98 for gcc and clang. docs/heap-api.md tells more.
 */
#ifndef QUERN_HEAP_H
#define QUERN_HEAP_H

#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "quern.h"

#if QUERN_IS_ACTIVE
#include <errno.h>
#include <sys/prctl.h>
#endif

#if defined(__GNUC__)
#define QUERN_HEAP_API static __inline__ __attribute__((unused))
#else
#define QUERN_HEAP_API static
#endif

/* ---- reaching whoever listens ---- */

enum quern_heap_code {
    QUERN_HEAP_CODE_LISTENS = 0x51480000,   /* 2: objects of pools shall come from malloc */
    QUERN_HEAP_CODE_MARK = 0x51480001,      /* enum quern_heap_mark_kind, name */
    QUERN_HEAP_CODE_ASK = 0x51480002,       /* struct quern_heap_stats * */
    QUERN_HEAP_CODE_ALLOCATED = 0x51480003, /* address, size */
    QUERN_HEAP_CODE_FREED = 0x51480004,     /* address */
    QUERN_HEAP_CODE_RESIZED = 0x51480005,   /* old address, new address, new size */
    QUERN_HEAP_CODE_CHUNK = 0x51480006      /* address, size */
};

enum quern_heap_mark_kind {
    QUERN_HEAP_MARK = 0,
    QUERN_HEAP_SCOPE_BEGAN = 1,
    QUERN_HEAP_SCOPE_ENDED = 2,
    QUERN_HEAP_SNAPSHOT = 3
};

/* The preloaded recorder cannot see requests, which are instructions without effect: it answers
 * this call of prctl, which the kernel refuses, and says where it wants to be called. */
#define QUERN_HEAP_PRCTL 0x51484150

struct quern_heap_link {
    unsigned long version; /* 1 */
    unsigned long (*request)(unsigned long otherwise, const unsigned long *words);
};

/* Who listens; bits. */
enum quern_heap_listener {
    QUERN_HEAP_NOBODY = 0,
    QUERN_HEAP_RECORDER = 1, /* preloaded */
    QUERN_HEAP_ENGINE = 2,   /* the same, in a program that runs translated */
    QUERN_HEAP_CHECKER = 4,  /* memcheck, or another tool */
    QUERN_HEAP_COUNTER = 8   /* dhat, which counts accesses to blocks of malloc */
};

static struct quern_heap_link quern_heap_link_;

#if QUERN_IS_ACTIVE
static int quern_heap_listener_ = -1; /* -1: not known yet */

QUERN_HEAP_API int quern_heap_find_listener(void) {
    int saved = errno, found = QUERN_HEAP_NOBODY;
    struct quern_heap_link link = {1, NULL};
    unsigned long answer = QUERN_REQUEST(0, QUERN_HEAP_CODE_LISTENS, 0, 0, 0, 0, 0);
    if (answer) {
        found = answer == 2 ? QUERN_HEAP_COUNTER : QUERN_HEAP_ENGINE;
    } else if (QUERN_RUNNING()) {
        found = QUERN_HEAP_CHECKER;
    } else if (prctl(QUERN_HEAP_PRCTL, &link, 0L, 0L, 0L) == 0 && link.request) {
        quern_heap_link_ = link;
        found = QUERN_HEAP_RECORDER;
    }
    errno = saved;
    __atomic_store_n(&quern_heap_listener_, found, __ATOMIC_RELEASE);
    return found;
}

QUERN_HEAP_API int quern_heap_listener(void) {
    int found = __atomic_load_n(&quern_heap_listener_, __ATOMIC_ACQUIRE);
    return found >= 0 ? found : quern_heap_find_listener();
}
#else
QUERN_HEAP_API int quern_heap_listener(void) {
    return QUERN_HEAP_NOBODY;
}
#endif

/* Tells the recorder, wherever it is; 0: it does not listen, or not now. */
QUERN_HEAP_API unsigned long quern_heap_tell(unsigned long code, unsigned long a, unsigned long b,
                                             unsigned long c) {
    int listener = quern_heap_listener();
    if (listener & QUERN_HEAP_RECORDER) {
        unsigned long words[6];
        words[0] = code;
        words[1] = a;
        words[2] = b;
        words[3] = c;
        words[4] = words[5] = 0;
        return quern_heap_link_.request(0, words);
    }
    return listener & QUERN_HEAP_ENGINE ? QUERN_REQUEST(0, code, a, b, c, 0, 0) : 0;
}

/* ---- statistics ---- */

struct quern_heap_stats {
    unsigned long live_bytes, live_blocks;
    unsigned long peak_bytes;
    unsigned long total_bytes, total_blocks; /* ever allocated; resizes count for what they add */
    unsigned long releases;
    unsigned long thread_bytes, thread_blocks; /* by this thread; a resize counts as a block */
};

enum quern_heap_source {
    QUERN_HEAP_UNKNOWN = 0,
    QUERN_HEAP_ALLOCATOR = 1, /* only live_bytes is known, by the C library's word */
    QUERN_HEAP_COUNTED = 2    /* all is, at this very moment */
};

#if defined(__GLIBC__) && defined(__GLIBC_PREREQ)
#if __GLIBC_PREREQ(2, 33)
#include <malloc.h>
#define QUERN_HEAP_HAS_MALLINFO 1
#endif
#endif

/* What is known, enum quern_heap_source; the rest is 0. Under the recorder the supervisor is asked,
 * which takes up to some ten milliseconds. */
QUERN_HEAP_API int quern_heap_stats(struct quern_heap_stats *stats) {
    memset(stats, 0, sizeof *stats);
    if (quern_heap_tell(QUERN_HEAP_CODE_ASK, (unsigned long)stats, 0, 0))
        return QUERN_HEAP_COUNTED;
#ifdef QUERN_HEAP_HAS_MALLINFO
    {
        struct mallinfo2 info = mallinfo2();
        stats->live_bytes = info.uordblks + info.hblkhd;
    }
    return QUERN_HEAP_ALLOCATOR;
#else
    return QUERN_HEAP_UNKNOWN;
#endif
}

/* ---- markers and scopes ---- */

/* Names are cut after 64 bytes. A marker is a point on the timeline; `quern print` shows how large
 * the heap was there. */
QUERN_HEAP_API void quern_heap_mark(const char *name) {
    quern_heap_tell(QUERN_HEAP_CODE_MARK, QUERN_HEAP_MARK, (unsigned long)name, 0);
}
/* The same; --tool=massif takes a detailed snapshot here. */
QUERN_HEAP_API void quern_heap_snapshot(const char *name) {
    quern_heap_tell(QUERN_HEAP_CODE_MARK, QUERN_HEAP_SNAPSHOT, (unsigned long)name, 0);
}
/* What this thread does in between is summed up under the name. Scopes may lie within each other.
 */
QUERN_HEAP_API void quern_heap_scope_begin(const char *name) {
    quern_heap_tell(QUERN_HEAP_CODE_MARK, QUERN_HEAP_SCOPE_BEGAN, (unsigned long)name, 0);
}
QUERN_HEAP_API void quern_heap_scope_end(void) {
    quern_heap_tell(QUERN_HEAP_CODE_MARK, QUERN_HEAP_SCOPE_ENDED, (unsigned long)"", 0);
}

/* ---- budgets ---- */

struct quern_heap_budget {
    const char *name;
    unsigned long blocks, bytes;           /* allowed */
    unsigned long used_blocks, used_bytes; /* after the end */
    struct quern_heap_stats before;
    int is_counted, is_open;
};

enum quern_heap_verdict {
    QUERN_HEAP_EXCEEDED = 0,
    QUERN_HEAP_KEPT = 1,
    QUERN_HEAP_NOT_COUNTED = 2 /* nobody counts: run it under quern --tool=heap */
};

/* From here to the end, this thread may allocate at most so many blocks and bytes, whatever it
 * frees; ~0ul: as many as it likes. */
QUERN_HEAP_API void quern_heap_budget_begin(struct quern_heap_budget *budget, const char *name,
                                            unsigned long blocks, unsigned long bytes) {
    memset(budget, 0, sizeof *budget);
    budget->name = name;
    budget->blocks = blocks;
    budget->bytes = bytes;
    budget->is_counted = quern_heap_stats(&budget->before) == QUERN_HEAP_COUNTED;
    budget->is_open = 1;
}

/* enum quern_heap_verdict; one that is exceeded is told on stderr as well. */
QUERN_HEAP_API int quern_heap_budget_end(struct quern_heap_budget *budget) {
    struct quern_heap_stats now;
    budget->is_open = 0;
    if (!budget->is_counted || quern_heap_stats(&now) != QUERN_HEAP_COUNTED)
        return QUERN_HEAP_NOT_COUNTED;
    budget->used_blocks = now.thread_blocks - budget->before.thread_blocks;
    budget->used_bytes = now.thread_bytes - budget->before.thread_bytes;
    if (budget->used_blocks <= budget->blocks && budget->used_bytes <= budget->bytes)
        return QUERN_HEAP_KEPT;
    fprintf(stderr, "budget '%s' exceeded: %lu allocations of %lu bytes", budget->name,
            budget->used_blocks, budget->used_bytes);
    if (budget->used_blocks > budget->blocks)
        fprintf(stderr, ", %lu allocations allowed", budget->blocks);
    if (budget->used_bytes > budget->bytes)
        fprintf(stderr, ", %lu bytes allowed", budget->bytes);
    fputc('\n', stderr);
    return QUERN_HEAP_EXCEEDED;
}

/* What happens when QUERN_HEAP_BUDGET is exceeded; may be defined otherwise. */
#ifndef QUERN_HEAP_FAIL
#define QUERN_HEAP_FAIL(budget) abort()
#endif

QUERN_HEAP_API struct quern_heap_budget quern_heap_budget_of(const char *name,
                                                             unsigned long blocks) {
    struct quern_heap_budget budget;
    quern_heap_budget_begin(&budget, name, blocks, ~0ul);
    return budget;
}

/* QUERN_HEAP_BUDGET("parse", 10) { ... } fails if the block allocates more than ten times. It must
 * be left at its end: not by break, return or goto. */
#define QUERN_HEAP_BUDGET(name, blocks)                                                            \
    for (struct quern_heap_budget quern_budget_ = quern_heap_budget_of(name, blocks);              \
         quern_budget_.is_open; quern_heap_budget_end(&quern_budget_) == QUERN_HEAP_EXCEEDED       \
                                    ? (void)(QUERN_HEAP_FAIL(&quern_budget_))                      \
                                    : (void)0)

/* ---- allocators of the program's own ---- */

/* Memory that the program got from malloc and divides itself: its parts are the blocks from now on.
 * free ends that. Memory from mmap needs no word, but under memcheck. */
QUERN_HEAP_API void quern_heap_chunk(void *chunk, size_t size) {
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_MAKE_NOACCESS(chunk, size);
    else
        quern_heap_tell(QUERN_HEAP_CODE_CHUNK, (unsigned long)chunk, size, 0);
}
/* A part is given out as a block, given back, or has another size now (and may lie elsewhere). */
QUERN_HEAP_API void quern_heap_allocated(void *block, size_t size) {
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_BLOCK_ALLOCATED(block, size, 0, 0);
    else
        quern_heap_tell(QUERN_HEAP_CODE_ALLOCATED, (unsigned long)block, size, 0);
}
QUERN_HEAP_API void quern_heap_freed(void *block) {
    if (quern_heap_listener() & QUERN_HEAP_CHECKER)
        QUERN_BLOCK_FREED(block, 0);
    else
        quern_heap_tell(QUERN_HEAP_CODE_FREED, (unsigned long)block, 0, 0);
}
QUERN_HEAP_API void quern_heap_resized(void *from, size_t old_size, void *to, size_t size) {
    if (!(quern_heap_listener() & QUERN_HEAP_CHECKER)) {
        quern_heap_tell(QUERN_HEAP_CODE_RESIZED, (unsigned long)from, (unsigned long)to, size);
    } else if (from == to) {
        QUERN_BLOCK_RESIZED(to, old_size, size, 0);
    } else {
        QUERN_BLOCK_FREED(from, 0);
        QUERN_BLOCK_ALLOCATED(to, size, 0, 0);
        QUERN_MAKE_DEFINED(to, old_size < size ? old_size : size);
    }
}

#include "heap_pools.h"

#endif
