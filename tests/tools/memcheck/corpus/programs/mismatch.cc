// Every allocation function with every function that frees.
//
// case mismatch_malloc_delete -DMAKE='(char *)malloc(10)' -DFREE='delete p'
// case mismatch_malloc_delete_array -DMAKE='(char *)malloc(10)' -DFREE='delete[] p'
// case mismatch_new_free -DMAKE='new char' -DFREE='free(p)'
// case mismatch_new_delete_array -DMAKE='new char' -DFREE='delete[] p'
// case mismatch_new_array_free -DMAKE='new char[10]' -DFREE='free(p)'
// case mismatch_new_array_delete -DMAKE='new char[10]' -DFREE='delete p'
// case mismatch_new_realloc -DMAKE='new char[10]' -DFREE='free(realloc(p, 20))'
// case mismatch_calloc_delete -DMAKE='(char *)calloc(1, 10)' -DFREE='delete p'
// case mismatch_memalign_delete -DMAKE='(char *)memalign(64, 10)' -DFREE='delete p'
// case mismatch_hidden -DMAKE='new char' -DFREE='free(p)' --show-mismatched-frees=no clean
// case mismatch_aligned_new_free -DMAKE='(char *)operator new(64, std::align_val_t(64))' -DFREE='free(p)' -std=c++17
// case match_malloc_free -DMAKE='(char *)malloc(10)' -DFREE='free(p)' clean
// case match_new_delete -DMAKE='new char' -DFREE='delete p' clean
// case match_new_array -DMAKE='new char[10]' -DFREE='delete[] p' clean
// case match_nothrow -DMAKE='new (std::nothrow) char[10]' -DFREE='operator delete[](p, std::nothrow)' clean
// case match_aligned -DMAKE='(char *)operator new(64, std::align_val_t(64))' -DFREE='operator delete(p, std::align_val_t(64))' -std=c++17 clean
// case match_sized -DMAKE='(char *)operator new(24)' -DFREE='operator delete(p, (size_t)24)' -std=c++17 clean
// case mismatch_xml -DMAKE='new char[10]' -DFREE='free(p)' xml
// case roundtrip_mismatch -DMAKE='new char[10]' -DFREE='free(p)' roundtrip
// case delete_twice -DMAKE='new char' -DFREE='delete p, delete p'
// case delete_array_twice_clang clang -DMAKE='new char[10]' -DFREE='delete[] p, delete[] p'
// case use_after_delete -DMAKE='new char[10]' -DFREE='delete[] p, *p = 1'
// case use_after_aligned -DMAKE='(char *)operator new(64, std::align_val_t(64))' -DFREE='p[64] = 1, operator delete(p, std::align_val_t(64))' -std=c++17
// case new_leak -DMAKE='new char[10]' -DFREE='p = nullptr'
// case new_nothrow_leak -DMAKE='(char *)new (std::nothrow) int[10]' -DFREE='p = nullptr'
// case aligned_array_leak -DMAKE='(char *)operator new[](100, std::align_val_t(128))' -DFREE='p = nullptr' -std=c++17
#include <malloc.h>

#include <cstdlib>
#include <new>

char *volatile shared;

__attribute__((noinline)) static char *make()
{
    return MAKE; // leak
}

__attribute__((noinline)) static void release(char *p)
{
    FREE; // bug
}

int main()
{
    shared = make(); // leak
    release(shared);
    shared = nullptr;
    return 0;
}
