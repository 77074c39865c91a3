/* Joins the plain links of a page to its base, one at a time.

   Called by fyke.core.resolve, which says what a plain link is. It is optional, like the scanner. Other links are left to
   the caller's parser.

   Invariant: plain links lead to the same URLs as by that parser. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>

#define MOST_UPS 8
#define LONGEST_ROOT 300
#define MOST_URL 2048

typedef unsigned char byte;
typedef struct {
    const char *at;
    Py_ssize_t size;
} Text;

enum { SCHEME, ROOT, FOLDER, FILE_, PARTS, NONE = PARTS };

typedef struct {
    Py_ssize_t begin, query, end; /* of the part that stands for itself, without the fragment */
    int ups, prefix;              /* folders to leave; the part of the base that stands before it, or NONE */
    bool plain, absolute;
} Link;

/* Meanings of a byte in a link: itself, an escape's digit, or something else. */
static byte meaning[256];
enum { ITSELF, HASH, ASK, PERCENT, QUOTE, DOT, COLON, ODD };

static bool is_unreserved(int c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || (c && strchr("-._~", c));
}

static int value_of(byte c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1; }

/* Return whether the escape behind the per cent sign at `at` stays as it is. */
static bool stays(const byte *href, Py_ssize_t at, Py_ssize_t size) {
    int high = at + 1 < size ? value_of(href[at + 1]) : -1, low = at + 2 < size ? value_of(href[at + 2]) : -1;
    return high >= 0 && low >= 0 && !is_unreserved(16 * high + low);
}

static bool starts(const byte *href, Py_ssize_t size, const char *with) {
    size_t length = strlen(with);
    return (size_t)size >= length && !memcmp(href, with, length);
}

/* Find out how the link begins, and which part of the base stands before it. */
static bool read_start(const byte *href, Py_ssize_t size, Link *link) {
    if (href[0] == '.') {
        if (size > 1 && href[1] == '/') link->begin = 2;
        for (; link->ups < MOST_UPS && starts(href + link->begin, size - link->begin, "../"); link->ups++)
            link->begin += 3;
    }
    if (starts(href, size, "http://") || starts(href, size, "https://")) {
        link->absolute = true;
        link->prefix = NONE;
    } else if (starts(href, size, "//"))
        link->prefix = SCHEME;
    else if (href[0] == '/')
        link->prefix = ROOT;
    else if (href[0] == '?')
        link->prefix = FILE_;
    else if (link->begin ? link->begin == size || href[link->begin] != '.'
                         : meaning[href[0]] == ITSELF || meaning[href[0]] == PERCENT)
        link->prefix = FOLDER;
    else
        return false;
    return true;
}

static Link read_link(const byte *href, Py_ssize_t size) {
    Link link = {0, -1, size, 0, NONE, false, false};
    const byte *hash = memchr(href, '#', size);
    if (hash) link.end = hash - href;
    if (!size || !read_start(href, size, &link)) return link;
    bool named = link.prefix == FOLDER && !link.begin; /* a colon may end the name of a scheme */
    for (Py_ssize_t at = link.begin; at < link.end; at++)
        switch (meaning[href[at]]) {
            case ASK:
                if (link.query < 0) link.query = at;
                break;
            case PERCENT:
                if (!stays(href, at, size)) return link;
                break;
            case QUOTE:
                if (link.query >= 0) return link;
                break;
            case DOT:
                if (link.query < 0 && at && href[at - 1] == '/') return link;
                break;
            case COLON:
                if (named) return link;
                break;
            case ODD:
                return link;
        }
    if (link.query < 0) link.query = link.end;
    link.plain = link.query + 1 != link.end;
    return link;
}

/* Return the folder of `base` that is `ups` levels up, or the highest. */
static Text above(const Text *base, int ups) {
    Text folder = base[FOLDER];
    while (ups-- && folder.size > base[ROOT].size + 1) {
        folder.size--;
        while (folder.at[folder.size - 1] != '/') folder.size--;
    }
    return folder;
}

/* Return whether a link that names its root names that of its page. */
static bool is_own(const byte *href, const Link *link, const Text *base) {
    Text root = base[ROOT];
    if (!link->absolute) root.at += base[SCHEME].size, root.size -= base[SCHEME].size;
    return link->query > root.size && href[root.size] == '/' && !memcmp(href, root.at, root.size);
}

/* Return the keys of host and domain of a link that names its root: a borrowed tuple, None if it is not canonical. */
static PyObject *keys_of(const byte *href, const Link *link, const Text *base, PyObject *known, PyObject *keys_of_root) {
    Py_ssize_t host = link->absolute ? 8 : 2, before = link->absolute ? 0 : base[SCHEME].size;
    const byte *slash = link->query > host ? memchr(href + host, '/', link->query - host) : NULL;
    if (!slash || before + (slash - href) > LONGEST_ROOT) return Py_None;
    PyObject *root = PyBytes_FromStringAndSize(NULL, before + (slash - href));
    if (!root) return NULL;
    memcpy(PyBytes_AS_STRING(root), base[SCHEME].at, before);
    memcpy(PyBytes_AS_STRING(root) + before, href, slash - href);
    PyObject *keys = PyDict_GetItemWithError(known, root);
    if (!keys && !PyErr_Occurred()) {
        PyObject *found = PyObject_CallOneArg(keys_of_root, root);
        if (found && !PyDict_SetItem(known, root, found)) keys = found;
        Py_XDECREF(found);
    }
    Py_DECREF(root);
    return keys;
}

