#include "base/allocator_family.h"

#define MAKE    ALLOCATOR_MAKE
#define ZEROED  ALLOCATOR_ZEROED
#define RESIZE  ALLOCATOR_RESIZE
#define REZERO  ALLOCATOR_REZERO
#define EXPAND  ALLOCATOR_EXPAND
#define GROW    ALLOCATOR_GROW
#define COPY    ALLOCATOR_COPY
#define RELEASE ALLOCATOR_RELEASE
#define SIZE    ALLOCATOR_SIZE
#define OWN     ALLOCATOR_OWN
#define INSIDE  ALLOCATOR_INSIDE

static const struct allocator_function standard[] = {
    {"malloc", MAKE, "s"},           {"calloc", ZEROED, "ns"},
    {"realloc", RESIZE, "bs"},       {"reallocarray", RESIZE, "bns"},
    {"free", RELEASE, "b"},          {"cfree", RELEASE, "b"},
    {"free_sized", RELEASE, "b."},   {"free_aligned_sized", RELEASE, "b.."},
    {"memalign", MAKE, "as"},        {"aligned_alloc", MAKE, "as"},
    {"posix_memalign", MAKE, "pas"}, {"valloc", MAKE, "g"},
    {"pvalloc", MAKE, "v"},          {"malloc_usable_size", SIZE, "b"},
    {"malloc_size", SIZE, "b"},      {NULL},
};

static const struct allocator_function jemalloc[] = {
    {"mallocx", MAKE, "sf"},
    {"rallocx", RESIZE, "bsf"},
    {"xallocx", GROW, "bs.."},
    {"sallocx", SIZE, "b."},
    {"dallocx", RELEASE, "b."},
    {"sdallocx", RELEASE, "b.."},
    {NULL},
};

static const struct allocator_function tcmalloc[] = {
    {"malloc_skip_new_handler", MAKE, "s"},
    {"new", MAKE, "s"},
    {"new_nothrow", MAKE, "s."},
    {"new_aligned", MAKE, "sa"},
    {"new_aligned_nothrow", MAKE, "sa."},
    {"newarray", MAKE, "s"},
    {"newarray_nothrow", MAKE, "s."},
    {"newarray_aligned", MAKE, "sa"},
    {"newarray_aligned_nothrow", MAKE, "sa."},
    {"delete", RELEASE, "b"},
    {"delete_sized", RELEASE, "b."},
    {"delete_nothrow", RELEASE, "b."},
    {"delete_aligned", RELEASE, "b."},
    {"delete_sized_aligned", RELEASE, "b.."},
    {"delete_aligned_nothrow", RELEASE, "b.."},
    {"deletearray", RELEASE, "b"},
    {"deletearray_sized", RELEASE, "b."},
    {"deletearray_nothrow", RELEASE, "b."},
    {"deletearray_aligned", RELEASE, "b."},
    {"deletearray_sized_aligned", RELEASE, "b.."},
    {"deletearray_aligned_nothrow", RELEASE, "b.."},
    {"_ZN22TCMallocImplementation14MarkThreadBusyEv", INSIDE, ""}, // swipl's threads call it
    {NULL},
};

