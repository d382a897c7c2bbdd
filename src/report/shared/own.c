#include "report/shared/own.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

#include "base/glob.h"
#include "symbols/symbols.h"

static bool starts_with_any(const char *text, const char *const *starts) {
    for (; *starts; starts++)
        if (strncmp(text, *starts, strlen(*starts)) == 0)
            return true;
    return false;
}

static bool is_library_source(const char *path) {
    static const char *const starts[] = {"/usr/",
                                         "/rustc/",
                                         "/rust/deps/",
                                         "/build/glibc",
                                         "library/alloc/",
                                         "library/core/",
                                         "library/std/",
                                         "../sysdeps/",
                                         "./malloc/",
                                         "<frozen ",
                                         NULL};
    static const char *const parts[] = {"/.cargo/registry/", "/.cargo/git/", "/rustlib/src/",
                                        "/vendor/",          "/lib/python3", NULL};
    if (starts_with_any(path, starts))
        return true;
    for (const char *const *part = parts; *part; part++)
        if (strstr(path, *part))
            return true;
    return false;
}

// An interpreter is no part of the scripts that it runs, wherever it was built.
static bool is_interpreter(const char *object) {
    static const char *const names[] = {"python3", "libpython3", NULL};
    const char *slash = strrchr(object, '/');
    return starts_with_any(slash ? slash + 1 : object, names);
}

static bool is_library_object(const char *object) {
    static const char *const starts[] = {
        "/lib/",         "/lib64/",         "/usr/lib/", "/usr/lib64/",
        "/usr/libexec/", "/usr/local/lib/", "[",         NULL};
    if (is_interpreter(object))
        return true;
    // Code that a runtime has generated comes from the user's script.
    return starts_with_any(object, starts) && strcmp(object, SYMBOLS_GENERATED_CODE) != 0 &&
           (strstr(object, ".so") || *object == '[');
}

// Skips a group in brackets and returns its end; the text itself where there is none.
static const char *skip_group(const char *text) {
    static const char opening[] = "<([{", closing[] = ">)]}";
    size_t depth = 0;
    for (const char *at = text; *at; at++) {
        if (strchr(opening, *at))
            depth++;
        else if (strchr(closing, *at) && (at == text || at[-1] != '-') && --depth == 0)
            return at + 1;
        if (!depth)
            return at;
    }
    return text + strlen(text);
}

// The name without the type that a function made from a template returns.
static const char *skip_type(const char *name) {
    const char *start = name;
    for (const char *at = name; *at;) {
        if (strncmp(at, "operator", 8) == 0)
            break;
        bool is_nameless = strncmp(at, "(anonymous", 10) == 0 || at == start;
        if (*at == '(' && !is_nameless)
            break;
        const char *end = skip_group(at);
        if (end == at && *at == ' ')
            start = at + 1;
        at = end == at ? at + 1 : end;
    }
    return start;
}

// The first part of a path of names: `tokio` of `<tokio::task::Cell<T> as core::ops::Drop>::drop`.
static const char *root_of(const char *name, size_t *size) {
    name = skip_type(name);
    name += strspn(name, "<&*( ");
    if (strncmp(name, "mut ", 4) == 0 || strncmp(name, "dyn ", 4) == 0)
        name += 4;
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || name[length] == '_')
        length++;
    *size = length;
    return name;
}

static bool is_one_of(const char *name, size_t length, const char *const *names) {
    for (; *names; names++)
        if (strlen(*names) == length && memcmp(*names, name, length) == 0)
            return true;
    return false;
}

static bool has_root(const char *name, const char *const *roots) {
    size_t length;
    name = root_of(name, &length);
    return strncmp(name + length, "::", 2) == 0 && is_one_of(name, length, roots);
}

static const char *const library_roots[] = {
    "alloc",      "core",         "std",          "hashbrown",  "tokio",
    "tokio_util", "hyper",        "hyper_util",   "h2",         "http",
    "http_body",  "httparse",     "mio",          "bytes",      "parking_lot",
    "crossbeam",  "rayon",        "rayon_core",   "once_cell",  "serde",
    "serde_json", "tracing",      "tracing_core", "tower",      "axum",
    "actix_rt",   "async_std",    "smol",         "flume",      "futures",
    "__gnu_cxx",  "__cxxabiv1",   "futures_util", "slab",       "indexmap",
    "smallvec",   "tokio_rustls", "rustls",       "reqwest",    "boost",
    "absl",       "futures_core", "async_task",   "tower_http", NULL};

static bool is_library_root(const char *name) {
    return has_root(name, library_roots);
}

bool own_runtime(const char *name, struct own_runtime *runtime) {
    static const char *const language[] = {"alloc", "core", "std", NULL};
    // Functions of these types are in core: <u64>::wrapping_mul, <u64 as Step>::forward.
    static const char *const types[] = {"u8",  "u16", "u32",  "u64",  "u128",  "usize", "i8",
                                        "i16", "i32", "i64",  "i128", "isize", "f32",   "f64",
                                        "str", "T",   "bool", "char", NULL};
    size_t length;
    const char *root = root_of(name, &length);
    if (strncmp(root + length, "::", 2) == 0 && is_one_of(root, length, library_roots)) {
        *runtime = (struct own_runtime){root, length, is_one_of(root, length, language)};
        return true;
    }
    if (name[0] != '<' || !is_one_of(root, length, types))
        return false;
    *runtime = (struct own_runtime){"core", 4, true};
    return true;
}

