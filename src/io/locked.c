/* Locks of others.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <errno.h>
#include <sys/file.h>

#include "io/io.h"

bool tegula__io_locked(int fd) {
  int result;
  do result = flock(fd, LOCK_SH | LOCK_NB);
  while (result != 0 && errno == EINTR);
  if (result != 0) return errno == EWOULDBLOCK;
  flock(fd, LOCK_UN);
  return false;
}
