/* How much of an HTML page may be parsed, and how long does that take? The walk of walk.py, which says why, in C.

   Invariant: the result is that of walk.py. Time and memory are linear in the page. */

#include "tokens.h"

#define MOST_TAGS 200000
#define MOST_UNITS 500000
#define MOST_STEPS 50000000
#define MOST_PAIRS 10000000
#define MOST_KINDS 2048
#define MOST_NAMES 512
#define MOST_FRESH 64
#define UNIT_BYTES 128
#define HEAVY_UNITS 6
#define ADOPTED 8
#define ALIKE 3
#define AGAIN_NS 100
#define STEP_NS 2
#define PAIR_NS 9

typedef struct {
    char name[NAME + 1];
    bool used;
    int64_t open;
} Open;

typedef struct {
    uint64_t hash; /* of a tag, never 0 */
    int64_t count;
} Kind;

typedef struct {
    char name[NAME + 1];
    Text tag;
    int64_t units;
} Fresh; /* a formatting element: nothing has come yet that may part it from its end tag */

typedef struct {
    int64_t tags, units, steps, pairs, again, each_again, heavy, anchor, whole, depth, options;
    int kinds_met, names_met, fresh_met, item; /* the latest one */
    bool foreign, foreign_met; /* whether it may be within SVG or MathML, or was */
    bool drawing; /* whether within an SVG that had only shapes so far */
    Fresh fresh[MOST_FRESH];
    Kind kinds[2 * MOST_KINDS];
    Open names[2 * MOST_NAMES];
} Cost;

typedef struct {
    byte *text;
    Py_ssize_t size, room;
} Written;

/* -- names ----------------------------------------------------------------------------------------------------------- */

enum {
    FORMATS = 1,
    INLINE = 2, /* does not part formatting elements: it is empty, or no block */
    FLAT = 4,   /* holds no others, or ends when the next of its kind begins */
    TEXT = 8,   /* holds no tags */
    ODD = 16,   /* from here on texts may hold tags */
    WHOLE = 32, /* adds to the element that is there */
    SHAPE = 64, /* within an SVG its own tag may close it */
    SELECT = 128,
    OPTION = 256, /* looks through its select's options twice */
    FOREIGN = 512,
    BREAKS_OUT = 1024, /* ends SVG and MathML, in which all other elements may hold others */
    LIST_ITEM = 2048, /* closes no other item, and no other item closes it */
    OTHER_ITEM = 4096
};

#define MOST_KNOWN 256

static struct {
    const char *name;
    int is;
} known[MOST_KNOWN];

static uint64_t hash_of(const byte *at, const byte *end) {
    uint64_t hash = 14695981039346656037u;
    for (; at < end; at++) hash = (hash ^ *at) * 1099511628211u;
    return hash ? hash : 1;
}

static uint64_t hash_of_name(const char *name) { return hash_of((const byte *)name, (const byte *)name + strlen(name)); }

static int what_is(const char *name, uint64_t hash) {
    for (int place = hash % MOST_KNOWN; known[place].name; place = (place + 1) % MOST_KNOWN)
        if (!strcmp(known[place].name, name)) return known[place].is;
    return 0;
}

static void learn(int is, const char *const *names) {
    for (; *names; names++) {
        int place = hash_of_name(*names) % MOST_KNOWN;
        while (known[place].name && strcmp(known[place].name, *names)) place = (place + 1) % MOST_KNOWN;
        known[place].name = *names, known[place].is |= is;
    }
}

