// Exports what an interpreter of Python exports, and runs nothing. VERSION is Py_Version.
#include <stdint.h>
#include <time.h>

#ifdef VERSION
const unsigned long Py_Version = VERSION;
#endif
#ifndef HIDDEN
struct {
    char cookie[8];
    uint64_t version, free_threaded;
    char rest[4096];
} _PyRuntime = {"xdebugpy", 0, FREE_THREADED};
char PyCode_Type[512], PyUnicode_Type[512];
#endif

const char *Py_GetVersion(void)
{
    return "3.10.13 (main)";
}

void *PyGILState_GetThisThreadState(void)
{
    return 0;
}

int main(void)
{
    for (clock_t end = clock() + CLOCKS_PER_SEC / 20; clock() < end;)
        ;
    return 0;
}
