#include "tools/memcheck/errors.h"
#include "engine/tool.h"
#include <unistd.h>
static void st(void){ uint64_t pcs[8]; size_t n=tool_stack(pcs,8); for(size_t i=0;i<n;i++) tool_say("     at 0x%lx", pcs[i]); }
void error_access(uint64_t address, size_t size, bool write){ tool_say("Invalid %s of size %zu at 0x%lx (rsp 0x%lx)", write?"write":"read", size, address, tool_register(4)); st(); }
void error_condition(uint32_t origin){ tool_say("Conditional jump"); st(); }
void error_value(unsigned size, uint32_t origin){ tool_say("Use of uninit value %u", size); st(); }
void error_jump(uint64_t address){ tool_say("Jump to 0x%lx", address); st(); }
void error_parameter(const char *name, enum parameter_fault fault, uint64_t address, uint32_t origin){ tool_say("Syscall param %s %s byte(s)", name, fault==PARAMETER_REGISTER?"contains uninitialised":fault==PARAMETER_UNADDRESSABLE?"points to unaddressable":"points to uninitialised"); st(); }
void error_free(uint64_t address, const char *function){ tool_say("Invalid free of 0x%lx by %s", address, function); st(); }
void error_mismatched_free(uint64_t address){ tool_say("Mismatched free of 0x%lx", address); st(); }
void error_overlap(const char *function, uint64_t to, uint64_t from, size_t size, bool has_size){ tool_say("Overlap in %s(0x%lx, 0x%lx, %zu)", function, to, from, size); st(); }
void error_fishy(const char *function, const char *argument, int64_t value){ tool_say("Fishy %s of %s: %ld", argument, function, value); st(); }
#include "tools/memcheck/stacks.h"
void error_client_check(uint64_t address, bool unaddressable, uint32_t origin){ tool_say("%s byte(s) found during client check request", unaddressable?"Unaddressable":"Uninitialised"); }
void error_pool(uint64_t address){ tool_say("Illegal memory pool address"); }
unsigned long errors_counted(void){ return 0; }
void errors_disable(int by){}
void errors_leaks(const struct leak_search *s){
 static const char *k[]={"definitely lost","indirectly lost","possibly lost","still reachable"};
 uint64_t b[4]={0},n[4]={0};
 for (size_t i=0;i<s->record_count;i++){ const struct loss_record *r=&s->records[i]; b[r->kind]+=r->bytes; n[r->kind]+=r->blocks;
  if (!s->full||r->passed_over) continue;
  if (r->indirect_bytes) tool_say("%lu (%lu direct, %lu indirect) bytes in %lu blocks are %s in loss record %zu of %zu", r->bytes+r->indirect_bytes,r->bytes,r->indirect_bytes,r->blocks,k[r->kind],i+1,s->record_count);
  else tool_say("%lu bytes in %lu blocks are %s in loss record %zu of %zu", r->bytes,r->blocks,k[r->kind],i+1,s->record_count);
  if (r->cycle) tool_say(" cycle of %lu blocks", r->cycle);
  if (r->holder) tool_say(" held %d thread %d address %lx pc %lx steps %u", r->holder, r->holder_thread, r->holder_address, r->holder_pc, r->holder_steps);
 }
 tool_say("LEAK SUMMARY:"); for(int i=0;i<4;i++) tool_say("   %s: %lu bytes in %lu blocks", k[i], b[i], n[i]);
}
