/* How much of a page's text was not met before, for fyke.harvest.met_text: what its `weigh_by_columns` does in Python.

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

/* Write at `put` the letters of the texts between the tags of `content`, in small, and bytes of other alphabets; a line
   for each text. Not those of scripts, style sheets, and links. Return their end. */
static byte *letters_of(byte *put, const byte *at, const byte *end) {
    const byte *begin = put;
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
        if (put > begin && put[-1] != '\n') *put++ = '\n';
    }
    return put;
}

/* A gram that is kept: its place and mark in the table of met ones, where it begins, and the mark found there. */
typedef struct {
    uint64_t place;
    int64_t at;
    uint32_t mark, before;
} gram;

enum { GRAM = 18, WINDOW = 8, MET_SHARE = 4 };
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

/* A table of what was met: marks at a power of two of places. */
typedef struct {
    uint32_t *marks;
    uint64_t places, domain;
} table;

static uint64_t place_of(uint64_t key, const table *met) { return (key ^ met->domain) * mix & (met->places - 1); }
static uint32_t mark_of(uint64_t key, const table *met) { return (uint32_t)((key ^ met->domain) * mix >> 32) | 1; }

/* Write the grams that are kept of the letters from `begin` to `end`, at least GRAM, at `put`; return their end. */
static gram *keep(gram *put, const byte *text, uint64_t begin, uint64_t end, const table *met) {
    uint64_t keys[WINDOW], key = 0, key_kept; /* of the latest grams */
    uint64_t least = begin, last = end - GRAM, whole = begin + WINDOW - 1 < last ? begin + WINDOW - 1 : last;
    for (uint64_t at = begin; at < begin + GRAM - 1; at++) key = key * base + codes[text[at]];
    for (uint64_t at = begin; at <= last; at++) {
        key = key * base + (codes[text[at + GRAM - 1]] - (at > begin ? left[text[at - 1]] : 0));
        keys[at % WINDOW] = key;
        if (at < whole) continue; /* the first window is not whole yet */
        if (at == whole) least = least_of(keys, begin, at);
        else if (least + WINDOW == at) least = least_of(keys, at - WINDOW + 1, at); /* its key is gone */
        else if (key <= keys[least % WINDOW]) least = at;
        else continue;
        key_kept = keys[least % WINDOW];
        *put++ = (gram){place_of(key_kept, met), least, mark_of(key_kept, met), 0};
        __builtin_prefetch(met->marks + put[-1].place, 1);
    }
    return put;
}

/* A block of letters: where it begins and ends, its key or that of what it says, and whether that was not met. */
typedef struct {
    uint64_t key;
    int64_t at, end;
    bool is_unmet;
} block;

/* What a page is weighed in. */
typedef struct {
    byte *text, *said; /* its letters; without those of words of its URL */
    block *blocks;
    uint64_t *seen; /* keys of its blocks, by place */
    gram *grams;
} room;

static void leave(room *in) {
    PyMem_Free(in->text), PyMem_Free(in->said), PyMem_Free(in->blocks), PyMem_Free(in->seen), PyMem_Free(in->grams);
}

