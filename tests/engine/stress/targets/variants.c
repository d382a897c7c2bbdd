// Built in several ways (static, static-pie, non-PIE, musl): the same program must behave the same.
#include "stress.h"
#include <math.h>

static __thread int local = 5;
static int global_count;

static void on_signal(int s, siginfo_t *info, void *context) {
    global_count++;
}
static void *work(void *arg) {
    local += (int)(long)arg;
    raise(SIGUSR1);
    return (void *)(long)local;
}
__attribute__((constructor)) static void before(void) {
    global_count = 100;
}
static int compare(const void *a, const void *b) {
    return *(const int *)a - *(const int *)b;
}

int main(int argc, char **argv) {
    stress_handle(SIGUSR1, on_signal, SA_RESTART);
    printf("arguments %d, count %d\n", argc, global_count);
    long total = 0;
    for (long i = 0; i < 10; i++)
        total += (long)stress_join(stress_thread(work, (void *)i));
    printf("threads %ld signals %d\n", total, global_count);
    int numbers[1000];
    for (int i = 0; i < 1000; i++)
        numbers[i] = (int)(stress_mix(1, (uint64_t)i) & 0xffff);
    qsort(numbers, 1000, sizeof(int), compare);
    printf("sorted %d %d %d\n", numbers[0], numbers[500], numbers[999]);
    printf("%.6f %.6f %Lf\n", sin(argc + 0.5), pow(argc + 1, 0.5), (long double)argc / 3);
    char *text = malloc(100);
    snprintf(text, 100, "%s %d %x", "formatted", 42, 255);
    puts(text);
    free(text);
    pid_t pid = fork();
    if (pid == 0)
        _exit(12);
    printf("child %x\n", (unsigned)stress_wait(pid));
    fflush(stdout);
    if (argc < 2) {
        execl("/proc/self/exe", argv[0], "again", (char *)NULL);
        return 1;
    }
    return 7;
}