static void learn_all(void) {
    static const char *const formats[] = {"a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike",
                                          "strong", "tt", "u", NULL};
    static const char *const inlined[] = {"br", "img", "wbr", "input", "span", "sup", "sub", "abbr", "cite", "label",
                                          "time", "mark", "q", "kbd", "var", "samp", "dfn", "del", "ins", NULL};
    static const char *const flat[] = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                                       "param", "source", "track", "wbr", "p", "li", "dd", "dt", "td", "th", "tr",
                                       "option", "a", NULL};
    static const char *const texts[] = {"script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes",
                                        NULL};
    static const char *const odd[] = {"svg", "math", "select", NULL};
    static const char *const foreign[] = {"svg", "math", NULL};
    static const char *const breaking[] = {
        "b", "big", "blockquote", "body", "br", "center", "code", "dd", "div", "dl", "dt", "em", "embed", "h1", "h2",
        "h3", "h4", "h5", "h6", "head", "hr", "i", "img", "li", "listing", "menu", "meta", "nobr", "ol", "p", "pre",
        "ruby", "s", "small", "span", "strong", "strike", "sub", "sup", "table", "tt", "u", "ul", "var", NULL};
    static const char *const list_items[] = {"li", NULL}, *const other_items[] = {"dd", "dt", NULL};
    static const char *const selects[] = {"select", NULL}, *const options[] = {"option", NULL};
    static const char *const whole[] = {"html", "body", NULL};
    learn(FORMATS, formats), learn(INLINE, inlined), learn(FLAT, flat), learn(TEXT, texts), learn(ODD, odd);
    learn(WHOLE, whole), learn(SHAPE, shapes), learn(SELECT, selects), learn(OPTION, options);
    learn(FOREIGN, foreign), learn(BREAKS_OUT, breaking);
    learn(LIST_ITEM, list_items), learn(OTHER_ITEM, other_items);
}

/* -- costs ----------------------------------------------------------------------------------------------------------- */

static bool is_too_much(const Cost *cost) {
    return cost->tags > MOST_TAGS || cost->units > MOST_UNITS || cost->steps > MOST_STEPS || cost->pairs > MOST_PAIRS ||
           cost->kinds_met > MOST_KINDS;
}

/* Return how many tags like this were met, with it. */
static int64_t met(Cost *cost, Text tag) {
    uint64_t hash = hash_of(tag.start, tag.end);
    Kind *kind = &cost->kinds[hash % (2 * MOST_KINDS)];
    while (kind->hash && kind->hash != hash) kind = kind + 1 < cost->kinds + 2 * MOST_KINDS ? kind + 1 : cost->kinds;
    cost->kinds_met += !kind->hash;
    kind->hash = hash;
    return ++kind->count;
}

/* Return the counter of open elements of a name. NULL if none was met yet, and no more counters are kept or none shall be
   `added`. */
static int64_t *opened(Cost *cost, const char *name, uint64_t hash, bool added) {
    Open *of = &cost->names[hash % (2 * MOST_NAMES)];
    while (of->used && strcmp(of->name, name)) of = of + 1 < cost->names + 2 * MOST_NAMES ? of + 1 : cost->names;
    if (of->used) return &of->open;
    if (!added || cost->names_met == MOST_NAMES) return NULL;
    cost->names_met++;
    of->used = true;
    strcpy(of->name, name);
    return &of->open;
}

/* From here on open formatting elements may be made again. */
static void settle(Cost *cost) {
    for (int place = 0; place < cost->fresh_met; place++) {
        Fresh *fresh = &cost->fresh[place];
        int64_t units = fresh->units, heavy = units > HEAVY_UNITS ? units : 0;
        if (!strcmp(fresh->name, "a")) {
            heavy = units = heavy > cost->anchor ? heavy - cost->anchor : 0;
            cost->anchor += heavy;
        } else if (met(cost, fresh->tag) > ALIKE)
            continue;
        cost->each_again += units;
        cost->heavy += heavy;
    }
    cost->fresh_met = 0;
}

