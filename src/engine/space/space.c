// A treap: a search tree by address whose nodes carry random priorities, largest at the top. All
// changes are made of two steps, cutting the tree in two at an address and joining two trees whose
// addresses do not interleave; both walk one path, on which the summaries are brought up to date.
#include "engine/space/space.h"

#include <errno.h>

#define POOL_CHUNK (64 * SPACE_PAGE)
// What one operation may need: two cut ranges and a new one.
#define POOL_RESERVE 3

#define TOP (UINTPTR_MAX & ~(SPACE_PAGE - 1))

struct space_node {
    struct space_range range;
    struct space_node *left;
    struct space_node *right;
    uintptr_t first; // start of the subtree's first range
    uintptr_t last;  // end of its last range
    size_t gap;      // largest gap between two consecutive ranges of the subtree
    struct space_size size;
    uint64_t priority;
};

struct chunk {
    struct chunk *next;
    struct space_node nodes[];
};

// ---- pool

static bool pool_reserve(struct space *space) {
    if (space->unused_count >= POOL_RESERVE)
        return true;
    struct chunk *chunk =
        mmap(NULL, POOL_CHUNK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (chunk == MAP_FAILED)
        return false;
    chunk->next = space->chunks;
    space->chunks = chunk;
    for (size_t i = (POOL_CHUNK - sizeof *chunk) / sizeof *chunk->nodes; i-- > 0;) {
        chunk->nodes[i].left = space->unused;
        space->unused = &chunk->nodes[i];
        space->unused_count++;
    }
    return true;
}

static struct space_size range_size(const struct space_range *range) {
    const struct space_attributes *attributes = &range->attributes;
    size_t size = range->end - range->start;
    if (attributes->tag == SPACE_ENGINE || attributes->tag == SPACE_GUARD ||
        (attributes->tag == SPACE_BRK && !attributes->prot))
        size = 0;
    bool is_data =
        attributes->prot & PROT_WRITE && !(attributes->flags & (SPACE_SHARED | SPACE_GROWSDOWN));
    return (struct space_size){size, is_data ? size : 0};
}

static void size_add(struct space_size *to, struct space_size size) {
    to->all += size.all;
    to->data += size.data;
}

static void node_refresh(struct space_node *node) {
    const struct space_node *left = node->left, *right = node->right;
    node->size = range_size(&node->range);
    if (left)
        size_add(&node->size, left->size);
    if (right)
        size_add(&node->size, right->size);
    node->first = left ? left->first : node->range.start;
    node->last = right ? right->last : node->range.end;
    node->gap = 0;
    if (left) {
        size_t between = node->range.start - left->last;
        node->gap = between > left->gap ? between : left->gap;
    }
    if (right) {
        size_t between = right->first - node->range.end;
        size_t most = between > right->gap ? between : right->gap;
        node->gap = most > node->gap ? most : node->gap;
    }
}

// The pool has been reserved before the operation began: this cannot fail.
static struct space_node *node_new(struct space *space, const struct space_range *range) {
    struct space_node *node = space->unused;
    space->unused = node->left;
    space->unused_count--;
    space->count++;
    // xorshift64: priorities need to be spread, not unpredictable.
    space->seed ^= space->seed << 13;
    space->seed ^= space->seed >> 7;
    space->seed ^= space->seed << 17;
    *node = (struct space_node){.range = *range, .priority = space->seed};
    node_refresh(node);
    return node;
}

static void node_release(struct space *space, struct space_node *node) {
    node->left = space->unused;
    space->unused = node;
    space->unused_count++;
    space->count--;
}

static void tree_release(struct space *space, struct space_node *tree) {
    if (!tree)
        return;
    tree_release(space, tree->left);
    tree_release(space, tree->right);
    node_release(space, tree);
}

// ---- cut and join

static struct space_node *tree_join(struct space_node *low, struct space_node *high) {
    if (!low)
        return high;
    if (!high)
        return low;
    if (low->priority > high->priority) {
        low->right = tree_join(low->right, high);
        node_refresh(low);
        return low;
    }
    high->left = tree_join(low, high->left);
    node_refresh(high);
    return high;
}

// A range across addr goes to the low side, shortened; what it lost goes to *rest.
static void tree_cut_around(struct space_node *tree, uintptr_t addr, struct space_node **low,
                            struct space_node **high, struct space_range *rest) {
    if (!tree) {
        *low = *high = NULL;
    } else if (tree->range.start >= addr) {
        // Through a local: tree->left is both what is cut and what is kept.
        struct space_node *kept;
        tree_cut_around(tree->left, addr, low, &kept, rest);
        tree->left = kept;
        node_refresh(tree);
        *high = tree;
    } else {
        if (tree->range.end > addr) {
            *rest = tree->range;
            rest->start = addr;
            if (rest->attributes.flags & SPACE_FILE)
                rest->attributes.offset += addr - tree->range.start;
            tree->range.end = addr;
        }
        struct space_node *kept;
        tree_cut_around(tree->right, addr, &kept, high, rest);
        tree->right = kept;
        node_refresh(tree);
        *low = tree;
    }
}

static void tree_cut(struct space *space, struct space_node *tree, uintptr_t addr,
                     struct space_node **low, struct space_node **high) {
    struct space_range rest = {0};
    tree_cut_around(tree, addr, low, high, &rest);
    // Only now: a new node's priority may be higher than that of any node on the path.
    if (rest.end)
        *high = tree_join(node_new(space, &rest), *high);
}

static struct space_node *tree_pop_first(struct space_node **tree) {
    struct space_node *top = *tree;
    if (!top->left) {
        *tree = top->right;
        top->right = NULL;
        node_refresh(top);
        return top;
    }
    struct space_node *first = tree_pop_first(&top->left);
    node_refresh(top);
    return first;
}

static void tree_extend_last(struct space_node *tree, uintptr_t end) {
    if (tree->right)
        tree_extend_last(tree->right, end);
    else
        tree->range.end = end;
    node_refresh(tree);
}

static bool can_merge(const struct space_range *low, const struct space_range *high) {
    const struct space_attributes *a = &low->attributes, *b = &high->attributes;
    if (low->end != high->start || a->prot != b->prot || a->flags != b->flags || a->tag != b->tag)
        return false;
    if (!(a->flags & SPACE_FILE))
        return true;
    return a->dev == b->dev && a->inode == b->inode &&
           a->offset + (low->end - low->start) == b->offset;
}

// Puts a single node behind the last one of the tree, or makes it a part of that.
static struct space_node *tree_append(struct space *space, struct space_node *tree,
                                      struct space_node *node) {
    const struct space_node *last = tree;
    while (last && last->right)
        last = last->right;
    if (!last || !can_merge(&last->range, &node->range))
        return tree_join(tree, node);
    tree_extend_last(tree, node->range.end);
    node_release(space, node);
    return tree;
}

// ---- operations

void space_init(struct space *space) {
    *space = (struct space){.seed = 0x9e3779b97f4a7c15};
}

void space_destroy(struct space *space) {
    for (struct chunk *chunk = space->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        munmap(chunk, POOL_CHUNK);
    }
    space_init(space);
}

static bool is_interval(uintptr_t start, uintptr_t end) {
    return start <= end && !((start | end) & (SPACE_PAGE - 1));
}

// The parts of the tree below, inside and above an interval.
struct parts {
    struct space_node *below;
    struct space_node *inside;
    struct space_node *above;
};

static struct parts take_apart(struct space *space, uintptr_t start, uintptr_t end) {
    struct parts parts;
    struct space_node *rest;
    tree_cut(space, space->root, start, &parts.below, &rest);
    tree_cut(space, rest, end, &parts.inside, &parts.above);
    return parts;
}

static void put_together(struct space *space, struct space_node *below, struct space_node *above) {
    if (above) {
        struct space_node *first = tree_pop_first(&above);
        below = tree_append(space, below, first);
    }
    space->root = tree_join(below, above);
}

int space_map(struct space *space, uintptr_t start, uintptr_t end,
              const struct space_attributes *attributes) {
    if (!is_interval(start, end) || start == end)
        return -EINVAL;
    if (!pool_reserve(space))
        return -ENOMEM;
    struct space_range range = {start, end, *attributes};
    if (!(attributes->flags & SPACE_FILE))
        range.attributes.dev = range.attributes.inode = range.attributes.offset = 0;
    struct parts parts = take_apart(space, start, end);
    struct space_node *node = node_new(space, &range);
    tree_release(space, parts.inside);
    put_together(space, tree_append(space, parts.below, node), parts.above);
    return 0;
}

// Takes what is mapped between these apart from the rest. Positive; 0: nothing is; negative: why
// not.
static int take_mapped(struct space *space, uintptr_t start, uintptr_t end, struct parts *parts) {
    if (!is_interval(start, end))
        return -EINVAL;
    if (space_is_free(space, start, end))
        return 0;
    if (!pool_reserve(space))
        return -ENOMEM;
    *parts = take_apart(space, start, end);
    return 1;
}

int space_unmap(struct space *space, uintptr_t start, uintptr_t end) {
    struct parts parts;
    int taken = take_mapped(space, start, end, &parts);
    if (taken <= 0)
        return taken;
    tree_release(space, parts.inside);
    space->root = tree_join(parts.below, parts.above);
    return 0;
}

struct change {
    bool set_prot;
    uint32_t prot;
    uint16_t set;
    uint16_t clear;
};

static int change_attributes(struct space *space, uintptr_t start, uintptr_t end,
                             struct change change) {
    struct parts parts;
    int taken = take_mapped(space, start, end, &parts);
    if (taken <= 0)
        return taken;
    while (parts.inside) {
        struct space_node *node = tree_pop_first(&parts.inside);
        struct space_attributes *attributes = &node->range.attributes;
        if (change.set_prot)
            attributes->prot = change.prot;
        attributes->flags = (attributes->flags & ~change.clear) | change.set;
        node_refresh(node);
        parts.below = tree_append(space, parts.below, node);
    }
    put_together(space, parts.below, parts.above);
    return 0;
}

int space_protect(struct space *space, uintptr_t start, uintptr_t end, uint32_t prot) {
    return change_attributes(space, start, end, (struct change){.set_prot = true, .prot = prot});
}

int space_mark(struct space *space, uintptr_t start, uintptr_t end, uint16_t set, uint16_t clear) {
    return change_attributes(space, start, end, (struct change){.set = set, .clear = clear});
}

bool space_find(const struct space *space, uintptr_t addr, struct space_range *out) {
    const struct space_node *found = NULL;
    for (const struct space_node *node = space->root; node;) {
        if (node->range.end <= addr) {
            node = node->right;
        } else {
            found = node;
            if (node->range.start <= addr)
                break;
            node = node->left;
        }
    }
    if (found)
        *out = found->range;
    return found;
}

bool space_next(const struct space *space, uintptr_t *at, uintptr_t end, struct space_range *out) {
    if (*at >= end || !space_find(space, *at, out) || out->start >= end)
        return false;
    if (out->start < *at) {
        if (out->attributes.flags & SPACE_FILE)
            out->attributes.offset += *at - out->start;
        out->start = *at;
    }
    if (out->end > end)
        out->end = end;
    *at = out->end;
    return true;
}

bool space_is_free(const struct space *space, uintptr_t start, uintptr_t end) {
    struct space_range range;
    return start >= end || !space_find(space, start, &range) || range.start >= end;
}

bool space_is_mapped(const struct space *space, uintptr_t start, uintptr_t end) {
    struct space_range range;
    while (start < end) {
        if (!space_find(space, start, &range) || range.start > start)
            return false;
        start = range.end;
    }
    return true;
}

// ---- choosing a place

struct wish {
    size_t size;
    size_t align;
    uintptr_t lo;
    uintptr_t hi;
    bool top_down;
};

static uintptr_t gap_pick(uintptr_t lower, uintptr_t upper, const struct wish *wish) {
    uintptr_t lo = lower > wish->lo ? lower : wish->lo;
    uintptr_t hi = upper < wish->hi ? upper : wish->hi;
    if (hi < lo || hi - lo < wish->size)
        return 0;
    uintptr_t mask = wish->align - 1, highest = (hi - wish->size) & ~mask;
    if (wish->top_down)
        return highest >= lo ? highest : 0;
    // lo + mask cannot overflow where an aligned place at or above lo exists.
    return highest >= lo ? (lo + mask) & ~mask : 0;
}

// Searches the gaps between lower and upper, among which are all those of the tree.
static uintptr_t tree_pick(const struct space_node *tree, uintptr_t lower, uintptr_t upper,
                           const struct wish *wish) {
    if (upper <= wish->lo || lower >= wish->hi)
        return 0;
    if (!tree)
        return gap_pick(lower, upper, wish);
    if (tree->gap < wish->size && tree->first - lower < wish->size &&
        upper - tree->last < wish->size)
        return 0;
    uintptr_t place;
    if (wish->top_down) {
        place = tree_pick(tree->right, tree->range.end, upper, wish);
        return place ? place : tree_pick(tree->left, lower, tree->range.start, wish);
    }
    place = tree_pick(tree->left, lower, tree->range.start, wish);
    return place ? place : tree_pick(tree->right, tree->range.end, upper, wish);
}

uintptr_t space_pick(const struct space *space, size_t size, size_t align, uintptr_t lo,
                     uintptr_t hi, bool top_down) {
    if (size == 0 || size > TOP || (align & (align - 1)))
        return 0;
    struct wish wish = {
        .size = (size + SPACE_PAGE - 1) & ~(SPACE_PAGE - 1),
        .align = align > SPACE_PAGE ? align : SPACE_PAGE,
        // Address 0 means that there is no place, so page 0 is never one.
        .lo = lo > SPACE_PAGE ? lo : SPACE_PAGE,
        .hi = hi < TOP ? hi & ~(SPACE_PAGE - 1) : TOP,
        .top_down = top_down,
    };
    return tree_pick(space->root, 0, TOP, &wish);
}

struct space_size space_size(const struct space *space) {
    return space->root ? space->root->size : (struct space_size){0};
}

struct space_size space_size_in(const struct space *space, uintptr_t start, uintptr_t end) {
    struct space_size size = {0};
    struct space_range range;
    while (space_next(space, &start, end, &range))
        size_add(&size, range_size(&range));
    return size;
}

// ---- verification

struct survey {
    const struct space_node *previous;
    size_t count;
    const char *fault;
};

static void check_node(const struct space_node *node, struct survey *survey) {
    const struct space_range *range = &node->range;
    if (range->start >= range->end || ((range->start | range->end) & (SPACE_PAGE - 1)))
        survey->fault = "a range is empty or not page aligned";
    if (survey->previous && survey->previous->range.end > range->start)
        survey->fault = "two ranges overlap or are out of order";
    if (survey->previous && can_merge(&survey->previous->range, range))
        survey->fault = "two neighbours should be one range";
    if ((node->left && node->left->priority > node->priority) ||
        (node->right && node->right->priority > node->priority))
        survey->fault = "a node has a lower priority than a child";
    struct space_node fresh = *node;
    node_refresh(&fresh);
    if (fresh.first != node->first || fresh.last != node->last || fresh.gap != node->gap ||
        fresh.size.all != node->size.all || fresh.size.data != node->size.data)
        survey->fault = "a summary is out of date";
    survey->previous = node;
    survey->count++;
}

static void check_tree(const struct space_node *tree, struct survey *survey) {
    if (!tree || survey->fault)
        return;
    check_tree(tree->left, survey);
    check_node(tree, survey);
    check_tree(tree->right, survey);
}

const char *space_check(const struct space *space) {
    struct survey survey = {0};
    check_tree(space->root, &survey);
    if (!survey.fault && survey.count != space->count)
        survey.fault = "the number of ranges is wrong";
    size_t unused = 0;
    for (const struct space_node *node = space->unused; node; node = node->left)
        unused++;
    if (!survey.fault && unused != space->unused_count)
        survey.fault = "the number of free nodes is wrong";
    return survey.fault;
}
