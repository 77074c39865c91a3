/* The links of a page, read out of its bytes without a tree.

   Called by fyke.harvest.links for pages whose tree nobody asks for. It is optional; without it the tree is made.
   It follows the tokenizer of the HTML standard (13.2.5), and tree construction (13.2.6) only as far as it tells whether
   a tag becomes an element, and where. If that is not enough it returns None, and the tree decides: in templates, frames,
   MathML, in documents that a frame holds (srcdoc), in tags that an inline SVG or a <select> seldom holds, and in a table
   outside its cells (links there move before the table).

   Invariant: a result that is not None is what fyke.harvest.links reads out of lexbor's tree of the same bytes. Time
   and memory are linear in the page. */

#include "../core/tokens.h"

#define MOST_TABLES 64
#define MOST_SVG 32
#define MOST_HELD 200000 /* links; then `fewer` is called */
#define MOST_DECODED 32 /* values that Python decodes, some 30 us each */

enum { DONE, UNSURE, FAILED }; /* results of a step; FAILED sets an exception */

typedef struct {
    Text rest; /* of the page */
    PyObject *pages, *shunned, *others, *decode, *fewer;
    Text product, title;
    bool has_title;
    int tables, decoded;
    bool cell[MOST_TABLES]; /* whether the table is in a cell or caption */
} Scan;

/* -- values ---------------------------------------------------------------------------------------------------------- */

/* Return whether the reference at `at` (behind the ampersand) is one of a few common ones; if so, set its character and
   its end. `*literal`: the ampersand stands for itself, as the standard says for attributes. */
static bool known_reference(const byte *at, const byte *end, char *character, const byte **behind, bool *literal) {
    static const struct {
        const char *name;
        char character;
    } known[] = {{"amp;", '&'}, {"lt;", '<'}, {"gt;", '>'}, {"quot;", '"'}, {NULL, 0}};
    *literal = false;
    for (int which = 0; known[which].name; which++) {
        size_t size = strlen(known[which].name);
        if ((size_t)(end - at) >= size && !memcmp(at, known[which].name, size)) {
            *character = known[which].character, *behind = at + size;
            return true;
        }
    }
    if (at < end && *at == '#') return false;
    const byte *stop = at;
    while (stop < end && (is_letter(*stop) || is_digit(*stop))) stop++;
    *literal = stop == at || (stop < end && *stop == '=');
    return *literal;
}

/* Return a value as text; `decode` reads values that are not plain. NULL with an exception set, or if too many are not. */
static PyObject *text_of(Scan *scan, Text raw) {
    Py_ssize_t size = raw.end - raw.start;
    if (memchr(raw.start, '\r', size)) goto odd;
    const byte *at = memchr(raw.start, '&', size);
    if (!at) return PyUnicode_DecodeUTF8((const char *)raw.start, size, "replace");
    PyObject *found = NULL;
    byte *plain = PyMem_Malloc(size), *put = plain;
    if (!plain) return PyErr_NoMemory();
    memcpy(put, raw.start, at - raw.start);
    put += at - raw.start;
    while (at < raw.end) {
        if (*at == '&') {
            char character;
            bool literal;
            const byte *behind;
            if (!known_reference(at + 1, raw.end, &character, &behind, &literal)) {
                PyMem_Free(plain);
                goto odd;
            }
            if (!literal) {
                *put++ = (byte)character, at = behind;
                continue;
            }
        }
        *put++ = *at++;
    }
    found = PyUnicode_DecodeUTF8((const char *)plain, put - plain, "replace");
    PyMem_Free(plain);
    return found;
odd:
    if (++scan->decoded > MOST_DECODED) return NULL;
    return PyObject_CallFunction(scan->decode, "y#", (const char *)raw.start, size);
}

static bool is_empty(const Tag *tag, int which) {
    return !tag->has[which] || tag->value[which].start == tag->value[which].end;
}

static int append(PyObject *list, PyObject *item) {
    if (!item) return FAILED;
    int failed = PyList_Append(list, item);
    Py_DECREF(item);
    return failed ? FAILED : DONE;
}

