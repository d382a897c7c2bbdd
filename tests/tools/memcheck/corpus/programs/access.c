// Accesses of every size around a block of the heap.
//
// case read_1_after -DREAD -DTYPE=char -DAT=40
// case read_2_after -DREAD -DTYPE=short -DAT=40
// case read_4_after -DREAD -DTYPE=int -DAT=40
// case read_8_after -DREAD -DTYPE=long -DAT=40
// case read_16_after -DREAD -DTYPE=vector16 -DAT=40 -DUNALIGNED
// case read_32_after -DREAD -DTYPE=vector32 -DAT=40 -mavx -DUNALIGNED
// case write_1_after -DTYPE=char -DAT=40
// case write_2_after -DTYPE=short -DAT=40
// case write_4_after -DTYPE=int -DAT=40
// case write_8_after -DTYPE=long -DAT=40
// case write_16_after -DTYPE=vector16 -DAT=40 -DUNALIGNED
// case write_32_after -DTYPE=vector32 -DAT=40 -mavx -DUNALIGNED
// case write_16_aligned_after -DTYPE=vector16 -DAT=48
// case write_float -DTYPE=float -DAT=40
// case write_double -DTYPE=double -DAT=40
// case write_long_double -DTYPE=tenbytes -DAT=48
// case read_long_double -DREAD -DTYPE=tenbytes -DAT=48
// case write_4_before -DTYPE=int -DAT=-4
// case read_1_before -DREAD -DTYPE=char -DAT=-1
// case read_8_far_before -DREAD -DTYPE=long -DAT=-16
// case write_8_straddles_end -DTYPE=long -DAT=36
// case read_8_straddles_end -DREAD -DTYPE=long -DAT=36 -DUNALIGNED
// case read_8_straddles_start -DREAD -DTYPE=long -DAT=-4 -DUNALIGNED
// case read_4_straddles_end -DREAD -DTYPE=int -DAT=38 -DUNALIGNED
// case write_32_straddles_end -DTYPE=vector32 -DAT=16 -mavx -DUNALIGNED
// case read_16_straddles_end -DREAD -DTYPE=vector16 -DAT=32 clean
// case read_16_straddles_end_strict -DREAD -DTYPE=vector16 -DAT=32 --partial-loads-ok=no
// case read_8_partial -DREAD -DTYPE=long -DAT=40 -DSIZE=44 clean
// case read_8_partial_strict -DREAD -DTYPE=long -DAT=40 -DSIZE=44 --partial-loads-ok=no
// case write_1_far_after -DTYPE=char -DAT=52
// case write_1_huge_block -DTYPE=char -DAT=10000001 -DSIZE=10000000
// case read_4_zero_block -DREAD -DTYPE=int -DAT=0 -DSIZE=0
// case write_1_calloc -DTYPE=char -DAT=40 -DALLOCATE=calloc(1,SIZE)
// case write_1_memalign -DTYPE=char -DAT=40 -DALLOCATE=aligned_alloc(64,SIZE)
// case write_1_before_memalign -DTYPE=char -DAT=-1 -DALLOCATE=aligned_alloc(4096,SIZE)
// case write_1_valloc -DTYPE=char -DAT=40 -DALLOCATE=valloc(SIZE)
// case read_4_after_O2 -DREAD -DTYPE=int -DAT=40 -O2
// case read_8_after_O2_clang clang -DREAD -DTYPE=long -DAT=40 -O2
// case write_4_after_O3_clang clang -DTYPE=int -DAT=40 -O3
// case write_8_after_clang clang -DTYPE=long -DAT=40
// case write_8_static -DTYPE=long -DAT=40 -static alone --show-leak-kinds=definite,possible
// case write_4_freed -DFREED -DTYPE=int -DAT=8
// case read_1_freed -DFREED -DREAD -DTYPE=char -DAT=0
// case read_16_freed -DFREED -DREAD -DTYPE=vector16 -DAT=16
// case read_32_freed -DFREED -DREAD -DTYPE=vector32 -DAT=0 -mavx -DUNALIGNED
// case read_8_freed_O2 -DFREED -DREAD -DTYPE=long -DAT=32 -O2
// case write_2_after_freed -DFREED -DTYPE=short -DAT=42
// case read_1_freed_static -DFREED -DREAD -DTYPE=char -DAT=0 -static alone --show-leak-kinds=definite,possible
// case write_4_inside -DTYPE=int -DAT=36 clean
// case write_32_inside -DTYPE=vector32 -DAT=8 -mavx -DUNALIGNED clean
// case write_16_inside_O2 -DTYPE=vector16 -DAT=16 -O2 clean
// case write_4_inside_static -DTYPE=int -DAT=36 -static alone --show-leak-kinds=definite,possible
// case keep_alloc -DFREED -DTYPE=int -DAT=8 --keep-stacktraces=alloc
// case keep_free -DFREED -DTYPE=int -DAT=8 --keep-stacktraces=free
// case keep_alloc_then_free -DFREED -DTYPE=int -DAT=8 --keep-stacktraces=alloc-then-free
// case keep_none -DFREED -DTYPE=int -DAT=8 --keep-stacktraces=none
// case keep_alloc_live -DTYPE=int -DAT=40 --keep-stacktraces=alloc-then-free
// case freelist_off -DFREED -DTYPE=int -DAT=8 --freelist-vol=0
// case redzone_64_far -DTYPE=char -DAT=90 --redzone-size=64
// case redzone_0 -DTYPE=char -DAT=40 --redzone-size=0
// case xml_write_4_after -DTYPE=int -DAT=40 xml
// case xml_read_8_freed -DFREED -DREAD -DTYPE=long -DAT=8 xml
// case error_exitcode -DTYPE=int -DAT=40 --error-exitcode=42
// case error_exitcode_clean -DTYPE=int -DAT=36 --error-exitcode=42 clean
// case exit_on_first_error -DTYPE=int -DAT=40 --error-exitcode=9 --exit-on-first-error=yes
// case error_markers -DTYPE=int -DAT=40 --error-markers=begin,end
// case fullpath_programs -DTYPE=int -DAT=40 --fullpath-after=/
// case quiet -DTYPE=int -DAT=40 --quiet
// case roundtrip_access -DTYPE=int -DAT=40 roundtrip
// case roundtrip_freed -DFREED -DREAD -DTYPE=char -DAT=0 roundtrip
// case alignment_64 -DTYPE=int -DAT=40 --alignment=64
#include <malloc.h>
#include <stdlib.h>

typedef char vector16 __attribute__((vector_size(16)));
typedef char vector32 __attribute__((vector_size(32)));
typedef long double tenbytes;

#ifdef UNALIGNED
typedef TYPE kind __attribute__((aligned(1), may_alias));
#else
typedef TYPE kind __attribute__((may_alias));
#endif
#ifndef SIZE
#define SIZE 40
#endif
#ifndef ALLOCATE
#define ALLOCATE malloc(SIZE)
#endif

volatile TYPE kept;

static char *make(void)
{
    char *block = ALLOCATE; // leak
    for (int i = 0; i < SIZE; i++)
        block[i] = i;
    return block;
}

__attribute__((noinline)) static void touch(char *block)
{
    kind *place = (kind *)(block + AT);
#ifdef READ
    kept = *place; // bug(read_1_freed_static): Invalid read of size 1
#else
    TYPE value = {0};
    *place = value; // bug(write_8_static): Invalid write of size 8
#endif
}

int main(void)
{
    char *block = make();
#ifdef FREED
    free(block);
    touch(block); // bug
#else
    touch(block); // bug
    free(block);
#endif
    return 0;
}
