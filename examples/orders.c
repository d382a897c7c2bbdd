// A small program to try Quern on: adds up orders, and trusts its input too much.
//
// Input lines are `customer article pieces price`; a customer must be in the list below.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct customer {
    const char *name;
    double total;
};

static struct customer customers[] = {{"mill", 0}, {"bakery", 0}, {"farm", 0}};

#define CUSTOMERS (sizeof customers / sizeof *customers)

static struct customer *find(const char *name) {
    for (size_t i = 0; i < CUSTOMERS; i++)
        if (strcmp(customers[i].name, name) == 0)
            return &customers[i];
    return NULL;
}

static void book(const char *name, int pieces, double price) {
    struct customer *customer = find(name);
    customer->total += pieces * price; // an unknown customer is a null pointer
}

static int read_orders(FILE *file) {
    char name[32], article[32];
    int pieces, count = 0;
    double price;
    while (fscanf(file, "%31s %31s %d %lf", name, article, &pieces, &price) == 4) {
        book(name, pieces, price);
        count++;
    }
    return count;
}

int main(int argc, char **argv) {
    FILE *file = argc > 1 ? fopen(argv[1], "r") : stdin;
    if (!file) {
        perror(argv[1]);
        return EXIT_FAILURE;
    }
    printf("%d orders\n", read_orders(file));
    for (size_t i = 0; i < CUSTOMERS; i++)
        printf("%-8s %8.2f\n", customers[i].name, customers[i].total);
    return EXIT_SUCCESS;
}