/* Add a link. If there are very many, only those that `fewer` returns are kept, at most half of them. */
static int append_link(Scan *scan, PyObject **links, PyObject *link) {
    int step = append(*links, link);
    if (step || PyList_GET_SIZE(*links) < MOST_HELD) return step;
    PyObject *fewer = PyObject_CallOneArg(scan->fewer, *links);
    if (!fewer) return FAILED;
    Py_SETREF(*links, fewer);
    return DONE;
}

/* -- what is read ------------------------------------------------------------------------------------------------------ */

/* Return whether `rel` has the word nofollow, as Python's `split` and `lower` find it; sets *unsure if bytes cannot tell. */
static bool shuns(Text rel, bool *unsure) {
    for (const byte *at = rel.start; at < rel.end; at++)
        if (*at >= 0x80 || *at == '&' || (*at < ' ' && !is_blank(*at))) {
            *unsure = true;
            return false;
        }
    const byte *at = rel.start;
    while (at < rel.end) {
        while (at < rel.end && is_blank(*at)) at++;
        const byte *word = at;
        while (at < rel.end && !is_blank(*at)) at++;
        if (equals((Text){word, at}, "nofollow")) return true;
    }
    return false;
}

static int read_anchor(Scan *scan, const Tag *tag) {
    bool unsure = false, shunned = false;
    if (is_empty(tag, HREF)) return tag->has[XLINK] ? UNSURE : DONE;
    if (*tag->value[HREF].start == '#') return DONE; /* it leads within the page */
    if (tag->has[REL]) shunned = shuns(tag->value[REL], &unsure);
    return unsure ? UNSURE : append_link(scan, shunned ? &scan->shunned : &scan->pages, text_of(scan, tag->value[HREF]));
}

static PyObject *value_of(Scan *scan, const Tag *tag, int which) {
    return is_empty(tag, which) ? PyUnicode_FromString("") : text_of(scan, tag->value[which]);
}

/* Add two attributes of an element to `others`. */
static int note(Scan *scan, const Tag *tag, int first, int second) {
    PyObject *one = value_of(scan, tag, first);
    PyObject *two = one && second >= 0 ? value_of(scan, tag, second) : one ? PyUnicode_FromString("") : NULL;
    PyObject *item = two ? Py_BuildValue("(sOO)", tag->name, one, two) : NULL;
    Py_XDECREF(one);
    Py_XDECREF(two);
    return append(scan->others, item);
}

static int read_meta(Scan *scan, const Tag *tag) {
    if (is_empty(tag, CONTENT)) return DONE;
    for (int which = META_NAME; which <= HTTP_EQUIV; which++)
        if (tag->has[which])
            for (const byte *at = tag->value[which].start; at < tag->value[which].end; at++)
                if (*at >= 0x80 || *at == '&') return UNSURE;
    Text name = tag->has[META_NAME] ? tag->value[META_NAME] : (Text){scan->rest.start, scan->rest.start};
    Py_ssize_t size = scan->product.end - scan->product.start;
    bool ours = name.end - name.start == size && begins(name.start, name.end, (const char *)scan->product.start);
    if (equals(name, "robots") || ours) return note(scan, tag, CONTENT, -1);
    if (!tag->has[HTTP_EQUIV] || !equals(tag->value[HTTP_EQUIV], "refresh")) return DONE;
    PyObject *content = text_of(scan, tag->value[CONTENT]);
    PyObject *item = content ? Py_BuildValue("(sOs)", "refresh", content, "") : NULL;
    Py_XDECREF(content);
    return append(scan->others, item);
}

static const byte *next_tag(const Scan *scan) {
    const byte *at = scan->rest.start, *end = scan->rest.end;
    return at < end ? memchr(at, '<', end - at) : NULL;
}

/* Skip the text of an element that holds no tags, and its end tag. */
static int skip_raw(Scan *scan, const char *name, Text *text) {
    const byte *start = scan->rest.start;
    Tag tag;
    scan->rest.start = end_of_text(start, scan->rest.end, name);
    if (text) *text = (Text){start, scan->rest.start};
    if (scan->rest.start == scan->rest.end) return DONE;
    scan->rest.start += 2;
    return read_tag(&scan->rest, &tag, true) ? DONE : UNSURE;
}

