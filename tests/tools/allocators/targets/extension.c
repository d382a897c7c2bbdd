// What tcmalloc offers beside malloc, in two threads, as swipl's thread for garbage uses it.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int MallocExtension_GetNumericProperty(const char *name, size_t *value);
int MallocExtension_SetNumericProperty(const char *name, size_t value);
void MallocExtension_MarkThreadBusy(void);
void MallocExtension_MarkThreadIdle(void);
void MallocExtension_MarkThreadTemporarilyIdle(void);
void MallocExtension_ReleaseFreeMemory(void);
void MallocExtension_ReleaseToSystem(size_t bytes);
int MallocExtension_VerifyAllMemory(void);
size_t MallocExtension_GetEstimatedAllocatedSize(size_t size);
size_t MallocExtension_GetThreadCacheSize(void);

static void *use(void *unused) {
    size_t value;
    for (int i = 0; i < 3; i++) {
        free(malloc(100 + i));
        MallocExtension_MarkThreadIdle();
        MallocExtension_MarkThreadBusy();
        MallocExtension_MarkThreadTemporarilyIdle();
        MallocExtension_GetNumericProperty("generic.heap_size", &value);
        MallocExtension_GetNumericProperty("generic.current_allocated_bytes", &value);
        MallocExtension_SetNumericProperty("tcmalloc.max_total_thread_cache_bytes", 1 << 20);
        MallocExtension_ReleaseFreeMemory();
        MallocExtension_ReleaseToSystem(1 << 20);
        MallocExtension_GetThreadCacheSize();
        MallocExtension_GetEstimatedAllocatedSize(100);
        MallocExtension_VerifyAllMemory();
    }
    return unused;
}

int main(void) {
    pthread_t thread;
    use(NULL);
    if (pthread_create(&thread, NULL, use, NULL) != 0)
        return 1;
    pthread_join(thread, NULL);
    puts("done");
    return 0;
}
