// userfaultfd: a thread provides the pages that others wait for, while it makes the engine stop
// threads (by changing code), and while signals arrive.
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <setjmp.h>
#include <sys/ioctl.h>

#include "stress.h"

enum { PAGES = 64 };

static int fd;
static unsigned char *area, *code;
static volatile int handled, waiting;
static sigjmp_buf out;

static void change_code(unsigned char value) {
    unsigned char text[] = {0xb8, value, 0, 0, 0, 0xc3};
    CHECK(mprotect(code, PAGE, PROT_READ | PROT_WRITE) == 0);
    memcpy(code, text, sizeof text);
    CHECK(mprotect(code, PAGE, PROT_READ | PROT_EXEC) == 0);
    SAME(((int (*)(void))(uintptr_t)code)(), value);
}

static void provide(uint64_t address) {
    unsigned char *page = stress_map(PAGE, PROT_READ | PROT_WRITE);
    memset(page, (int)((address - (uint64_t)area) / PAGE) + 1, PAGE);
    struct uffdio_copy copy = {.dst = address & ~(PAGE - 1), .src = (uint64_t)page, .len = PAGE};
    CHECK(ioctl(fd, UFFDIO_COPY, &copy) == 0);
    CHECK(munmap(page, PAGE) == 0);
}

static uint64_t next_fault(void) {
    struct uffd_msg message;
    CHECK(read(fd, &message, sizeof message) == sizeof message);
    CHECK(message.event == UFFD_EVENT_PAGEFAULT);
    return message.arg.pagefault.address;
}

static void *reader(void *argument) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < PAGES - 1; i++)
        sum = stress_mix(sum, area[i * PAGE + i]);
    return (void *)sum;
}

static void on_signal(int number, siginfo_t *info, void *context) {
    handled++;
    siglongjmp(out, 1);
}

// Nobody provides this page: the signal has to get through.
static void *waiter(void *argument) {
    if (sigsetjmp(out, 1) == 0) {
        waiting = stress_tid();
        handled += area[(PAGES - 1) * PAGE];
    }
    return NULL;
}

int main(void) {
    struct uffdio_api api = {.api = UFFD_API};
    area = stress_map(PAGES * PAGE, PROT_READ | PROT_WRITE);
    code = stress_map(PAGE, PROT_READ | PROT_WRITE);
    fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (fd < 0 || ioctl(fd, UFFDIO_API, &api) != 0) {
        puts("no userfaultfd");
        return 0;
    }
    struct uffdio_register where = {.range = {(uint64_t)area, PAGES * PAGE},
                                    .mode = UFFDIO_REGISTER_MODE_MISSING};
    CHECK(ioctl(fd, UFFDIO_REGISTER, &where) == 0);
    pthread_t thread = stress_thread(reader, NULL);
    for (unsigned i = 0; i < PAGES - 1; i++) {
        uint64_t address = next_fault();
        change_code((unsigned char)i);
        provide(address);
    }
    printf("sum: %lx\n", (uint64_t)stress_join(thread));
    stress_handle(SIGUSR1, on_signal, 0);
    thread = stress_thread(waiter, NULL);
    SAME(next_fault(), (uint64_t)area + (PAGES - 1) * PAGE);
    CHECK(waiting);
    CHECK(syscall(SYS_tgkill, getpid(), waiting, SIGUSR1) == 0);
    stress_join(thread);
    printf("handled: %d\n", handled);
    return 0;
}
