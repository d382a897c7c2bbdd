// Descriptors: closed twice, used when closed, never open, left open in several ways.
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int open_one(const char *path) {
    return open(path, O_RDONLY);
}

static void receive_one(int fd) {
    char data = 'x', control[CMSG_SPACE(sizeof fd)] = {0};
    struct iovec part = {&data, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = control,
                             .msg_controllen = sizeof control};
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    int pair[2];
    head->cmsg_level = SOL_SOCKET;
    head->cmsg_type = SCM_RIGHTS;
    head->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(head), &fd, sizeof fd);
    socketpair(AF_UNIX, SOCK_STREAM, 0, pair);
    sendmsg(pair[0], &message, 0);
    recvmsg(pair[1], &message, 0);
    close(pair[0]);
    close(pair[1]);
}

int main(int argc, char **argv) {
    int first = open_one("/etc/passwd"), second = open_one("/etc/hostname"), pair[2];
    char byte = 0;
    close(first);
    close(first);
    read(first, &byte, 1);
    read(77, &byte, 1);
    write(second, &byte, 1); // open, but not for this
    if (vfork() == 0) {
        close(second); // its own
        _exit(0);
    }
    wait(NULL);
    receive_one(second);
    socket(AF_INET, SOCK_STREAM, 0);
    pipe(pair);
    close(pair[0]);
    dup2(second, 20);
    fcntl(20, F_DUPFD, 30);
    close_range(30, 40, 0);
    close(second);
    return 0;
}
