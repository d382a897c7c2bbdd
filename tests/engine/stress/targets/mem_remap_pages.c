// remap_file_pages: pages of a shared mapping in another order.
#include "stress.h"

enum { PAGES = 8 };

int main(void) {
    int fd = memfd_create("pages", 0);
    CHECK(fd >= 0 && ftruncate(fd, PAGES * PAGE) == 0);
    unsigned char *map = mmap(NULL, PAGES * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    CHECK(map != MAP_FAILED);
    for (unsigned i = 0; i < PAGES; i++)
        map[i * PAGE] = (unsigned char)(100 + i);
    for (unsigned i = 0; i < PAGES; i++)
        CHECK(remap_file_pages(map + i * PAGE, PAGE, 0, PAGES - 1 - i, 0) == 0);
    for (unsigned i = 0; i < PAGES; i++)
        printf("%d ", map[i * PAGE]);
    CHECK(remap_file_pages(map, PAGES * PAGE, 0, 0, 0) == 0);
    printf("%d %d\n", map[0], map[(PAGES - 1) * PAGE]);
    printf("rights: %d %d\n", remap_file_pages(map, PAGE, PROT_READ, 0, 0), errno);
    unsigned char *own = stress_map(PAGE, PROT_READ | PROT_WRITE);
    printf("private: %d %d\n", remap_file_pages(own, PAGE, 0, 0, 0), errno);
    // Code in it is noticed.
    static const unsigned char code[2][6] = {{0xb8, 1, 0, 0, 0, 0xc3}, {0xb8, 2, 0, 0, 0, 0xc3}};
    memcpy(map, code[0], 6);
    memcpy(map + PAGE, code[1], 6);
    unsigned char *run = mmap(NULL, PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0);
    CHECK(run != MAP_FAILED);
    int (*function)(void) = (int (*)(void))(uintptr_t)run;
    for (int i = 0; i < 4; i++) {
        printf("code: %d\n", function());
        CHECK(remap_file_pages(run, PAGE, 0, (size_t)(i + 1) % 2, 0) == 0);
    }
    return 0;
}
