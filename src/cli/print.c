// quern print FILE: shows a massif.out, or sums a recording up.
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cli/verbs.h"
#include "report/heap_file.h"
#include "report/heap_text.h"
#include "report/massif_print.h"

struct request {
    const char *path;
    struct massif_print_options massif;
    struct heap_text_options heap;
};

static int fail(const char *path, const char *reason) {
    fprintf(stderr, "quern: cannot print '%s': %s\n", path, reason);
    return 1;
}

// ---- words ----

// The number after "--name="; false if it is not one between these bounds.
static bool take_number(const char *word, const char *name, double least, double most,
                        double *number) {
    size_t size = strlen(name);
    if (strncmp(word, name, size) != 0)
        return false;
    char *end;
    *number = strtod(word + size, &end);
    return end > word + size && *end == 0 && *number >= least && *number <= most;
}

static bool take_option(struct request *request, const char *word) {
    double number;
    if (take_number(word, "--threshold=", 0, 100, &number))
        request->massif.threshold = number;
    else if (take_number(word, "--x=", 4, 1000, &number))
        request->massif.width = (unsigned)number;
    else if (take_number(word, "--y=", 4, 1000, &number))
        request->massif.height = (unsigned)number;
    else if (take_number(word, "--top=", 0, 1000, &number))
        request->heap.top = (size_t)number;
    else if (take_number(word, "--num-callers=", 1, 500, &number))
        request->heap.callers = (size_t)number;
    else if (strcmp(word, "--peak-only") == 0)
        request->massif.peak_only = true;
    else
        return false;
    return true;
}

static int usage(FILE *out, int status) {
    fputs("usage: quern print [options] FILE\n\n"
          "FILE is a massif.out, of Quern or of Valgrind, or a recording of --tool=heap.\n\n"
          "  --threshold=PERCENT  leave out what holds less in a massif.out [1.0]\n"
          "  --x=COLUMNS          width of the graph, 4 to 1000 [72]\n"
          "  --y=ROWS             height of the graph, 4 to 1000 [20]\n"
          "  --peak-only          only the size of the peak\n"
          "  --top=NUMBER         stacks in each list of a recording's summary [5]\n"
          "  --num-callers=NUMBER frames of each stack [12]\n",
          out);
    return status;
}

// ---- massif.out ----

static int print_massif(struct request *request, int fd) {
    FILE *in = fdopen(fd, "r");
    struct massif_file file;
    char *problem = in ? massif_file_read(in, &file) : base_copy(strerror(errno));
    int status = 0;
    if (problem)
        status = fail(request->path, problem);
    else
        massif_print(stdout, &file, &request->massif);
    if (in) {
        massif_file_free(&file);
        fclose(in);
    }
    free(problem);
    return status;
}

// ---- recordings ----

static void print_line(void *context, const char *text) {
    puts(text);
}

static void print_heads(const struct recording_info *info) {
    printf("command:    ");
    stack_text_escaped(stdout, info->process.command ? info->process.command : "(unknown)");
    printf("\nprocess:    %d\n", info->process.pid);
    if (info->damage)
        printf("damaged:    %s; what follows is what comes before that\n", info->damage);
    else if (!info->is_complete)
        puts("cut off:    Quern was ended before the program; what follows may lack the last "
             "second");
    char digits[32];
    if (info->end.missed)
        printf("missed:     %s events could not be recorded\n",
               heap_text_number(digits, info->end.missed));
}

static int print_recording(struct request *request, int fd) {
    struct heap_file file;
    char *problem = heap_file_read(fd, &file, NULL, 0);
    int status = 0;
    if (problem) {
        status = fail(request->path, problem);
    } else if (request->massif.peak_only) {
        char digits[32];
        printf("Peak memory usage: %s bytes\n",
               heap_text_number(digits, file.summary.total.peak_bytes));
    } else {
        print_heads(&file.info);
        heap_text(&file.summary, file.names, &request->heap, print_line, NULL);
    }
    heap_file_free(&file);
    free(problem);
    close(fd);
    return status;
}

int verb_print(char **words) {
    struct request request = {
        .massif = {.threshold = 1, .width = 72, .height = 20},
        .heap = {.top = 5, .callers = 12},
    };
    struct text arguments = {0};
    for (char **word = words; *word; word++) {
        text_format(&arguments, "%s%s", arguments.size ? " " : "", *word);
        if (strcmp(*word, "-h") == 0 || strcmp(*word, "--help") == 0)
            return usage(stdout, 0);
        if ((*word)[0] != '-' && !request.path)
            request.path = *word;
        else if ((*word)[0] != '-' || !take_option(&request, *word))
            return usage(stderr, 1);
    }
    if (!request.path)
        return usage(stderr, 1);
    request.massif.arguments = arguments.bytes;
    int fd = open(request.path, O_RDONLY | O_CLOEXEC);
    char start[8] = {0};
    ssize_t size = fd < 0 ? -1 : pread(fd, start, sizeof start, 0);
    int status;
    if (size < 0)
        status = fail(request.path, strerror(errno));
    else if (massif_file_is_one(start, (size_t)size))
        status = print_massif(&request, fd);
    else if (heap_file_is_one(start, (size_t)size))
        status = print_recording(&request, fd);
    else
        status = fail(request.path, "it is neither a massif.out nor a recording");
    text_free(&arguments);
    return status;
}
