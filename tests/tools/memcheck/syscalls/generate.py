"""Writes a program that makes system calls with memory and registers that are not in order.

A line of CALLS is a call and its arguments: a C expression, `in:N` or `out:N` for a block of N bytes
that the kernel reads or writes, `str:TEXT` for a string. From each come functions that make the call
with one argument after the other undefined, not addressable, or one byte short, and once as it
should be, saying what it has made defined. Cases that need more than that stand in *.inc.
"""
import re

CALLS = r"""
read zero_fd out:16 16
write null_fd in:16 16
open str:/nonexistent O_RDONLY 0
open str:/nonexistent/a O_CREAT|O_RDONLY 0600
openat AT_FDCWD str:/nonexistent O_RDONLY 0
openat AT_FDCWD str:/nonexistent/a O_CREAT 0600
creat str:/nonexistent/a 0600
close -1
stat str:/ out:144
lstat str:/ out:144
fstat null_fd out:144
newfstatat AT_FDCWD str:/ out:144 0
lseek file_fd 0 SEEK_SET
mmap 0 4096 PROT_READ MAP_PRIVATE|MAP_ANONYMOUS -1 0
mprotect 0 0 PROT_READ
munmap 0 0
rt_sigprocmask SIG_BLOCK in:8 out:8 8
pread64 file_fd out:8 8 0
pwrite64 null_fd in:8 8 0
access str:/nonexistent R_OK
pipe out:8
pipe2 out:8 0
sched_yield
msync 0 0 MS_ASYNC
madvise 0 0 MADV_NORMAL
dup2 -1 -1
dup3 -1 -1 0
getitimer ITIMER_PROF out:32
setitimer ITIMER_PROF in:32 out:32
alarm 0
getpid
sendfile null_fd zero_fd 0 0
socket 99 0 0
shutdown -1 0
listen -1 0
socketpair AF_UNIX SOCK_STREAM 0 out:8
uname out:390
flock -1 LOCK_UN
fsync -1
fdatasync -1
truncate str:/nonexistent 0
ftruncate -1 0
getdents64 directory_fd out:2048 2048
getcwd out:4096 4096
chdir str:/nonexistent
fchdir -1
rename str:/nonexistent str:/nonexistent/b
mkdir str:/nonexistent/a 0700
rmdir str:/nonexistent
link str:/nonexistent str:/nonexistent/b
unlink str:/nonexistent
symlink str:/nonexistent str:/nonexistent/b
readlink str:/proc/self/fd/0 out:64 64
chmod str:/nonexistent 0
fchmod -1 0
chown str:/nonexistent 0 0
fchown -1 0 0
lchown str:/nonexistent 0 0
gettimeofday out:16 out:8
getrlimit RLIMIT_NOFILE out:16
prlimit64 0 RLIMIT_NOFILE 0 out:16
getrusage RUSAGE_SELF out:144
sysinfo out:112
times out:32
setpgid -1 -1
getpgid 0
getsid 0
getresuid out:4 out:4 out:4
getresgid out:4 out:4 out:4
getgroups 0 0
rt_sigpending out:8 8
rt_sigtimedwait in:8 out:128 in:16 8
mknod str:/nonexistent/a 0 0
statfs str:/ out:120
fstatfs null_fd out:120
getpriority PRIO_PROCESS 0
sched_getparam 0 out:4
sched_getscheduler 0
sched_get_priority_max SCHED_FIFO
sched_get_priority_min SCHED_FIFO
sched_rr_get_interval 0 out:16
mlock 0 0
munlock 0 0
setxattr str:/nonexistent str:user.a in:4 4 0
lsetxattr str:/nonexistent str:user.a in:4 4 0
fsetxattr -1 str:user.a in:4 4 0
getxattr str:/nonexistent str:user.a out:4 4
lgetxattr str:/nonexistent str:user.a out:4 4
fgetxattr -1 str:user.a out:4 4
listxattr str:/nonexistent out:4 4
llistxattr str:/nonexistent out:4 4
flistxattr null_fd out:4 4
removexattr str:/nonexistent str:user.a
lremovexattr str:/nonexistent str:user.a
fremovexattr -1 str:user.a
time out:8
sched_setaffinity -1 8 in:8
fadvise64 -1 0 0 0
timer_settime -1 0 in:32 out:32
timer_gettime -1 out:32
timer_delete -1
clock_gettime CLOCK_MONOTONIC out:16
clock_getres CLOCK_MONOTONIC out:16
epoll_create1 0
inotify_add_watch -1 str:/ 1
mkdirat AT_FDCWD str:/nonexistent/a 0700
mknodat AT_FDCWD str:/nonexistent/a 0 0
fchownat AT_FDCWD str:/nonexistent 0 0 0
unlinkat AT_FDCWD str:/nonexistent 0
renameat AT_FDCWD str:/nonexistent AT_FDCWD str:/nonexistent/b
renameat2 AT_FDCWD str:/nonexistent AT_FDCWD str:/nonexistent/b 0
linkat AT_FDCWD str:/nonexistent AT_FDCWD str:/nonexistent/b 0
symlinkat str:/nonexistent AT_FDCWD str:/nonexistent/b
readlinkat AT_FDCWD str:/proc/self/fd/0 out:64 64
fchmodat AT_FDCWD str:/nonexistent 0
faccessat AT_FDCWD str:/nonexistent 0
faccessat2 AT_FDCWD str:/nonexistent 0 0
futimesat AT_FDCWD str:/nonexistent in:32
utime str:/nonexistent in:16
utimes str:/nonexistent in:32
get_robust_list 0 out:8 out:8
signalfd -1 in:8 8
signalfd4 -1 in:8 8 0
timerfd_create CLOCK_MONOTONIC 0
timerfd_settime timer_fd 0 in:32 out:32
timerfd_gettime timer_fd out:32
eventfd 0
eventfd2 0 0
fallocate -1 0 0 1
wait4 -1 out:4 WNOHANG out:144
waitid P_ALL 0 out:128 WNOHANG|WEXITED out:144
getcpu out:4 out:4 0
getrandom out:16 16 0
memfd_create str:probe 0
statx AT_FDCWD str:/ 0 STATX_BASIC_STATS out:256
close_range 100000 100001 0
copy_file_range null_fd 0 null_fd 0 0 0
splice -1 0 -1 0 0 0
tee -1 -1 0 0
readahead -1 0 0
sync_file_range -1 0 0 0
kcmp 1 1 0 0 0
ioprio_get 1 0
setns -1 0
unshare 0
membarrier 0 0
io_destroy 0
semget 77 0 0
msgget 77 0
shmget 77 0 0
mq_unlink str:nothing
"""


