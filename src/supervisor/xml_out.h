// Where XML goes (--xml-fd, --xml-file, --xml-socket).
//
// With %p in its name, each process has a file of its own. Otherwise all share one file: the
// documents of other processes follow the main process's, each as a whole.
#ifndef QUERN_SUPERVISOR_XML_OUT_H
#define QUERN_SUPERVISOR_XML_OUT_H

#include "base/text.h"
#include "supervisor/supervisor.h"

// Opens the main process's. False after a message on stderr. Nothing to do without --xml=yes.
bool xml_open(const struct supervisor_request *request, int pid);
// Begins a document; `words` are the `count` words of the command.
void xml_greet(const struct supervisor_request *request, int pid, int parent,
               const char *const *words, size_t count);
void xml_put(const struct supervisor_request *request, int pid, const struct text *text);
// The document of the process is complete.
void xml_drop(const struct supervisor_request *request, int pid);
void xml_close(const struct supervisor_request *request);
// Of the main process's document; -1: none.
int xml_descriptor(const struct supervisor_request *request);

#endif
