/* Reads the subset of Python's literals that npy headers are written in: dict, list, tuple, text,
 * integer, True, False, None.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * The text becomes a flat array of nodes in the order in which they stand there: the children of a
 * node follow it, and `end` is the index behind its last one. Nothing is evaluated; depth and
 * number of nodes have limits. A literal borrows its text. */
#ifndef TEGULA_FORMAT_NPY_LITERAL_H
#define TEGULA_FORMAT_NPY_LITERAL_H

#include "base/base.h"

#define TEGULA__LITERAL_MAX_DEPTH 64
#define TEGULA__LITERAL_MAX_NODES (1u << 20)
/* Headers of plain arrays fit in here without allocation; records spill over. */
#define TEGULA__LITERAL_INLINE 40

typedef enum tegula__literal_kind {
  TEGULA__LITERAL_DICT, /* children: key, value, key, value, ... */
  TEGULA__LITERAL_LIST,
  TEGULA__LITERAL_TUPLE,
  TEGULA__LITERAL_STRING,
  TEGULA__LITERAL_INT,
  TEGULA__LITERAL_TRUE,
  TEGULA__LITERAL_FALSE,
  TEGULA__LITERAL_NONE
} tegula__literal_kind;

typedef struct tegula__literal_node {
  tegula__literal_kind kind;
  uint32_t start; /* where it stands in the text; for text: behind the opening quote */
  uint32_t size;  /* text: bytes up to the closing quote, escapes not resolved */
  uint32_t count; /* direct children */
  uint32_t end;   /* the next node that is not inside this one */
  bool fits;      /* integer: `value` holds it */
  int64_t value;
} tegula__literal_node;

typedef struct tegula__literal {
  const char *text;
  size_t size;
  bool utf8;        /* else Latin-1 */
  const char *path; /* of the file that the text is from; NULL: the caller of the library gave it */
  int64_t offset;   /* of the text in that file */
  tegula__literal_node *nodes;
  int64_t count;
  int64_t capacity;
  tegula__literal_node inline_nodes[TEGULA__LITERAL_INLINE];
} tegula__literal;

/* Parses all of the text; node 0 is the outermost value. Free it in every case. CORRUPT
 * (INVALID_ARGUMENT where path is NULL) names the place; LIMIT_EXCEEDED where it is too deep or has
 * too many nodes. */
tegula_status tegula__literal_parse(tegula__literal *literal, const char *text, size_t size,
                                    bool utf8, const char *path, int64_t offset, tegula_error *err);
void tegula__literal_free(tegula__literal *literal);

/* An error about the place of `node`. The message begins with what the text is (header of which
 * file). */
tegula_status tegula__literal_fail(const tegula__literal *literal, int64_t node,
                                   tegula_status status, tegula_error *err, const char *format, ...)
    TEGULA__PRINTF(5, 6);

/* Is this node the text `word` (ASCII)? */
bool tegula__literal_is(const tegula__literal *literal, uint32_t node, const char *word);
/* The text of a node with its escapes resolved; false when it does not fit or is not plain
 * ASCII. */
bool tegula__literal_ascii(const tegula__literal *literal, uint32_t node, char *out, size_t size);
/* Appends the text as Python's repr() writes it, in UTF-8; false on lack of memory. */
bool tegula__literal_print(const tegula__literal *literal, uint32_t node, tegula__buffer *out);

/* ---- text: one character after the other (literal_text.c) ---- */

typedef struct tegula__text {
  const char *at;
  const char *end;
  bool utf8;
} tegula__text;

/* The next character with its escape resolved. 1: there was one, 0: the text is over, -1: not valid
 * (no such escape or UTF-8). */
int tegula__text_next(tegula__text *text, uint32_t *character);
/* Appends one character in UTF-8; false on lack of memory. */
bool tegula__text_put(tegula__buffer *out, uint32_t character);
/* Appends one character as Python's repr() would within `quote`. */
bool tegula__text_put_escaped(tegula__buffer *out, uint32_t character, char quote);

#endif
