#include "view/documents/findings_file.h"

#include <errno.h>
#include <expat.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "base/text.h"
#include "base/vector.h"
#include "profile/findings/finding.h"
#include "profile/findings/leaks.h"

#define CHUNK    65536
#define TEXT_MAX (1u << 20) // of one element
#define NESTING  32

enum part { IN_NOTHING, IN_ERROR, IN_FRAME, IN_SUPPRESSION, IN_PAIR, IN_STATUS, IN_ARGV };

struct parser {
    XML_Parser xml;
    struct findings_file *file;
    struct text text; // of the element in hand
    enum part parts[NESTING];
    unsigned depth;
    struct findings_finding *finding; // in hand
    struct findings_frame *frame;
    uint64_t pair_count;
    char *pair_unique;
    struct text command;
    bool is_root_seen;
    const char *problem;
};

bool findings_file_is_one(const char *start, size_t size) {
    char text[4097];
    size = size < sizeof text - 1 ? size : sizeof text - 1;
    memcpy(text, start, size);
    text[size] = 0;
    return strncmp(text + strspn(text, " \t\r\n"), "<?xml", 5) == 0 &&
           strstr(text, "<valgrindoutput>");
}

// ---- beginnings ----

static enum part part_of(const struct parser *parser) {
    return parser->depth && parser->depth <= NESTING ? parser->parts[parser->depth - 1]
                                                     : IN_NOTHING;
}

static void begin_finding(struct parser *parser, const char *kind) {
    struct findings_file *file = parser->file;
    if (file->count == FINDINGS_MOST) {
        parser->problem = "it holds too many errors";
        return;
    }
    parser->finding = vector_push(file->list, file->count);
    *parser->finding = (struct findings_finding){.count = 1, .kind = base_copy(kind)};
}

static struct findings_section *add_section(struct findings_finding *finding, const char *text) {
    if (finding->section_count == FINDINGS_SECTIONS)
        return NULL;
    struct findings_section *section = vector_push(finding->sections, finding->section_count);
    *section = (struct findings_section){.text = text ? base_copy(text) : NULL};
    return section;
}

// A stack belongs to the text before it, unless that has one.
static void begin_stack(struct parser *parser) {
    struct findings_finding *finding = parser->finding;
    if (!finding->section_count)
        add_section(finding, finding->what);
    else if (finding->sections[finding->section_count - 1].frame_count)
        add_section(finding, NULL);
}

static void begin_frame(struct parser *parser) {
    struct findings_finding *finding = parser->finding;
    parser->frame = NULL;
    if (!finding->section_count)
        return;
    struct findings_section *section = &finding->sections[finding->section_count - 1];
    if (section->frame_count == FINDINGS_DEPTH)
        return;
    parser->frame = vector_push(section->frames, section->frame_count);
    *parser->frame = (struct findings_frame){0};
}

static void XMLCALL on_begin(void *context, const char *name, const char **attributes) {
    struct parser *parser = context;
    enum part part = part_of(parser);
    text_clear(&parser->text);
    if (!parser->depth && strcmp(name, "valgrindoutput") != 0)
        parser->problem = "its first element is not valgrindoutput";
    parser->is_root_seen = true;
    if (part == IN_NOTHING && (strcmp(name, "error") == 0 || strcmp(name, "fatal_signal") == 0)) {
        begin_finding(parser, strcmp(name, "error") == 0 ? "" : "FatalSignal");
        part = IN_ERROR;
    } else if (part == IN_ERROR && strcmp(name, "stack") == 0 && parser->finding) {
        begin_stack(parser);
    } else if (part == IN_ERROR && strcmp(name, "frame") == 0 && parser->finding) {
        begin_frame(parser);
        part = IN_FRAME;
    } else if (part == IN_ERROR && strcmp(name, "suppression") == 0) {
        part = IN_SUPPRESSION;
    } else if (part == IN_NOTHING && strcmp(name, "pair") == 0) {
        part = IN_PAIR;
    } else if (part == IN_NOTHING && strcmp(name, "status") == 0) {
        part = IN_STATUS;
    } else if (part == IN_NOTHING && strcmp(name, "argv") == 0) {
        part = IN_ARGV;
    }
    if (parser->depth >= NESTING)
        parser->problem = "its elements are nested too deeply";
    else
        parser->parts[parser->depth] = part;
    parser->depth++;
    if (parser->problem)
        XML_StopParser(parser->xml, XML_FALSE);
}

// ---- ends ----

