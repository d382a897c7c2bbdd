#include "base/vector.h"
#include "report/dhat/file.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

void dhat_file_init(struct dhat_file *file, const char *mode, const char *verb, const char *command,
                    int64_t pid) {
    *file = (struct dhat_file){.mode = base_copy(mode),
                               .verb = base_copy(verb),
                               .tu = base_copy("instrs"),
                               .Mtu = base_copy("Minstr"),
                               .tuth = 500,
                               .cmd = base_copy(command),
                               .pid = pid};
    dhat_file_frame(file, "[root]");
}

uint32_t dhat_file_frame(struct dhat_file *file, const char *text) {
    bool is_new;
    return map_texts_add(&file->frames, text, strlen(text), &is_new);
}

void dhat_file_add(struct dhat_file *file, const struct dhat_point *point) {
    *vector_push(file->points, file->point_count) = *point;
}

void dhat_file_path(struct dhat_file *file, uint32_t frame, const char *path) {
    file->paths = base_reach(file->paths, &file->path_count, frame, sizeof *file->paths);
    if (!file->paths[frame])
        file->paths[frame] = base_copy(path);
}

void dhat_file_free(struct dhat_file *file) {
    for (size_t i = 0; i < file->point_count; i++) {
        free(file->points[i].acc);
        free(file->points[i].fs);
    }
    free(file->points);
    map_texts_free(&file->frames);
    for (size_t i = 0; i < file->path_count; i++)
        free(file->paths[i]);
    free(file->paths);
    char *texts[] = {file->mode, file->verb, file->bu,  file->bsu,
                     file->bksu, file->tu,   file->Mtu, file->cmd};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        free(texts[i]);
    *file = (struct dhat_file){0};
}

static void write_text(FILE *out, const char *text) {
    fputc('"', out);
    for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
        if (*at == '"' || *at == '\\')
            fprintf(out, "\\%c", *at);
        else if (*at < 0x20)
            fprintf(out, "\\u%04x", *at);
        else
            fputc(*at, out);
    }
    fputc('"', out);
}

static void write_run(FILE *out, const char *comma, size_t count, uint32_t value) {
    if (count == 1)
        fprintf(out, "%s%" PRIu32, comma, value);
    else
        fprintf(out, "%s-%zu,%" PRIu32, comma, count, value);
}

// Equal numbers that follow each other are written once, behind how many there are, negated.
static void write_accesses(FILE *out, const struct dhat_point *point) {
    fputs("  ,\"acc\":[", out);
    for (size_t i = 0, count; i < point->acc_count; i += count) {
        for (count = 1; i + count < point->acc_count && point->acc[i + count] == point->acc[i];)
            count++;
        write_run(out, i ? "," : "", count, point->acc[i]);
    }
    fputs("]\n", out);
}

static void write_point(FILE *out, const struct dhat_file *file, const struct dhat_point *point,
                        bool is_first) {
    fprintf(out, " %c{\"tb\":%" PRIu64 ",\"tbk\":%" PRIu64 "\n", is_first ? '[' : ',', point->tb,
            point->tbk);
    if (file->bklt) {
        fprintf(out, "  ,\"tl\":%" PRIu64 "\n", point->tl);
        fprintf(out, "  ,\"mb\":%" PRIu64 ",\"mbk\":%" PRIu64 "\n", point->mb, point->mbk);
        fprintf(out, "  ,\"gb\":%" PRIu64 ",\"gbk\":%" PRIu64 "\n", point->gb, point->gbk);
        fprintf(out, "  ,\"eb\":%" PRIu64 ",\"ebk\":%" PRIu64 "\n", point->eb, point->ebk);
    }
    if (file->bkacc) {
        fprintf(out, "  ,\"rb\":%" PRIu64 ",\"wb\":%" PRIu64 "\n", point->rb, point->wb);
        if (point->acc)
            write_accesses(out, point);
    }
    fputs("  ,\"fs\":[", out);
    for (size_t i = 0; i < point->fs_count; i++)
        fprintf(out, "%s%" PRIu32, i ? "," : "", point->fs[i]);
    fputs("]\n  }\n", out);
}

void dhat_out(FILE *out, const struct dhat_file *file) {
    fputs("{\"dhatFileVersion\":2\n,\"mode\":", out);
    write_text(out, file->mode);
    fputs(",\"verb\":", out);
    write_text(out, file->verb);
    fprintf(out, "\n,\"bklt\":%s,\"bkacc\":%s\n", file->bklt ? "true" : "false",
            file->bkacc ? "true" : "false");
    if (file->bu && file->bsu && file->bksu) {
        fputs(",\"bu\":", out);
        write_text(out, file->bu);
        fputs(",\"bsu\":", out);
        write_text(out, file->bsu);
        fputs(",\"bksu\":", out);
        write_text(out, file->bksu);
        fputc('\n', out);
    }
    fputs(",\"tu\":", out);
    write_text(out, file->tu);
    fputs(",\"Mtu\":", out);
    write_text(out, file->Mtu);
    if (file->bklt)
        fprintf(out, "\n,\"tuth\":%" PRIu64, file->tuth);
    fputs("\n,\"cmd\":", out);
    write_text(out, file->cmd);
    fprintf(out, "\n,\"pid\":%" PRId64 "\n,\"te\":%" PRIu64 "\n", file->pid, file->te);
    if (file->bklt)
        fprintf(out, ",\"tg\":%" PRIu64 "\n", file->tg);
    fputs(",\"pps\":\n", out);
    for (size_t i = 0; i < file->point_count; i++)
        write_point(out, file, &file->points[i], i == 0);
    fputs(file->point_count ? " ]\n" : " [\n ]\n", out);
    fputs(",\"ftbl\":\n", out);
    for (size_t i = 0; i < file->frames.count; i++) {
        fputs(i ? " ," : " [", out);
        write_text(out, file->frames.keys[i].bytes);
        fputc('\n', out);
    }
    fputs(" ]\n}\n", out);
}