static const struct allocator_function mimalloc[] = {
    {"malloc_small", MAKE, "s"},
    {"zalloc_small", ZEROED, "s"},
    {"zalloc", ZEROED, "s"},
    {"mallocn", MAKE, "ns"},
    {"reallocn", RESIZE, "bns"},
    {"reallocf", RESIZE, "bs"},
    {"rezalloc", REZERO, "bs"},
    {"recalloc", REZERO, "bns"},
    {"expand", EXPAND, "bs"},
    {"_expand", EXPAND, "bs"},
    {"strdup", COPY, "t"},
    {"_mbsdup", COPY, "t"},
    {"mbsdup", COPY, "t"},
    {"strndup", COPY, "tm"},
    {"malloc_aligned", MAKE, "sa"},
    {"zalloc_aligned", ZEROED, "sa"},
    {"calloc_aligned", ZEROED, "nsa"},
    {"realloc_aligned", RESIZE, "bsa"},
    {"rezalloc_aligned", REZERO, "bsa"},
    {"recalloc_aligned", REZERO, "bnsa"},
    {"aligned_recalloc", REZERO, "bnsa"},
    {"new", MAKE, "s"},
    {"new_n", MAKE, "ns"},
    {"new_nothrow", MAKE, "s"},
    {"new_aligned", MAKE, "sa"},
    {"new_aligned_nothrow", MAKE, "sa"},
    {"new_realloc", RESIZE, "bs"},
    {"new_reallocn", RESIZE, "bns"},
    {"free_size", RELEASE, "b."},
    {"free_aligned", RELEASE, "b."},
    {"free_size_aligned", RELEASE, "b.."},
    {"usable_size", SIZE, "b"},
    {"heap_malloc", MAKE, "hs"},
    {"heap_malloc_small", MAKE, "hs"},
    {"heap_mallocn", MAKE, "hns"},
    {"heap_zalloc", ZEROED, "hs"},
    {"heap_calloc", ZEROED, "hns"},
    {"heap_realloc", RESIZE, "hbs"},
    {"heap_reallocn", RESIZE, "hbns"},
    {"heap_reallocf", RESIZE, "hbs"},
    {"heap_rezalloc", REZERO, "hbs"},
    {"heap_recalloc", REZERO, "hbns"},
    {"heap_strdup", COPY, "ht"},
    {"heap_strndup", COPY, "htm"},
    {"heap_malloc_aligned", MAKE, "hsa"},
    {"heap_zalloc_aligned", ZEROED, "hsa"},
    {"heap_calloc_aligned", ZEROED, "hnsa"},
    {"heap_realloc_aligned", RESIZE, "hbsa"},
    {"heap_rezalloc_aligned", REZERO, "hbsa"},
    {"heap_recalloc_aligned", REZERO, "hbnsa"},
    {"heap_alloc_new", MAKE, "hs"},
    {"heap_alloc_new_n", MAKE, "hns"},
    {"malloc_aligned_at", MAKE, "sah"},
    {"zalloc_aligned_at", ZEROED, "sah"},
    {"calloc_aligned_at", ZEROED, "nsah"},
    {"heap_malloc_aligned_at", MAKE, "hsa."},
    {"heap_zalloc_aligned_at", ZEROED, "hsa."},
    {"heap_calloc_aligned_at", ZEROED, "hnsa."},
    {"realloc_aligned_at", RESIZE, "bsa."},
    {"rezalloc_aligned_at", REZERO, "bsa."},
    {"recalloc_aligned_at", REZERO, "bnsa."},
    {"aligned_offset_recalloc", REZERO, "bnsa."},
    {"heap_realloc_aligned_at", RESIZE, "hbsa."},
    {"heap_rezalloc_aligned_at", REZERO, "hbsa."},
    {"heap_recalloc_aligned_at", REZERO, "hbnsa."},
    {"realpath", COPY, "th"},
    {"heap_realpath", COPY, "ht."},
    {"dupenv_s", OWN, ""},
    {"wdupenv_s", OWN, ""},
    {"wcsdup", OWN, ""},
    {NULL},
};

static const struct allocator_function snmalloc[] = {
    {"rust_alloc", MAKE, "as"},       {"rust_alloc_zeroed", ZEROED, "as"},
    {"rust_dealloc", RELEASE, "b.."}, {"rust_realloc", RESIZE, "ba.s"},
    {"rust_usable_size", SIZE, "b"},  {NULL},
};

static const struct allocator_function rpmalloc[] = {
    {"zalloc", ZEROED, "s"},
    {"aligned_calloc", ZEROED, "ans"},
    {"aligned_zalloc", ZEROED, "as"},
    {"aligned_realloc", RESIZE, "bas.."},
    {NULL},
};

// Firefox: strdup and strndup are its own, too.
static const struct allocator_function mozjemalloc[] = {
    {"moz_arena_malloc", MAKE, ".s"},
    {"moz_arena_calloc", ZEROED, ".ns"},
    {"moz_arena_realloc", RESIZE, ".bs"},
    {"moz_arena_free", RELEASE, ".b"},
    {"moz_arena_memalign", MAKE, ".as"},
    {"moz_xmalloc", MAKE, "s"},
    {"moz_xcalloc", ZEROED, "ns"},
    {"moz_xrealloc", RESIZE, "bs"},
    {"moz_xmemalign", MAKE, "as"},
    {"moz_xstrdup", COPY, "t"},
    {"moz_xstrndup", COPY, "tm"},
    {"moz_xmemdup", COPY, "ys"},
    {"strdup", COPY, "t"},
    {"strndup", COPY, "tm"},
    {"moz_malloc_size_of", SIZE, "b"},
    {"moz_malloc_usable_size", SIZE, "b"},
    {"moz_malloc_enclosing_size_of", SIZE, "b"},
    {NULL},
};

static const struct allocator_function operators[] = {
    {"_Znwm", MAKE, "s"},
    {"_ZnwmRKSt9nothrow_t", MAKE, "s."},
    {"_ZnwmSt11align_val_t", MAKE, "sa"},
    {"_ZnwmSt11align_val_tRKSt9nothrow_t", MAKE, "sa."},
    {"_Znam", MAKE, "s"},
    {"_ZnamRKSt9nothrow_t", MAKE, "s."},
    {"_ZnamSt11align_val_t", MAKE, "sa"},
    {"_ZnamSt11align_val_tRKSt9nothrow_t", MAKE, "sa."},
    {"_ZdlPv", RELEASE, "b"},
    {"_ZdlPvm", RELEASE, "b."},
    {"_ZdlPvRKSt9nothrow_t", RELEASE, "b."},
    {"_ZdlPvSt11align_val_t", RELEASE, "b."},
    {"_ZdlPvmSt11align_val_t", RELEASE, "b.."},
    {"_ZdlPvSt11align_val_tRKSt9nothrow_t", RELEASE, "b.."},
    {"_ZdaPv", RELEASE, "b"},
    {"_ZdaPvm", RELEASE, "b."},
    {"_ZdaPvRKSt9nothrow_t", RELEASE, "b."},
    {"_ZdaPvSt11align_val_t", RELEASE, "b."},
    {"_ZdaPvmSt11align_val_t", RELEASE, "b.."},
    {"_ZdaPvSt11align_val_tRKSt9nothrow_t", RELEASE, "b.."},
    {NULL},
};