static void keep(char **to, const struct text *text) {
    free(*to);
    *to = base_copy(text->bytes ? text->bytes : "");
}

static void end_in_frame(struct parser *parser, const char *name) {
    struct findings_frame *frame = parser->frame;
    if (!frame)
        return;
    if (strcmp(name, "ip") == 0)
        keep(&frame->address, &parser->text);
    else if (strcmp(name, "obj") == 0)
        keep(&frame->object, &parser->text);
    else if (strcmp(name, "fn") == 0)
        keep(&frame->function, &parser->text);
    else if (strcmp(name, "dir") == 0)
        keep(&frame->directory, &parser->text);
    else if (strcmp(name, "file") == 0)
        keep(&frame->file, &parser->text);
    else if (strcmp(name, "line") == 0)
        frame->line = (uint32_t)strtoul(parser->text.bytes ? parser->text.bytes : "", NULL, 10);
}

static void end_in_error(struct parser *parser, const char *name) {
    struct findings_finding *finding = parser->finding;
    const char *text = parser->text.bytes ? parser->text.bytes : "";
    if (strcmp(name, "unique") == 0)
        keep(&finding->unique, &parser->text);
    else if (strcmp(name, "tid") == 0)
        keep(&finding->thread, &parser->text);
    else if (strcmp(name, "kind") == 0)
        keep(&finding->kind, &parser->text);
    else if (strcmp(name, "what") == 0 || strcmp(name, "signame") == 0 ||
             (strcmp(name, "text") == 0 && !finding->what))
        keep(&finding->what, &parser->text);
    else if (strcmp(name, "auxwhat") == 0 || strcmp(name, "text") == 0 ||
             strcmp(name, "event") == 0)
        add_section(finding, text);
    else if (strcmp(name, "leakedbytes") == 0)
        finding->leaked_bytes = strtoull(text, NULL, 10);
    else if (strcmp(name, "leakedblocks") == 0)
        finding->leaked_blocks = strtoull(text, NULL, 10);
}

static struct findings_finding *find(const struct findings_file *file, const char *unique) {
    for (size_t i = 0; unique && i < file->count; i++)
        if (file->list[i].unique && strcmp(file->list[i].unique, unique) == 0)
            return &file->list[i];
    return NULL;
}

static void end_in_pair(struct parser *parser, const char *name) {
    if (strcmp(name, "count") == 0)
        parser->pair_count = strtoull(parser->text.bytes ? parser->text.bytes : "", NULL, 10);
    else if (strcmp(name, "unique") == 0)
        keep(&parser->pair_unique, &parser->text);
    if (strcmp(name, "pair") != 0)
        return;
    struct findings_finding *finding = find(parser->file, parser->pair_unique);
    if (finding)
        finding->count = parser->pair_count;
    free(parser->pair_unique);
    parser->pair_unique = NULL;
}

static void XMLCALL on_end(void *context, const char *name) {
    struct parser *parser = context;
    struct findings_file *file = parser->file;
    enum part part = part_of(parser);
    if (part == IN_FRAME)
        end_in_frame(parser, name);
    else if (part == IN_SUPPRESSION && strcmp(name, "rawtext") == 0 && parser->finding)
        keep(&parser->finding->suppression, &parser->text);
    else if (part == IN_ERROR && parser->finding)
        end_in_error(parser, name);
    else if (part == IN_PAIR)
        end_in_pair(parser, name);
    else if (part == IN_STATUS && strcmp(name, "state") == 0)
        keep(&file->state, &parser->text);
    else if (part == IN_ARGV && (strcmp(name, "exe") == 0 || strcmp(name, "arg") == 0))
        text_format(&parser->command, "%s%s", parser->command.size ? " " : "",
                    parser->text.bytes ? parser->text.bytes : "");
    else if (part == IN_NOTHING && strcmp(name, "tool") == 0)
        keep(&file->tool, &parser->text);
    else if (part == IN_NOTHING && strcmp(name, "pid") == 0)
        keep(&file->pid, &parser->text);
    if (parser->depth)
        parser->depth--;
    text_clear(&parser->text);
}

static void XMLCALL on_text(void *context, const char *bytes, int size) {
    struct parser *parser = context;
    if (parser->text.size + (size_t)size <= TEXT_MAX)
        text_add(&parser->text, bytes, (size_t)size);
}

// A file needs none, and they are how small files become large ones.
static void XMLCALL on_entity(void *context, const char *name, int is_parameter, const char *value,
                              int size, const char *base, const char *system, const char *public,
                              const char *notation) {
    struct parser *parser = context;
    parser->problem = "it declares entities";
    XML_StopParser(parser->xml, XML_FALSE);
}

