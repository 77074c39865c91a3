/* The letters of a page's texts, for fyke.harvest.new_text: what its `letters` does in Python, in one pass.

   Optional; without it the same is done by regular expressions. Invariant: the same bytes as there. Time and memory are
   linear in the page. */

#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <stdbool.h>
#include <string.h>

typedef unsigned char byte;

static byte lower(byte c) { return c >= 'A' && c <= 'Z' ? c | 0x20 : c; }
static bool is_blank(byte c) { return c == ' ' || (c >= '\t' && c <= '\r'); }

static bool begins(const byte *at, const byte *end, const char *what) {
    for (; *what; what++, at++)
        if (at >= end || lower(*at) != (byte)*what) return false;
    return true;
}

/* Behind the script or style sheet that begins at `at`: where its end tag begins; `at` itself where none begins. */
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

/* What a byte of a text becomes: a letter in small, the end of a line; none; or the text ends. */
enum { NOTHING = 0, SIGN = 1 };
static byte means[256];

static void know_bytes(void) {
    for (int c = 0x80; c < 256; c++) means[c] = (byte)c;
    for (int c = 'a'; c <= 'z'; c++) means[c] = means[c - 'a' + 'A'] = (byte)c;
    means['\n'] = '\n', means['<'] = means['>'] = SIGN;
}

/* The next < or > from `at` on, or the end. */
static const byte *next_sign(const byte *at, const byte *end) {
    while (at < end && means[*at] != SIGN) at++;
    return at;
}

/* Behind the link that begins at `at`, and its text; `at` itself where none begins. */
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

static PyMethodDef functions[] = {{"letters", letters, METH_O, letters_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "letters", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_letters(void) {
    know_bytes();
    return PyModule_Create(&module_of);
}
