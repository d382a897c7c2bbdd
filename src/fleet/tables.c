#include "fleet/tables.h"

#define SUMS                                                                                       \
    {"allocated_bytes", COLUMN_NUMBER}, {"allocated_blocks", COLUMN_NUMBER},                       \
        {"temporary_blocks", COLUMN_NUMBER}, {"live_bytes", COLUMN_NUMBER}, {                      \
        "live_blocks", COLUMN_NUMBER                                                               \
    }

const struct table_info table_infos[TABLES] = {
    [TABLE_PROCESSES] = {"processes",
                         {{"process", COLUMN_ID},
                          {"started", COLUMN_TIME},
                          {"host", COLUMN_TEXT},
                          {"service", COLUMN_TEXT},
                          {"version", COLUMN_TEXT},
                          {"build_id", COLUMN_TEXT},
                          {"command", COLUMN_TEXT},
                          {"pid", COLUMN_NUMBER}}},
    [TABLE_NAMES] = {"names", {{"stack", COLUMN_ID}, {"folded", COLUMN_TEXT}}},
    [TABLE_FRAMES] = {"frames",
                      {{"stack", COLUMN_ID},
                       {"depth", COLUMN_NUMBER},
                       {"function", COLUMN_TEXT},
                       {"file", COLUMN_TEXT},
                       {"line", COLUMN_NUMBER},
                       {"module", COLUMN_TEXT},
                       {"inlined", COLUMN_SMALL}}},
    [TABLE_COUNTS] = {"counts",
                      {{"process", COLUMN_ID},
                       {"number", COLUMN_NUMBER},
                       {"time", COLUMN_TIME},
                       {"service", COLUMN_TEXT},
                       {"stack", COLUMN_ID},
                       SUMS}},
    [TABLE_INTERVALS] = {"intervals",
                         {{"process", COLUMN_ID},
                          {"number", COLUMN_NUMBER},
                          {"time", COLUMN_TIME},
                          {"service", COLUMN_TEXT},
                          {"seconds", COLUMN_REAL},
                          {"is_last", COLUMN_SMALL},
                          {"dropped", COLUMN_NUMBER},
                          SUMS,
                          {"freed_blocks", COLUMN_NUMBER},
                          {"resizes", COLUMN_NUMBER},
                          {"peak_bytes", COLUMN_NUMBER},
                          {"resident", COLUMN_NUMBER},
                          {"anonymous", COLUMN_NUMBER}}},
};
