// Takes much memory in one of many ways, touches a few bytes, and prints its peak memory in KB.
// Arguments: the way, mebibytes.
#define _GNU_SOURCE
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static long peak(void)
{
    char line[256];
    long result = -1;
    FILE *status = fopen("/proc/self/status", "r");
    while (fgets(line, sizeof line, status))
        sscanf(line, "VmHWM: %ld", &result);
    fclose(status);
    return result;
}

static char *map(size_t size)
{
    return mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1,
                0);
}

static void touch(volatile char *memory, size_t size)
{
    memory[0] = 1;
    memory[size - 1] = 1;
    if (memory[0] + memory[size - 1] != 2)
        exit(1);
}

static void *use_stack(void *unused)
{
    char here[100];
    touch(here, sizeof here);
    return NULL;
}

static void run_thread(size_t stack_size)
{
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, stack_size);
    if (pthread_create(&thread, &attributes, use_stack, NULL))
        exit(1);
    pthread_join(thread, NULL);
}

int main(int argc, char **argv)
{
    const char *way = argv[1];
    size_t size = strtoul(argv[2], NULL, 10) << 20;
    char *memory = NULL;
    if (!strcmp(way, "malloc"))
        memory = malloc(size);
    else if (!strcmp(way, "calloc"))
        memory = calloc(1, size);
    else if (!strcmp(way, "memalign"))
        memory = memalign(1 << 16, size);
    else if (!strcmp(way, "realloc") && (memory = malloc(size / 2)))
        memory[0] = 1, memory = realloc(memory, size);
    else if (!strcmp(way, "shrink") && (memory = malloc(size)))
        touch(memory, size), memory = realloc(memory, size /= 2);
    else if (!strcmp(way, "mmap"))
        memory = map(size);
    else if (!strcmp(way, "mremap") && (memory = map(size / 2)))
        memory[0] = 1, memory = mremap(memory, size / 2, size, MREMAP_MAYMOVE, 0);
    else if (!strcmp(way, "moved") && (memory = map(size)))
        memory = mremap(memory, size, size, MREMAP_MAYMOVE | MREMAP_FIXED, map(size));
    else if (!strcmp(way, "pieces"))
        for (size_t done = 0; done < size; done += 1 << 20)
            touch(malloc(1 << 20), 1 << 20);
    else if (!strcmp(way, "stack"))
        run_thread(size);
    if (memory)
        touch(memory, size);
    if (memory && strstr(" malloc calloc memalign realloc shrink", way)) {
        free(memory);
        free(malloc(100)); // the large block leaves the quarantine
    } else if (memory) {
        munmap(memory, size);
    }
    printf("%ld\n", peak());
    return 0;
}
