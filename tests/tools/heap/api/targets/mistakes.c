/* Every mistake that can be made with a pool and an arena. */
#include <quern/heap.h>

struct node {
    struct node *next;
    int values[6];
};

static struct quern_pool nodes;
static struct quern_arena texts;

static void lose(void) {
    struct node *node = (struct node *)quern_pool_take(&nodes);
    char *text = (char *)quern_arena_take(&texts, 30);
    node->next = NULL;
    text[0] = 1;
}

int main(void) {
    struct node *node, *other;
    char *text;
    int i;
    quern_pool_begin(&nodes, "nodes", sizeof(struct node), 4);
    quern_arena_begin(&texts, "texts", 4096);
    node = (struct node *)quern_pool_take(&nodes);
    node->values[6] = 1; /* behind the object */
    text = (char *)quern_arena_take(&texts, 20);
    text[20] = 1;
    text[-1] = 1;
    quern_pool_give(&nodes, node);
    node->values[0] = 3; /* after it was given back */
    quern_pool_give(&nodes, node); /* twice */
    quern_arena_reset(&texts);
    text[0] = 1; /* after the reset */
    other = (struct node *)quern_pool_take(&nodes);
    if (other->values[1]) /* never set */
        putchar('?');
    quern_pool_give(&nodes, other);
    /* In use, in two chunks: no mistakes. */
    for (i = 0; i < 9; i++) {
        other = (struct node *)quern_pool_take(&nodes);
        memset(other, 0, sizeof *other);
        memset(quern_arena_take(&texts, 3000), 0, 3000);
    }
    quern_arena_reset(&texts);
    for (i = 0; i < 9; i++)
        memset(quern_arena_take(&texts, 3000), 0, 3000);
    quern_pool_give(&nodes, other); /* its slot is used again */
    lose();
    node = other = NULL;
    text = NULL;
    return 0;
}
