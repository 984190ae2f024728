/* A recursive descent over the literal's text; each function reads one kind of value and leaves its
 * nodes behind.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Recursion is bounded by TEGULA__LITERAL_MAX_DEPTH. Anything that is not exactly a literal of the
 * subset is refused with its place. */
#include "format/npy/literal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct parser {
  tegula__literal *literal;
  size_t at;
  int depth;
  tegula_error *err;
} parser;

static tegula_status fail_at(const tegula__literal *literal, size_t at, tegula_status status,
                             tegula_error *err, const char *what) {
  int64_t offset = literal->path != NULL ? literal->offset + (int64_t)at : -1;
  if (literal->path == NULL) {
    return tegula__fail(err, status == TEGULA_CORRUPT ? TEGULA_INVALID_ARGUMENT : status, NULL,
                        offset, "descr: %s", what);
  }
  return tegula__fail(err, status, literal->path, offset, "header of \"%s\": %s", literal->path,
                      what);
}

tegula_status tegula__literal_fail(const tegula__literal *literal, int64_t node,
                                   tegula_status status, tegula_error *err, const char *format,
                                   ...) {
  char what[512];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(what, sizeof what, format, arguments);
  va_end(arguments);
  return fail_at(literal, literal->nodes[node].start, status, err, what);
}

/* The text is not what it must be at the current place. */
static tegula_status refuse(const parser *p, const char *expected) {
  char what[160], found[24] = "the end";
  if (p->at < p->literal->size) {
    unsigned char byte = (unsigned char)p->literal->text[p->at];
    snprintf(found, sizeof found, byte >= 0x20 && byte < 0x7F ? "'%c'" : "byte 0x%02x", byte);
  }
  snprintf(what, sizeof what, "expected %s at character %zu, found %s", expected, p->at, found);
  return fail_at(p->literal, p->at, TEGULA_CORRUPT, p->err, what);
}

static int peek(const parser *p) {
  return p->at < p->literal->size ? (unsigned char)p->literal->text[p->at] : -1;
}

static int peek_behind_space(parser *p) {
  int c = peek(p);
  while (c == ' ' || c == '\n' || c == '\t' || c == '\r' || c == '\f') {
    p->at++;
    c = peek(p);
  }
  return c;
}

static tegula_status too_many_nodes(const parser *p) {
  char what[96];
  snprintf(what, sizeof what, "more than %u values, which is the limit", TEGULA__LITERAL_MAX_NODES);
  return fail_at(p->literal, p->at, TEGULA_LIMIT_EXCEEDED, p->err, what);
}

static tegula_status add_node(parser *p, tegula__literal_kind kind, uint32_t *index) {
  tegula__literal *literal = p->literal;
  if (literal->count == TEGULA__LITERAL_MAX_NODES) return too_many_nodes(p);
  if (literal->count == literal->capacity) {
    bool first = literal->nodes == literal->inline_nodes;
    int64_t capacity = tegula__min(literal->capacity * 4, TEGULA__LITERAL_MAX_NODES);
    tegula__literal_node *nodes =
        tegula__realloc_array(first ? NULL : literal->nodes, capacity, sizeof *nodes);
    if (nodes == NULL) return tegula__out_of_memory(p->err, capacity * (int64_t)sizeof *nodes);
    if (first) memcpy(nodes, literal->inline_nodes, sizeof literal->inline_nodes);
    literal->nodes = nodes;
    literal->capacity = capacity;
  }
  *index = (uint32_t)literal->count++;
  literal->nodes[*index] =
      (tegula__literal_node){.kind = kind, .start = (uint32_t)p->at, .end = *index + 1};
  return TEGULA_OK;
}

static tegula_status parse_value(parser *p);

/* Walks over the whole text of a string once, so that later walks cannot fail. */
static tegula_status check_text(parser *p, size_t start, size_t end) {
  tegula__text text = {p->literal->text + start, p->literal->text + end, p->literal->utf8};
  uint32_t character;
  int result;
  while ((result = tegula__text_next(&text, &character)) > 0) continue;
  RETURN_IF(result == 0, TEGULA_OK);
  p->at = (size_t)(text.at - p->literal->text);
  return refuse(p, p->literal->utf8 ? "valid UTF-8 and known escapes" : "known escapes");
}

