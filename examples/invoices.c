// Adds up a few invoices, and gets three things wrong that run without a word all the same:
// a write behind the end of a block, a decision on a value that was never set, and lost memory.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct invoice {
    char *customer;
    int cents;
    int is_paid; // set when the money comes in, and only then
    struct invoice *next;
};

static char *copy_name(const char *name) {
    char *copy = malloc(strlen(name)); // no room for the terminator
    strcpy(copy, name);
    return copy;
}

static struct invoice *add(struct invoice *list, const char *customer, int cents) {
    struct invoice *invoice = malloc(sizeof *invoice);
    invoice->customer = copy_name(customer);
    invoice->cents = cents;
    invoice->next = list;
    return invoice;
}

static int open_cents(const struct invoice *list) {
    int sum = 0;
    for (; list; list = list->next)
        if (!list->is_paid)
            sum += list->cents;
    return sum;
}

int main(void) {
    struct invoice *list = NULL;
    list = add(list, "Ada", 1250);
    list = add(list, "Grace", 9900);
    list->is_paid = 1;
    printf("%s\n", open_cents(list) ? "Some invoices are open." : "All is paid.");
    return 0;
}
