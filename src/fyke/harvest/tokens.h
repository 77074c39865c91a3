/* The tokens of a page for scanner.c: tags with the attributes that somebody reads, comments, texts without tags; and
   whether `bounded` (markup.py) would leave the page whole. Read by scanner.c alone. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_BYTES (8 << 20)
#define MOST_TAGS 200000
#define FEW_TAGS 1500
#define MOST_ELEMENTS 2000000
#define MOST_STEPS 50000000
#define MOST_FORMATTING 200 /* kinds of formatting tags */
#define FORMATTING_NAMES 13
#define LONG_TAG 4096
#define MOST_ATTRIBUTES 200
#define MOST_TABLES 64
#define MOST_SVG 32
#define MOST_DECODED 32 /* values that Python reads, some 30 us each */
#define NAME 16 /* longer names are none that we know */

typedef unsigned char byte;

typedef struct {
    const byte *start, *end;
} Text;

enum { HREF, REL, CONTENT, META_NAME, HTTP_EQUIV, SRC, XLINK, KEPT };

typedef struct {
    char name[NAME + 1]; /* in small letters; empty when longer */
    bool closes_itself, read; /* whether somebody reads its attributes */
    bool has[KEPT];
    Text value[KEPT];
} Tag;

enum { DONE, UNSURE, FAILED }; /* what a step comes to; FAILED with an exception set */

