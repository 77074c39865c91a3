/* The letters of a page's texts, and the fingerprints of a text, for fyke.harvest.new_text: what its
   `letters_by_patterns` and `fingerprints_by_columns` do in Python, in one pass each.

   Optional. Invariant: the same as there. Time and memory are linear. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef unsigned char byte;

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }
static bool is_blank(byte c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool begins(const byte *at, const byte *end, const char *what) {
    for (; *what; what++, at++)
        if (at >= end || lower(*at) != (byte)*what) return false;
    return true;
}

/* Return where the end tag of the script or style sheet at `at` begins; `at` itself if none begins there. */
static const byte *behind_code(const byte *at, const byte *end) {
    static const char *const tags[][2] = {{"<script", "</script"}, {"<style", "</style"}};
    for (int which = 0; which < 2; which++) {
        if (!begins(at, end, tags[which][0])) continue;
        for (at++; at < end && (at = memchr(at, '<', end - at)); at++)
            if (begins(at, end, tags[which][1])) return at;
        return end;
    }
    return at;
}

/* The letter that a byte of a text becomes: in lower case, the end of a line, nothing, or the end of the text. */
enum { NOTHING = 0, SIGN = 1 };
static byte means[256];

static void know_bytes(void) {
    for (int c = 0x80; c < 256; c++) means[c] = (byte)c;
    for (int c = 'a'; c <= 'z'; c++) means[c] = means[c - 'a' + 'A'] = (byte)c;
    means['\n'] = '\n', means['<'] = means['>'] = SIGN;
}

/* Return the next < or > from `at` on, or the end. */
static const byte *next_sign(const byte *at, const byte *end) {
    while (at < end && means[*at] != SIGN) at++;
    return at;
}

/* Return the end of the link at `at`, behind its text; `at` itself if none begins there. */
static const byte *behind_link(const byte *at, const byte *end) {
    if (end - at < 3 || lower(at[1]) != 'a' || !is_blank(at[2])) return at;
    const byte *behind = next_sign(at + 3, end);
    return behind < end && *behind == '>' ? next_sign(behind + 1, end) : at;
}

PyDoc_STRVAR(letters_doc,
             "letters(content) -> bytes\n\n"
             "The letters of the texts between the tags of `content` (bytes, HTML), in small, and bytes of other\n"
             "alphabets; a line for each text. Not of scripts, style sheets, and links.");

static PyObject *letters(PyObject *module, PyObject *content) {
    char *given;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(content, &given, &size)) return NULL;
    byte *found = PyMem_Malloc(size + 2), *put = found;
    if (!found) return PyErr_NoMemory();
    const byte *at = (const byte *)given, *end = at + size;
    while ((at = next_sign(at, end)) < end) {
        if (*at++ == '<') {
            const byte *behind = behind_code(at - 1, end);
            if (behind == at - 1) behind = behind_link(at - 1, end);
            if (behind >= at) at = behind;
            continue;
        }
        for (byte meant; at < end && (meant = means[*at]) != SIGN; at++) {
            *put = meant;
            put += meant != NOTHING;
        }
        if (put > found && put[-1] != '\n') *put++ = '\n';
    }
    PyObject *result = PyBytes_FromStringAndSize((const char *)found, put - found);
    PyMem_Free(found);
    return result;
}

/* The hash of a gram, and where it begins: in its block, or in all of the text. */
typedef struct {
    uint64_t key;
    int64_t at;
} gram;

enum { GRAM = 18, WINDOW = 8 };
static const uint64_t base = 0xD6E8FEB86659FD93u;
static uint64_t codes[256], left[256]; /* of a letter; and of one that leaves a gram */

static void know_codes(void) {
    uint64_t power = 1;
    for (int n = 0; n < GRAM; n++) power *= base;
    for (uint64_t c = 0; c < 256; c++) {
        uint64_t mixed = (c + 1) * 0x9E3779B97F4A7C15u;
        codes[c] = mixed ^ mixed >> 29;
        left[c] = codes[c] * power;
    }
}

/* Write the fingerprints of a block of `size` letters, at least GRAM, at `put`; return their end. `open` holds the grams
   of the window that have no smaller or equal gram behind them. The first is the least; each other one is the least once
   those before it have left the window. */
static gram *put_block(gram *put, const byte *block, int64_t size, int64_t begin) {
    gram open[WINDOW];
    int64_t first = 0, behind = 0, last = -1; /* the first two count all that ever were in `open` */
    uint64_t key = 0;
    for (int64_t at = 0; at < GRAM - 1; at++) key = key * base + codes[block[at]];
    for (int64_t at = 0; at <= size - GRAM; at++) {
        key = key * base + codes[block[at + GRAM - 1]] - (at ? left[block[at - 1]] : 0);
        if (behind > first && open[first % WINDOW].at == at - WINDOW) first++;
        while (behind > first && open[(behind - 1) % WINDOW].key >= key) behind--;
        open[behind++ % WINDOW] = (gram){key, at};
        if (at < WINDOW - 1 && at < size - GRAM) continue; /* the first window is not whole yet */
        if (open[first % WINDOW].at == last) continue;
        last = open[first % WINDOW].at;
        *put++ = (gram){open[first % WINDOW].key, begin + last};
    }
    return put;
}

PyDoc_STRVAR(fingerprints_doc,
             "fingerprints(text) -> bytes\n\n"
             "The fingerprints of blocks of letters, a line each (`text`, bytes), in order: pairs of the hash of a gram\n"
             "and where it begins (native uint64, int64).");

static PyObject *fingerprints(PyObject *module, PyObject *text) {
    char *given;
    Py_ssize_t size;
    (void)module;
    if (PyBytes_AsStringAndSize(text, &given, &size)) return NULL;
    gram *all = PyMem_Malloc((size + 1) * sizeof *all), *put = all;
    if (!all) return PyErr_NoMemory();
    const byte *at = (const byte *)given, *end = at + size;
    while (at < end) {
        const byte *behind = memchr(at, '\n', end - at);
        if (!behind) behind = end;
        if (behind - at >= GRAM) put = put_block(put, at, behind - at, at - (const byte *)given);
        at = behind + (behind < end);
    }
    PyObject *result = PyBytes_FromStringAndSize((const char *)all, (put - all) * sizeof *all);
    PyMem_Free(all);
    return result;
}

static PyMethodDef functions[] = {
    {"letters", letters, METH_O, letters_doc}, {"fingerprints", fingerprints, METH_O, fingerprints_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "letters", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_letters(void) {
    know_bytes();
    know_codes();
    return PyModule_Create(&module_of);
}
