// A module's file, mapped to be read through base/elf_view.h. A file that becomes shorter while it
// is mapped raises SIGBUS: close it before target code runs again.
#ifndef QUERN_ENGINE_LOAD_FILE_H
#define QUERN_ENGINE_LOAD_FILE_H

#include "base/elf_view.h"

// Maps the file. False: that is impossible, or it is no file that elf_view reads. file_close undoes
// it.
bool file_open(struct elf_view *view, const char *path);
void file_close(struct elf_view *view);

#endif
