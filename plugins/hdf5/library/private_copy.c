/* A copy of libhdf5 that nobody else in the process shares.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Many builds of libhdf5 are not thread safe, and others of the process (h5py, netCDF) have locks
 * of their own that ours knows nothing of: one copy between them would race. The loader gives one
 * copy per file, and takes what is loaded for whoever later needs a library of that name. So the
 * file is copied into memory, its name is changed by one letter, and the copy is opened. Where that
 * does not work the file itself is opened. The descriptor of the copy stays open: the loader knows
 * the library by its number, which nobody else may get. */
#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

#include "library/libhdf5.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define DEEP 0 /* sanitizers do not allow it */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define DEEP 0
#endif
#endif
#ifndef DEEP
#define DEEP RTLD_DEEPBIND
#endif

#define MOST_BYTES (INT64_C(256) << 20)

/* Opens `path`. Wheels keep the libraries that theirs needs beside it, which the loader does not
 * find on its own: those are opened
 * first. */
static void *open_with_neighbours(const char *path, const char *original, char *why, size_t size) {
  void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | DEEP);
  for (int tries = 0; !handle && tries < 16; tries++) {
    const char *text = dlerror();
    snprintf(why, size, "%s", text ? text : "unknown reason");
    const char *end = strstr(why, ": cannot open shared object file"),
               *slash = strrchr(original, '/');
    if (!end || !slash || memchr(why, '/', (size_t)(end - why))) break;
    char *needed = hdf5_text("%.*s/%.*s", (int)(slash - original), original, (int)(end - why), why);
    bool found =
        needed && access(needed, R_OK) == 0 && open_with_neighbours(needed, needed, why, size);
    free(needed);
    if (!found) break;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | DEEP);
  }
  return handle;
}

/* File offset of an address that the file says a segment has; 0: none. */
static size_t file_offset(const char *bytes, const ElfW(Ehdr) * head, size_t address) {
  for (int k = 0; k < head->e_phnum; k++) {
    ElfW(Phdr) segment;
    memcpy(&segment, bytes + head->e_phoff + (size_t)k * sizeof segment, sizeof segment);
    if (segment.p_type == PT_LOAD && address >= segment.p_vaddr &&
        address - segment.p_vaddr < segment.p_filesz)
      return segment.p_offset + (address - segment.p_vaddr);
  }
  return 0;
}

/* The name (DT_SONAME) in the image; NULL: there is none, or this is no library of this machine. */
static char *find_name(char *bytes, size_t size) {
  ElfW(Ehdr) head;
  if (size < sizeof head) return NULL;
  memcpy(&head, bytes, sizeof head);
  bool good = memcmp(head.e_ident, ELFMAG, SELFMAG) == 0 &&
              head.e_ident[EI_CLASS] == (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) &&
              head.e_phentsize == sizeof(ElfW(Phdr)) && head.e_phoff < size &&
              head.e_phnum <= (size - head.e_phoff) / sizeof(ElfW(Phdr));
  if (!good) return NULL;
  size_t dynamic = 0, entries = 0, texts = 0, name = 0;
  for (int k = 0; k < head.e_phnum; k++) {
    ElfW(Phdr) segment;
    memcpy(&segment, bytes + head.e_phoff + (size_t)k * sizeof segment, sizeof segment);
    if (segment.p_type != PT_DYNAMIC || segment.p_offset >= size) continue;
    dynamic = segment.p_offset;
    entries = segment.p_filesz / sizeof(ElfW(Dyn));
    if (entries > (size - dynamic) / sizeof(ElfW(Dyn))) return NULL;
  }
  for (size_t k = 0; k < entries; k++) {
    ElfW(Dyn) entry;
    memcpy(&entry, bytes + dynamic + k * sizeof entry, sizeof entry);
    if (entry.d_tag == DT_STRTAB) texts = file_offset(bytes, &head, entry.d_un.d_ptr);
    if (entry.d_tag == DT_SONAME) name = entry.d_un.d_val;
  }
  if (!texts || !name || texts >= size || name >= size - texts) return NULL;
  char *text = bytes + texts + name;
  return memchr(text, 0, size - texts - name) && text[0] ? text : NULL;
}

/* A descriptor of the copy; -1: none could be made. */
static int copy_of(const char *path) {
  int in = open(path, O_RDONLY | O_CLOEXEC), out = -1;
  struct stat info;
  if (in >= 0 && fstat(in, &info) == 0 && S_ISREG(info.st_mode) && info.st_size > 0 &&
      info.st_size < MOST_BYTES)
    out = memfd_create("tegula-libhdf5", MFD_CLOEXEC);
  if (out < 0) {
    if (in >= 0) close(in);
    return -1;
  }
  size_t size = (size_t)info.st_size;
  char *bytes = ftruncate(out, info.st_size) == 0
                    ? mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, out, 0)
                    : MAP_FAILED;
  bool good = bytes != MAP_FAILED;
  for (size_t done = 0; good && done < size;) { /* without a page fault for each page of the copy */
    ssize_t got = sendfile(out, in, NULL, size - done);
    good = got > 0;
    done += good ? (size_t)got : 0;
  }
  char *name = good ? find_name(bytes, size) : NULL;
  if (name) name[0] = name[0] == 't' ? 'T' : 't';
  if (bytes != MAP_FAILED) munmap(bytes, size);
  close(in);
  if (name) return out;
  close(out);
  return -1;
}

/* The file of a library that is named without a folder: the loader says where it is. */
static char *found_path(const char *name, char *why, size_t size) {
  if (strchr(name, '/')) return strdup(name);
  void *handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL | DEEP);
  struct link_map *map = NULL;
  if (!handle) {
    const char *text = dlerror();
    snprintf(why, size, "%s", text ? text : "unknown reason");
    return NULL;
  }
  char *path = dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map ? strdup(map->l_name) : NULL;
  dlclose(handle);
  return path;
}

void *hdf5_open_private(const char *name, int *descriptor, char *why, size_t size) {
  *descriptor = -1;
  char *path = found_path(name, why, size);
  if (!path) return NULL;
  void *handle = NULL;
  int copy = copy_of(path);
  if (copy >= 0) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", copy);
    handle = open_with_neighbours(link, path, why, size);
    if (handle)
      *descriptor = copy;
    else
      close(copy);
  }
  if (!handle) handle = open_with_neighbours(path, path, why, size);
  free(path);
  return handle;
}

void hdf5_close_private(void *handle, int descriptor) {
  dlclose(handle);
  if (descriptor >= 0) close(descriptor);
}
