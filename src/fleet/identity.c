#include "fleet/identity.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/elf_file.h"
#include "base/text.h"
#include "fleet/fleet.h"

#define NOTES_MOST 65536

static char *host_name(void) {
    char name[256];
    if (gethostname(name, sizeof name) != 0)
        return base_copy("unknown");
    name[sizeof name - 1] = 0;
    return base_copy(name);
}

static bool add_build_id(int fd, const Elf64_Phdr *segment, struct text *text) {
    if (segment->p_type != PT_NOTE || segment->p_filesz > NOTES_MOST)
        return false;
    uint8_t *notes = base_allocate(segment->p_filesz + 1);
    struct elf_note note;
    bool is_there = elf_file_read(fd, segment->p_offset, notes, segment->p_filesz) &&
                    elf_view_build_id(notes, segment->p_filesz, &note) && note.size <= 64;
    for (size_t i = 0; is_there && i < note.size; i++)
        text_format(text, "%02x", note.content[i]);
    free(notes);
    return is_there;
}

static char *build_id_of(const char *path) {
    Elf64_Phdr segments[ELF_FILE_SEGMENTS];
    struct text text = {0};
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    size_t count = elf_file_open(fd, segments);
    for (size_t i = 0; i < count && !add_build_id(fd, &segments[i], &text); i++)
        continue;
    if (fd >= 0)
        close(fd);
    return text_take(&text);
}

struct identity identity_make(const struct fleet_settings *settings) {
    const char *slash = strrchr(settings->program, '/');
    const char *program = slash ? slash + 1 : settings->program;
    return (struct identity){
        .host = host_name(),
        .service = base_copy(settings->service ? settings->service : program),
        .version = base_copy(settings->service_version ? settings->service_version : ""),
        .build_id = build_id_of(settings->program),
    };
}

void identity_free(struct identity *identity) {
    free(identity->host);
    free(identity->service);
    free(identity->version);
    free(identity->build_id);
}
