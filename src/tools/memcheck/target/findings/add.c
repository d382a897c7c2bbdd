// The kinds of findings: what each has to say. Code that must leave vector registers alone calls
// this, so the rest of the work goes through tool_with_vectors.
#include "base/hash.h"
#include "engine/tool.h"
#include "tools/memcheck/target/findings/findings.h"
#include "tools/memcheck/target/findings/message.h"
#include "tools/shared/stacks.h"

static void add(struct new_finding *finding) {
    tool_with_vectors(findings_take, finding);
}

static uint64_t hash_of(const char *text) {
    return hash_text(HASH_TEXT_START, text);
}

void findings_add_access(uint64_t address, size_t size, bool write) {
    add(&(struct new_finding){.facts = {.kind = write ? FINDING_WRITE : FINDING_READ,
                                        .place = PLACE_UNKNOWN,
                                        .address = address,
                                        .size = size},
                              .detail = size});
}

void findings_add_condition(uint32_t origin) {
    add(&(struct new_finding){.facts = {.kind = FINDING_CONDITION}, .origin = origin});
}

void findings_add_value(unsigned size, uint32_t origin) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_VALUE, .size = size}, .origin = origin, .detail = size});
}

void findings_add_jump(uint64_t address) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_JUMP, .place = PLACE_UNKNOWN, .address = address}});
}

void findings_add_parameter(const char *name, enum finding_fault fault, uint64_t address,
                            uint32_t origin) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_PARAMETER,
                  .fault = (uint8_t)fault,
                  .place = fault == FAULT_REGISTER ? PLACE_NONE : PLACE_UNKNOWN,
                  .address = address},
        .names = {name},
        .origin = origin,
        .detail = hash_of(name) + (uint64_t)fault});
}

void findings_add_client_check(uint64_t address, enum finding_fault fault, uint32_t origin) {
    add(&(struct new_finding){.facts = {.kind = FINDING_CLIENT,
                                        .fault = (uint8_t)fault,
                                        .place = PLACE_UNKNOWN,
                                        .address = address},
                              .origin = origin,
                              .detail = fault == FAULT_UNADDRESSABLE});
}

void findings_add_free(uint64_t address, const char *function) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_FREE, .place = PLACE_UNKNOWN, .address = address},
        .names = {function}});
}

void findings_add_mismatched_free(uint64_t address) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_MISMATCHED_FREE, .place = PLACE_UNKNOWN, .address = address}});
}

void findings_add_resize_to_zero(uint64_t address, const char *function) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_RESIZE_TO_ZERO, .place = PLACE_UNKNOWN, .address = address},
        .names = {function},
        .detail = hash_of(function)});
}

void findings_add_alignment(uint64_t alignment, uint64_t size, const char *remark) {
    add(&(struct new_finding){.facts = {.kind = size ? FINDING_SIZE_ALIGNMENT : FINDING_ALIGNMENT,
                                        .value = (int64_t)alignment,
                                        .size = size},
                              .names = {remark},
                              .detail = alignment});
}

void findings_add_zero_size(void) {
    add(&(struct new_finding){.facts = {.kind = FINDING_ZERO_SIZE}});
}

void findings_add_size_mismatch(uint64_t address, uint64_t size, const char *functions) {
    add(&(struct new_finding){.facts = {.kind = FINDING_SIZE_MISMATCH,
                                        .place = PLACE_UNKNOWN,
                                        .address = address,
                                        .size = size},
                              .names = {functions}});
}

void findings_add_alignment_mismatch(uint64_t address, uint64_t made, uint64_t freed,
                                     const char *functions) {
    add(&(struct new_finding){.facts = {.kind = FINDING_ALIGNMENT_MISMATCH,
                                        .place = PLACE_UNKNOWN,
                                        .address = address,
                                        .value = (int64_t)made,
                                        .size = freed},
                              .names = {functions}});
}

// Each descriptor is a context of its own.
void findings_add_descriptor(const struct tool_descriptor_fault *fault) {
    add(&(struct new_finding){.facts = {.kind = (uint8_t)fault->kind,
                                        .fault = fault->was_open,
                                        .size = fault->is_inherited,
                                        .value = fault->fd},
                              .names = {fault->description},
                              .stack = &fault->stack,
                              .made = stack_intern(fault->opened.pcs, fault->opened.count),
                              .freed = stack_intern(fault->closed.pcs, fault->closed.count),
                              .detail = (uint64_t)fault->fd + 1});
}

void findings_add_overlap(const char *function, uint64_t to, uint64_t from, size_t size,
                          bool has_size) {
    add(&(struct new_finding){.facts = {.kind = FINDING_OVERLAP,
                                        .fault = has_size,
                                        .address = to,
                                        .value = (int64_t)from,
                                        .size = size},
                              .names = {function}});
}

void findings_add_fishy(const char *function, const char *argument, int64_t value) {
    add(&(struct new_finding){.facts = {.kind = FINDING_FISHY, .value = value},
                              .names = {function, argument},
                              .detail = hash_of(function) * 31 + hash_of(argument)});
}

void findings_add_pool(uint64_t address) {
    add(&(struct new_finding){
        .facts = {.kind = FINDING_POOL, .place = PLACE_UNKNOWN, .address = address}});
}

void findings_add_core_memory(const char *what, uint64_t address) {
    add(&(struct new_finding){.facts = {.kind = FINDING_CORE, .address = address},
                              .names = {what},
                              .detail = hash_of(what)});
}
