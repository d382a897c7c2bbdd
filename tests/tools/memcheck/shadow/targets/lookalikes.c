// Makes bytes whose undefined bits are those of an internal code, by instructions, and depends on
// their defined bits only. Argument: the number of bytes.
#include <stdio.h>
#include <stdlib.h>

int main(int argc, char **argv)
{
    size_t count = strtoul(argv[1], NULL, 10), set = 0;
    volatile unsigned char *source = malloc(1);
    unsigned char *bytes = malloc(count);
    for (size_t i = 0; i < count; i++)
        bytes[i] = *source & 0xa5;
    for (size_t i = 0; i < count; i++)
        if (bytes[i] & 0x5a)
            set++;
    printf("%zu\n", set);
    if (bytes[count / 2] & 0x04) // bug: one of the undefined bits
        puts("set");
    return 0;
}