static void begin(Cost *cost, const Tag *tag, Text all, uint64_t hash, int is) {
    int64_t attributes = tag->attributes, own = attributes + (all.end - all.start) / UNIT_BYTES;
    bool shape = cost->drawing && is & SHAPE;
    cost->drawing = shape || (!strcmp(tag->name, "svg") && !tag->closes_itself);
    if (is & FOREIGN)
        cost->foreign = cost->foreign_met = true;
    else if (is & BREAKS_OUT)
        cost->foreign = false;
    if (!(is & (FORMATS | INLINE))) settle(cost);
    cost->units += 2 + own + cost->each_again;
    cost->again += cost->each_again;
    cost->pairs += attributes * (attributes - 1) / 2;
    if (is & WHOLE) {
        cost->pairs += cost->whole * attributes;
        cost->whole += attributes;
    }
    bool holds = !(is & FLAT) || cost->foreign;
    int item = is & (LIST_ITEM | OTHER_ITEM);
    if (item) {
        holds = holds || (cost->item && cost->item != item);
        cost->item = item;
    }
    if (holds && !(shape && tag->closes_itself)) {
        int64_t *open = opened(cost, tag->name, hash, true);
        cost->depth++;
        if (open) ++*open;
    }
    cost->options = is & SELECT ? 0 : cost->options + !!(is & OPTION);
    cost->steps += cost->depth + (is & OPTION ? 2 * cost->options : 0);
    if (is & FORMATS) {
        if (cost->fresh_met == MOST_FRESH) settle(cost);
        Fresh *fresh = &cost->fresh[cost->fresh_met++];
        strcpy(fresh->name, tag->name);
        fresh->tag = all, fresh->units = 1 + own;
    }
}

static void end_formatting(Cost *cost, const char *name) {
    for (int place = cost->fresh_met - 1; place >= 0; place--) {
        Fresh *fresh = &cost->fresh[place];
        if (strcmp(fresh->name, name)) continue;
        memmove(fresh, fresh + 1, (--cost->fresh_met - place) * sizeof *fresh); /* it is closed in order */
        return;
    }
    cost->units += ADOPTED * cost->heavy;
    cost->again += ADOPTED * cost->heavy;
}

static void end(Cost *cost, const char *name, uint64_t hash, int is) {
    cost->units += 2;
    cost->drawing = cost->drawing && is & SHAPE;
    cost->foreign = cost->foreign || (cost->foreign_met && !(is & BREAKS_OUT));
    if (is & FORMATS)
        end_formatting(cost, name);
    else if (!(is & INLINE))
        settle(cost);
    int64_t *open = opened(cost, name, hash, false);
    if (open && *open) {
        --*open;
        cost->depth--;
    }
    cost->steps += cost->depth;
}

/* -- the walk -------------------------------------------------------------------------------------------------------- */

static bool put(Written *written, const byte *start, const byte *stop) {
    Py_ssize_t size = stop - start;
    if (written->size + size > written->room) {
        Py_ssize_t room = (written->size + size) * 3 / 2;
        byte *text = PyMem_Realloc(written->text, room);
        if (!text) return false;
        written->text = text, written->room = room;
    }
    if (size) memcpy(written->text + written->size, start, size);
    written->size += size;
    return true;
}

/* Write from `*kept` up to a `<`, and a reference in its place. */
static bool put_reference(Written *written, const byte **kept, const byte *at, const char *reference) {
    const byte *text = (const byte *)reference;
    bool done = put(written, *kept, at) && put(written, text, text + strlen(reference));
    *kept = at + 1;
    return done;
}

/* Walk to the place where the page costs too much, or to its end. The rest from `kept` on is not written yet. False if
   there is no memory. */