#define MARK(name) name, sizeof name - 1

const struct allocator_family allocator_unknown = {"an unknown one", MARK("malloc"), 0, {standard}};

const struct allocator_family allocator_families[ALLOCATOR_FAMILIES] = {
    {"jemalloc", MARK("mallctlbymib"), 0, {standard, jemalloc}},
    {"tcmalloc", MARK("tc_malloc_skip_new_handler"), 3, {standard, tcmalloc}},
    {"mimalloc", MARK("mi_malloc_aligned"), 3, {standard, mimalloc}},
    {"snmalloc", MARK("sn_rust_alloc"), 3, {standard, snmalloc}},
    {"snmalloc", MARK("sn_malloc_usable_size"), 3, {standard, snmalloc}},
    {"rpmalloc", MARK("rpmalloc_initialize"), 2, {standard, rpmalloc}},
    {"mozjemalloc", MARK("moz_arena_malloc"), 0, {standard, mozjemalloc}},
};

static bool is_same(const char *a, const char *b) {
    while (*a && *a == *b)
        a++, b++;
    return *a == *b;
}

bool allocator_recognise(const char *name, size_t size, struct allocator_found *found) {
    for (unsigned i = 0; i < ALLOCATOR_FAMILIES; i++) {
        const struct allocator_family *family = &allocator_families[i];
        if (size < family->mark_size || !is_same(name + size - family->mark_size, family->mark))
            continue;
        size_t prefix = size - family->mark_size + family->own;
        if (prefix >= ALLOCATOR_PREFIX)
            continue;
        *found = (struct allocator_found){family, {0}, prefix};
        for (size_t j = 0; j < prefix; j++)
            found->prefix[j] = name[j];
        return true;
    }
    return false;
}

static const struct allocator_function *find(const struct allocator_function *functions,
                                             const char *name) {
    for (; functions->name; functions++)
        if (is_same(functions->name, name))
            return functions;
    return NULL;
}

const struct allocator_function *allocator_function_of(const struct allocator_found *found,
                                                       const char *name) {
    bool is_cxx = name[0] == '_' && name[1] == 'Z';
    size_t prefix = is_cxx ? 0 : found->prefix_size;
    for (size_t i = 0; i < prefix; i++)
        if (name[i] != found->prefix[i])
            return NULL;
    const struct allocator_function *function = is_cxx ? find(operators, name) : NULL;
    for (unsigned i = 0; i < 3 && found->family->functions[i] && !function; i++)
        function = find(found->family->functions[i], name + prefix);
    return function;
}

// ---- calls -------------------------------------------------------------------------------------

enum { PAGE = 4096, FLAG_ALIGNMENT = 0x3f, FLAG_ZERO = 0x40 };

static void read_flags(uint64_t flags, struct allocator_call *call) {
    if (flags & FLAG_ALIGNMENT)
        call->alignment = (uint64_t)1 << (flags & FLAG_ALIGNMENT);
    if (flags & FLAG_ZERO)
        call->act = call->act == ALLOCATOR_MAKE     ? ALLOCATOR_ZEROED
                    : call->act == ALLOCATOR_RESIZE ? ALLOCATOR_REZERO
                                                    : call->act;
}

static void read_argument(char letter, uint64_t value, uint64_t *factor,
                          struct allocator_call *call) {
    switch (letter) {
    case 's':
        call->size = value;
        break;
    case 'n':
        *factor = value;
        break;
    case 'b':
        call->block = value;
        break;
    case 'a':
        call->alignment = value;
        break;
    case 'p':
        call->place = value;
        break;
    case 'f':
        read_flags(value, call);
        break;
    case 't':
    case 'y':
        call->text = value;
        call->is_text = letter == 't';
        break;
    case 'h':
        call->is_in_heap = true;
        break;
    case 'm':
        call->limit = value;
        break;
    case 'v':
        call->is_refused = value > UINT64_MAX - PAGE;
        value = (value + PAGE - 1) & ~(uint64_t)(PAGE - 1); // fall through
    case 'g':
        call->size = value;
        call->alignment = PAGE;
        break;
    default:
        break;
    }
}

void allocator_read_call(const struct allocator_function *function, const uint64_t arguments[6],
                         struct allocator_call *call) {
    uint64_t factor = 1;
    *call = (struct allocator_call){.act = function->act, .limit = UINT64_MAX};
    for (const char *letter = function->arguments; *letter; letter++, call->count++)
        read_argument(*letter, arguments[call->count], &factor, call);
    call->is_refused |= __builtin_mul_overflow(call->size, factor, &call->size);
}
