/* The tokens of a page, by the HTML standard's tokenizer (13.2.5): tags with the attributes that are read, comments,
   texts without tags. Included by walker.c here and by scanner.c of fyke.harvest. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define MOST_ATTRIBUTES 250 /* of a tag */
#define NAME 16 /* a longer name is no known one */

typedef unsigned char byte;

/* Elements of an SVG that their own tag may close. */
static const char *const shapes[] = {
    "path", "g", "circle", "rect", "use", "line", "polygon", "polyline", "ellipse", "defs", "symbol", "stop",
    "lineargradient", "radialgradient", "clippath", "mask", "text", "tspan", "animate", NULL};

typedef struct {
    const byte *start, *end;
} Text;

enum { HREF, REL, CONTENT, META_NAME, HTTP_EQUIV, SRC, XLINK, SRCDOC, KEPT };

typedef struct {
    char name[NAME + 1]; /* in lower case; empty if longer */
    int attributes;
    bool closes_itself, read; /* whether its attributes are read */
    bool has[KEPT];
    Text value[KEPT];
} Tag;

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }
static bool is_letter(byte c) { return lower(c) >= 'a' && lower(c) <= 'z'; }
static inline bool is_digit(byte c) { return c >= '0' && c <= '9'; }
static bool is_blank(byte c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f'; }

static inline bool one_of(const char *name, const char *const *names) {
    for (; *names; names++)
        if (*name == **names && !strcmp(name, *names)) return true;
    return false;
}

static bool begins(const byte *at, const byte *end, const char *word) {
    for (; *word; word++, at++)
        if (at >= end || lower(*at) != (byte)*word) return false;
    return true;
}

static inline bool equals(Text text, const char *word) {
    return text.end - text.start == (Py_ssize_t)strlen(word) && begins(text.start, text.end, word);
}

/* -- tokens -------------------------------------------------------------------------------------------------------- */

/* Keep the first value of an attribute that is read. */
static void keep(Tag *tag, const byte *name, const byte *end, Text value) {
    static const struct {
        int size;
        const char *name;
    } kept[KEPT] = {{4, "href"}, {3, "rel"}, {7, "content"}, {4, "name"}, {10, "http-equiv"}, {3, "src"},
                    {10, "xlink:href"}, {6, "srcdoc"}};
    for (int which = 0; which < KEPT; which++)
        if (end - name == kept[which].size && begins(name, end, kept[which].name)) {
            if (!tag->has[which]) tag->has[which] = true, tag->value[which] = value;
            return;
        }
}

/* Read a tag's name and attributes, from its first letter on. False if the page ends within it, or if it has more than
   MOST_ATTRIBUTES attributes. `keeps`: keep the values of attributes that are read. */
static inline bool read_tag(Text *rest, Tag *tag, bool keeps) {
    static const char *const read[] = {"a", "link", "meta", "area", "base", "iframe", NULL};
    const byte *at = rest->start, *end = rest->end;
    int size = 0;
    tag->attributes = 0;
    tag->closes_itself = false;
    while (at < end && !is_blank(*at) && *at != '/' && *at != '>') {
        if (size < NAME) tag->name[size] = *at ? (char)lower(*at) : 1; /* a NUL ends no name */
        size++, at++;
    }
    tag->name[size <= NAME ? size : 0] = 0;
    tag->read = keeps && *tag->name && strchr("ablmi", *tag->name) && one_of(tag->name, read);
    if (tag->read) memset(tag->has, 0, sizeof tag->has);
    for (;;) {
        while (at < end && (is_blank(*at) || *at == '/')) at++;
        if (at >= end) return false;
        if (*at == '>') {
            tag->closes_itself = at[-1] == '/';
            rest->start = at + 1;
            return true;
        }
        if (++tag->attributes > MOST_ATTRIBUTES) return false;
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
                    rest->start = at + 1;
                    return true;
                }
            }
        }
        if (tag->read) keep(tag, name, name_end, value);
    }
}

/* Skip a comment, or a tag that counts as one; `at` is behind its `<!`, `<?` or `</`. */
static void skip_comment(Text *rest, bool declared) {
    const byte *at = rest->start, *end = rest->end;
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
    rest->start = at && at < end ? at + 1 : end;
}

/* Return whether the tag `<name` begins here, or `</name` if `closing`. */
static bool is_tag(const byte *at, const byte *end, const char *name, bool closing) {
    const byte *behind = at + 1 + closing + strlen(name);
    return behind < end && *at == '<' && (!closing || at[1] == '/') &&
           (is_blank(*behind) || *behind == '/' || *behind == '>') && begins(at + 1 + closing, end, name);
}

/* Return where the end tag of a script begins, or the end of the page. In a comment of it another script may open and
   close. */
static const byte *end_of_script(const byte *at, const byte *end) {
    bool escaped = false, nested = false;
    for (; at < end; at++) {
        if (escaped && *at == '>' && at[-1] == '-' && at[-2] == '-') escaped = nested = false;
        if (*at != '<') {
            if (!escaped && !(at = memchr(at, '<', end - at))) return end;
            if (*at != '<') continue;
        }
        if (!escaped && begins(at, end, "<!--"))
            escaped = true, at += 3; /* and its dashes may be those that end it */
        else if (escaped && !nested && is_tag(at, end, "script", false))
            nested = true;
        else if (is_tag(at, end, "script", true)) {
            if (!nested) return at;
            nested = false;
        }
    }
    return end;
}

/* Return where the end tag of an element begins whose text holds no tags, or the end of the page. */
static const byte *end_of_text(const byte *at, const byte *end, const char *name) {
    if (!strcmp(name, "script")) return end_of_script(at, end);
    for (; at < end && (at = memchr(at, '<', end - at)); at++)
        if (is_tag(at, end, name, true)) return at;
    return end;
}