static bool walk(Cost *cost, Text *rest, Written *written, const byte **kept) {
    const byte *stop = rest->end;
    bool odd = false, frames = false;
    Tag tag;
    while (rest->start < stop) {
        const byte *at = memchr(rest->start, '<', stop - rest->start);
        if (!at || at + 1 >= stop) break;
        bool closing = at[1] == '/' && at + 2 < stop && is_letter(at[2]);
        if (!closing && !is_letter(at[1])) {
            rest->start = at + 1;
            if (at[1] != '!' && at[1] != '?' && at[1] != '/') continue;
            cost->tags++, cost->units += 2;
            if (is_too_much(cost)) {
                rest->start = at;
                return true;
            }
            if (odd && stop - at >= 9 && !memcmp(at, "<![CDATA[", 9)) {
                if (!put_reference(written, kept, at, "&lt;")) return false;
            } else {
                rest->start++;
                skip_comment(rest, at[1] == '!');
            }
            continue;
        }
        cost->tags++;
        rest->start = at + 1 + closing;
        if (!read_tag(rest, &tag, false)) {
            rest->start = tag.attributes > MOST_ATTRIBUTES ? at : stop;
            return true;
        }
        uint64_t hash = hash_of_name(tag.name);
        int is = what_is(tag.name, hash);
        if (closing)
            end(cost, tag.name, hash, is);
        else
            begin(cost, &tag, (Text){at, rest->start}, hash, is);
        if (is_too_much(cost)) {
            rest->start = at;
            return true;
        }
        if (closing) continue;
        odd = odd || is & ODD;
        frames = frames || !strcmp(tag.name, "frameset");
        bool plain = !strcmp(tag.name, "plaintext");
        bool unsure = odd || (frames && strcmp(tag.name, "noframes"));
        if (unsure && (plain || (is & TEXT && rest->start[-2] == '/'))) {
            if (!put_reference(written, kept, at, "&lt;")) return false;
            continue;
        }
        if (plain) break;
        if (!(is & TEXT)) continue;
        const byte *behind = end_of_text(rest->start, stop, tag.name);
        if (unsure) {
            for (const byte *of = rest->start; of < behind && (of = memchr(of, '<', behind - of)); of++) cost->tags++;
            if (is_too_much(cost)) {
                rest->start = at;
                return true;
            }
            const char *reference = !strcmp(tag.name, "script") ? "\\u003c" : "&lt;";
            for (const byte *of = rest->start; of < behind && (of = memchr(of, '<', behind - of)); of++)
                if (!put_reference(written, kept, of, reference)) return false;
        }
        rest->start = behind;
    }
    rest->start = stop;
    return true;
}

PyDoc_STRVAR(walk_doc, "walk(content) -> (content, size, microseconds)\n\n"
                       "As much of `content` (bytes, UTF-8) from its beginning as may be parsed, how many of its bytes\n"
                       "that is, and microseconds that it may take beside what all pages take.");

static PyObject *walk_content(PyObject *module, PyObject *content) {
    char *data;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(content, &data, &size)) return NULL;
    Cost *cost = PyMem_Calloc(1, sizeof *cost);
    if (!cost) return PyErr_NoMemory();
    Text rest = {(const byte *)data, (const byte *)data + size};
    Written written = {NULL, 0, 0};
    const byte *kept = rest.start;
    PyObject *part = NULL;
    if (!walk(cost, &rest, &written, &kept))
        PyErr_NoMemory();
    else if (!written.size && rest.start == rest.end)
        part = Py_NewRef(content);
    else if (!written.size)
        part = PyBytes_FromStringAndSize(data, rest.start - kept);
    else if (put(&written, kept, rest.start))
        part = PyBytes_FromStringAndSize((const char *)written.text, written.size);
    else
        PyErr_NoMemory();
    Py_ssize_t walked = rest.start - (const byte *)data;
    long long us = (cost->again * AGAIN_NS + cost->steps * STEP_NS + cost->pairs * PAIR_NS) / 1000;
    PyMem_Free(written.text);
    PyMem_Free(cost);
    return part ? Py_BuildValue("(NnL)", part, walked, us) : NULL;
}

static PyMethodDef functions[] = {{"walk", walk_content, METH_O, walk_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "walker", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_walker(void) {
    learn_all();
    return PyModule_Create(&module_of);
}
