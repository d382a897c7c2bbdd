#include "base/glob.h"

// The classic two-pointer walk: after a mismatch, the last star swallows one character more. At
// most pattern times string steps, no recursion.
static bool match_part(const char *pattern, const char *pattern_end, const char *string) {
    const char *star = NULL;
    const char *resume = NULL;
    while (*string) {
        if (pattern < pattern_end && *pattern == '*') {
            star = ++pattern;
            resume = string;
        } else if (pattern < pattern_end && (*pattern == '?' || *pattern == *string)) {
            pattern++;
            string++;
        } else if (star) {
            pattern = star;
            string = ++resume;
        } else {
            return false;
        }
    }
    while (pattern < pattern_end && *pattern == '*')
        pattern++;
    return pattern == pattern_end;
}

bool glob_match(const char *pattern, const char *string) {
    const char *end = pattern;
    while (*end)
        end++;
    return match_part(pattern, end, string);
}

bool glob_match_any(const char *patterns, const char *string) {
    while (*patterns) {
        const char *end = patterns;
        while (*end && *end != ',')
            end++;
        if (end != patterns && match_part(patterns, end, string))
            return true;
        patterns = *end ? end + 1 : end;
    }
    return false;
}
