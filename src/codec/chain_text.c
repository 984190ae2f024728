/* chain_text: chains as text, "shuffle,deflate:4", both ways.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A name stands for a codec and, where one codec has several, for what tells them apart; behind it
 * come arguments, each with a default. */
#include <inttypes.h>
#include <stdio.h>

#include "codec/codec_priv.h"

enum { ARGUMENTS = 3, NO_ITEM = -1 };

typedef struct argument {
  const char *what; /* NULL: there is none */
  int param;        /* where it goes */
  uint32_t usual;
  const char *const *words; /* for values from 0 on; NULL: a number */
  bool always;              /* is part of the text also where it is the usual one */
} argument;

typedef struct codec_name {
  const char *text;
  uint16_t codec;
  uint16_t param_count;
  int item;           /* which parameter is the item size */
  uint32_t item_most; /* items that are larger are taken as bytes; 0: no limit */
  bool has_kind;      /* params[2] tells it from others of the codec */
  uint32_t kind;
  argument arguments[ARGUMENTS];
} codec_name;

static const char *const BLOSC_COMPRESSORS[] = {"blosclz", "lz4",  "lz4hc", "snappy",
                                                "zlib",    "zstd", NULL};
static const char *const BLOSC_SHUFFLES[] = {"noshuffle", "shuffle", "bitshuffle", NULL};

#define BLOSC_ARGUMENTS(compressor)                                                                \
  {                                                                                                \
    {"compressor", TEGULA__BLOSC_COMPRESSOR, compressor, BLOSC_COMPRESSORS, true},                 \
        {"level", TEGULA__BLOSC_LEVEL_PARAM, TEGULA__BLOSC_LEVEL, NULL, true},                     \
        {"shuffle", TEGULA__BLOSC_SHUFFLE, 1, BLOSC_SHUFFLES, false},                              \
  }

/* The first name of a codec is the one that is written. */
static const codec_name NAMES[] = {
    {"shuffle", TEGULA__CODEC_SHUFFLE, 1, 0, 0, false, 0, {{0}}},
    {"bitshuffle", TEGULA__CODEC_BITSHUFFLE, 3, 0, 0, true, 0, {{"block", 1, 0, NULL, false}}},
    {"bitshuffle-lz4", TEGULA__CODEC_BITSHUFFLE, 3, 0, 0, true, 2, {{"block", 1, 0, NULL, false}}},
    {"bitshuffle-zstd",
     TEGULA__CODEC_BITSHUFFLE,
     4,
     0,
     0,
     true,
     3,
     {{"level", 3, TEGULA__ZSTD_LEVEL, NULL, true}, {"block", 1, 0, NULL, false}}},
    {"deflate",
     TEGULA__CODEC_DEFLATE,
     1,
     NO_ITEM,
     0,
     false,
     0,
     {{"level", 0, TEGULA__DEFLATE_LEVEL, NULL, true}}},
    {"gzip",
     TEGULA__CODEC_DEFLATE,
     1,
     NO_ITEM,
     0,
     false,
     0,
     {{"level", 0, TEGULA__DEFLATE_LEVEL, NULL, true}}},
    {"zstd",
     TEGULA__CODEC_ZSTD,
     1,
     NO_ITEM,
     0,
     false,
     0,
     {{"level", 0, TEGULA__ZSTD_LEVEL, NULL, true}}},
    {"lz4",
     TEGULA__CODEC_LZ4,
     1,
     NO_ITEM,
     0,
     false,
     0,
     {{"block", 0, TEGULA__LZ4_BLOCK, NULL, false}}},
    {"lzf", TEGULA__CODEC_LZF, 0, NO_ITEM, 0, false, 0, {{0}}},
    {"blosc", TEGULA__CODEC_BLOSC, 4, TEGULA__BLOSC_ITEM, 255, false, 0, BLOSC_ARGUMENTS(1)},
    {"blosc2", TEGULA__CODEC_BLOSC2, 4, TEGULA__BLOSC_ITEM, 0, false, 0, BLOSC_ARGUMENTS(0)},
    {"fletcher32", TEGULA__CODEC_FLETCHER32, 0, NO_ITEM, 0, false, 0, {{0}}},
};
enum { NAME_COUNT = sizeof NAMES / sizeof *NAMES };

/* ---- from text ---- */

/* A piece of the text, not ended by a zero. */
typedef struct word {
  const char *text;
  size_t size;
} word;

static bool is(word w, const char *text) {
  return strlen(text) == w.size && memcmp(w.text, text, w.size) == 0;
}

/* Up to `mark` or the end; *rest is behind the mark, NULL at the end. */
static word next_word(const char **rest, const char *end, char mark) {
  word w = {*rest, (size_t)(end - *rest)};
  const char *found = memchr(*rest, mark, w.size);
  if (found) w.size = (size_t)(found - w.text);
  *rest = found ? found + 1 : NULL;
  return w;
}

#define SHOWN(w) (int)tegula__min((int64_t)(w).size, 60), (w).text

