// Quern was built without libcurl.
#include "fleet/store.h"

const struct store_kind store_clickhouse = {.scheme = "clickhouse", .is_missing = true};
const struct store_kind store_clickhouse_tls = {.scheme = "clickhouses", .is_missing = true};