/* Read a tag; false if no name begins here. */
static bool read_name(Scan *scan, Tag *tag) {
    return scan->rest.start < scan->rest.end && is_letter(*scan->rest.start) && read_tag(&scan->rest, tag, true);
}

/* Skip an inline SVG that has only shapes. */
static int skip_svg(Scan *scan) {
    char open[MOST_SVG][NAME + 1];
    int depth = 0;
    Tag tag;
    for (;;) {
        const byte *at = next_tag(scan);
        if (!at || at + 1 >= scan->rest.end) return UNSURE;
        bool closing = at[1] == '/';
        scan->rest.start = at + 1 + closing;
        if (!closing && begins(scan->rest.start, scan->rest.end, "!--")) {
            scan->rest.start++;
            skip_comment(&scan->rest, true);
            continue;
        }
        if (!read_name(scan, &tag)) return UNSURE;
        if (closing) {
            if (!strcmp(tag.name, "svg")) return DONE;
            if (!depth || strcmp(tag.name, open[--depth])) return UNSURE;
        } else if (!depth && !strcmp(tag.name, "title") && !tag.closes_itself) {
            at = next_tag(scan);
            if (!at || !is_tag(at, scan->rest.end, "title", true)) return UNSURE;
            scan->rest.start = at + 2;
            if (!read_tag(&scan->rest, &tag, true)) return UNSURE;
        } else if (!one_of(tag.name, shapes)) {
            return UNSURE;
        } else if (!tag.closes_itself) {
            if (depth == MOST_SVG) return UNSURE;
            strcpy(open[depth++], tag.name);
        }
    }
}

/* Skip a <select> that has only options. */
static int skip_select(Scan *scan) {
    Tag tag;
    for (;;) {
        const byte *at = next_tag(scan);
        if (!at || at + 1 >= scan->rest.end) return UNSURE;
        bool closing = at[1] == '/';
        scan->rest.start = at + 1 + closing;
        if (!read_name(scan, &tag)) return UNSURE;
        if (closing && !strcmp(tag.name, "select")) return DONE;
        if (strcmp(tag.name, "option") && strcmp(tag.name, "optgroup")) return UNSURE;
    }
}

static bool outside_cells(const Scan *scan) { return scan->tables && !scan->cell[scan->tables - 1]; }

/* Track tables and cells: nothing may be read in a table outside its cells. */
static int place_in_table(Scan *scan, const char *name, bool closing) {
    static const char *const parts[] = {"tr", "tbody", "thead", "tfoot", "td", "th", "caption", "col", "colgroup",
                                        NULL};
    if (!strcmp(name, "table")) {
        if (closing)
            scan->tables -= scan->tables > 0;
        else if (!outside_cells(scan)) {
            if (scan->tables == MOST_TABLES) return UNSURE;
            scan->cell[scan->tables++] = false;
        }
    } else if (scan->tables && one_of(name, parts)) {
        bool holds = !strcmp(name, "td") || !strcmp(name, "th") || !strcmp(name, "caption");
        scan->cell[scan->tables - 1] = holds && !closing;
    }
    return DONE;
}

static int read_kept(Scan *scan, const Tag *tag) {
    const char *name = tag->name;
    if (outside_cells(scan)) return UNSURE;
    if (*name == 'a') return read_anchor(scan, tag);
    if (*name == 'm') return read_meta(scan, tag);
    if (*name == 'l') return is_empty(tag, HREF) ? DONE : note(scan, tag, HREF, REL);
    if (*name == 'b') return tag->has[HREF] ? note(scan, tag, HREF, -1) : DONE;
    if (!is_empty(tag, SRCDOC)) return UNSURE;
    int step = is_empty(tag, SRC) ? DONE : note(scan, tag, SRC, -1);
    return step ? step : skip_raw(scan, name, NULL);
}