static tegula_status parse_string(parser *p) {
  if (strchr("uUbB", peek(p)) != NULL) p->at++;
  int quote = peek(p);
  if (quote != '\'' && quote != '"') return refuse(p, "a quote");
  p->at++;
  uint32_t node;
  FORWARD(add_node(p, TEGULA__LITERAL_STRING, &node));
  size_t start = p->at;
  for (int c = peek(p); c != quote; c = peek(p)) {
    if (c < 0 || c == '\n') return refuse(p, "the closing quote");
    p->at += c == '\\' && p->at + 1 < p->literal->size ? 2 : 1;
  }
  p->literal->nodes[node].size = (uint32_t)(p->at - start);
  size_t end = p->at;
  FORWARD(check_text(p, start, end));
  p->at = end + 1;
  return TEGULA_OK;
}

static tegula_status parse_int(parser *p) {
  uint32_t index;
  FORWARD(add_node(p, TEGULA__LITERAL_INT, &index));
  bool negative = peek(p) == '-';
  p->at += negative;
  if (peek(p) < '0' || peek(p) > '9') return refuse(p, "a digit");
  size_t start = p->at;
  int64_t value = 0;
  bool fits = true;
  for (int c = peek(p); c >= '0' && c <= '9'; c = peek(p)) {
    fits = fits && !__builtin_mul_overflow(value, 10, &value) &&
           !__builtin_add_overflow(value, c - '0', &value);
    p->at++;
  }
  if (p->literal->text[start] == '0' && p->at - start > 1) {
    p->at = start;
    return refuse(p, "a number without leading zeros");
  }
  if (peek(p) == 'L' || peek(p) == 'l') p->at++; /* as Python 2 wrote long integers */
  tegula__literal_node *node = &p->literal->nodes[index];
  node->fits = fits;
  node->value = negative ? -value : value;
  /* Too large to hold, but the sign is still known. */
  if (!fits) node->value = negative ? INT64_MIN : INT64_MAX;
  return TEGULA_OK;
}

static tegula_status parse_word(parser *p) {
  static const struct {
    const char *word;
    tegula__literal_kind kind;
  } words[] = {{"True", TEGULA__LITERAL_TRUE},
               {"False", TEGULA__LITERAL_FALSE},
               {"None", TEGULA__LITERAL_NONE}};
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    size_t size = strlen(words[i].word);
    if (p->literal->size - p->at < size ||
        memcmp(p->literal->text + p->at, words[i].word, size) != 0)
      continue;
    uint32_t node;
    FORWARD(add_node(p, words[i].kind, &node));
    p->at += size;
    return TEGULA_OK;
  }
  return refuse(p, "a value");
}

/* Behind a value: a comma (then *more), or the closing bracket, which is left where it is. */
static tegula_status parse_comma(parser *p, int close, bool *more) {
  int c = peek_behind_space(p);
  *more = c == ',';
  p->at += *more;
  RETURN_IF(*more || c == close, TEGULA_OK);
  return refuse(p, close == ']' ? "',' or ']'" : close == '}' ? "',' or '}'" : "',' or ')'");
}

/* One value of a list or tuple, or a pair of a dict. */
static tegula_status parse_entry(parser *p, uint32_t index) {
  FORWARD(parse_value(p));
  p->literal->nodes[index].count++;
  RETURN_IF(p->literal->nodes[index].kind != TEGULA__LITERAL_DICT, TEGULA_OK);
  if (peek_behind_space(p) != ':') return refuse(p, "':'");
  p->at++;
  FORWARD(parse_value(p));
  p->literal->nodes[index].count++;
  return TEGULA_OK;
}

static tegula_status parse_container(parser *p, tegula__literal_kind kind, int close) {
  uint32_t index;
  FORWARD(add_node(p, kind, &index));
  p->at++;
  bool more = true;
  while (peek_behind_space(p) != close) {
    if (!more) return refuse(p, "','");
    FORWARD(parse_entry(p, index));
    FORWARD(parse_comma(p, close, &more));
  }
  tegula__literal_node *node = &p->literal->nodes[index];
  if (kind == TEGULA__LITERAL_TUPLE && node->count == 1 && !more)
    return refuse(p, "',' (a tuple of one entry needs it)");
  p->at++;
  node->end = (uint32_t)p->literal->count;
  return TEGULA_OK;
}

