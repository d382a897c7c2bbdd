// What the small programs that dhat is asked about share. Each is a function, chosen by its name;
// what it does is the same in every run. Compiled without optimisation, so that what is written is
// what happens.
#ifndef QUERN_TESTS_DHAT_CASES_H
#define QUERN_TESTS_DHAT_CASES_H

struct test_case {
    const char *name;
    void (*run)(void);
};
#define CASE(name)                                                                                 \
    { #name, name }

// By theme, each ended by a case without a name.
extern const struct test_case blocks_cases[], instructions_cases[], library_cases[],
    processes_cases[];

// Where results go that nobody needs.
extern volatile long sink;

struct node {
    struct node *next;
    int value, padding;
};
struct node *push(struct node *list, int value);
void drop(struct node *list);

#endif
