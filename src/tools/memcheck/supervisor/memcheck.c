#include "tools/memcheck/supervisor/memcheck.h"

static struct findings *findings;

void memcheck_prepare(const struct supervisor_request *request, struct symbols *symbols,
                      int main_pid) {
    findings = findings_new(request, symbols, main_pid);
}

struct findings *memcheck_findings(void) {
    return findings;
}
