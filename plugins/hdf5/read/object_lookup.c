/* Finding a dataset by its name, over links of every kind.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Links are followed here and not by libhdf5, which would look for external files in more places
 * than a user expects, the working directory among them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "read/hdf5_read.h"
#include "read/object_lookup.h"

enum { MOST_LINKS = 100 };

tegula_status hdf5_link_read(hdf5_call *call, hid_t group, const char *name, hdf5_link *out) {
  const hdf5_functions *hdf5 = &call->library->call;
  union {
    /* H5L_info1_t, H5L_info2_t: the type is first, the size of a value 24 bytes further */
    uint64_t words[16];
    int type;
  } info = {{0}};
  *out = (hdf5_link){0};
  int there = hdf5->H5Lexists(group, name, HDF5_DEFAULT);
  /* a damaged group does not say that a name is absent */
  RETURN_IF(there <= 0, there == 0 ? TEGULA_NOT_FOUND : TEGULA_CORRUPT);
  RETURN_IF(hdf5->link_info(group, name, &info, HDF5_DEFAULT) < 0, TEGULA_CORRUPT);
  out->kind = info.type;
  RETURN_IF(out->kind == HDF5_LINK_HARD, TEGULA_OK);
  RETURN_IF(out->kind != HDF5_LINK_SOFT && out->kind != HDF5_LINK_EXTERNAL, TEGULA_UNSUPPORTED);
  size_t size = (size_t)info.words[3];
  RETURN_IF(size == 0 || size > 1 << 20, TEGULA_CORRUPT);
  char *value = calloc(1, size + 1);
  RETURN_IF(!value, TEGULA_OUT_OF_MEMORY);
  bool good = hdf5->H5Lget_val(group, name, value, size, HDF5_DEFAULT) >= 0;
  if (good && out->kind == HDF5_LINK_SOFT) {
    out->object = strdup(value);
  } else if (good) {
    const char *file = NULL, *object = NULL;
    unsigned flags = 0;
    good = hdf5->H5Lunpack_elink_val(value, size, &flags, &file, &object) >= 0;
    if (good) {
      out->file = strdup(file);
      out->object = strdup(object);
    }
  }
  free(value);
  RETURN_IF(good && out->object && (out->kind == HDF5_LINK_SOFT || out->file), TEGULA_OK);
  hdf5_link_free(out);
  return good ? TEGULA_OUT_OF_MEMORY : TEGULA_CORRUPT;
}

void hdf5_link_free(hdf5_link *link) {
  free(link->file);
  free(link->object);
  *link = (hdf5_link){0};
}

/* Where a search stands: an object (`id`), its file and its path in it. `rest` is what is still to
 * be followed. */
typedef struct cursor {
  hdf5_file *file;
  hid_t id;
  char *path; /* "" for the root group, else "/a/b" */
  char *rest;
  int links;
} cursor;

static void cursor_free(hdf5_call *call, cursor *at) {
  if (at->id >= 0) call->library->call.H5Oclose(at->id);
  hdf5_file_release(call, at->file);
  free(at->path);
  free(at->rest);
  *at = (cursor){.id = -1};
}

/* Moves to the root group of `file` (which is taken). */
static tegula_status go_to_root(hdf5_call *call, cursor *at, hdf5_file *file, tegula_error *err) {
  if (at->id >= 0) call->library->call.H5Oclose(at->id);
  at->id = -1;
  if (at->file != file) {
    hdf5_file_release(call, at->file);
    at->file = file;
  } else {
    hdf5_file_release(call, file);
  }
  free(at->path);
  at->path = strdup("");
  RETURN_IF(!at->path, hdf5_out_of_memory(call->library, err));
  at->id = call->library->call.H5Oopen(file->id, "/", HDF5_DEFAULT);
  return at->id >= 0 ? TEGULA_OK
                     : hdf5_failed(call->library, err, TEGULA_CORRUPT, file->path,
                                   "open the root group of \"%s\"", file->path);
}

/* Takes the first component off `rest`, as new memory; NULL: there is none. False: no memory. */
static bool next_component(cursor *at, char **out) {
  char *from = at->rest + strspn(at->rest, "/");
  while (from[0] == '.' && (from[1] == '/' || from[1] == 0)) from += 1 + strspn(from + 1, "/");
  size_t length = strcspn(from, "/");
  *out = length ? strndup(from, length) : NULL;
  memmove(at->rest, from + length, strlen(from + length) + 1);
  return *out || !length;
}

static tegula_status no_such(hdf5_call *call, const cursor *at, const char *component,
                             tegula_error *err) {
  return call->library->host->fail(err, TEGULA_NOT_FOUND, at->file->path, -1,
                                   "\"%s\" has no dataset or group \"%s/%s\"", at->file->path,
                                   at->path, component);
}