static tegula_status too_deep(const parser *p) {
  char what[96];
  snprintf(what, sizeof what, "brackets nested more than %d deep, which is the limit",
           TEGULA__LITERAL_MAX_DEPTH);
  return fail_at(p->literal, p->at, TEGULA_LIMIT_EXCEEDED, p->err, what);
}

static tegula_status parse_nested(parser *p, int open) {
  if (p->depth == TEGULA__LITERAL_MAX_DEPTH) return too_deep(p);
  p->depth++;
  tegula_status status = open == '{'   ? parse_container(p, TEGULA__LITERAL_DICT, '}')
                         : open == '[' ? parse_container(p, TEGULA__LITERAL_LIST, ']')
                                       : parse_container(p, TEGULA__LITERAL_TUPLE, ')');
  p->depth--;
  return status;
}

static tegula_status parse_value(parser *p) {
  int c = peek_behind_space(p);
  if (c == '{' || c == '[' || c == '(') return parse_nested(p, c);
  if (c == '\'' || c == '"' || c == 'u' || c == 'U' || c == 'b' || c == 'B') return parse_string(p);
  if (c == '-' || (c >= '0' && c <= '9')) return parse_int(p);
  return parse_word(p);
}

tegula_status tegula__literal_parse(tegula__literal *literal, const char *text, size_t size,
                                    bool utf8, const char *path, int64_t offset,
                                    tegula_error *err) {
  literal->text = text;
  literal->size = size;
  literal->utf8 = utf8;
  literal->path = path;
  literal->offset = offset;
  literal->nodes = literal->inline_nodes;
  literal->count = 0;
  literal->capacity = TEGULA__LITERAL_INLINE;
  parser p = {.literal = literal, .err = err};
  if (size > UINT32_MAX)
    return fail_at(literal, 0, TEGULA_LIMIT_EXCEEDED, err, "longer than 4 GiB");
  FORWARD(parse_value(&p));
  return peek_behind_space(&p) < 0 ? TEGULA_OK : refuse(&p, "nothing more");
}

void tegula__literal_free(tegula__literal *literal) {
  if (literal->nodes != literal->inline_nodes) free(literal->nodes);
  literal->nodes = NULL;
}

static tegula__text text_of(const tegula__literal *literal, uint32_t node) {
  const char *start = literal->text + literal->nodes[node].start;
  return (tegula__text){start, start + literal->nodes[node].size, literal->utf8};
}

bool tegula__literal_is(const tegula__literal *literal, uint32_t node, const char *word) {
  RETURN_IF(literal->nodes[node].kind != TEGULA__LITERAL_STRING, false);
  tegula__text text = text_of(literal, node);
  uint32_t character;
  while (tegula__text_next(&text, &character) > 0) {
    if (*word == '\0' || character != (unsigned char)*word++) return false;
  }
  return *word == '\0';
}

bool tegula__literal_ascii(const tegula__literal *literal, uint32_t node, char *out, size_t size) {
  RETURN_IF(literal->nodes[node].kind != TEGULA__LITERAL_STRING, false);
  tegula__text text = text_of(literal, node);
  uint32_t character;
  size_t used = 0;
  while (tegula__text_next(&text, &character) > 0) {
    if (character < 0x20 || character > 0x7E || used + 1 >= size) return false;
    out[used++] = (char)character;
  }
  out[used] = '\0';
  return true;
}

bool tegula__literal_print(const tegula__literal *literal, uint32_t node, tegula__buffer *out) {
  tegula__text text = text_of(literal, node);
  uint32_t character;
  bool single = false, pair = false;
  while (tegula__text_next(&text, &character) > 0) {
    single = single || character == '\'';
    pair = pair || character == '"';
  }
  char quote = single && !pair ? '"' : '\'';
  text = text_of(literal, node);
  bool good = tegula__buffer_append(out, &quote, 1);
  while (good && tegula__text_next(&text, &character) > 0)
    good = tegula__text_put_escaped(out, character, quote);
  return good && tegula__buffer_append(out, &quote, 1);
}
