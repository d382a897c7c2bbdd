// Signals: what registers held when a handler began holds again when it returns.
#include <stdlib.h>
#include <string.h>

#include "tools/memcheck/target/memcheck.h"
#include "tools/memcheck/target/shadow/shadow.h"

struct interrupted {
    struct interrupted *next;
    uint64_t frame, frame_end;
    uint64_t stack_reach;
    struct shadow_registers registers;
};

static void drop(struct memcheck_thread *thread) {
    struct interrupted *top = thread->interrupted;
    thread->interrupted = top->next;
    free(top);
}

// A handler that has left by longjmp never returns: its frame lies below the stack pointer of the
// next one, if that is on the same stack.
static void drop_abandoned(struct memcheck_thread *thread, uint64_t frame) {
    while (thread->interrupted && thread->interrupted->frame < frame &&
           frame - thread->interrupted->frame < memcheck_max_frame)
        drop(thread);
}

void memcheck_signal_delivered(int number, uint64_t frame, uint64_t frame_end,
                               uint64_t alternate_stack) {
    struct memcheck_thread *thread = memcheck_thread();
    struct interrupted *top = malloc(sizeof *top);
    drop_abandoned(thread, frame);
    if (top) {
        *top = (struct interrupted){thread->interrupted, frame, frame_end, thread->stack_reach,
                                    thread->registers};
        thread->interrupted = top;
    }
    memset(thread->registers.undefined, 0, sizeof thread->registers.undefined);
    shadow_make_defined(frame, frame_end - frame);
    if (alternate_stack)
        thread->stack_reach = frame_end;
    // What the handler's functions find on a stack that was not used before is undefined.
    if (alternate_stack && alternate_stack < frame)
        shadow_make_undefined(alternate_stack, frame - alternate_stack);
}

void memcheck_signal_returned(uint64_t frame) {
    struct memcheck_thread *thread = memcheck_thread();
    while (thread->interrupted && thread->interrupted->frame != frame &&
           thread->interrupted->frame < frame)
        drop(thread);
    memset(thread->registers.undefined, 0, sizeof thread->registers.undefined);
    thread->registers.any_hidden = true; // at least it may be
    if (!thread->interrupted || thread->interrupted->frame != frame)
        return; // a frame that the target has made itself
    thread->registers = thread->interrupted->registers;
    thread->registers.any_hidden = true;
    thread->stack_reach = thread->interrupted->stack_reach;
    shadow_make_undefined(frame, thread->interrupted->frame_end - frame);
    drop(thread);
}

void memcheck_forget_signals(void) {
    while (memcheck_thread()->interrupted)
        drop(memcheck_thread());
}
