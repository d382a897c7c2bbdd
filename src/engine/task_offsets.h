// Offsets of the fields of struct task that assembly and generated code touch.
// Shared by C and assembly; task.c asserts that they are right.
#ifndef QUERN_ENGINE_TASK_OFFSETS_H
#define QUERN_ENGINE_TASK_OFFSETS_H

#define TASK_GPR         0
#define TASK_PC          128
#define TASK_FLAGS       136
#define TASK_SPILL       144
#define TASK_FS_BASE     272
#define TASK_GS_BASE     280
#define TASK_JUMP_TARGET 288
#define TASK_HOST_RSP    296
#define TASK_ENTRY       304
#define TASK_XSTATE      312
#define TASK_EXIT_LINK   320
#define TASK_EXIT_REASON 324
#define TASK_PENDING     328
#define TASK_TOOL        336
#define TASK_SYSCALL     344
#define TASK_TOOL_WORDS  352
#define TASK_STEPPING     416
#define TASK_GUARD        424
#define TASK_EXIT_VERSION 432
#define TASK_RAISED       436
#define TASK_STACK_START  440
#define TASK_STACK_END    448
#define TASK_TOOL_MEMORY  512

// Why the cache was left.
#define EXIT_LINK     0 // through an exit of a block; exit_link tells which
#define EXIT_INDIRECT 1 // an indirect branch whose destination is not in the table yet
#define EXIT_SIGNAL   2 // a signal handler took the task out of the cache
#define EXIT_PENDING  3 // not entered: something is pending
#define EXIT_WILD     4 // the branch at pc leads to an address that cannot exist

#endif
