// The ways to exec: by path, by descriptor, through /proc/self/exe, through a script, with an empty
// argument, with a large environment; and the errors when it cannot be done.
#include "stress.h"
#include <fcntl.h>
#include <sys/stat.h>

extern char **environ;

static void report(int argc, char **argv) {
    printf("%s:", argv[1]);
    for (int i = 2; i < argc; i++)
        printf(" [%s]", argv[i]);
    printf(" %s\n", getenv("MARK") ? getenv("MARK") : "-");
}

static const char *script;

static void run(int kind, char *self) {
    char *simple[] = {self, (char *)"say", (char *)"", (char *)"two words", NULL};
    char *marked[] = {(char *)"MARK=marked", NULL};
    switch (kind) {
    case 0:
        execve(self, simple, environ);
        break;
    case 1:
        execve("/proc/self/exe", simple, marked);
        break;
    case 2:
        fexecve(open(self, O_RDONLY | O_CLOEXEC), simple, marked);
        break;
    case 3:
        syscall(SYS_execveat, AT_FDCWD, self, simple, environ, 0);
        break;
    case 4:
        execl(script, "ignored", "x", "", (char *)NULL);
        break;
    case 5:
        simple[0] = (char *)"/bin/sh";
        simple[1] = (char *)"-c";
        simple[2] = (char *)"exec \"$0\" say \"$@\"";
        simple[3] = self;
        execve("/bin/sh", simple, environ);
        break;
    case 6:
        execl("/nonexistent", "x", (char *)NULL);
        printf("%s\n", strerror(errno));
        break;
    case 7:
        execl("/tmp", "x", (char *)NULL);
        printf("%s\n", strerror(errno));
        break;
    case 8:
        execl("/etc/passwd", "x", (char *)NULL);
        printf("%s\n", strerror(errno));
        break;
    case 9: {
        char big[200000];
        memset(big, 'a', sizeof(big));
        big[sizeof(big) - 1] = 0;
        execl(self, self, big, (char *)NULL);
        printf("%s\n", strerror(errno));
        break;
    }
    case 10:
        execv((char *)8, simple);
        printf("%s\n", strerror(errno));
        break;
    case 11:
        execve(self, (char **)8, environ);
        printf("%s\n", strerror(errno));
        break;
    case 12: {
        // The beginning of a path that is too long may be a path.
        char far[4097];
        memset(far, '/', sizeof(far));
        memcpy(far + 4095 - strlen(self), self, strlen(self));
        far[4096] = 0;
        execv(far, simple);
        printf("%s\n", strerror(errno));
        break;
    }
    }
    fflush(stdout);
    _exit(9);
}

int main(int argc, char **argv) {
    if (argc > 1) {
        report(argc, argv);
        return argc;
    }
    char self[4096], path[64];
    long n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    CHECK(n > 0);
    self[n] = 0;
    snprintf(path, sizeof(path), "/tmp/quern-stress-script-%d", getpid());
    script = path;
    FILE *f = fopen(path, "w");
    fprintf(f, "#!%s script argument\n", self);
    fclose(f);
    chmod(path, 0700);
    setbuf(stdout, NULL);
    for (int kind = 0; kind < 13; kind++) {
        int fds[2];
        CHECK(pipe(fds) == 0);
        pid_t pid = fork();
        if (pid == 0) {
            dup2(fds[1], 1);
            close(fds[0]);
            close(fds[1]);
            run(kind, self);
        }
        close(fds[1]);
        char text[4096];
        long got, total = 0;
        while ((got = read(fds[0], text + total, sizeof(text) - 1 - (size_t)total)) > 0)
            total += got;
        text[total] = 0;
        close(fds[0]);
        int status = stress_wait(pid);
        // The script's own name holds a process id.
        char *at = strstr(text, path);
        if (at)
            memmove(at + 6, at + strlen(path), strlen(at + strlen(path)) + 1),
                memcpy(at, "SCRIPT", 6);
        printf("%d: status %x: %s", kind, (unsigned)status, text);
    }
    unlink(path);
    return 0;
}