static tegula_status unknown_name(word w, tegula_error *err) {
  char known[256];
  size_t used = 0;
  for (int i = 0; i < NAME_COUNT; i++) {
    const char *mark = i > 0 ? ", " : "";
    size_t size = strlen(mark) + strlen(NAMES[i].text);
    if (used + size >= sizeof known) break;
    memcpy(known + used, mark, strlen(mark));
    memcpy(known + used + strlen(mark), NAMES[i].text, strlen(NAMES[i].text));
    used += size;
  }
  known[used] = 0;
  if (w.size == 0)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                        "a codec without a name, expected names separated by commas of: %s", known);
  if (is(w, "szip"))
    return tegula__fail(err, TEGULA_UNSUPPORTED, NULL, -1,
                        "szip: tegula cannot encode it; it can encode: %s", known);
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "codec \"%.*s\" is not known, expected one of: %s", SHOWN(w), known);
}

static bool parse_number(word w, uint32_t *value) {
  uint64_t sum = 0;
  if (w.size == 0 || w.size > 10) return false;
  for (size_t i = 0; i < w.size; i++) {
    if (w.text[i] < '0' || w.text[i] > '9') return false;
    sum = sum * 10 + (uint64_t)(w.text[i] - '0');
  }
  *value = (uint32_t)sum;
  return sum <= UINT32_MAX;
}

static tegula_status parse_argument(const codec_name *name, const argument *a, word w,
                                    uint32_t *value, tegula_error *err) {
  char expected[128] = "a whole number";
  size_t used = 0;
  if (a->words == NULL && parse_number(w, value)) return TEGULA_OK;
  for (uint32_t i = 0; a->words && a->words[i]; i++) {
    if (is(w, a->words[i])) {
      *value = i;
      return TEGULA_OK;
    }
    used += (size_t)snprintf(expected + used, sizeof expected - used, "%s%s", i > 0 ? ", " : "",
                             a->words[i]);
  }
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "%s: %s \"%.*s\", expected %s",
                      name->text, a->what, SHOWN(w), expected);
}

static tegula_status parse_filter(word whole, uint32_t item_size, tegula__filter *filter,
                                  tegula_error *err) {
  const char *rest = whole.text, *end = whole.text + whole.size;
  const codec_name *name = NULL;
  word first = next_word(&rest, end, ':');
  for (int i = 0; i < NAME_COUNT && name == NULL; i++)
    if (is(first, NAMES[i].text)) name = &NAMES[i];
  if (name == NULL) return unknown_name(first, err);
  *filter = (tegula__filter){.codec = name->codec, .param_count = name->param_count};
  if (name->item != NO_ITEM)
    filter->params[name->item] = name->item_most > 0 && item_size > name->item_most ? 1 : item_size;
  if (name->has_kind) filter->params[2] = name->kind;
  int given = 0;
  for (; given < ARGUMENTS && name->arguments[given].what; given++) {
    const argument *a = &name->arguments[given];
    filter->params[a->param] = a->usual;
    if (rest)
      FORWARD(parse_argument(name, a, next_word(&rest, end, ':'), &filter->params[a->param], err));
  }
  if (rest == NULL) return TEGULA_OK;
  return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1,
                      "\"%.*s\": %s takes %d argument%s at most", SHOWN(whole), name->text, given,
                      given == 1 ? "" : "s");
}

tegula_status tegula__chain_parse(const char *text, uint32_t item_size, tegula__filter *filters,
                                  int32_t *count, tegula_error *err) {
  const char *rest = text, *end = text + strlen(text);
  *count = 0;
  if (item_size == 0)
    return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "codecs for items of 0 bytes");
  if (rest == end) return TEGULA_OK;
  while (rest) {
    word w = next_word(&rest, end, ',');
    if (*count == TEGULA__CHAIN_MAX)
      return tegula__fail(err, TEGULA_INVALID_ARGUMENT, NULL, -1, "a chain of more than %d codecs",
                          TEGULA__CHAIN_MAX);
    FORWARD(parse_filter(w, item_size, &filters[*count], err));
    ++*count;
  }
  return tegula__encode_check(filters, *count, 0, err);
}

/* ---- to text ---- */

static bool format_argument(const argument *a, uint32_t value, tegula__buffer *out) {
  uint32_t words = 0;
  while (a->words && a->words[words]) words++;
  if (a->words && value < words) return tegula__buffer_printf(out, ":%s", a->words[value]);
  return tegula__buffer_printf(out, ":%" PRIu32, value);
}

static bool format_filter(const tegula__filter *filter, tegula__buffer *out) {
  const codec_name *name = NULL;
  int shown = 0;
  for (int i = 0; i < NAME_COUNT && name == NULL; i++)
    if (NAMES[i].codec == filter->codec &&
        (!NAMES[i].has_kind || NAMES[i].kind == tegula__filter_param(filter, 2, 0)))
      name = &NAMES[i];
  if (!tegula__buffer_printf(out, "%s", name ? name->text : tegula__codec_name(filter->codec)))
    return false;
  for (int i = 0; name && i < ARGUMENTS && name->arguments[i].what; i++) {
    const argument *a = &name->arguments[i];
    bool known = a->param < filter->param_count;
    if (known && (a->always || filter->params[a->param] != a->usual)) shown = i + 1;
  }
  for (int i = 0; i < shown; i++)
    if (!format_argument(
            &name->arguments[i],
            tegula__filter_param(filter, name->arguments[i].param, name->arguments[i].usual), out))
      return false;
  return true;
}

bool tegula__chain_format(const tegula__filter *filters, int32_t count, tegula__buffer *out) {
  for (int32_t i = 0; i < count; i++)
    if ((i > 0 && !tegula__buffer_printf(out, ",")) || !format_filter(&filters[i], out))
      return false;
  return true;
}
