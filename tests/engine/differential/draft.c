#include "draft.h"

#include "enumerate.h"
#include "layout.h"

#include <err.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PAGE 4096u

// Drafts of one group, with their code and patches shortened to what is used.
struct stored {
    struct form form;
    uint16_t entry, code_length, patch_count;
    uint8_t before_end;
    uint8_t *code;
    struct draft_patch *patches;
};

static struct {
    struct stored *draft;
    size_t count;
} groups[GROUP_COUNT];

struct reason {
    const char *kind, *text;
    unsigned count;
};
static struct reason reasons[32];

#define SEEN_SIZE (1u << 21)
static uint64_t *seen;

void draft_bytes(struct draft *d, const void *bytes, size_t count) {
    if (d->code_length + count > DRAFT_CODE_MAX)
        errx(1, "draft too long");
    memcpy(d->code + d->code_length, bytes, count);
    d->code_length += count;
}

void draft_exit(struct draft *d, unsigned exit) {
    uint8_t jump[7] = {0xff, 0x24, 0x25};
    uint32_t pointer = CONTEXT_EXITS + 8 * exit;
    memcpy(jump + 3, &pointer, 4);
    draft_bytes(d, jump, sizeof jump);
}

void draft_patch(struct draft *d, unsigned at, unsigned end, uint32_t target) {
    if (d->patch_count == DRAFT_PATCH_MAX)
        errx(1, "too many patches in a draft");
    d->patches[d->patch_count++] = (struct draft_patch){at, end, target};
}

static uint64_t mix(uint64_t hash, const void *bytes, size_t count) {
    for (size_t i = 0; i < count; i++)
        hash = (hash ^ ((const uint8_t *)bytes)[i]) * 0x100000001b3ul;
    return hash;
}

static bool is_new(const struct draft *d) {
    uint64_t hash = 0xcbf29ce484222325ul ^ d->group << 8;
    hash = mix(hash, &d->before_end, 1);
    hash = mix(hash, &d->form.limits, sizeof d->form.limits);
    hash = mix(hash, d->code, d->code_length);
    for (unsigned i = 0; i < d->patch_count; i++)
        hash = mix(hash, &d->patches[i].target, sizeof d->patches[i].target);
    for (unsigned i = 0; i < d->form.mem_count; i++)
        hash = mix(hash, &d->form.mem[i].fill, 1);
    hash |= 1;
    if (!seen)
        seen = calloc(SEEN_SIZE, sizeof *seen);
    for (size_t at = hash % SEEN_SIZE;; at = (at + 1) % SEEN_SIZE) {
        if (seen[at] == hash)
            return false;
        if (!seen[at]) {
            seen[at] = hash;
            return true;
        }
    }
}

static void *copy(const void *bytes, size_t count) {
    void *result = malloc(count ? count : 1);
    return memcpy(result, bytes, count);
}

void draft_add(const struct draft *d) {
    if (!is_new(d))
        return;
    size_t *count = &groups[d->group].count;
    if (*count % 4096 == 0)
        groups[d->group].draft =
            realloc(groups[d->group].draft, (*count + 4096) * sizeof(struct stored));
    groups[d->group].draft[(*count)++] = (struct stored){
        .form = d->form,
        .entry = d->entry,
        .before_end = d->before_end,
        .code_length = d->code_length,
        .patch_count = d->patch_count,
        .code = copy(d->code, d->code_length),
        .patches = copy(d->patches, d->patch_count * sizeof *d->patches),
    };
}

static void note(const char *kind, const char *text) {
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons; i++) {
        if (!reasons[i].text)
            reasons[i] = (struct reason){kind, text, 0};
        if (reasons[i].text == text) {
            reasons[i].count++;
            return;
        }
    }
}

void draft_skip(const char *reason) {
    note("skip", reason);
}

void draft_ignore(const char *reason) {
    note("ignore", reason);
}

