// Addresses by the variables that they are in.
//
// case variables --read-var-info=yes
// case variables_clang clang --read-var-info=yes
// case variables_not_read
#include <stdlib.h>
#include <valgrind/memcheck.h>

struct inside {
    int number;
    char name[8];
};
struct outside {
    long first;
    struct inside inner[3];
    union {
        double real;
        char bytes[8];
    } either;
};

int numbers[10], plain;
static struct outside fixed;
static int *pointer;
long table[3][4];

static void touch(void *place)
{
    VALGRIND_MAKE_MEM_NOACCESS(place, 1);
    (void)VALGRIND_CHECK_MEM_IS_ADDRESSABLE(place, 1); // bug
    VALGRIND_MAKE_MEM_DEFINED(place, 1);
}

__attribute__((noinline)) static int locals(int argument, struct outside whole)
{
    int local = 3;
    struct outside made = {0};
    char text[16] = {0};
    touch(&local); // bug
    touch((char *)&local + 1); // bug
    touch((char *)&local + 2); // bug
    touch(&made.inner[1].name[3]); // bug
    touch((char *)&made.inner[2].number + 1); // bug
    touch(&text[5]); // bug
    touch(&argument); // bug
    {
        long deep = 5;
        touch(&deep); // bug
    }
    return local;
}

int main(void)
{
    int here[4] = {0};
    struct outside passed = {0};
    touch(&here[2]); // bug
    touch(&numbers[4]); // bug
    touch((char *)&fixed.inner[2].number + 1); // bug
    touch(&plain); // bug
    touch((char *)&pointer + 3); // bug
    touch(&table[1][2]); // bug
    char *block = malloc(10);
    touch(block + 3); // bug
    free(block);
    return locals(7, passed) == 3 ? 0 : 1;
}
