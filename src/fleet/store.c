#include "fleet/store.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    const char *scheme;
    const struct store_kind *kind;
} schemes[] = {
    {"clickhouse://", &store_clickhouse},
    {"clickhouses://", &store_clickhouse_tls},
    {"postgresql://", &store_postgres},
    {"postgres://", &store_postgres},
};

// What comes before the host: where "user:password@" stands.
static bool has_password(const char *url) {
    const char *start = strstr(url, "://") + 3;
    size_t size = strcspn(start, "/?#");
    const char *at = memrchr(start, '@', size);
    return (at && memchr(start, ':', (size_t)(at - start))) || strstr(url, "password=");
}

const struct store_kind *store_kind_of(const char *url, char **problem) {
    struct text text = {0};
    for (size_t i = 0; i < sizeof schemes / sizeof *schemes; i++) {
        if (strncmp(url, schemes[i].scheme, strlen(schemes[i].scheme)) != 0)
            continue;
        if (schemes[i].kind->is_missing)
            text_format(&text, "this Quern was built without the library for %s",
                        schemes[i].scheme);
        else if (has_password(url))
            text_string(&text, "a password in a URL can be seen by everybody on this machine: use "
                               "--push-credentials=FILE or $QUERN_PUSH_PASSWORD");
        else
            return schemes[i].kind;
        *problem = text_take(&text);
        return NULL;
    }
    const char *end = strstr(url, "://");
    text_format(&text,
                "stores of '%.*s' are not supported yet; give clickhouse://HOST[:PORT][/"
                "DATABASE] (clickhouses:// with TLS) or postgresql://HOST[:PORT]/DATABASE",
                end ? (int)(end - url) : 40, url);
    *problem = text_take(&text);
    return NULL;
}

char *store_label(const char *url) {
    struct text text = {0};
    const char *start = strstr(url, "://");
    start = start ? start + 3 : url;
    size_t size = strcspn(start, "?#");
    const char *at = memrchr(start, '@', size);
    const char *host = at ? at + 1 : start;
    text_add(&text, url, (size_t)(start - url));
    text_add(&text, host, size - (size_t)(host - start));
    return text_take(&text);
}

char *store_credentials(struct store_settings *settings, const char *path) {
    char line[1024] = "";
    const char *user = getenv("QUERN_PUSH_USER"), *password = getenv("QUERN_PUSH_PASSWORD");
    if (!path) {
        settings->user = user ? base_copy(user) : NULL;
        settings->password = password ? base_copy(password) : NULL;
        return NULL;
    }
    FILE *file = fopen(path, "re");
    bool is_read = file && fgets(line, sizeof line, file);
    int error = errno;
    if (file)
        fclose(file);
    line[strcspn(line, "\r\n")] = 0;
    char *colon = strchr(line, ':');
    struct text text = {0};
    if (is_read && colon) {
        *colon = 0;
        settings->user = base_copy(line);
        settings->password = base_copy(colon + 1);
        return NULL;
    }
    text_format(&text, "cannot read --push-credentials=%s: %s", path,
                file ? "it must be one line USER:PASSWORD" : strerror(error));
    return text_take(&text);
}

void store_rows_free(struct store_rows *rows) {
    for (size_t i = 0; i < rows->columns; i++)
        free(rows->names[i]);
    for (size_t i = 0; i < rows->columns * rows->count; i++)
        free(rows->cells[i]);
    free(rows->names);
    free(rows->cells);
    free(rows->are_numbers);
    *rows = (struct store_rows){0};
}

void store_quote(const struct store_kind *kind, const char *text, struct text *sql) {
    text_char(sql, '\'');
    for (; *text; text++) {
        if (*text == '\'' || (*text == '\\' && kind->escapes_backslash))
            text_char(sql, kind->escapes_backslash ? '\\' : *text);
        text_char(sql, *text);
    }
    text_char(sql, '\'');
}