static int note(PyObject *list, PyObject *item) {
    int failed = item ? PyList_Append(list, item) : -1;
    Py_XDECREF(item);
    return failed;
}

typedef struct {
    Text base[PARTS];
    Py_ssize_t url_size, room; /* of the base, and of all links written out */
    PyObject *known, *keys_of_root, *urls, *left, *named;
} Page;

/* Write the URL of the link at `number` into `urls`, or its number into `left`. */
static int join(Page *page, Py_ssize_t number, PyObject *text) {
    Link link = {0, 0, 0, 0, NONE, false, false};
    const byte *href = NULL;
    PyObject *keys = NULL, *url;
    if (PyUnicode_IS_ASCII(text)) {
        Py_ssize_t size = PyUnicode_GET_LENGTH(text);
        href = PyUnicode_1BYTE_DATA(text);
        if (!memchr(href, '\n', size)) link = read_link(href, size);
    }
    link.plain = link.plain && page->base[FOLDER].size;
    if (link.plain && (link.absolute || link.prefix == SCHEME) && !is_own(href, &link, page->base)) {
        keys = keys_of(href, &link, page->base, page->known, page->keys_of_root);
        if (!keys) return -1;
        link.plain = keys != Py_None;
    }
    Text prefix = link.prefix == NONE ? (Text){"", 0} : page->base[link.prefix];
    if (link.plain && link.ups) prefix = above(page->base, link.ups);
    Py_ssize_t own = link.end - link.begin, size = link.plain ? prefix.size + own : page->url_size + link.end;
    page->room -= size;
    if (page->room < 0 || (link.plain && size > MOST_URL) || !link.plain) {
        if (page->room >= 0 && !link.plain && note(page->left, PyLong_FromSsize_t(number))) return -1;
        return note(page->urls, PyBytes_FromStringAndSize("", 0));
    }
    if (keys && note(page->named, Py_BuildValue("(nO)", number, keys))) return -1;
    url = PyBytes_FromStringAndSize(NULL, size);
    if (!url) return -1;
    memcpy(PyBytes_AS_STRING(url), prefix.at, prefix.size);
    memcpy(PyBytes_AS_STRING(url) + prefix.size, href + link.begin, own);
    return note(page->urls, url);
}

PyDoc_STRVAR(join_doc,
             "join(hrefs, (scheme, root, folder, file), url_size, room, known, keys_of_root) -> (urls, left, named, cut)\n\n"
             "The URLs of the plain links in the list `hrefs`, b'' for others; the numbers of those that a parser must\n"
             "read; and for links that name their host its keys, as (number, keys). `known` has the keys of roots met.\n"
             "`room` bounds what all come to, and `url_size` is that of the base: links behind are dropped, which `cut`\n"
             "says.");

static PyObject *join_links(PyObject *module, PyObject *args) {
    PyObject *hrefs, *found = NULL;
    Page page;
    Text *base = page.base;
    (void)module;
    if (!PyArg_ParseTuple(args, "O!(y#y#y#y#)nnO!O", &PyList_Type, &hrefs, &base[SCHEME].at, &base[SCHEME].size,
                          &base[ROOT].at, &base[ROOT].size, &base[FOLDER].at, &base[FOLDER].size, &base[FILE_].at,
                          &base[FILE_].size, &page.url_size, &page.room, &PyDict_Type, &page.known, &page.keys_of_root))
        return NULL;
    page.urls = PyList_New(0), page.left = PyList_New(0), page.named = PyList_New(0);
    int failed = !page.urls || !page.left || !page.named;
    for (Py_ssize_t number = 0; !failed && number < PyList_GET_SIZE(hrefs); number++)
        failed = join(&page, number, PyList_GET_ITEM(hrefs, number));
    if (!failed) found = PyTuple_Pack(4, page.urls, page.left, page.named, page.room < 0 ? Py_True : Py_False);
    Py_XDECREF(page.urls);
    Py_XDECREF(page.left);
    Py_XDECREF(page.named);
    return found;
}

static PyMethodDef functions[] = {{"join", join_links, METH_VARARGS, join_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "joiner", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_joiner(void) {
    for (int c = 0; c < 256; c++) meaning[c] = is_unreserved(c) || (c && strchr("!$&()*+,;=@/", c)) ? ITSELF : ODD;
    meaning['#'] = HASH, meaning['?'] = ASK, meaning['%'] = PERCENT, meaning['\''] = QUOTE, meaning['.'] = DOT;
    meaning[':'] = COLON;
    return PyModule_Create(&module_of);
}