// ---- reading ----

// NULL, or a message to be freed.
static char *parse(struct parser *parser, int fd) {
    for (;;) {
        void *room = XML_GetBuffer(parser->xml, CHUNK);
        ssize_t size = room ? read(fd, room, CHUNK) : -1;
        if (size < 0)
            return base_copy(room ? strerror(errno) : "out of memory");
        enum XML_Status status = XML_ParseBuffer(parser->xml, (int)size, size == 0);
        if (parser->problem)
            return base_copy(parser->problem);
        if (status != XML_STATUS_OK) {
            struct text text = {0};
            text_format(&text, "line %lu: %s", (unsigned long)XML_GetCurrentLineNumber(parser->xml),
                        XML_ErrorString(XML_GetErrorCode(parser->xml)));
            return text_take(&text);
        }
        if (size == 0)
            return NULL;
    }
}

// Of "N (D direct, I indirect) bytes in ..." D; of others all.
static uint64_t direct_bytes(const struct findings_finding *finding) {
    const char *at = strchr(finding->what, '(');
    if (!at || !strstr(at, " direct, "))
        return finding->leaked_bytes;
    uint64_t bytes = 0;
    for (at++; (*at >= '0' && *at <= '9') || *at == ','; at++)
        if (*at != ',')
            bytes = 10 * bytes + (uint64_t)(*at - '0');
    return bytes < finding->leaked_bytes ? bytes : finding->leaked_bytes;
}

// What is lost indirectly stands in the record of what leads to it, and, with
// --show-leak-kinds=all, in one of its own.
static void count_once(struct findings_file *file) {
    bool is_listed = false;
    for (size_t i = 0; i < file->count; i++)
        is_listed = is_listed || leak_kind_of_xml(file->list[i].kind) == LEAK_INDIRECT;
    for (size_t i = 0; i < file->count; i++) {
        struct findings_finding *finding = &file->list[i];
        finding->own_bytes = is_listed ? direct_bytes(finding) : finding->leaked_bytes;
    }
}

static void finish(struct parser *parser) {
    struct findings_file *file = parser->file;
    file->command = parser->command.size ? text_take(&parser->command) : NULL;
    for (size_t i = 0; i < file->count; i++) {
        struct findings_finding *finding = &file->list[i];
        finding->is_leak = strncmp(finding->kind, "Leak_", 5) == 0;
        if (!finding->what)
            finding->what = base_copy(finding->kind);
    }
    count_once(file);
    text_free(&parser->command);
    text_free(&parser->text);
    free(parser->pair_unique);
}

char *findings_file_read(int fd, struct findings_file **file) {
    struct parser parser = {.xml = XML_ParserCreate(NULL)};
    if (!parser.xml)
        return base_copy("out of memory");
    parser.file = *file = base_allocate(sizeof **file);
    **file = (struct findings_file){0};
    XML_SetUserData(parser.xml, &parser);
    XML_SetElementHandler(parser.xml, on_begin, on_end);
    XML_SetCharacterDataHandler(parser.xml, on_text);
    XML_SetEntityDeclHandler(parser.xml, on_entity);
    char *problem = parse(&parser, fd);
    XML_ParserFree(parser.xml);
    finish(&parser);
    (*file)->is_whole = !problem;
    // Killed while it was written: what is there is good.
    bool is_cut = problem && !parser.problem && parser.depth && (*file)->count;
    if (is_cut) {
        free(problem);
        return NULL;
    }
    return problem;
}

static void free_finding(struct findings_finding *finding) {
    for (size_t i = 0; i < finding->section_count; i++) {
        struct findings_section *section = &finding->sections[i];
        for (size_t j = 0; j < section->frame_count; j++) {
            struct findings_frame *frame = &section->frames[j];
            free(frame->address);
            free(frame->object);
            free(frame->function);
            free(frame->directory);
            free(frame->file);
        }
        free(section->frames);
        free(section->text);
    }
    free(finding->sections);
    free(finding->unique);
    free(finding->kind);
    free(finding->thread);
    free(finding->what);
    free(finding->suppression);
}

void findings_file_free(struct findings_file *file) {
    for (size_t i = 0; i < file->count; i++)
        free_finding(&file->list[i]);
    free(file->list);
    free(file->tool);
    free(file->command);
    free(file->pid);
    free(file->state);
    free(file);
}

