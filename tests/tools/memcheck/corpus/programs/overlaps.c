// Copies whose source and destination overlap.
//
// case overlap_memcpy -DCOPY='memcpy(text + 4, text, length)' clean
// case overlap_memcpy_backward -DCOPY='memcpy(text, text + 4, length)' clean
// case overlap_memcpy_adjacent -DCOPY='memcpy(text + 10, text, length)' clean
// case overlap_memmove -DCOPY='memmove(text + 4, text, 10)' clean
// case overlap_mempcpy -DCOPY='mempcpy(text + 4, text, 10)'
// case overlap_strcpy -DCOPY='strcpy(text, text + 2)'
// case overlap_strncpy -DCOPY='strncpy(text + 4, text, 8)'
// case overlap_stpcpy -DCOPY='stpcpy(text, text + 2)'
// case overlap_strcat -DCOPY='strcat(text + 5, text)'
// case overlap_strncat -DCOPY='strncat(text, text + 2, 9)'
// case overlap_memccpy -DCOPY='memccpy(text + 4, text, 99, 10)' clean
// case overlap_same -DCOPY='memcpy(text, text, length)' clean
// case overlap_zero -DCOPY='memcpy(text + 1, text, 0)' clean
// case overlap_memcpy_chk -DCOPY='memcpy(text + 4, text, length)' -O2 -D_FORTIFY_SOURCE=2
// case overlap_wcscpy -DCOPY='wcscpy(wide, wide + 2)'
// case overlap_wcsncpy -DCOPY='wcsncpy(wide + 2, wide, 4)' clean
// case overlap_xml -DCOPY='strncpy(text + 4, text, 8)' xml
// case roundtrip_overlap -DCOPY='strncpy(text + 4, text, 8)' roundtrip
#define _GNU_SOURCE
#include <string.h>
#include <wchar.h>

char text[100] = "some words to copy";
wchar_t wide[100] = L"wide words";
volatile size_t length = 10;

int main(void)
{
    COPY; // bug
    return 0;
}
