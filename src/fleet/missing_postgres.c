// Quern was built without libpq.
#include "fleet/store.h"

const struct store_kind store_postgres = {.scheme = "postgresql", .is_missing = true};