// ---- suppressions ----

// The kind as suppressions call it; XML states the size of an access in words only.
static void add_kind(struct text *text, const struct findings_finding *finding) {
    unsigned kind = finding_kind_of_xml(finding->kind);
    bool is_sized = false;
    if (finding->is_leak)
        text_string(text, "Leak");
    else if (strcmp(finding->kind, "ReallocSizeZero") == 0) // Valgrind's only
        text_string(text, "ReallocZero");
    else
        text_string(
            text, finding_kind_suppression(kind < FINDING_KINDS ? kind : FINDING_READ, &is_sized));
    const char *of_size = strstr(finding->what, "of size ");
    if (is_sized)
        text_format(text, "%lu", of_size ? strtoul(of_size + 8, NULL, 10) : 8);
}

static void add_leak_kind(struct text *text, const struct findings_finding *finding) {
    unsigned kind = leak_kind_of_xml(finding->kind);
    if (kind < LEAK_KINDS)
        text_format(text, "   match-leak-kinds: %s\n", leak_kind_name(kind));
}

// Suppressions match linkage names, but the file has the names as they are shown. Those of C stay.
// Of C++ and Rust the parts of the path remain, with anything between them: `a::B<int>::f(char)`
// is mangled as `_ZN1a1BIiE1fEc`, which `_Z*a*B*f*` matches.
static void add_function(struct text *text, const char *name) {
    static const struct {
        const char *shown, *linkage;
    } operators[] = {{"operator new(unsigned long)", "_Znwm"},
                     {"operator new[](unsigned long)", "_Znam"},
                     {"operator delete(void*)", "_ZdlPv"},
                     {"operator delete[](void*)", "_ZdaPv"},
                     {"operator delete(void*, unsigned long)", "_ZdlPvm"},
                     {"operator delete[](void*, unsigned long)", "_ZdaPvm"}};
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(name, operators[i].shown) == 0) {
            text_format(text, "   fun:%s\n", operators[i].linkage);
            return;
        }
    if (!strpbrk(name, ":<({")) {
        text_format(text, "   fun:%s\n", name);
        return;
    }
    static const char unnamed[] = "(anonymous namespace)";
    text_string(text, "   fun:_*");
    unsigned depth = 0;
    const char *before = name;
    size_t before_size = 0;
    for (const char *at = name; *at;) {
        size_t size = strspn(at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        // Operators, std, constructors and destructors are not spelled out in linkage names.
        bool is_spelled = size && strncmp(at, "operator", 8) != 0 &&
                          !(size == 3 && strncmp(at, "std", 3) == 0) &&
                          !(size == before_size && strncmp(at, before, size) == 0);
        if (size && !depth) {
            before = at;
            before_size = size;
        }
        if (is_spelled && !depth)
            text_format(text, "%.*s*", (int)size, at);
        at += size;
        if (!depth && strncmp(at, unnamed, strlen(unnamed)) == 0) {
            text_string(text, "_GLOBAL__N_1*");
            at += strlen(unnamed);
            continue;
        }
        if (*at == '(' && !depth)
            break;
        depth += *at && strchr("<{", *at) ? 1 : 0;
        depth -= depth && *at && strchr(">}", *at) ? 1 : 0;
        at += *at != 0;
    }
    text_char(text, '\n');
}

char *findings_suppression(const struct findings_finding *finding) {
    if (finding->suppression) {
        const char *start = finding->suppression;
        return base_copy(start + strspn(start, "\r\n"));
    }
    struct text text = {0};
    text_string(&text, "{\n   <insert_a_suppression_name_here>\n   Memcheck:");
    add_kind(&text, finding);
    text_char(&text, '\n');
    add_leak_kind(&text, finding);
    if (finding_kind_of_xml(finding->kind) == FINDING_PARAMETER) {
        const char *name = strstr(finding->what, "param ");
        size_t size = name ? strcspn(name + 6, " ") : 0;
        if (size)
            text_format(&text, "   %.*s\n", (int)size, name + 6);
    }
    const struct findings_section *stack = finding->section_count ? &finding->sections[0] : NULL;
    for (size_t i = 0; stack && i < stack->frame_count && i < 24; i++) {
        const struct findings_frame *frame = &stack->frames[i];
        if (frame->function)
            add_function(&text, frame->function);
        else if (frame->object)
            text_format(&text, "   obj:%s\n", frame->object);
        else
            text_string(&text, "   obj:*\n");
    }
    text_string(&text, "}\n");
    return text_take(&text);
}
