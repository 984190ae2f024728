/* What the command prints: errors, JSON and numbers with units.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Errors go to standard error as text and, with --json, to standard output as an object too. A
 * report that could not be written is itself an error: report_close says so. */
#ifndef TEGULA_CLI_REPORT_H
#define TEGULA_CLI_REPORT_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <jansson.h>
#include <tegula/tegula.h>

/* Fills `error` (path, offset and errno unset) and returns `status`. `hint` may be NULL. */
__attribute__((format(printf, 4, 5))) tegula_status
report_fail(tegula_error *error, tegula_status status, const char *hint, const char *format, ...);
/* The same with the file and errno; the text of errno is added to the message. */
__attribute__((format(printf, 5, 6))) tegula_status report_fail_os(tegula_error *error,
                                                                   const char *path, int os_errno,
                                                                   const char *hint,
                                                                   const char *format, ...);
/* INVALID_ARGUMENT with the hint to read the command's help. */
__attribute__((format(printf, 3, 4))) tegula_status
report_usage(tegula_error *error, const char *command, const char *format, ...);

/* Called once, in front of everything that makes JSON: the memory of jansson comes from
 * report_allocate. */
void report_start(void);
/* malloc whose failure is remembered; after the first one all fail, because the parser of jansson
 * goes on after a failed allocation and would run over the end of a text that it could not keep. */
void *report_allocate(size_t bytes);
/* OUT_OF_MEMORY when an allocation for a report has failed so far, also of what is printed as text:
 * it may lack something. */
tegula_status report_memory(tegula_error *error);

/* Prints the error; with `json` also as an object, which gets the members of `report` (may be NULL;
 * taken over) in front. When there is no memory for that, the error alone is printed. */
void report_error(const tegula_error *error, int json, json_t *report);
/* Control characters in `text` become '?'. */
void report_shown(FILE *out, const char *text);
/* The same as one line. */
void report_line(FILE *out, const char *label, const char *text);
enum { REPORT_DIGITS = 9, REPORT_EXACT_DIGITS = 17 };
/* Prints the object on standard output and takes it over. NULL (no memory) is OUT_OF_MEMORY;
 * nothing was printed then. `digits`: of numbers with a fraction. */
tegula_status report_json(json_t *report, int digits, tegula_error *error);
/* Flushes and closes standard output; IO when anything could not be written. */
tegula_status report_close(tegula_error *error);

tegula_status report_no_memory(tegula_error *error);

/* All of these give NULL on lack of memory, never a part of the value. */
/* JSON of a text that may hold any bytes: those that are no UTF-8 become U+FFFD. NULL gives
 * null. */
json_t *report_text(const char *text);
/* The same; an empty text gives null too. */
json_t *report_text_or_null(const char *text);
json_t *report_shape(const int64_t *shape, int32_t ndim);
json_t *report_dtype(tegula_dtype dtype);
json_t *report_box(const tegula_box *box);

/* The object as text with a zero at its end, to be freed; NULL on lack of memory. */
char *report_dump(const json_t *object, size_t flags);

#define REPORT_TEXT 2048 /* enough for a shape of TEGULA_MAX_DIMS axes */
/* "(3, 4)", as numpy writes it. */
const char *report_shape_text(const int64_t *shape, int32_t ndim, char out[REPORT_TEXT]);
/* "64.0 MB" (decimal). */
const char *report_bytes_text(double bytes, char out[32]);
/* " and 1000 sources not opened yet" of a dataset; "" for none. */
const char *report_sources(int64_t sources, char out[64]);

#endif
