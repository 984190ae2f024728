/* json: text that anybody may have written -> values, within limits; and text out again.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Reading wraps jansson: bounded size and depth, no key twice, no NUL in texts, numbers are
 * integers of 64 bits where integers are wanted. A value knows the way to it, so each error names
 * the file, the key, what was expected and what was found. */
#ifndef TEGULA_BASE_JSON_H
#define TEGULA_BASE_JSON_H

#include "base/base.h"

/* A value in a document, and the way to it. A plain value that borrows its parent and the
 * document. */
typedef struct tegula__json tegula__json;
struct tegula__json {
  const void *value;          /* NULL: there is no such member */
  const char *file;           /* for messages */
  const tegula__json *parent; /* NULL: the whole document */
  const char *key;            /* of a member, else NULL */
  int64_t index;              /* of an item of a list */
};

typedef enum tegula__json_kind {
  TEGULA__JSON_ABSENT,
  TEGULA__JSON_NULL,
  TEGULA__JSON_BOOL,
  TEGULA__JSON_INTEGER,
  TEGULA__JSON_REAL,
  TEGULA__JSON_TEXT,
  TEGULA__JSON_LIST,
  TEGULA__JSON_OBJECT
} tegula__json_kind;

#define TEGULA__JSON_DEPTH 16 /* lists and objects inside one another */

/* The document must be an object. `file` is borrowed until free. CORRUPT: no valid JSON (with line
 * and column), too deep, no object; LIMIT_EXCEEDED: longer than `maximum` bytes. */
tegula_status tegula__json_parse(const void *text, size_t size, size_t maximum, const char *file,
                                 tegula__json *out, tegula_error *err);
void tegula__json_free(tegula__json *document);

tegula__json_kind tegula__json_kind_of(const tegula__json *value);
/* Items of a list or members of an object; 0 for anything else. */
int64_t tegula__json_count(const tegula__json *value);
/* ABSENT where there is none. */
tegula__json tegula__json_member(const tegula__json *object, const char *key);
tegula__json tegula__json_item(const tegula__json *list, int64_t index);
/* Walks over the members of an object: start with a zeroed `member`; false after the last. */
bool tegula__json_next(const tegula__json *object, tegula__json *member);

/* ---- getters: CORRUPT unless the value is what it must be ---- */

tegula_status tegula__json_expect(const tegula__json *value, tegula__json_kind kind,
                                  tegula_error *err);
tegula_status tegula__json_integer(const tegula__json *value, int64_t minimum, int64_t maximum,
                                   int64_t *out, tegula_error *err);
/* Not empty; borrowed from the document. */
tegula_status tegula__json_text(const tegula__json *value, const char **out, tegula_error *err);
/* A list of `least` to `most` integers of 0 or more; an integer alone is a list of one where
 * `alone` says so. */
tegula_status tegula__json_lengths(const tegula__json *value, int64_t least, int64_t most,
                                   bool alone, int64_t *out, int32_t *count, tegula_error *err);
/* No members but those in `known` (ends with NULL) and those that begin with "_" or "x-". */
tegula_status tegula__json_only(const tegula__json *object, const char *const *known,
                                tegula_error *err);

/* CORRUPT: `"file": key[3].other is "found", expected WHAT`. */
tegula_status tegula__json_wrong(const tegula__json *value, tegula_error *err, const char *format,
                                 ...) TEGULA__PRINTF(3, 4);
/* "parts[3].lo", or "the document"; cut where it does not fit. */
#define TEGULA__JSON_WAY 128
void tegula__json_way(const tegula__json *value, char out[TEGULA__JSON_WAY]);

/* ---- writing ---- */

/* Is it valid UTF-8 (and so can be a text in JSON)? */
bool tegula__json_is_text(const char *text);
/* "[1, 2, 3]" */
bool tegula__json_write_numbers(tegula__buffer *buffer, const int64_t *numbers, int32_t count);

#endif
