/* The letters of a page's texts, and the pieces of a text, for fyke.harvest.new_text: what its `letters_by_patterns` and
   `pieces_by_columns` do in Python, in one pass each.

   Optional. Invariant: the same as there, but that pieces are in the order of the text. Time and memory are linear. */

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

/* A piece: its hash, and how many letters it has. */
typedef struct {
    uint64_t key;
    int64_t length;
} piece;

enum { LEAST_PIECE = 8 };
static const uint64_t base = 0xD6E8FEB86659FD93u;
static uint64_t codes[256];
static byte ends[256], starts[256]; /* there is a cut between one that ends a piece and one that starts one */

static void know_codes(void) {
    for (uint64_t c = 0; c < 256; c++) {
        ends[c] = c != '\n' && c % 5 < 2;
        starts[c] = c % 5 == 2;
        uint64_t mixed = (c + 1) * 0x9E3779B97F4A7C15u;
        codes[c] = mixed ^ mixed >> 29;
    }
}

/* Puts `found` behind the `count` pieces at `all`, unless it is among them; `seats` (a power of two, with `mask`) has
   the number of each, from 1 on, near the place that its hash says. */
static Py_ssize_t put_piece(piece *all, Py_ssize_t count, uint32_t *seats, size_t mask, piece found) {
    size_t seat = found.key >> 20 & mask;
    for (; seats[seat]; seat = (seat + 1) & mask)
        if (all[seats[seat] - 1].key == found.key) return count;
    all[count++] = found;
    seats[seat] = (uint32_t)count;
    return count;
}

PyDoc_STRVAR(pieces_doc,
             "pieces(text) -> bytes\n\n"
             "The pieces of blocks of letters, a line each (`text`, bytes, less than 4 GiB), each once: pairs of their\n"
             "hash and their length (native uint64, int64).");

static PyObject *pieces(PyObject *module, PyObject *text) {
    char *given;
    Py_ssize_t size, count = 0;
    (void)module;
    if (PyBytes_AsStringAndSize(text, &given, &size)) return NULL;
    size_t seats_there = 16;
    while (seats_there < (size_t)size / LEAST_PIECE * 2) seats_there *= 2;
    piece *all = PyMem_Malloc((size / LEAST_PIECE + 1) * sizeof *all);
    uint32_t *seats = PyMem_Calloc(seats_there, sizeof *seats);
    if (all && seats) {
        piece open = {0, -1}; /* none is open */
        uint64_t power = 1;
        byte before = '\n';
        for (const byte *at = (const byte *)given, *end = at + size; at < end; before = *at++) {
            if (*at == '\n') {
                open.length = -1;
            } else if (ends[before] & starts[*at]) {
                if (open.length >= LEAST_PIECE) count = put_piece(all, count, seats, seats_there - 1, open);
                open = (piece){0, 0};
                power = 1;
            }
            if (open.length < 0) continue;
            open.key += codes[*at] * power;
            open.length++;
            power *= base;
        }
    }
    PyObject *result = all && seats ? PyBytes_FromStringAndSize((char *)all, count * sizeof *all) : PyErr_NoMemory();
    PyMem_Free(all);
    PyMem_Free(seats);
    return result;
}

static PyMethodDef functions[] = {
    {"letters", letters, METH_O, letters_doc}, {"pieces", pieces, METH_O, pieces_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "letters", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_letters(void) {
    know_bytes();
    know_codes();
    return PyModule_Create(&module_of);
}
