// String and memory functions that run over the end, or over what was freed or never set.
//
// case strlen_over -DCALL='kept = strlen(block)'
// case strlen_over_clang_O2 clang -O2 -DCALL='kept = strlen(block)'
// case strnlen_over -DCALL='kept = strnlen(block, 30)'
// case strcpy_over -DCALL='strcpy(block, "seventeen letters")'
// case strncpy_over -DCALL='strncpy(block, "short", 20)'
// case strcat_over -DCALL='block[9] = 0, strcat(block, "ninechars")'
// case strncat_over -DCALL='block[9] = 0, strncat(block, "ninechars", 8)'
// case stpcpy_over -DCALL='stpcpy(block, "seventeen letters")'
// case strcmp_over -DCALL='kept = strcmp(block, "xxxxxxxxxxxxxxxxxx")'
// case strncmp_over -DCALL='kept = strncmp(block, "xxxxxxxxxxxxxxxxxxxx", 18)'
// case strcasecmp_over -DCALL='kept = strcasecmp(block, "XXXXXXXXXXXXXXXXXX")'
// case strchr_over -DCALL='kept = !!strchr(block, 121)'
// case strrchr_over -DCALL='kept = !!strrchr(block, 121)'
// case strchrnul_over -DCALL='kept = !!strchrnul(block, 121)'
// case strstr_over -DCALL='kept = !!strstr(block, "xy")'
// case strspn_over -DCALL='kept = strspn(block, "x")'
// case strcspn_over -DCALL='kept = strcspn(block, "y")'
// case strpbrk_over -DCALL='kept = !!strpbrk(block, "yz")'
// case memchr_over -DCALL='kept = !!memchr(block, 121, 18)'
// case memrchr_over -DCALL='kept = !!memrchr(block, 121, 18)'
// case rawmemchr_over -DCALL='block[12] = 121, kept = !!rawmemchr(block + 13, 121)'
// case memcmp_over -DCALL='kept = memcmp(block, "xxxxxxxxxxxxxxxxxxx", 19)'
// case memcpy_over -DCALL='memcpy(block, source, 20)'
// case memcpy_over_read -DCALL='memcpy(source, block, 20)'
// case memmove_over -DCALL='memmove(block + 1, block, 16)'
// case memset_over -DCALL='memset(block, 1, 24)'
// case memset_over_big -DCALL='memset(block, 1, length)'
// case bzero_over -DCALL='bzero(block, length)' -fno-builtin
// case mempcpy_over -DCALL='mempcpy(block, source, 20)'
// case memccpy_over -DCALL='memccpy(block, source, 1, 20)'
// case sprintf_over -DCALL='sprintf(block, "%s", "seventeen letters")'
// case snprintf_inside -DCALL='snprintf(block, 16, "%s", "seventeen letters")' clean
// case strdup_over -DCALL='free(strdup(block))'
// case strlen_freed -DCALL='free(block), kept = strlen(block), block = 0' -DENDED
// case memcpy_freed -DCALL='free(block), memcpy(source, block, 16), block = 0'
// case memcpy_to_freed -DCALL='free(block), memcpy(block, source, 16), block = 0'
// case strcpy_freed -DCALL='free(block), strcpy(block, "abc"), block = 0'
// case memset_freed -DCALL='free(block), memset(block, 1, 16), block = 0'
// case printf_freed -DCALL='free(block), printf("%s\n", block), block = 0' -DENDED
// case strlen_undefined -DCALL='kept = strlen(fresh)'
// case strcmp_undefined -DCALL='kept = strcmp(fresh, "abc")'
// case memcmp_undefined -DCALL='kept = memcmp(fresh, source, 10)'
// case strcpy_undefined -DCALL='strcpy(block, fresh)'
// case strchr_undefined -DCALL='kept = !!strchr(fresh, 97)'
// case memchr_undefined -DCALL='kept = !!memchr(fresh, 97, 10)'
// case memcpy_undefined -DCALL='memcpy(source, fresh, 10)' clean
// case memcpy_undefined_used -DCALL='memcpy(source, fresh, 10), kept = source[3] ? 1 : 2'
// case memmove_undefined_used -DCALL='fresh[2] = 1, memmove(fresh + 1, fresh, 9), kept = fresh[3] ? 1 : 2, kept = fresh[4] ? 1 : 2'
// case printf_undefined_string -DCALL='fresh[5] = 0, printf("%s\n", fresh)' --malloc-fill=61
// case printf_undefined_number -DCALL='printf("%d\n", *(int *)fresh)' --malloc-fill=61
// case puts_undefined -DCALL='fresh[3] = 0, puts(fresh)' --malloc-fill=61
// case atoi_undefined -DCALL='fresh[3] = 0, kept = atoi(fresh)' --malloc-fill=31 --show-error-list=no
// case strtod_undefined -DCALL='fresh[3] = 0, kept = strtod(fresh, 0)' --malloc-fill=31
// case wcslen_over -DCALL='wmemset((wchar_t *)block, 50, 4), kept = wcslen((wchar_t *)block)'
// case wcscpy_over -DCALL='wcscpy((wchar_t *)block, L"fives")'
// case wmemset_over -DCALL='wmemset((wchar_t *)block, 7, 5)'
// case wcscmp_over -DCALL='wmemset((wchar_t *)block, 50, 4), kept = wcscmp((wchar_t *)block, L"222222")'
// case fread_over -DCALL='fill(block, 20)' -DENDED
// case qsort_undefined -DCALL='qsort(fresh, 4, 4, order)' --malloc-fill=31
// case strings_inside -DCALL='strcpy(block, "fifteen letters"), kept = strlen(block) + !strcmp(block, "no") + !!strchr(block, 102)' clean
// case strings_inside_clang_O2 clang -O2 -DCALL='strcpy(block, "fifteen letters"), kept = strlen(block) + !strcmp(block, "no") + !!strchr(block, 102)' clean
// case malloc_fill_shown -DCALL='printf("%d\n", fresh[3])' --malloc-fill=41 --undef-value-errors=no clean
// case free_fill_shown -DCALL='strcpy(block, "abc"), free(block), printf("%d\n", block[1]), block = 0' --free-fill=42
// case undef_off -DCALL='kept = fresh[3] ? 1 : 2' --undef-value-errors=no clean
// case undef_off_over -DCALL='kept = fresh[3] ? 1 : 2, block[16] = 1' --undef-value-errors=no
// case callers_2 -DCALL='kept = strlen(block)' --num-callers=2
// case undefined_static -DCALL='kept = fresh[3] ? 1 : 2' -static alone --show-leak-kinds=definite,possible
// case roundtrip_strlen -DCALL='kept = strlen(block)' roundtrip
// case roundtrip_printf -DCALL='printf("%d\n", *(int *)fresh)' --malloc-fill=61 roundtrip
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <wchar.h>

volatile long kept;
volatile size_t length = 30;
char source[100] = "0123456789012345678901234567890123456789";

static int order(const void *a, const void *b)
{
    return *(int *)a < *(int *)b ? -1 : *(int *)a > *(int *)b; // bug
}

static void fill(char *block, size_t size)
{
    FILE *file = fopen("/etc/passwd", "r");
    if (!fread(block, size, 1, file)) // bug
        exit(1);
    fclose(file);
}

int main(void)
{
    char *block = malloc(16), *fresh = malloc(64);
    memset(block, 'x', 16);
#ifdef ENDED
    block[15] = 0;
#endif
    CALL; // bug(undefined_static): Conditional jump or move depends on uninitialised value(s)
    free(block);
    free(fresh);
    return 0;
}
