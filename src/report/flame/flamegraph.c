#include "report/flame/flamegraph.h"

#include <inttypes.h>
#include <stdint.h>
#include <string.h>

#include "flamegraph_script.h"
#include "report/shared/stack_text.h"

#define WIDTH     1200 // until a script fits it to the window
#define MARGIN    10   // at either side
#define TOP       74
#define BOTTOM    12
#define ROW       17
#define CHARACTER 7.25 // width of one in the font below
// Frames thinner than this share of the whole are left out: no screen shows them.
#define THINNEST 20000

struct writer {
    FILE *out;
    const struct calltree *tree;
    const struct flamegraph_options *options;
    uint64_t least; // value of a frame that is drawn
    unsigned depth; // of the deepest frame drawn; the root has 0
};

// ---- text ----

// Bytes of the character at text if XML can hold it and it does no harm; 0: it cannot.
static size_t usable_character(const uint8_t *text) {
    size_t size = stack_text_printable(text);
    // What separates lines or turns the direction of writing, and what is no character.
    bool turns = size == 3 && text[0] == 0xe2 &&
                 ((text[1] == 0x80 && text[2] >= 0xa8 && text[2] <= 0xae) ||
                  (text[1] == 0x81 && text[2] >= 0xa6 && text[2] <= 0xa9));
    bool none = size >= 3 && text[size - 1] >= 0xbe && text[size - 2] == 0xbf &&
                (size == 3 ? text[0] == 0xef : (text[1] & 0xf) == 0xf);
    return turns || none ? 0 : size;
}

// Writes at most `most` characters of a text as XML; the end of a longer one is two dots.
static void write_text(FILE *out, const char *text, size_t most) {
    const uint8_t *at = (const uint8_t *)text;
    size_t length = strlen(text);
    for (size_t count = 0; *at; count++) {
        if (length > most && count + 2 >= most) {
            fputs("..", out);
            return;
        }
        size_t size = usable_character(at);
        if (*at == '&')
            fputs("&amp;", out);
        else if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '>')
            fputs("&gt;", out);
        else if (*at == '"')
            fputs("&quot;", out);
        else if (size)
            fwrite(at, 1, size, out);
        else
            fprintf(out, "\\x%02X", *at);
        at += size ? size : 1;
    }
}

// ---- colours ----

static uint32_t hash_text(const char *text) {
    uint32_t hash = 0x811c9dc5;
    for (; *text; text++)
        hash = (hash ^ (uint8_t)*text) * 0x01000193;
    return hash ^ hash >> 15;
}

// A warm or cool pastel by the library's hash, a shade of it by the function's: dark text can be
// read on all of them. Frames that are no functions are grey.
static void write_colour(FILE *out, const char *name, const char *group) {
    unsigned shade = hash_text(name) % 5;
    if (!*group) {
        fprintf(out, "#%02x%02x%02x", 205 + shade * 3, 205 + shade * 3, 208 + shade * 3);
        return;
    }
    unsigned hue = hash_text(group) % 360;
    int high = 236 + (int)shade * 4, low = 128 + (int)shade * 12;
    int step = (int)(hue % 60) * (high - low) / 60;
    int up = low + step, down = high - step;
    const int colours[6][3] = {{high, up, low},   {down, high, low}, {low, high, up},
                               {low, down, high}, {up, low, high},   {high, low, down}};
    const int *rgb = colours[hue / 60];
    fprintf(out, "#%02x%02x%02x", rgb[0], rgb[1], rgb[2]);
}

// ---- frames ----

static double share(const struct writer *writer, uint64_t value) {
    uint64_t total = writer->tree->root.total;
    return total ? 100.0 * (double)value / (double)total : 0;
}

static void measure(struct writer *writer, const struct calltree_node *node, unsigned depth) {
    if (node->total < writer->least)
        return;
    if (depth > writer->depth)
        writer->depth = depth;
    for (uint32_t i = 0; i < node->count; i++)
        measure(writer, node->children[i], depth + 1);
}

