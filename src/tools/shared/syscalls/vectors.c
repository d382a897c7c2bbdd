// Arrays that point to memory: struct iovec, the words of exec, requests of asynchronous input and
// output.
#include <fcntl.h>
#include <limits.h>
#include <linux/aio_abi.h>
#include <stdio.h>
#include <sys/uio.h>
#include <unistd.h>

#include "tools/shared/syscalls/pass.h"

enum { NAME_SIZE = 96 };

void pass_vector(const struct pass *pass, const struct vector *vector) {
    uint64_t left = vector->limit;
    if (vector->count > UIO_MAXIOV) // refused
        return;
    pass_in(pass, vector->address, vector->count * sizeof(struct iovec), "%s%s", vector->prefix,
            vector->array);
    for (uint64_t i = 0; i < vector->count; i++) {
        struct iovec part;
        if (!pass_read(&part, vector->address + i * sizeof part, sizeof part))
            return;
        uint64_t start = (uint64_t)part.iov_base;
        char name[NAME_SIZE];
        snprintf(name, sizeof name, "%s%s", vector->prefix, vector->element);
        if (!vector->written) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
            pass_in(pass, start, part.iov_len, name, i);
        } else {
            uint64_t written = left < part.iov_len ? left : part.iov_len;
            pass_out(pass, start, part.iov_len, written, name, i);
#pragma GCC diagnostic pop
            left -= written;
        }
    }
}

static void visit_vector(const struct pass *pass, bool written, const char *element) {
    struct vector vector = {.address = pass->arguments[1],
                            .count = pass->arguments[2],
                            .written = written,
                            .limit = pass->result,
                            .prefix = "",
                            .array = "vector",
                            .element = element};
    pass_vector(pass, &vector);
}

void visit_readv(const struct pass *pass) {
    visit_vector(pass, true, "vector[...]");
}

void visit_writev(const struct pass *pass) {
    visit_vector(pass, false, "vector[...]");
}

void visit_preadv(const struct pass *pass) {
    visit_vector(pass, true, "vector[%lu]");
}

void visit_pwritev(const struct pass *pass) {
    visit_vector(pass, false, "vector[%lu]");
}

// Which way the pages go depends on the end of the pipe.
void visit_vmsplice(const struct pass *pass) {
    int flags = fcntl((int)pass->arguments[0], F_GETFL);
    struct vector vector = {.address = pass->arguments[1],
                            .count = pass->arguments[2],
                            .written = flags >= 0 && (flags & O_ACCMODE) == O_RDONLY,
                            .limit = pass->result,
                            .prefix = "vmsplice(",
                            .array = "iov)",
                            .element = "iov[...])"};
    pass_vector(pass, &vector);
}

static void visit_process_vm(const struct pass *pass, bool written) {
    struct vector vector = {.address = pass->arguments[1],
                            .count = pass->arguments[2],
                            .written = written,
                            .limit = pass->result,
                            .prefix = "",
                            .array = "lvec",
                            .element = "lvec[...]"};
    pass_vector(pass, &vector);
    if (pass->arguments[4] <= UIO_MAXIOV)
        pass_in(pass, pass->arguments[3], pass->arguments[4] * sizeof(struct iovec), "rvec");
}

void visit_process_vm_readv(const struct pass *pass) {
    visit_process_vm(pass, true);
}

void visit_process_vm_writev(const struct pass *pass) {
    visit_process_vm(pass, false);
}

void visit_process_madvise(const struct pass *pass) {
    if (pass->arguments[2] <= UIO_MAXIOV)
        pass_in(pass, pass->arguments[1], pass->arguments[2] * sizeof(struct iovec), "vec");
}

// ---- exec --------------------------------------------------------------------------------------

enum { WORDS_MOST = 1 << 20 };

// False: it cannot be read.
static bool pass_word(const struct pass *pass, uint64_t at, const char *name, uint64_t *word) {
    pass_in(pass, at, sizeof *word, "%s", name);
    return pass_read(word, at, sizeof *word);
}

// A program needs a name: a list without one, and no list, are reported although the kernel takes
// them.
static void pass_exec_arguments(const struct pass *pass, uint64_t list) {
    uint64_t word;
    if (!pass_word(pass, list, "argv", &word))
        return;
    pass_string(pass, word, "argv[0]");
    for (unsigned i = 1; word && i < WORDS_MOST; i++) {
        if (!pass_word(pass, list + i * sizeof word, "argv", &word))
            return;
        if (word)
            pass_string(pass, word, "argv[i]");
    }
}

static void pass_exec_environment(const struct pass *pass, uint64_t list) {
    uint64_t word;
    for (unsigned i = 0; list && i < WORDS_MOST; i++) {
        if (!pass_word(pass, list + i * sizeof word, "envp", &word) || !word)
            return;
        pass_string(pass, word, "envp[i]");
    }
}

void visit_execve(const struct pass *pass) {
    pass_string(pass, pass->arguments[0], "filename");
    pass_exec_arguments(pass, pass->arguments[1]);
    pass_exec_environment(pass, pass->arguments[2]);
}

void visit_execveat(const struct pass *pass) {
    pass_string(pass, pass->arguments[1], "filename");
    pass_exec_arguments(pass, pass->arguments[2]);
    pass_exec_environment(pass, pass->arguments[3]);
}

// ---- asynchronous input and output -------------------------------------------------------------
//
// When a request is done is seen only by the program, in memory that the kernel writes. So what
// will be read is called defined when the request has been taken: a program that looks too early is
// not found out, and one that is right is not accused.

static void pass_request(const struct pass *pass, uint64_t address, bool taken) {
    struct iocb request;
    pass_in(pass, address, sizeof request, "iocb");
    if (!pass_read(&request, address, sizeof request))
        return;
    uint64_t done = taken ? UINT64_MAX : 0;
    struct vector vector = {.address = request.aio_buf,
                            .count = request.aio_nbytes,
                            .limit = done,
                            .prefix = "io_submit("};
    switch (request.aio_lio_opcode) {
    case IOCB_CMD_PREAD:
        pass_out(pass, request.aio_buf, request.aio_nbytes, done, "PREAD");
        break;
    case IOCB_CMD_PWRITE:
        pass_in(pass, request.aio_buf, request.aio_nbytes, "PWRITE");
        break;
    case IOCB_CMD_PREADV:
        vector.written = true;
        vector.array = "PREADV)";
        vector.element = "PREADV(iov[i]))";
        pass_vector(pass, &vector);
        break;
    case IOCB_CMD_PWRITEV:
        vector.array = "PWRITEV)";
        vector.element = "PWRITEV(iov[i]))";
        pass_vector(pass, &vector);
        break;
    }
}

void visit_io_submit(const struct pass *pass) {
    enum { MOST = 1 << 16 };
    uint64_t list = pass->arguments[2], count = pass->arguments[1];
    if (count > MOST)
        return;
    pass_in(pass, list, count * sizeof(uint64_t), "iocbpp");
    for (uint64_t i = 0; i < count; i++) {
        uint64_t request;
        if (!pass_read(&request, list + i * sizeof request, sizeof request))
            return;
        pass_request(pass, request, (long)i < pass->result);
    }
}
