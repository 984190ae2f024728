/* Processes that fork, threads inside of readers: the only state of the extension that belongs to
 * the whole process.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * A child has none of its parent's threads, and locks that they held stay locked. So a child never
 * touches a handle of its parent (the Python side makes new ones), and when a call was running at
 * the moment of the fork it says so instead of hanging. */
#include "core.h"

static atomic_uint generation = 1;
static atomic_int running;
static atomic_bool broken;
static _Thread_local int depth;

static void in_child(void) {
  atomic_fetch_add(&generation, 1);
  if (atomic_exchange(&running, 0) > 0) atomic_store(&broken, true);
}

uint32_t core_generation(void) { return atomic_load(&generation); }
int core_depth(void) { return depth; }
void core_deepen(int by) { depth += by; }
void core_enter(void) { atomic_fetch_add(&running, 1); }
void core_leave(void) { atomic_fetch_sub(&running, 1); }

bool core_usable(void) {
  if (!atomic_load(&broken)) return true;
  static const tegula_error error = {
      .status = TEGULA_UNSUPPORTED,
      .rank = -1,
      .offset = -1,
      .message =
          "cannot work in this process: it was forked while another thread was inside tegula",
      .hint = "start processes by \"spawn\" or \"forkserver\", or fork after tegula.fence() and "
              "when no load runs"};
  core_raise(&error);
  return false;
}

bool core_current(uint32_t of_object) {
  if (!core_usable()) return false;
  if (of_object == core_generation()) return true;
  PyErr_SetString(PyExc_RuntimeError, "this object was made before the process was forked");
  return false;
}

int core_fork_init(void) {
  static bool done;
  if (done || pthread_atfork(NULL, NULL, in_child) == 0) {
    done = true;
    return 0;
  }
  PyErr_NoMemory();
  return -1;
}