// A function of Rust's allocator, by either mangling: not __rust_try or __rustc::rust_begin_unwind,
// which stand on every stack that may panic.
static bool is_rust_allocator(const char *name) {
    static const char *const starts[] = {"__rust_alloc",
                                         "__rust_realloc",
                                         "__rust_dealloc",
                                         "__rust_no_alloc",
                                         "__rdl_",
                                         "__rg_",
                                         NULL};
    if (strncmp(name, "__rustc", 7) == 0 && (name = strstr(name, "::")))
        name += 2;
    return name && starts_with_any(name, starts);
}

// A function of C that allocates or frees for whoever calls it.
static bool is_wrapper(const char *name) {
    static const char *const starts[] = {"operator new", "operator delete", NULL};
    static const char *const parts[] = {"malloc",  "calloc",   "realloc", "strdup",
                                        "strndup", "memalign", NULL};
    if (is_rust_allocator(name) || starts_with_any(name, starts) || strcmp(name, "free") == 0 ||
        strcmp(name, "cfree") == 0)
        return true;
    if (strstr(name, "::"))
        return false;
    for (const char *const *part = parts; *part; part++)
        if (strcasestr(name, *part))
            return true;
    return false;
}

// A function whose callers want memory; whoever it calls provides it.
static bool is_allocation(const char *name) {
    static const char *const names[] = {"malloc",        "calloc",         "realloc",
                                        "aligned_alloc", "posix_memalign", NULL};
    static const char *const starts[] = {"operator new", "alloc::alloc::", NULL};
    for (const char *const *one = names; *one; one++)
        if (strcmp(name, *one) == 0)
            return true;
    return is_rust_allocator(name) || starts_with_any(name, starts) ||
           strstr(name, "GlobalAlloc>::");
}

// ---- the user's choice -------------------------------------------------------------------------

static const char *chosen; // patterns; NULL: none

void own_choose(const char *patterns) {
    chosen = patterns && *patterns ? patterns : NULL;
}

static bool is_chosen_path(const char *path) {
    bool is_match = glob_match_any(chosen, path);
    for (const char *slash = strchr(path, '/'); slash && !is_match; slash = strchr(slash + 1, '/'))
        is_match = glob_match_any(chosen, slash + 1);
    return is_match;
}

static bool is_chosen(const char *name, const char *path, const char *object) {
    return (name && glob_match_any(chosen, skip_type(name))) || (path && is_chosen_path(path)) ||
           (object && is_chosen_path(object));
}

// ---- judging -----------------------------------------------------------------------------------

bool own_object(const char *object) {
    if (chosen)
        return object && is_chosen_path(object);
    return object && !is_library_object(object);
}

bool own_frame(const char *name, const char *path, const char *object) {
    if (chosen)
        return is_chosen(name, path, object);
    if (!name && !path)
        return false;
    if (name && (is_wrapper(name) || strncmp(name, "__rust", 6) == 0))
        return false;
    if (object && is_interpreter(object))
        return false;
    // Packages of distributions have relative paths: of these, the object says whose they are.
    if (path && strpbrk(path, "/<") && (*path == '/' || !object || !is_library_object(object)))
        return !is_library_source(path);
    if (object && is_library_object(object))
        return false;
    return name && *name != '[' && strcmp(name, "???") != 0 && !is_library_root(name);
}

bool own_is_runtime(const char *name, const char *path) {
    static const char *const sources[] = {
        "/rustc/",     "library/alloc/",    "library/core/", "library/std/",
        "/rust/deps/", "/usr/include/c++/", "./malloc/",     NULL};
    static const char *const roots[] = {"alloc", "core", "std", "hashbrown", "__gnu_cxx", NULL};
    return (path && starts_with_any(path, sources)) ||
           (name && (is_allocation(name) || is_wrapper(name) || has_root(name, roots)));
}

// ---- closures ----------------------------------------------------------------------------------

// How parts of names begin that are closures of what stands before, and then what stands behind
// them. Rust by both manglings and by debug information, C++, Python.
static const char *const closures[] = {"{closure",   "{{closure", "{async",     "{coroutine",
                                       "{lambda",    "<lambda>",  "<listcomp>", "<setcomp>",
                                       "<dictcomp>", "<genexpr>", NULL};

size_t own_without_closures(const char *name) {
    static const char *const before[] = {"::", ".<locals>.", NULL};
    size_t depth = 0;
    if (starts_with_any(name, closures))
        return 0;
    for (const char *at = name; *at; at++) {
        for (const char *const *mark = before; !depth && *mark; mark++)
            if (strncmp(at, *mark, strlen(*mark)) == 0 &&
                starts_with_any(at + strlen(*mark), closures))
                return (size_t)(at - name);
        depth += *at == '<' || *at == '(';
        depth -= depth && (*at == ')' || (*at == '>' && at[-1] != '-'));
    }
    return strlen(name);
}

bool own_is_within(const char *inner, const char *inner_path, const char *outer,
                   const char *outer_path) {
    bool is_one_file =
        inner_path && outer_path ? strcmp(inner_path, outer_path) == 0 : inner_path == outer_path;
    if (!inner || !outer || !is_one_file)
        return false;
    size_t inner_length = own_without_closures(inner), outer_length = own_without_closures(outer);
    // Of a closure alone, all that is known is the file. One asynchronous function awaits others of
    // its file.
    if (!inner_length)
        return inner_path && (strncmp(inner, "{async", 6) != 0 || strcmp(inner, outer) == 0);
    return inner_length == outer_length && memcmp(inner, outer, inner_length) == 0;
}

bool own_search_next(struct own_search *search, const char *name, const char *path,
                     const char *object) {
    if (name && is_allocation(name)) {
        search->found = false;
        return false;
    }
    if (search->found || !own_frame(name, path, object))
        return false;
    search->found = true;
    return true;
}