typedef struct {
    const byte *at, *end;
    PyObject *pages, *shunned, *others, *decode;
    Text product, title;
    bool has_title;
    int tables, decoded;
    bool cell[MOST_TABLES]; /* whether the table is in a cell or caption */
} Scan;

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }
static bool is_letter(byte c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
static bool is_digit(byte c) { return c >= '0' && c <= '9'; }
static bool is_blank(byte c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

static bool one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (*name == **names && !strcmp(name, *names)) return true;
    return false;
}

static bool begins(const byte *at, const byte *end, const char *word) {
    for (; *word; word++, at++)
        if (at >= end || lower(*at) != (byte)*word) return false;
    return true;
}

static bool equals(Text text, const char *word) {
    return text.end - text.start == (Py_ssize_t)strlen(word) && begins(text.start, text.end, word);
}

/* -- what `bounded` might cut: the same estimates, see markup.py ------------------------------------------------------ */

/* Behind the name of a formatting element with attributes; NULL where there is none. */
static const byte *formatting(const byte *at, const byte *end) {
    static const char *const names[] = {"b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike",
                                        "strong", "tt", "u", NULL};
    for (const char *const *name = names; *name; name++) {
        if (lower(*at) != (byte)**name) continue;
        const byte *behind = at + strlen(*name);
        if (behind < end && (is_blank(*behind) || *behind == '\v' || *behind == '/') && begins(at, end, *name))
            return behind;
    }
    return NULL;
}

/* Whether there are at most `most` kinds of formatting tags with attributes; false where one is too long to tell. */
static bool few_kinds(const byte *at, const byte *end, int64_t most) {
    uint64_t met[MOST_FORMATTING];
    int64_t kinds = 0;
    while ((at = memchr(at, '<', end - at)) && ++at < end) {
        if (!formatting(at, end)) continue;
        const byte *stop = memchr(at, '>', end - at > LONG_TAG ? LONG_TAG : end - at);
        if (!stop) return false;
        uint64_t hash = 14695981039346656037u;
        for (const byte *of = at; of < stop; of++) hash = (hash ^ *of) * 1099511628211u;
        int64_t which = 0;
        while (which < kinds && met[which] != hash) which++;
        if (which < kinds) continue;
        if (kinds == MOST_FORMATTING || kinds == most) return false;
        met[kinds++] = hash;
    }
    return true;
}

static bool is_void(byte first, byte second) {
    first = lower(first), second = lower(second);
    return (second == 'r' && (first == 'b' || first == 'h')) || (first == 'i' && second == 'm');
}

static bool is_modest(const byte *start, const byte *end) {
    int64_t tags = 0, depth = 0, lowest = 0, steps = 0, formats = 0;
    if (end - start > MOST_BYTES || memchr(start, 0, end - start)) return false;
    for (const byte *at = start; (at = memchr(at, '<', end - at)) && ++at < end;) {
        if (++tags >= MOST_TAGS) return false;
        depth += (is_letter(*at) && !(at + 1 < end && is_void(*at, at[1]))) - (*at == '/');
        lowest = depth < lowest ? depth : lowest;
        steps += depth - lowest;
        formats += formatting(at, end) != NULL;
    }
    if (tags < FEW_TAGS) return true;
    int64_t most = MOST_ELEMENTS / tags - FORMATTING_NAMES;
    return steps <= MOST_STEPS && (formats <= most || few_kinds(start, end, most));
}

/* -- tokens -------------------------------------------------------------------------------------------------------- */

/* Keep the first value of an attribute that somebody reads. */
static void keep(Tag *tag, const byte *name, const byte *end, Text value) {
    static const struct {
        int size;
        const char *name;
    } kept[KEPT] = {{4, "href"}, {3, "rel"}, {7, "content"}, {4, "name"}, {10, "http-equiv"}, {3, "src"},
                    {10, "xlink:href"}};
    for (int which = 0; which < KEPT; which++)
        if (end - name == kept[which].size && begins(name, end, kept[which].name)) {
            if (!tag->has[which]) tag->has[which] = true, tag->value[which] = value;
            return;
        }
}

/* A tag's name and attributes, from its first letter on; false where the page ends before it does. */
static bool read_tag(Scan *scan, Tag *tag, bool *unsure) {
    static const char *const read[] = {"a", "link", "meta", "area", "base", "iframe", NULL};
    const byte *at = scan->at, *end = scan->end;
    int size = 0, attributes = 0;
    tag->closes_itself = false;
    while (at < end && !is_blank(*at) && *at != '/' && *at != '>') {
        if (size < NAME) tag->name[size] = (char)lower(*at);
        size++, at++;
    }
    tag->name[size <= NAME ? size : 0] = 0;
    tag->read = *tag->name && strchr("ablmi", *tag->name) && one_of(tag->name, read);
    if (tag->read) memset(tag->has, 0, sizeof tag->has);
    for (;;) {
        while (at < end && (is_blank(*at) || *at == '/')) at++;
        if (at >= end) return false;
        if (*at == '>') {
            tag->closes_itself = at[-1] == '/';
            scan->at = at + 1;
            return true;
        }
        if (++attributes > MOST_ATTRIBUTES) {
            *unsure = true;
            return false;
        }
        const byte *name = at++; /* an equals sign may begin it */
        while (at < end && !is_blank(*at) && *at != '/' && *at != '>' && *at != '=') at++;
        const byte *name_end = at;
        Text value = {at, at};
        while (at < end && is_blank(*at)) at++;
        if (at < end && *at == '=') {
            at++;
            while (at < end && is_blank(*at)) at++;
            if (at >= end) return false;
            if (*at == '"' || *at == '\'') {
                const byte *quote = memchr(at + 1, *at, end - at - 1);
                if (!quote) return false;
                value = (Text){at + 1, quote};
                at = quote + 1;
            } else {
                value.start = at;
                while (at < end && !is_blank(*at) && *at != '>') at++;
                value.end = at;
                if (at < end && *at == '>') { /* a slash before it is part of the value */
                    if (tag->read) keep(tag, name, name_end, value);
                    scan->at = at + 1;
                    return true;
                }
            }
        }
        if (tag->read) keep(tag, name, name_end, value);
    }
}

/* To behind a comment, or what counts as one, of which `at` is behind the `<!`, `<?` or `</`. */
static void skip_comment(Scan *scan, bool declared) {
    const byte *at = scan->at, *end = scan->end;
    if (declared && begins(at, end, "--")) {
        const byte *first = at + 2; /* `--!>` may not share the dashes that begin it, `-->` may */
        for (at = first; at <= end; at++) {
            at = at < end ? memchr(at, '>', end - at) : NULL;
            if (!at) break;
            if (at[-1] == '-' && at[-2] == '-') break;
            if (at - 3 >= first && at[-1] == '!' && at[-2] == '-' && at[-3] == '-') break;
        }
    } else
        at = at < end ? memchr(at, '>', end - at) : NULL;
    scan->at = at && at < end ? at + 1 : end;
}

/* Where the end tag `</name` begins, or the end of the page. */
static const byte *end_tag(const byte *at, const byte *end, const char *name) {
    Py_ssize_t size = strlen(name);
    while (at < end && (at = memchr(at, '<', end - at))) {
        const byte *behind = at + 2 + size;
        if (behind < end && at[1] == '/' && (is_blank(*behind) || *behind == '/' || *behind == '>') &&
            begins(at + 2, end, name))
            return at;
        at++;
    }
    return end;
}

/* Over the text of an element whose text holds no tags, to behind its end tag. */
static int skip_raw(Scan *scan, const char *name, Text *text) {
    const byte *start = scan->at, *stop = end_tag(start, scan->end, name);
    bool unsure = false;
    Tag tag;
    if (!strcmp(name, "script")) { /* in a comment in it, another script may open and close */
        const byte *at = start;
        while (at < stop && (at = memchr(at, '<', stop - at)) && !begins(at, stop, "<!--")) at++;
        for (; at && at < stop; at++)
            if (*at == '<' && begins(at, stop, "<script")) return UNSURE;
    }
    if (text) *text = (Text){start, stop};
    scan->at = stop;
    if (stop == scan->end) return DONE;
    scan->at += 2;
    if (!read_tag(scan, &tag, &unsure)) return UNSURE;
    return DONE;
}
