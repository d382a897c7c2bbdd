#include "engine/cache/version.h"
#include "engine/fatal.h"
#include "engine/hooks/hooks.h"
#include "engine/layout.h"
#include "engine/memory/memory.h"
#include "engine/memory/room.h"
#include "engine/task.h"
#include "engine/translate/translate.h"

// With the cache lock held.
static void empty_cache(void) {
    cache_flush();
    versions_reset();
}

void translate_start_over(enum cache_lookup lookup) {
    uint32_t epoch = cache_epoch;
    task_stop_others();
    if (epoch == cache_epoch) {
        cache_lock();
        if (lookup > cache_lookup)
            cache_lookup = lookup;
        empty_cache();
        TOOL_HOOK(flushed);
        cache_unlock();
    }
    task_resume_others();
    task_become_busy();
}

// ---- making room for the target ----------------------------------------------------------------

static void give_table_up(void) {
    cache_lookup = LOOKUP_KEYS;
    for (uint64_t piece = 0; (piece = table_drop_piece(piece));)
        room_give_back(piece, piece + TABLE_PIECE, 0);
}

static void move_cache(uint64_t to, uint64_t size) {
    uint64_t start = cache_start, end = cache_end;
    cache_move(to, to + size);
    room_give_back(start, end, ROOM_GUARD);
    room_take(to, to + size, ROOM_GUARD);
}

void translate_make_room(uint64_t start, uint64_t end, int prot) {
    uint64_t size = 0, to = 0;
    task_stop_others();
    memory_write_lock();
    cache_lock();
    struct room room = room_needed(start, end, prot);
    if (room.move)
        to = room_for_cache(start, end, &size);
    if (to || room.lookup != cache_lookup) {
        empty_cache();
        if (room.lookup == LOOKUP_KEYS && cache_lookup != LOOKUP_KEYS)
            give_table_up();
        cache_lookup = room.lookup;
        if (to)
            move_cache(to, size);
        TOOL_HOOK(flushed);
    }
    cache_unlock();
    memory_unlock();
    task_resume_others();
    task_become_busy();
    task_become_idle(); // as in every system call
}

// ---- the table grows ---------------------------------------------------------------------------

void translate_add_table_piece(uint64_t pc) {
    uint64_t place = table_piece_place(pc);
    memory_write_lock();
    cache_lock();
    if (place && !table_has_piece(pc) && space_is_free(&target_space, place, place + TABLE_PIECE) &&
        table_add_piece(pc))
        room_take(place, place + TABLE_PIECE, 0);
    cache_unlock();
    memory_unlock();
}

// ---- at the start ------------------------------------------------------------------------------

// Programs with code at fixed addresses have been loaded already.
void translate_place_cache(void) {
    uint64_t start = CACHE_START, size = CACHE_END - CACHE_START;
    struct space_range range;
    if (!space_is_free(&target_space, CACHE_START - ROOM_GUARD, CACHE_END))
        start = room_for_cache(0, 0, &size);
    if (!start)
        fatal("the program leaves no room for translated code in the first 2 GiB of memory");
    for (uint64_t at = 0; space_next(&target_space, &at, ADDRESS_END, &range);) {
        enum cache_lookup lookup =
            room_needed(range.start, range.end, range.attributes.prot).lookup;
        if (lookup > cache_lookup)
            cache_lookup = lookup;
    }
    cache_init(start, start + size);
    room_take(start, start + size, ROOM_GUARD);
    translate_add_table_piece(0); // calls through a null pointer read it
}