/* Write the grams that are kept of each block, and have the table know them; return their end. */
static gram *remember_all(room *in, const block *last, table *met) {
    gram *put = in->grams;
    for (const block *one = in->blocks; one < last; one++)
        if (one->end - one->at >= GRAM) put = keep(put, in->text, one->at, one->end, met);
    for (gram *one = in->grams; one < put; one++) {
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

/* Say of each block whether the table lacks its key, of all before any is remembered. */
static void meet(block *blocks, const block *last, table *met, bool remember) {
    for (block *one = blocks; one < last; one++)
        one->is_unmet = met->marks[place_of(one->key, met)] != mark_of(one->key, met);
    for (block *one = blocks; remember && one < last; one++)
        met->marks[place_of(one->key, met)] = mark_of(one->key, met);
}

/* Find the blocks of the text, a line each; each block once. Return their end; NULL if memory fails. */
static block *find_blocks(room *in, int64_t size) {
    int64_t lines = 0;
    uint64_t places = 4;
    for (const byte *at = in->text; at < in->text + size; at++) lines += *at == '\n';
    while (places < 2 * (uint64_t)lines) places *= 2;
    in->blocks = PyMem_Malloc((lines + 1) * sizeof *in->blocks);
    in->seen = PyMem_Calloc(places, sizeof *in->seen);
    if (!in->blocks || !in->seen) return NULL;
    block *put = in->blocks;
    for (int64_t at = 0, end; at < size; at = end + 1) {
        uint64_t key = 1;
        for (end = at; in->text[end] != '\n'; end++) key = key * base + codes[in->text[end]];
        if (end == at) continue;
        uint64_t place = key * mix >> 32 & (places - 1);
        while (in->seen[place] && in->seen[place] != key) place = (place + 1) & (places - 1);
        if (in->seen[place]) continue;
        in->seen[place] = key;
        *put++ = (block){key, at, end, false};
    }
    return put;
}

/* Keep the unmet blocks, in text and list; return their end. */
static block *keep_unmet(room *in, const block *last) {
    block *put = in->blocks;
    int64_t size = 0;
    for (const block *one = in->blocks; one < last; one++) {
        if (!one->is_unmet) continue;
        int64_t length = one->end - one->at;
        memmove(in->text + size, in->text + one->at, length);
        in->text[size + length] = '\n';
        *put++ = (block){one->key, size, size + length, false};
        size += length + 1;
    }
    return put;
}

/* Make 0 of each letter that is said in a place where one of `words` stands in the text. Return whether all are bytes. */
static bool take_out(room *in, int64_t size, PyObject *words) {
    memcpy(in->said, in->text, size);
    for (Py_ssize_t n = 0; n < PyTuple_GET_SIZE(words); n++) {
        char *word;
        Py_ssize_t length;
        if (PyBytes_AsStringAndSize(PyTuple_GET_ITEM(words, n), &word, &length)) return false;
        const byte *at = in->text, *end = at + size;
        for (; length && (at = memmem(at, end - at, word, length)); at += length)
            memset(in->said + (at - in->text), 0, length);
    }
    return true;
}

/* Give each block the key of what it says, which it has if it says all. */
static void key_of_said(room *in, const block *last) {
    for (block *one = in->blocks; one < last; one++) {
        if (!memchr(in->said + one->at, 0, one->end - one->at)) continue;
        one->key = 1;
        for (int64_t at = one->at; at < one->end; at++)
            if (in->said[at]) one->key = one->key * base + codes[in->said[at]];
    }
}

/* Return how many letters of the blocks say something new: those of unmet blocks that lie in no met gram, unless these are
   few. Write at `*put` what the unmet blocks say, a line each, and leave it behind. */
static long long brought_by(room *in, const block *last, const gram *end, byte **put) {
    const gram *one = in->grams;
    const byte *begin = *put;
    long long brought = 0, said = 0;
    for (const block *of = in->blocks; of < last; of++) {
        long long fresh = count_block(in->said, of->at, of->end, &one, end);
        if (!of->is_unmet) continue;
        if (fresh * MET_SHARE >= of->end - of->at) brought += fresh;
        for (int64_t at = of->at; at < of->end; at++) {
            **put = in->said[at];
            *put += in->said[at] != 0;
        }
        *(*put)++ = '\n';
        said--;
    }
    return brought * MET_SHARE >= said + (*put - begin) ? brought : 0;
}

/* Weigh the text of `size` letters; return its result. The tables are of blocks, of what they say, and of grams. */
static PyObject *weighed(room *in, int64_t size, PyObject *words, table met[3], bool remember) {
    block *last = find_blocks(in, size);
    if (!last) return PyErr_NoMemory();
    long long letters = 0, brought = 0;
    for (const block *one = in->blocks; one < last; one++) letters += one->end - one->at;
    meet(in->blocks, last, &met[0], remember);
    last = keep_unmet(in, last);
    byte *put = in->text;
    if (last > in->blocks) {
        int64_t left = last[-1].end + 1;
        in->said = PyMem_Malloc(left);
        in->grams = PyMem_Malloc(left * sizeof *in->grams);
        if (!in->said || !in->grams) return PyErr_NoMemory();
        if (!take_out(in, left, words)) return NULL;
        key_of_said(in, last);
        meet(in->blocks, last, &met[1], remember);
        gram *end = remember_all(in, last, &met[2]);
        if (!remember) forget_all(in->grams, end, &met[2]);
        brought = brought_by(in, last, end, &put);
    }
    return Py_BuildValue("LLy#", letters, brought, (char *)in->text, (Py_ssize_t)(put - in->text));
}

PyDoc_STRVAR(weigh_doc,
             "weigh(content, words, blocks, grams, domain, remember) -> (letters, brought, unmet)\n\n"
             "What `fyke.harvest.met_text.weigh_by_columns` returns. `content` is bytes, `words` a tuple of bytes, and\n"
             "the tables are buffers of uint32, a power of two of them. Raises ValueError if their sizes do not fit.");

static PyObject *weigh(PyObject *module, PyObject *args) {
    PyObject *content, *words, *result = NULL;
    Py_buffer blocks, grams;
    unsigned long long domain;
    int remember;
    (void)module;
    if (!PyArg_ParseTuple(args, "SO!w*w*Kp", &content, &PyTuple_Type, &words, &blocks, &grams, &domain, &remember))
        return NULL;
    int64_t size = PyBytes_GET_SIZE(content);
    uint64_t places = blocks.len / sizeof(uint32_t), prints = grams.len / sizeof(uint32_t);
    table met[] = {{blocks.buf, places, domain}, {blocks.buf, places, domain ^ 1}, {grams.buf, prints, domain}};
    room in = {PyMem_Malloc(size + 2), NULL, NULL, NULL, NULL};
    if (!places || places & (places - 1) || !prints || prints & (prints - 1)) {
        PyErr_SetString(PyExc_ValueError, "sizes do not fit");
    } else if (!in.text) {
        PyErr_NoMemory();
    } else {
        const byte *at = (const byte *)PyBytes_AS_STRING(content);
        result = weighed(&in, letters_of(in.text, at, at + size) - in.text, words, met, remember);
    }
    leave(&in);
    PyBuffer_Release(&blocks);
    PyBuffer_Release(&grams);
    return result;
}

static PyMethodDef functions[] = {{"weigh", weigh, METH_VARARGS, weigh_doc}, {NULL, NULL, 0, NULL}};
static struct PyModuleDef module_of = {PyModuleDef_HEAD_INIT, "weigher", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC PyInit_weigher(void) {
    know_bytes();
    know_codes();
    return PyModule_Create(&module_of);
}
