/* The letters of a page's texts, and how many of them were not met before, for fyke.harvest.new_text: what its
   `letters_by_patterns` and `unmet_letters_by_columns` do in Python.

   Optional. Invariant: the same as there. Time and memory are linear. */

#define _GNU_SOURCE /* memmem */
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

PyDoc_STRVAR(without_words_doc,
             "without_words(text, words) -> bytes\n\n"
             "`text` (bytes) with 0 for each letter of a place where one of `words` (a sequence of bytes) stands.");

static PyObject *without_words(PyObject *module, PyObject *args) {
    PyObject *text, *words, *result = NULL;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO", &text, &words)) return NULL;
    PyObject *list = PySequence_Fast(words, "words must be a sequence");
    if (!list) return NULL;
    const char *begin = PyBytes_AS_STRING(text), *end = begin + PyBytes_GET_SIZE(text);
    if (!(result = PyBytes_FromStringAndSize(NULL, end - begin))) goto done; /* a copy of a letter would be Python's own */
    memcpy(PyBytes_AS_STRING(result), begin, end - begin);
    for (Py_ssize_t n = 0; n < PySequence_Fast_GET_SIZE(list); n++) {
        char *word;
        Py_ssize_t size;
        if (PyBytes_AsStringAndSize(PySequence_Fast_GET_ITEM(list, n), &word, &size)) {
            Py_CLEAR(result);
            break;
        }
        for (const char *at = begin; size && (at = memmem(at, end - at, word, size)); at += size)
            memset(PyBytes_AS_STRING(result) + (at - begin), 0, size);
    }
done:
    Py_DECREF(list);
    return result;
}

/* A gram that is kept: its place and mark in the table of met ones, where it begins, and the mark found there. */
typedef struct {
    uint64_t place;
    int64_t at;
    uint32_t mark, before;
} gram;

enum { GRAM = 18, WINDOW = 8 };
static const uint64_t base = 0xD6E8FEB86659FD93u, mix = 0x9E3779B97F4A7C15u;
static uint64_t codes[256], left[256]; /* of a letter; and of one that leaves a gram */

static void know_codes(void) {
    uint64_t power = 1;
    for (int n = 0; n < GRAM; n++) power *= base;
    for (uint64_t c = 0; c < 256; c++) {
        uint64_t mixed = (c + 1) * mix;
        codes[c] = mixed ^ mixed >> 29;
        left[c] = codes[c] * power;
    }
}

/* Return which of the grams that begin at `from` to `last` has the least of `keys`; the last of equal ones. */
static uint64_t least_of(const uint64_t *keys, uint64_t from, uint64_t last) {
    uint64_t least = from, key = keys[from % WINDOW];
    for (uint64_t at = from + 1; at <= last; at++) {
        bool less = keys[at % WINDOW] <= key;
        key = less ? keys[at % WINDOW] : key;
        least = less ? at : least;
    }
    return least;
}

/* The table of met grams: marks at a power of two of places. */
typedef struct {
    uint32_t *marks;
    uint64_t places, domain;
} table;

/* Write the grams that are kept of the letters from `begin` to `end`, at least GRAM, at `put`; return their end. */
static gram *keep(gram *put, const byte *text, uint64_t begin, uint64_t end, const table *met) {
    uint64_t keys[WINDOW], key = 0; /* of the latest grams */
    uint64_t least = begin, last = end - GRAM, whole = begin + WINDOW - 1 < last ? begin + WINDOW - 1 : last;
    for (uint64_t at = begin; at < begin + GRAM - 1; at++) key = key * base + codes[text[at]];
    for (uint64_t at = begin; at <= last; at++) {
        key = key * base + codes[text[at + GRAM - 1]] - (at > begin ? left[text[at - 1]] : 0);
        keys[at % WINDOW] = key;
        if (at < whole) continue; /* the first window is not whole yet */
        if (at == whole) least = least_of(keys, begin, at);
        else if (least + WINDOW == at) least = least_of(keys, at - WINDOW + 1, at); /* its key is gone */
        else if (key <= keys[least % WINDOW]) least = at;
        else continue;
        uint64_t mixed = (keys[least % WINDOW] ^ met->domain) * mix;
        *put++ = (gram){mixed & (met->places - 1), least, (uint32_t)(mixed >> 32) | 1, 0};
        __builtin_prefetch(met->marks + put[-1].place, 1);
    }
    return put;
}

