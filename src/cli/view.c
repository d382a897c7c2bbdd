// quern view FILE...: serves the files as a page on loopback.
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/arguments.h"
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

static void report_unreadable(const char *path, const char *problem) {
    words_fail("cannot show '%s': %s", path, problem);
}

// Fails if the first bytes of every file show that it cannot be shown.
static int check_paths(const struct request *request) {
    size_t bad = 0;
    for (size_t i = 0; i < request->path_count; i++) {
        char *problem = document_refusal(request->paths[i]);
        if (problem)
            report_unreadable(request->paths[i], problem);
        bad += problem != NULL;
        free(problem);
    }
    return bad == request->path_count ? WORDS_FAILED : WORDS_DONE;
}

// Opens the browser if there is a desktop. The browser's own output is dropped.
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
            .unreadable = report_unreadable,
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
        fputs("Press Ctrl+C to end it.\n", stderr);
    if (!request->no_browser)
        open_browser(view_server_address(server));
    int number;
    sigwait(&ends, &number);
    // Threads may still read files; nothing needs an orderly end.
    _exit(WORDS_DONE);
}

static int run_view(const struct arguments *arguments) {
    words_choose_own(arguments);
    struct request request = {
        .paths = (char **)arguments->operands,
        .path_count = arguments->operand_count,
        .port = (uint16_t)argument_number(arguments, "port"),
        .no_browser = argument_given(arguments, "no-browser"),
    };
    if (page_missing)
        return words_fail("%s. quern print shows files in the terminal", page_missing);
    int status = check_paths(&request);
    return status ? status : serve(&request);
}

static const char *missing_page(void) {
    static struct text notice;
    text_clear(&notice);
    if (page_missing)
        text_format(&notice, "Not in this program: %s", page_missing);
    return notice.size ? notice.bytes : NULL;
}

static const struct option options[] = {
    {.name = "port",
     .type = OPTION_NUMBER,
     .most = 65535,
     .help = "port to listen on; default: any free port"},
    WORDS_MINE,
    {.name = "no-browser", .type = OPTION_FLAG, .help = "only print the address"},
    {0},
};

const struct verb verb_view = {
    .name = "view",
    .usage = "[options] FILE...",
    .help = "show files in a browser",
    .description = "Shows files in a browser: recordings of --tool=heap, massif.out, "
                   "callgrind.out, cachegrind.out, memcheck XML, dhat.out and collapsed stacks, of "
                   "Quern or Valgrind. The page is served on loopback only, at an address that "
                   "nobody can guess, until Ctrl+C.",
    .options = options,
    .operands_least = 1,
    .notice = missing_page,
    .run = run_view,
};
