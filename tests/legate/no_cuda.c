/* Stands in for libcuda.so.1 where there is no driver, so that Legate's wheel starts on processors
 * only: no device is what all of it says.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stddef.h>

enum { NO_DEVICE = 100 };

int cuInit(unsigned flags);
int cuDriverGetVersion(int *version);
int cuGetErrorName(int error, const char **name);
int cuGetErrorString(int error, const char **text);
int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags);
int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status);
int cuMemFree_v2(unsigned long long address);
int cuMemFreeHost(void *address);

static int no_device(void) { return NO_DEVICE; }

int cuInit(unsigned flags) { return (void)flags, NO_DEVICE; }

int cuDriverGetVersion(int *version) {
  *version = 13000;
  return 0;
}

int cuGetErrorName(int error, const char **name) {
  *name = "CUDA_ERROR_NO_DEVICE";
  return (void)error, 0;
}

int cuGetErrorString(int error, const char **text) {
  *text = "no CUDA-capable device is detected";
  return (void)error, 0;
}

/* Every function there is, and that may be asked for. */
static const struct {
  const char *name;
  void *function;
} functions[] = {{"cuDriverGetVersion", (void *)cuDriverGetVersion},
                 {"cuGetErrorName", (void *)cuGetErrorName},
                 {"cuGetErrorString", (void *)cuGetErrorString}};

static int same(const char *a, const char *b) {
  while (*a && *a == *b) a++, b++;
  return *a == *b;
}

int cuGetProcAddress(const char *name, void **function, int version, unsigned long long flags) {
  *function = (void *)no_device;
  for (size_t k = 0; k < sizeof functions / sizeof *functions; k++)
    if (same(functions[k].name, name)) *function = functions[k].function;
  return (void)version, (void)flags, 0;
}

int cuGetProcAddress_v2(const char *name, void **function, int version, unsigned long long flags,
                        int *status) {
  if (status) *status = 0;
  return cuGetProcAddress(name, function, version, flags);
}

int cuMemFree_v2(unsigned long long address) { return (void)address, NO_DEVICE; }
int cuMemFreeHost(void *address) { return (void)address, NO_DEVICE; }
