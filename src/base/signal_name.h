// Names of signals and the wording of their causes, as a Valgrind user knows them.
// Pure tables: callable from anywhere.
#ifndef QUERN_BASE_SIGNAL_NAME_H
#define QUERN_BASE_SIGNAL_NAME_H

// "SIGSEGV", "SIGRTMIN+3", or "signal 99" for a number that is no signal (static buffer).
const char *signal_name(int signal);
// "Access not within mapped region" and the like; NULL where the cause says nothing.
const char *signal_cause(int signal, int code);

#endif
