#include "engine/cache/version.h"
#include "engine/hooks/hooks.h"
#include "engine/task.h"
#include "engine/translate/translate.h"

void translate_start_over(bool high_code) {
    uint32_t epoch = cache_epoch;
    task_stop_others();
    if (epoch == cache_epoch) {
        cache_lock();
        cache_high_code |= high_code;
        cache_flush();
        versions_reset();
        TOOL_HOOK(flushed);
        cache_unlock();
    }
    task_resume_others();
    task_become_busy();
}

void translate_enable_high_code(void) {
    if (cache_high_code)
        return;
    translate_start_over(true);
    task_become_idle(); // as in every system call
}
