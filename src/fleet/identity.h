// What tells the processes of a fleet apart: the labels of every interval.
#ifndef QUERN_FLEET_IDENTITY_H
#define QUERN_FLEET_IDENTITY_H

struct identity {
    char *host, *service, *version;
    char *build_id; // of the main program, in hexadecimal; "": it has none
};

struct fleet_settings;
struct identity identity_make(const struct fleet_settings *settings);
void identity_free(struct identity *identity);

#endif
