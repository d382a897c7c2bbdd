// Repeated string instructions: whole, stopped by what they find, of no length.
#include <stdio.h>

#define APART __attribute__((noinline))

APART static long length(const char *text) {
    long left = -1;
    __asm__ volatile("repne scasb" : "+c"(left), "+D"(text) : "a"(0) : "memory", "cc");
    return -left - 2;
}

APART static int same(const char *a, const char *b, long size) {
    int result;
    __asm__ volatile("cmp %%rcx, %%rcx; repe cmpsb; sete %%al; movzbl %%al, %0"
                     : "=a"(result), "+c"(size), "+S"(a), "+D"(b)
                     :
                     : "memory", "cc");
    return result;
}

APART static void copy(char *to, const char *from, long size) {
    __asm__ volatile("rep movsb" : "+c"(size), "+D"(to), "+S"(from) : : "memory");
}

APART static void fill(long *to, long value, long count) {
    __asm__ volatile("rep stosq" : "+c"(count), "+D"(to) : "a"(value) : "memory");
}

APART static void copy_backwards(char *to, const char *from, long size) {
    __asm__ volatile("std; rep movsb; cld" : "+c"(size), "+D"(to), "+S"(from) : : "memory", "cc");
}

int main(void) {
    static const char text[] = "hello world, how are you";
    char buffer[64];
    long words[8], sum = 0;
    for (int i = 0; i < 7; i++) {
        copy(buffer, text, i * 3);
        buffer[i * 3] = 0;
        sum += length(buffer) + same(buffer, "hello world, hop", i * 2);
        fill(words, i, i);
        copy_backwards(buffer + 40 + i, text + i, i);
    }
    return printf("%ld\n", sum) < 0;
}
