// Shared and private file mappings, between mappings, files and processes.
#include "stress.h"
#include <fcntl.h>
#include <sys/ipc.h>
#include <sys/shm.h>

int main(void) {
    int fd = open("/tmp", O_TMPFILE | O_RDWR, 0600);
    CHECK(fd >= 0 && ftruncate(fd, 4 * PAGE) == 0);
    unsigned char *a = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    unsigned char *b = mmap(NULL, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * PAGE);
    unsigned char *c = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
    CHECK(a != MAP_FAILED && b != MAP_FAILED && c != MAP_FAILED);
    a[2 * PAGE + 5] = 77;
    unsigned char byte = 0;
    CHECK(pread(fd, &byte, 1, 2 * PAGE + 5) == 1);
    printf("%d %d %d\n", b[5], byte, c[2 * PAGE + 5]);
    c[0] = 9;
    printf("private %d %d\n", c[0], a[0]);
    for (int i = 0; i < 20; i++) {
        pid_t pid = fork();
        if (pid == 0) {
            a[i] = (unsigned char)(i * 3);
            c[i] = 200;
            _exit(0);
        }
        SAME(stress_wait(pid), 0);
        SAME(a[i], i * 3);
        CHECK(c[i] != 200);
    }
    int id = shmget(IPC_PRIVATE, 3 * PAGE, 0600);
    CHECK(id >= 0);
    unsigned char *s = shmat(id, NULL, 0), *t = shmat(id, NULL, SHM_RDONLY);
    CHECK(s != (void *)-1 && t != (void *)-1);
    s[PAGE] = 42;
    printf("shm %d\n", t[PAGE]);
    CHECK(shmdt(t) == 0 && shmdt(s) == 0 && shmctl(id, IPC_RMID, NULL) == 0);
    CHECK(shmdt(s) == -1 && errno == EINVAL);
    CHECK(remap_file_pages(a, PAGE, 0, 1, 0) == 0 || errno == EINVAL || errno == ENOSYS);
    return 0;
}
