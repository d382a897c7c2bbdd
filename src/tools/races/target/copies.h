// Functions of the C library that copy memory: hooks that replace them.
#ifndef QUERN_RACES_COPIES_H
#define QUERN_RACES_COPIES_H

void copies_memcpy(void);
void copies_mempcpy(void);
void copies_bcopy(void);
void copies_memset(void);

#endif
