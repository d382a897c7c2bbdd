// Statements over counted rows: what a statement must look like so that each row may stand for many
// equal ones, and the statement that then gives the same answer.
//
// A query that only sums up (GROUP BY, count, sum, avg, total, min, max) does not need a row for
// each block. Its aggregate functions are rewritten to weigh each row by the number of blocks that
// it stands for: count(*) becomes the sum of the weights, sum(x) the sum of x times the weight.
// That is done on the words of the statement, without a parser of SQL. So only simple statements
// qualify: one SELECT, inner joins, and none of the words and functions that would need more. All
// others get a row for each block, and are slower. Supervisor context.
#ifndef QUERN_REPORT_HEAP_QUERY_WEIGHT_H
#define QUERN_REPORT_HEAP_QUERY_WEIGHT_H

#include <stdbool.h>
#include <stddef.h>

// The statement for counted rows, whose weight is in the column of this name; NULL: it must have a
// row for each block. To be freed.
char *query_weighted(const char *sql, const char *weight);
// How often a name stands in a statement, outside of strings and comments, in any case of letters.
// The table of a column (`stacks.folded`) does not count.
size_t query_mentions(const char *sql, const char *name);

#endif