static void describe_text(FILE *text, size_t id, const struct stored *d, const uint8_t *code) {
    static ZydisFormatter formatter;
    if (id == 0)
        ZydisFormatterInit(&formatter, ZYDIS_FORMATTER_STYLE_INTEL);
    fprintf(text, "%zu ", id);
    for (unsigned i = 0; i < d->form.length; i++)
        fprintf(text, "%02x", code[i]);
    const char *separator = " ";
    for (unsigned at = 0; at < d->form.length;) {
        ZydisDecodedInstruction instruction;
        ZydisDecodedOperand operands[ZYDIS_MAX_OPERAND_COUNT];
        char line[128];
        if (!ZYAN_SUCCESS(ZydisDecoderDecodeFull(&enumerate_decoder, code + at, d->form.length - at,
                                                 &instruction, operands))) {
            fprintf(text, "%s(undecodable)", separator);
            break;
        }
        ZydisFormatterFormatInstruction(&formatter, &instruction, operands,
                                        instruction.operand_count_visible, line, sizeof line,
                                        AREA_LOW + AREA_CODE + d->form.code + at, NULL);
        fprintf(text, "%s%s", separator, line);
        separator = "; ";
        at += instruction.length;
    }
    fputc('\n', text);
}

// Copies the code to `at` in the image and gives it its addresses.
static void place(struct stored *d, uint8_t *image, uint32_t at) {
    memcpy(image + at, d->code, d->code_length);
    d->form.code = at + d->entry;
    for (unsigned i = 0; i < d->patch_count; i++) {
        const struct draft_patch *patch = &d->patches[i];
        int32_t relative = (int32_t)patch->target - (int32_t)(AREA_CODE + at + patch->end);
        memcpy(image + at + patch->at, &relative, 4);
    }
}

static FILE *create(const char *path, const char *suffix) {
    char name[4096];
    snprintf(name, sizeof name, "%s%s", path, suffix);
    FILE *file = fopen(name, "w");
    if (!file)
        err(1, "%s", name);
    return file;
}

static void finish(FILE *file) {
    if (ferror(file) || fclose(file))
        err(1, "cannot write the table of forms");
}

// A call, movs with longer immediates, a nop: read from different starts.
static const uint8_t code_end[DRAFT_CODE_END] = {0x3e, 0x2e, 0xe8, 0x48, 0xb8, 0x90};

void draft_write(const char *path) {
    struct form_file header = {.magic = FORM_MAGIC, .group_count = GROUP_COUNT};
    size_t code_size = PAD_COUNT * PAD_SIZE;
    for (int g = 0; g < GROUP_COUNT; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            code_size += groups[g].draft[i].code_length + 1;
    code_size = (code_size + sizeof code_end + PAGE) & ~(size_t)(PAGE - 1);
    uint8_t *image = malloc(code_size);
    memset(image, 0xcc, code_size);
    memcpy(image + code_size - sizeof code_end, code_end, sizeof code_end);
    for (unsigned pad = 0; pad < PAD_COUNT; pad++) {
        struct draft jump = {0};
        draft_exit(&jump, pad + 1);
        memcpy(image + pad * PAD_SIZE, jump.code, jump.code_length);
    }
    FILE *table = create(path, ".bin"), *text = create(path, ".txt");
    uint32_t at = PAD_COUNT * PAD_SIZE;
    for (int g = 0; g < GROUP_COUNT; g++) {
        struct form_group *group = &header.groups[g];
        strcpy(group->name, describe_group_names[g]);
        group->first = header.form_count;
        for (size_t i = 0; i < groups[g].count; i++) {
            struct stored *d = &groups[g].draft[i];
            place(d, image, at);
            if (d->before_end)
                d->form.code = code_size - d->before_end;
            describe_text(text, header.form_count++, d, image + d->form.code);
            at += d->code_length + 1;
        }
        group->end = header.form_count;
    }
    for (size_t i = 0; i < sizeof reasons / sizeof *reasons && reasons[i].text; i++)
        fprintf(text, "%s %u %s\n", reasons[i].kind, reasons[i].count, reasons[i].text);
    size_t forms_size = sizeof header + header.form_count * sizeof(struct form);
    header.code_offset = (forms_size + PAGE - 1) & ~(PAGE - 1);
    header.code_size = code_size;
    fwrite(&header, sizeof header, 1, table);
    for (int g = 0; g < GROUP_COUNT; g++)
        for (size_t i = 0; i < groups[g].count; i++)
            fwrite(&groups[g].draft[i].form, sizeof(struct form), 1, table);
    fseek(table, header.code_offset, SEEK_SET);
    fwrite(image, code_size, 1, table);
    finish(table);
    finish(text);
}
