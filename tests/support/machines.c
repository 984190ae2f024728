/* LD_PRELOAD: this process finds itself on a machine of another name and with other processors:
 * TEGULA_MACHINE="NAME FIRST LAST"; or on storage that likes blocks of so many bytes:
 * TEGULA_STRIPE="BYTES LOG", where LOG gets the offset of each write of more than a page.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Only what calls from files named *tegula* is told that: an MPI looks at the machine as it is. */
#include <dlfcn.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int told(const void *caller, char name[64], int *first, int *last) {
  Dl_info object;
  const char *machine = getenv("TEGULA_MACHINE");
  return machine != NULL && dladdr(caller, &object) != 0 &&
         strstr(object.dli_fname, "tegula") != NULL &&
         sscanf(machine, "%63s %d %d", name, first, last) == 3;
}

int gethostname(char *out, size_t size) {
  int (*real)(char *, size_t);
  char name[64];
  int first, last;
  void *symbol = dlsym(RTLD_NEXT, "gethostname");
  memcpy(&real, &symbol, sizeof real);
  if (!told(__builtin_return_address(0), name, &first, &last)) return real(out, size);
  return snprintf(out, size, "%s", name) < 0;
}

int sched_getaffinity(pid_t process, size_t size, cpu_set_t *set) {
  int (*real)(pid_t, size_t, cpu_set_t *);
  char name[64];
  int first, last;
  void *symbol = dlsym(RTLD_NEXT, "sched_getaffinity");
  memcpy(&real, &symbol, sizeof real);
  if (!told(__builtin_return_address(0), name, &first, &last)) return real(process, size, set);
  memset(set, 0, size);
  for (int i = first; i <= last; i++) CPU_SET_S((size_t)i, size, set);
  return 0;
}

int stat(const char *restrict path, struct stat *restrict out) {
  int (*real)(const char *, struct stat *);
  const char *stripe = getenv("TEGULA_STRIPE");
  void *symbol = dlsym(RTLD_NEXT, "stat");
  memcpy(&real, &symbol, sizeof real);
  int result = real(path, out);
  if (result == 0 && stripe != NULL) out->st_blksize = atol(stripe);
  return result;
}

ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
  ssize_t (*real)(int, const void *, size_t, off_t);
  char log[256];
  const char *stripe = getenv("TEGULA_STRIPE");
  void *symbol = dlsym(RTLD_NEXT, "pwrite");
  memcpy(&real, &symbol, sizeof real);
  if (stripe != NULL && size > 4096 && sscanf(stripe, "%*d %255s", log) == 1) {
    int lines = open(log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    dprintf(lines, "%lld\n", (long long)offset);
    close(lines);
  }
  return real(fd, data, size, offset);
}