static void write_frame(struct writer *writer, const struct calltree_node *node, uint64_t start,
                        unsigned depth) {
    FILE *out = writer->out;
    bool is_root = node->function == CALLTREE_ROOT;
    const struct calltree_function *function =
        is_root ? NULL : &writer->tree->functions[node->function];
    const char *name = is_root ? "all" : function->name;
    const char *group = is_root ? "" : function->group;
    unsigned row = writer->options->inverted ? depth : writer->depth - depth;
    unsigned y = TOP + row * ROW;
    fprintf(out, "<g data-s=\"%" PRIu64 "\" data-v=\"%" PRIu64 "\" data-d=\"%u\"><title>", start,
            node->total, depth);
    write_text(out, name, SIZE_MAX);
    fputc('\n', out);
    write_text(out, group, SIZE_MAX);
    fprintf(out, "\n%" PRIu64 " %s, %.2f %%</title>", node->total, writer->options->unit,
            share(writer, node->total));
    fprintf(out, "<rect x=\"%.4f%%\" y=\"%u\" width=\"%.4f%%\" height=\"%d\" fill=\"",
            share(writer, start), y, share(writer, node->total), ROW - 1);
    write_colour(out, name, group);
    fprintf(out, "\"/><text x=\"%.4f%%\" y=\"%u\">", share(writer, start), y + 12);
    double pixels = share(writer, node->total) / 100 * (WIDTH - 2 * MARGIN);
    size_t characters = (size_t)((pixels - 6 > 0 ? pixels - 6 : 0) / CHARACTER);
    if (characters >= 3)
        write_text(out, name, characters);
    fputs("</text></g>\n", out);
}

static void write_frames(struct writer *writer, const struct calltree_node *node, uint64_t start,
                         unsigned depth) {
    if (node->total < writer->least)
        return;
    write_frame(writer, node, start, depth);
    for (uint32_t i = 0; i < node->count; i++) {
        write_frames(writer, node->children[i], start, depth + 1);
        start += node->children[i]->total;
    }
}

// ---- the file ----

static const char style[] =
    "svg{background:#fff}"
    "text{font:12px ui-monospace,'DejaVu Sans Mono',Menlo,Consolas,monospace;fill:#1b1b1f;"
    "white-space:pre}"
    "#title{font-size:16px;font-weight:bold}#details,#matched,.hint{fill:#5a5a66}"
    "#frames g{cursor:pointer}#frames text{pointer-events:none}"
    "#frames g:hover rect{stroke:#1b1b1f;stroke-width:1}"
    "#frames .match rect{fill:#e03fd8}#frames .outer{opacity:.5}"
    ".button{cursor:pointer;fill:#1a56b0}.button:hover{text-decoration:underline}"
    "input{box-sizing:border-box;width:100%;height:24px;font:12px ui-monospace,'DejaVu Sans Mono',"
    "Menlo,Consolas,monospace;border:1px solid #8a8a96;border-radius:4px;padding:2px 6px}";

static void write_head(struct writer *writer) {
    const struct flamegraph_options *options = writer->options;
    unsigned height = TOP + (writer->depth + 1) * ROW + BOTTOM;
    fprintf(writer->out,
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%u\" "
            "data-total=\"%" PRIu64 "\" data-unit=\"",
            WIDTH, height, writer->tree->root.total);
    write_text(writer->out, options->unit, SIZE_MAX);
    fprintf(writer->out,
            "\" data-depth=\"%u\" data-top=\"%d\" data-row=\"%d\" data-inverted=\"%d\">\n"
            "<style>%s</style>\n<text id=\"title\" x=\"%d\" y=\"25\">",
            writer->depth, TOP, ROW, options->inverted, style, MARGIN);
    write_text(writer->out, options->title, 70);
    fprintf(writer->out, "</text>\n<text id=\"details\" x=\"%d\" y=\"45\">", MARGIN);
    write_text(writer->out, options->details, SIZE_MAX);
    fprintf(writer->out,
            "</text>\n<text id=\"hover\" x=\"%d\" y=\"64\"></text>\n"
            "<g id=\"controls\"></g>\n"
            "<svg id=\"frames\" x=\"%d\" y=\"0\" width=\"%d\" height=\"%u\">\n",
            MARGIN, MARGIN, WIDTH - 2 * MARGIN, height);
}

void flamegraph_write(FILE *out, const struct calltree *tree,
                      const struct flamegraph_options *options) {
    struct writer writer = {.out = out, .tree = tree, .options = options};
    writer.least = tree->root.total / THINNEST + 1;
    measure(&writer, &tree->root, 0);
    write_head(&writer);
    if (tree->root.total)
        write_frames(&writer, &tree->root, 0, 0);
    fprintf(out, "</svg>\n<script><![CDATA[\n%s]]></script>\n</svg>\n", flamegraph_script);
}
