/* Runs a fuzz target over files: what libFuzzer does with -runs=0, for compilers that have no
 * libFuzzer.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * usage: fuzz_NAME FILE|FOLDER... Ends with status 1 when nothing could be read; a target that
 * fails aborts. */
#include <dirent.h>

#include "fuzz.h"

#define LARGEST_INPUT ((size_t)1 << 20)

static int run_file(const char *path) {
  uint8_t *data = malloc(LARGEST_INPUT);
  FILE *file = fopen(path, "rb");
  if (file == NULL || data == NULL) {
    fprintf(stderr, "could not read %s\n", path);
    if (file != NULL) fclose(file);
    free(data);
    return 0;
  }
  size_t size = fread(data, 1, LARGEST_INPUT, file);
  fclose(file);
  printf("%s\n", path);
  fflush(stdout); /* the last line before a crash names the input */
  LLVMFuzzerTestOneInput(data, size);
  free(data);
  return 1;
}

static int run_folder(const char *path, DIR *folder) {
  int count = 0;
  for (struct dirent *entry = readdir(folder); entry != NULL; entry = readdir(folder)) {
    char name[4096];
    if (entry->d_name[0] == '.') continue;
    snprintf(name, sizeof name, "%s/%s", path, entry->d_name);
    count += run_file(name);
  }
  return count;
}

int main(int count, char **words) {
  int done = 0;
  for (int i = 1; i < count; i++) {
    DIR *folder = opendir(words[i]);
    done += folder != NULL ? run_folder(words[i], folder) : run_file(words[i]);
    if (folder != NULL) closedir(folder);
  }
  printf("%d inputs\n", done);
  return done > 0 ? 0 : 1;
}