static int64_t end_of_block(const byte *text, int64_t at, int64_t size) {
    const byte *end = memchr(text + at, '\n', size - at);
    return end ? end - text : size;
}

/* Write the grams that are kept of each block of `text`, and have the table know them; return their end. */
static gram *remember_all(gram *grams, const byte *text, int64_t size, table *met) {
    gram *put = grams;
    for (int64_t at = 0, end; at < size; at = end + 1) {
        end = end_of_block(text, at, size);
        if (end - at >= GRAM) put = keep(put, text, at, end, met);
    }
    for (gram *one = grams; one < put; one++) {
        one->before = met->marks[one->place];
        met->marks[one->place] = one->mark;
    }
    return put;
}

static void forget_all(const gram *grams, const gram *end, table *met) {
    while (end-- > grams) met->marks[end->place] = end->before;
}

static long long count_said(const byte *said, int64_t at, int64_t end) {
    int64_t count = 0;
    for (; at < end; at++) count += said[at] != 0;
    return count;
}

/* Return how many letters of the block from `at` to `end` say something, and are in none of the grams from `*one` on that
   were met. Leave `*one` behind the block. */
static long long count_block(const byte *said, int64_t at, int64_t end, const gram **one, const gram *last) {
    long long count = 0;
    for (; *one < last && (*one)->at < end; ++*one) {
        if ((*one)->before != (*one)->mark) continue;
        int64_t begins = (*one)->at - (WINDOW - 1), ends = (*one)->at + GRAM + WINDOW - 1;
        count += count_said(said, at, begins);
        at = ends < end ? ends : end;
    }
    return count + count_said(said, at, end);
}

PyDoc_STRVAR(unmet_letters_doc,
             "unmet_letters(text, said, met, domain, remember) -> list[int]\n\n"
             "How many letters of each block of `text` (bytes, a line each) lie in no gram that the table `met` has\n"
             "for `domain`, or that came before in the text, and are not 0 in `said` (bytes, as long). If told to\n"
             "`remember`, the grams are in the table `met` (buffer of uint32, a power of two of them) from then on.\n"
             "Raises ValueError if sizes do not fit.");

static PyObject *unmet_letters(PyObject *module, PyObject *args) {
    PyObject *text, *said, *result = NULL;
    Py_buffer met;
    unsigned long long domain;
    int remember;
    (void)module;
    if (!PyArg_ParseTuple(args, "SSw*Kp", &text, &said, &met, &domain, &remember)) return NULL;
    const byte *letters = (const byte *)PyBytes_AS_STRING(text), *says = (const byte *)PyBytes_AS_STRING(said);
    int64_t size = PyBytes_GET_SIZE(text);
    table known = {met.buf, met.len / sizeof(uint32_t), domain};
    gram *grams = NULL;
    if (PyBytes_GET_SIZE(said) != size || !known.places || known.places & (known.places - 1)) {
        PyErr_SetString(PyExc_ValueError, "sizes do not fit");
    } else if (!(grams = PyMem_Malloc((size + 1) * sizeof *grams))) {
        PyErr_NoMemory();
    } else {
        const gram *last = remember_all(grams, letters, size, &known), *one = grams;
        result = PyList_New(0);
        for (int64_t at = 0, end; result && at <= size; at = end + 1) {
            end = end_of_block(letters, at, size);
            PyObject *count = PyLong_FromLongLong(count_block(says, at, end, &one, last));
            if (!count || PyList_Append(result, count)) Py_CLEAR(result);
            Py_XDECREF(count);
        }
        if (!remember) forget_all(grams, last, &known);
    }
    PyMem_Free(grams);
    PyBuffer_Release(&met);
    return result;
}

static PyMethodDef functions[] = {
    {"letters", letters, METH_O, letters_doc},
    {"without_words", without_words, METH_VARARGS, without_words_doc},
    {"unmet_letters", unmet_letters, METH_VARARGS, unmet_letters_doc},
    {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "letters", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_letters(void) {
    know_bytes();
    know_codes();
    return PyModule_Create(&module_of);
}
