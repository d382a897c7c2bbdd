// Reading call frame information: CIEs, FDEs and the programs in them. Internal to src/unwind.
//
// Words:
//   CIE, FDE   common and per-function entries of .eh_frame (DWARF 5, 6.4; LSB, eh_frame).
//   column     how to find one register of the caller.
//   state      all columns and the CFA at one place in the function.
//
// The input may be hostile: data that cannot be read makes only the function in question unusable.
// Running a program takes time proportional to its length.
#ifndef QUERN_UNWIND_CFI_H
#define QUERN_UNWIND_CFI_H

#include "unwind/cursor.h"
#include "unwind/unwind.h"

enum column_kind {
    COLUMN_SAME,          // not saved, or not known: the value stays
    COLUMN_UNDEFINED,     // for the return address: there is no caller
    COLUMN_AT_CFA,        // in memory at CFA + value
    COLUMN_CFA,           // CFA + value itself
    COLUMN_AT_REGISTER,   // in memory at reg + value
    COLUMN_REGISTER,      // reg + value itself
    COLUMN_AT_EXPRESSION, // in memory at the address that the expression yields
    COLUMN_EXPRESSION,    // what the expression yields
};

// For expressions, value is where they start (in the view while compiling, in the table's
// expression bytes afterwards). The CFA itself is a column of one of the last four kinds.
struct unwind_column {
    uint8_t kind;
    uint8_t reg;
    uint16_t length;
    int32_t value;
};

struct cfi_state {
    struct unwind_column cfa;
    struct unwind_column columns[UNWIND_REGISTERS];
    uint32_t used; // bit set of the columns that are not COLUMN_SAME
};

struct cfi_cie {
    uint64_t address;
    uint64_t code_align;
    int64_t data_align;
    uint8_t encoding;
    bool augmented; // FDEs carry augmentation data
    bool signal;    // frames are signal frames: the pc of the frame before is exact
    bool usable;
    struct cfi_state initial;
};

struct cfi_fde {
    const struct cfi_cie *cie;
    uint64_t start, end; // code addresses
    uint64_t next;       // address of the entry after this one
    struct cursor program;
};

#define CFI_REMEMBERED 16
#define CFI_CIE_CACHE  32

// Working memory, too large for a signal stack. All zero is its first state.
struct cfi_machine {
    struct cfi_state state;
    struct cfi_state remembered[CFI_REMEMBERED];
    struct cfi_cie cies[CFI_CIE_CACHE];
    uint64_t work; // bytes of entries read so far, for callers that limit them
};

enum cfi_entry { CFI_ENTRY_END, CFI_ENTRY_CIE, CFI_ENTRY_FDE, CFI_ENTRY_BAD };

// Reads the entry at an address of the view. For a BAD entry whose length is readable, next is set
// and the caller can skip the entry; otherwise next is 0. The result's cie lives in the machine and
// is valid until the next call.
enum cfi_entry unwind_cfi_read_entry(struct cfi_machine *machine, const struct unwind_view *view,
                                     uint64_t address, struct cfi_fde *fde);

// Called for each pc at which a new state begins, in rising order of pc.
typedef void cfi_row(void *context, uint64_t pc, const struct cfi_state *state);

// Runs the program of an FDE. Returns the address up to which states are known: the function's end,
// or less if the program is malformed.
uint64_t unwind_cfi_run(struct cfi_machine *machine, const struct cfi_fde *fde, cfi_row *row,
                        void *context);

#endif
