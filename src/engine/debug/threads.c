// Packets about threads: which one the next packets mean, a list of all, a description of one.
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "engine/debug/channel.h"
#include "engine/debug/packets.h"
#include "engine/task.h"

static int chosen;    // for registers and memory (Hg), by its tid; 0: the server
static int continued; // for `c` and `s` (Hc); 0 or -1: all

void threads_choose_server(void) {
    chosen = 0;
}

void threads_begin(void) {
    chosen = continued = 0;
}

struct task *threads_find(int tid) {
    task_lock_list();
    struct task *task = (struct task *)task_first();
    while (task && task->tid != tid)
        task = task->next;
    task_unlock_list();
    return task;
}

struct task *threads_chosen(void) {
    struct task *task = chosen > 0 ? threads_find(chosen) : NULL;
    return task ? task : self;
}

struct task *threads_continued(void) {
    return continued > 0 ? threads_find(continued) : NULL;
}

bool threads_read_id(const char **text, int *tid) {
    uint64_t value;
    if ((*text)[0] == '-' && (*text)[1] == '1') {
        *text += 2;
        *tid = -1;
        return true;
    }
    if (!remote_number(text, &value))
        return false;
    *tid = (int)value;
    return true;
}

void threads_choose(const char *text) {
    char purpose = *text++;
    int tid;
    if (!threads_read_id(&text, &tid) || (tid > 0 && !threads_find(tid))) {
        packets_reply_done(false);
        return;
    }
    if (purpose == 'g')
        chosen = tid;
    else
        continued = tid;
    packets_reply_done(true);
}

// The thread with the lowest number above this one; NULL: none.
static const struct task *next_thread(int number) {
    const struct task *next = NULL;
    for (const struct task *task = task_first(); task; task = task->next)
        if (task->pid == self->pid && task->number > number &&
            (!next || task->number < next->number))
            next = task;
    return next;
}

// gdb numbers them in this order.
void threads_list(void) {
    char *at = packets_answer;
    task_lock_list();
    for (const struct task *task = next_thread(0); task; task = next_thread(task->number))
        if (at < packets_answer + REMOTE_MOST - 16)
            at += sprintf(at, "%c%x", at == packets_answer ? 'm' : ',', task->tid);
    task_unlock_list();
    channel_reply(packets_answer);
}

// In Valgrind's words, with the thread's name.
void threads_describe(const char *text) {
    char line[128], name[32] = "", path[64];
    int tid;
    struct task *task = threads_read_id(&text, &tid) ? threads_find(tid) : NULL;
    if (!task) {
        packets_reply_done(false);
        return;
    }
    snprintf(path, sizeof path, "/proc/self/task/%d/comm", tid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, name, sizeof name - 1);
    if (fd >= 0)
        close(fd);
    name[size > 0 ? size - 1 : 0] = 0;
    int length = snprintf(line, sizeof line, "tid %d %s", task->number, name);
    *remote_put_hex(packets_answer, line, (size_t)length) = 0;
    channel_reply(packets_answer);
}

void threads_check(const char *text) {
    int tid;
    packets_reply_done(threads_read_id(&text, &tid) && threads_find(tid));
}