def arguments(words):
    for word in words:
        kind, _, rest = word.partition(':')
        if kind in ('in', 'out'):
            yield kind, f'0, {rest}'
        elif kind == 'str':
            yield 'str', f'"{rest}", {len(rest) + 1}'
        else:
            yield 'word', word


def expression(argument, maker='block'):
    kind, text = argument
    return text if kind == 'word' else f'(long){maker}({text})'


def call(number, words):
    return f'    CALL{max(len(words), 1)}({", ".join([number] + (words or ["0"]))});'


def functions(line):
    """The text of the functions that come from one line."""
    name, *words = line.split()
    given = list(arguments(words))
    number = f'SYS_{name}'
    plain = [expression(a) for a in given]
    cases = {'registers': [], 'undefined': [], 'gone': [], 'short': []}
    for i, argument in enumerate(given):
        def changed(text):
            return call(number, plain[:i] + [text] + plain[i + 1:])
        cases['registers'] += [changed(f'with_undefined({plain[i]}, 0, 8)'),
                               changed(f'with_undefined({plain[i]}, 4, 4)')]
        if argument[0] != 'word':
            for how in ('undefined', 'gone', 'short'):
                cases[how].append(changed(expression(argument, f'{how}_block')))
    fine, says = [], []
    for i, argument in enumerate(given):
        if argument[0] == 'out':
            fine.append(f'    void *block{i} = undefined_block({argument[1]});')
            says.append(f'    say_defined(__func__, "argument {i}", block{i}, '
                        f'{argument[1].split(", ")[1]});')
    cases['fine'] = fine + [call(number, [f'block{i}' if a[0] == 'out' else plain[i]
                                          for i, a in enumerate(given)])] + says
    return [(how, body) for how, body in cases.items() if body]


def program(folder):
    """The whole program and the names of its cases."""
    parts, names, seen = ['#include "head.h"\n'], [], {}
    for line in CALLS.strip().splitlines():
        stem = line.split()[0]
        seen[stem] = seen.get(stem, 0) + 1
        for how, body in functions(line):
            name = f'{stem}_{how}' + (str(seen[stem]) if seen[stem] > 1 else '')
            names.append(name)
            parts.append(f'CASE void {name}(void) {{\n' + '\n'.join(body) + '\n}\n')
    for file in ('structured.inc', 'commands.inc'):
        parts.append(f'#include "{file}"\n')
        with open(f'{folder}/{file}') as text:
            names += re.findall(r'^CASE void (\w+)\(void\)', text.read(), re.M)
    parts.append('int main(void) {\n    setup();\n')
    parts += [f'    {name}();\n' for name in names]
    parts.append('    return 0;\n}\n')
    return ''.join(parts), names
