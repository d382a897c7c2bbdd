// Serves the requests of include/quern/heap.h.
#include "recorder/recorder.h"

#include <string.h>

#include "wire/heap_requests.h"

static unsigned long answer(unsigned long otherwise, const unsigned long *words) {
    if (!recorder_on())
        return otherwise;
    switch (words[0]) {
    case HEAP_REQUEST_LISTENS:
        return 1;
    case HEAP_REQUEST_MARK:
        record_mark((unsigned)words[1], (const char *)words[2]);
        return 1;
    case HEAP_REQUEST_ASK:
        return record_ask((uint64_t *)words[1]) ? 1 : otherwise;
    case HEAP_REQUEST_ALLOCATED:
        record_allocated((const void *)words[1], words[2], NULL);
        return 1;
    case HEAP_REQUEST_FREED:
        record_freed((const void *)words[1]);
        return 1;
    case HEAP_REQUEST_RESIZED: {
        bool began = record_resize_began((const void *)words[1]);
        record_resize_ended(began, (const void *)words[1], 0, (const void *)words[2], words[3],
                            NULL);
        return 1;
    }
    case HEAP_REQUEST_CHUNK:
        record_chunk((const void *)words[1], words[2]);
        return 1;
    default:
        return otherwise;
    }
}

bool requests_link(int option, unsigned long place) {
    struct heap_request_link *link = (struct heap_request_link *)place;
    if (option != HEAP_REQUEST_PRCTL || !recorder_on() || !link || link->version != 1)
        return false;
    link->request = answer;
    return true;
}