static int read_element(Scan *scan, const Tag *tag) {
    static const char *const raw[] = {"script", "style", "textarea", "noembed", "xmp", NULL};
    static const char *const odd[] = {"template", "frameset", "frame", "noframes", "plaintext", "math", NULL};
    const char *name = tag->name;
    if (tag->read) return read_kept(scan, tag);
    if (!*name || !strchr("tcsnxfpm", *name)) return DONE;
    if (!strcmp(name, "title")) {
        if (outside_cells(scan)) return UNSURE;
        int step = skip_raw(scan, name, scan->has_title ? NULL : &scan->title);
        scan->has_title = true;
        return step;
    }
    if (one_of(name, raw)) return skip_raw(scan, name, NULL);
    if (!strcmp(name, "svg")) return tag->closes_itself ? DONE : skip_svg(scan);
    if (!strcmp(name, "select")) return skip_select(scan);
    return one_of(name, odd) ? UNSURE : place_in_table(scan, name, false);
}

static int read_page(Scan *scan) {
    Tag tag;
    for (const byte *at; (at = next_tag(scan));) {
        scan->rest.start = at;
        if (++scan->rest.start >= scan->rest.end) break;
        int step = DONE;
        byte first = *scan->rest.start;
        if (is_letter(first)) {
            if (!read_tag(&scan->rest, &tag, true)) return tag.attributes > MOST_ATTRIBUTES ? UNSURE : DONE;
            step = read_element(scan, &tag);
        } else if (first == '/' && scan->rest.start + 1 < scan->rest.end && is_letter(scan->rest.start[1])) {
            scan->rest.start++;
            if (!read_tag(&scan->rest, &tag, true)) return tag.attributes > MOST_ATTRIBUTES ? UNSURE : DONE;
            if (*tag.name == 't' || *tag.name == 'c') step = place_in_table(scan, tag.name, true);
        } else if (first == '!' || first == '?' || first == '/') {
            scan->rest.start++;
            skip_comment(&scan->rest, first == '!');
        }
        if (step) return step;
    }
    return DONE;
}

PyDoc_STRVAR(scan_doc,
             "scan(content, product, decode, fewer) -> (pages, shunned, others, title) or None\n\n"
             "What the HTML in `content` (bytes, UTF-8) points at: links, those of them that are nofollow, a tuple of\n"
             "three texts for each link, base, iframe, and meta that counts (refresh, or for robots or `product`), and\n"
             "the bytes of the title. `decode` reads a value with character references, `fewer` says which of very many links\n"
             "are kept. None: the tree must decide.");

static PyObject *scan_content(PyObject *module, PyObject *args) {
    const char *content, *product;
    Py_ssize_t size, product_size;
    Scan scan = {0};
    PyObject *found = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "y#y#OO", &content, &size, &product, &product_size, &scan.decode, &scan.fewer))
        return NULL;
    scan.rest.start = (const byte *)content, scan.rest.end = scan.rest.start + size;
    scan.product = (Text){(const byte *)product, (const byte *)product + product_size};
    scan.title = (Text){scan.rest.start, scan.rest.start};
    if (memchr(content, 0, size)) Py_RETURN_NONE;
    scan.pages = PyList_New(0), scan.shunned = PyList_New(0), scan.others = PyList_New(0);
    int step = scan.pages && scan.shunned && scan.others ? read_page(&scan) : FAILED;
    if (step == UNSURE || (step == FAILED && !PyErr_Occurred()))
        found = Py_NewRef(Py_None);
    else if (step == DONE)
        found = Py_BuildValue("(OOOy#)", scan.pages, scan.shunned, scan.others, (const char *)scan.title.start,
                              (Py_ssize_t)(scan.title.end - scan.title.start));
    Py_XDECREF(scan.pages);
    Py_XDECREF(scan.shunned);
    Py_XDECREF(scan.others);
    return found;
}

static PyMethodDef functions[] = {{"scan", scan_content, METH_VARARGS, scan_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "scanner", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_scanner(void) { return PyModule_Create(&module_of); }
