// quern view FILE...: the files as a page on loopback.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/verbs.h"
#include "cli/words.h"
#include "view/documents/document.h"
#include "view/page.h"
#include "view/server.h"

struct request {
    char **paths;
    size_t path_count;
    uint16_t port;
    bool no_browser;
};

static int usage(FILE *out, int status) {
    fputs("usage: quern view [options] FILE...\n\n"
          "Shows files in a browser: recordings of --tool=heap, massif.out, callgrind.out,\n"
          "cachegrind.out, memcheck's XML, dhat.out, collapsed stacks; Quern's or Valgrind's. The\n"
          "page is served on loopback only, at an address that nobody can guess, until Ctrl+C.\n\n"
          "  --port=NUMBER  listen there [any free port]\n"
          "  --no-browser   only print the address\n",
          out);
    if (page_missing)
        fprintf(out, "\nNot in this program: %s\n", page_missing);
    return status;
}

static int take_port(struct request *request, const char *value) {
    char *end = NULL;
    long port = value ? strtol(value, &end, 10) : -1;
    if (!value || end == value || *end || port < 0 || port > 65535)
        return words_fail("--port is a number from 0 to 65535");
    request->port = (uint16_t)port;
    return WORDS_DONE;
}

static int take_words(struct request *request, char **words) {
    int status = WORDS_DONE;
    for (char **word = words; *word && !status; word++) {
        const char *value;
        if (words_value(&word, "--port", &value))
            status = take_port(request, value);
        else if (strcmp(*word, "--no-browser") == 0)
            request->no_browser = true;
        else if ((*word)[0] == '-' && (*word)[1])
            status = words_fail("unknown option '%s'; quern view --help lists them", *word);
        else
            request->paths[request->path_count++] = *word;
    }
    return status;
}

static void tell_unreadable(const char *path, const char *problem) {
    words_fail("cannot show '%s': %s", path, problem);
}

// Where the first bytes of all files tell that there is nothing to show, there is no page either.
static int check_paths(const struct request *request) {
    size_t bad = 0;
    for (size_t i = 0; i < request->path_count; i++) {
        char *problem = document_refusal(request->paths[i]);
        if (problem)
            tell_unreadable(request->paths[i], problem);
        bad += problem != NULL;
        free(problem);
    }
    return bad == request->path_count ? WORDS_FAILED : WORDS_DONE;
}

// Where there is a desktop. Whatever the browser says is not ours to show.
static void open_browser(const char *address) {
    if (!getenv("DISPLAY") && !getenv("WAYLAND_DISPLAY"))
        return;
    char *const words[] = {"xdg-open", (char *)address, NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    pid_t pid;
    posix_spawnp(&pid, words[0], &actions, NULL, words, environ);
    posix_spawn_file_actions_destroy(&actions);
}

static int serve(const struct request *request) {
    sigset_t ends;
    sigemptyset(&ends);
    sigaddset(&ends, SIGINT);
    sigaddset(&ends, SIGTERM);
    sigaddset(&ends, SIGHUP);
    // Threads inherit the mask, so that only sigwait sees them.
    sigprocmask(SIG_BLOCK, &ends, NULL);
    signal(SIGPIPE, SIG_IGN);
    char *problem = NULL;
    struct view_server *server = view_server_start(
        &(struct view_server_options){
            .paths = request->paths,
            .path_count = request->path_count,
            .port = request->port,
            .unreadable = tell_unreadable,
        },
        &problem);
    if (!server) {
        int status = words_fail("cannot serve the page: %s", problem);
        free(problem);
        return status;
    }
    printf("%s\n", view_server_address(server));
    fflush(stdout);
    if (isatty(STDERR_FILENO))
        fputs("Ctrl+C ends it.\n", stderr);
    if (!request->no_browser)
        open_browser(view_server_address(server));
    int number;
    sigwait(&ends, &number);
    // Files may still be read: nothing here needs an orderly end.
    _exit(WORDS_DONE);
}

int verb_view(char **words) {
    size_t count = 0;
    if (words_ask_help(words))
        return usage(stdout, WORDS_DONE);
    while (words[count])
        count++;
    struct request request = {.paths = base_allocate((count + 1) * sizeof *request.paths)};
    int status = take_words(&request, words);
    if (!status && !request.path_count)
        status = usage(stderr, WORDS_FAILED);
    else if (!status && page_missing)
        status = words_fail("%s. quern print shows files in the terminal", page_missing);
    else if (!status)
        status = check_paths(&request);
    if (!status)
        status = serve(&request);
    free(request.paths);
    return status;
}