/* Puts what a link leads to in front of what is left. */
static tegula_status follow(hdf5_call *call, cursor *at, const char *component,
                            const hdf5_link *link, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  if (++at->links > MOST_LINKS)
    return host->fail(
        err, TEGULA_CORRUPT, at->file->path, -1,
        "the links at \"%s/%s\" in \"%s\" lead round in a circle (more than %d of them)", at->path,
        component, at->file->path, MOST_LINKS);
  char *rest = hdf5_text("%s/%s", link->object, at->rest);
  RETURN_IF(!rest, hdf5_out_of_memory(call->library, err));
  free(at->rest);
  at->rest = rest;
  hdf5_file *file = at->file;
  if (link->kind == HDF5_LINK_EXTERNAL) {
    char *path = hdf5_resolve(at->file, link->file);
    RETURN_IF(!path, hdf5_out_of_memory(call->library, err));
    tegula_status status = hdf5_file_open(call, path, &file, err);
    if (status == TEGULA_NOT_FOUND)
      host->hint(err, status,
                 "\"%s/%s\" in \"%s\" is an external link to it; names are resolved from the "
                 "folder of the file with the link",
                 at->path, component, at->file->path);
    free(path);
    FORWARD(status);
    return go_to_root(call, at, file, err);
  }
  if (link->object[0] != '/') return TEGULA_OK; /* from the group that holds the link */
  file->references++;
  return go_to_root(call, at, file, err);
}

static tegula_status enter(hdf5_call *call, cursor *at, const char *component, tegula_error *err) {
  hid_t id = call->library->call.H5Oopen(at->id, component, HDF5_DEFAULT);
  if (id < 0)
    return hdf5_failed(call->library, err, TEGULA_CORRUPT, at->file->path,
                       "open \"%s/%s\" in \"%s\"", at->path, component, at->file->path);
  call->library->call.H5Oclose(at->id);
  at->id = id;
  char *path = hdf5_text("%s/%s", at->path, component);
  RETURN_IF(!path, hdf5_out_of_memory(call->library, err));
  free(at->path);
  at->path = path;
  return TEGULA_OK;
}

static tegula_status step(hdf5_call *call, cursor *at, const char *component, tegula_error *err) {
  const tegula_plugin_host *host = call->library->host;
  if (call->library->call.H5Iget_type(at->id) != HDF5_ID_GROUP)
    return host->fail(err, TEGULA_NOT_FOUND, at->file->path, -1,
                      "\"%s\" in \"%s\" is no group: there is no \"%s\" in it", at->path,
                      at->file->path, component);
  hdf5_link link;
  tegula_status status = hdf5_link_read(call, at->id, component, &link);
  if (status == TEGULA_CORRUPT ||
      (status == TEGULA_NOT_FOUND && call->library->failure.status != TEGULA_OK))
    return hdf5_failed(call->library, err, TEGULA_CORRUPT, at->file->path,
                       "look up \"%s/%s\" in \"%s\"", at->path, component, at->file->path);
  RETURN_IF(status == TEGULA_NOT_FOUND, no_such(call, at, component, err));
  if (status != TEGULA_OK)
    return host->fail(err, status, at->file->path, -1, "cannot follow the link \"%s/%s\" in \"%s\"",
                      at->path, component, at->file->path);
  status = link.kind == HDF5_LINK_HARD ? enter(call, at, component, err)
                                       : follow(call, at, component, &link, err);
  hdf5_link_free(&link);
  return status;
}

tegula_status hdf5_follow(hdf5_call *call, hdf5_file *file, const char *name, hdf5_found *out,
                          tegula_error *err) {
  cursor at = {.id = -1, .rest = strdup(name)};
  *out = (hdf5_found){.id = -1};
  RETURN_IF(!at.rest, hdf5_out_of_memory(call->library, err));
  file->references++;
  tegula_status status = go_to_root(call, &at, file, err);
  while (status == TEGULA_OK) {
    char *component;
    bool there = next_component(&at, &component);
    if (there && !component) break;
    status = !there ? hdf5_out_of_memory(call->library, err) : step(call, &at, component, err);
    free(component);
  }
  if (status == TEGULA_OK) {
    *out = (hdf5_found){.file = at.file, .id = at.id, .name = at.path};
    at.file = NULL;
    at.id = -1;
    at.path = NULL;
  }
  out->circle = at.links > MOST_LINKS;
  cursor_free(call, &at);
  return status;
}

void hdf5_found_free(hdf5_call *call, hdf5_found *found) {
  if (found->id >= 0) call->library->call.H5Oclose(found->id);
  hdf5_file_release(call, found->file);
  free(found->name);
  *found = (hdf5_found){.id = -1};
}

/* ---- where an object is ---- */

bool hdf5_object_examine(hdf5_library *library, hid_t id, hdf5_object *object, unsigned *links) {
  /* H5O_info1_t: file, address, type, count of links; H5O_info2_t: file, token of 16 bytes, the
   * same */
  unsigned char info[512] = {0};
  bool newer = hdf5_library_from(library, 1, 12, 0); /* H5Oget_info3 or H5Oget_info2 */
  herr_t done = library->call.object_info(id, info, 1 /* basic */);
  *object = (hdf5_object){{0}};
  memcpy(object->place, info + 8, newer ? 16 : 8);
  memcpy(links, info + (newer ? 28 : 20), sizeof *links);
  return done >= 0;
}

bool hdf5_object_of(hdf5_library *library, hid_t id, hdf5_object *out) {
  unsigned links;
  return hdf5_object_examine(library, id, out, &links);
}
