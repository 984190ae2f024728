/* `tegula info --manifest`: the manifest of a dataset as a file.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <stdlib.h>

#include "cli_report.h"
#include "commands.h"

tegula_status manifest_save(cli_job *job, const tegula_dataset *dataset, const char *path) {
  char *folder = whole_folder(path), *text = NULL;
  tegula_status status = whole_check(path, "{\"tegula_manifest\":", "is no manifest", &job->error);
  if (folder == NULL) {
    status =
        report_fail(&job->error, TEGULA_OUT_OF_MEMORY, NULL, "could not write %s: no memory", path);
  }
  if (status == TEGULA_OK) {
    status = tegula_dataset_to_json(dataset, folder, &text, &job->error);
  }
  if (status == TEGULA_OK) {
    status = whole_write(path, text, &job->error);
  }
  tegula_free(text);
  free(folder);
  return status;
}
