/* `tegula run`: starts a program on several ranks, by the launcher that is there.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * It becomes the launcher (exec), so signals, output and the exit status are the launcher's. What
 * it adds: the words that mpirun and srun want, ranks that may outnumber processors and may use all
 * of them, and commands of tegula by their name. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli_report.h"
#include "commands.h"

#define MAX_RANKS 1000000
#define FIELD(name) offsetof(cli_settings, name)

typedef struct word_list {
  const char **words;
  size_t count;
  char numbers[3][24];
  int used;
} word_list;

static void add(word_list *list, const char *word) { list->words[list->count++] = word; }

static void add_number(word_list *list, const char *word, int64_t number) {
  char *text = list->numbers[list->used++];
  snprintf(text, sizeof list->numbers[0], "%" PRId64, number);
  add(list, word);
  add(list, text);
}

/* Is there a program of that name in PATH? */
static int is_there(const char *name) {
  const char *path = getenv("PATH");
  char file[4096];
  while (path != NULL && *path != '\0') {
    size_t size = strcspn(path, ":");
    snprintf(file, sizeof file, "%.*s/%s", (int)size, path, name);
    if (access(file, X_OK) == 0) {
      return 1;
    }
    path += size + (path[size] == ':');
  }
  return 0;
}

/* The launcher's own words for nodes differ: Open MPI's says what it is. */
static int is_open_mpi(const char *launcher) {
  char command[64], line[256] = "";
  snprintf(command, sizeof command, "%s --version 2>/dev/null", launcher);
  FILE *output = popen(command, "r");
  if (output == NULL) {
    return 0;
  }
  int found = fgets(line, sizeof line, output) != NULL &&
              (strstr(line, "Open MPI") != NULL || strstr(line, "OpenRTE") != NULL ||
               strstr(line, "prte") != NULL);
  pclose(output);
  return found;
}

static void default_to(const char *name, const char *value) { (void)setenv(name, value, 0); }

/* For both generations of Open MPI: more ranks than processors are allowed, and none is bound to
 * one of them. */
static void relax_open_mpi(void) {
  default_to("OMPI_MCA_rmaps_base_oversubscribe", "1");
  default_to("OMPI_MCA_hwloc_base_binding_policy", "none");
  default_to("PRTE_MCA_rmaps_default_mapping_policy", ":oversubscribe");
  default_to("PRTE_MCA_hwloc_default_binding_policy", "none");
}

static void add_launcher(const cli_settings *values, const char *launcher, word_list *list) {
  int64_t per_node = values->ranks_per_node, nodes = values->nodes;
  int64_t ranks = values->ranks > 0           ? values->ranks
                  : nodes > 0 && per_node > 0 ? nodes * per_node
                                              : nodes;
  static char policy[48];
  add(list, launcher);
  if (ranks > 0) {
    add_number(list, "-n", ranks);
  }
  if (strcmp(launcher, "srun") == 0) {
    if (nodes > 0) {
      add_number(list, "-N", nodes);
    }
    if (per_node > 0) {
      add_number(list, "--ntasks-per-node", per_node);
    }
    /* else srun waits for a rank that stands still after the others have ended with an error */
    default_to("SLURM_KILL_BAD_EXIT", "1");
    return;
  }
  relax_open_mpi();
  if (per_node > 0 && is_open_mpi(launcher)) {
    snprintf(policy, sizeof policy, "ppr:%" PRId64 ":node", per_node);
    add(list, "--map-by");
    add(list, policy);
  } else if (per_node > 0) {
    add_number(list, "-ppn", per_node);
  }
}

/* "load" stands for `tegula load`. */
static const char *own_program(const char *word) {
  static char program[4096];
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    if (strcmp(cli_commands[i]->name, word) == 0) {
      ssize_t size = readlink("/proc/self/exe", program, sizeof program - 1);
      program[size > 0 ? size : 0] = '\0';
      return size > 0 ? program : NULL;
    }
  }
  return NULL;
}

static tegula_status choose_launcher(cli_job *job, const char **out) {
  const cli_settings *values = &job->settings;
  int in_slurm = getenv("SLURM_JOB_ID") != NULL && is_there("srun");
  *out = values->launcher != NULL ? values->launcher
         : in_slurm               ? "srun"
         : is_there("mpirun")     ? "mpirun"
                                  : "mpiexec";
  if (values->ranks == 0 && values->nodes == 0 && strcmp(*out, "srun") != 0) {
    return report_usage(&job->error, "run",
                        "how many ranks? give --ranks N, or --nodes N --ranks-per-node R");
  }
  if (strcmp(*out, "srun") != 0 && values->ranks_per_node == 0 && values->nodes > 0) {
    return report_usage(&job->error, "run", "--nodes needs --ranks-per-node R with %s", *out);
  }
  if (is_there(*out)) {
    return TEGULA_OK;
  }
  return report_fail(
      &job->error, TEGULA_NOT_FOUND,
      "install one (openmpi-bin or mpich), put its folder into PATH, or give --launcher",
      "no launcher was found: expected %s in PATH",
      strcmp(*out, "mpiexec") == 0 ? "mpirun or mpiexec" : *out);
}

static tegula_status run_run(cli_job *job) {
  const cli_settings *values = &job->settings;
  const char *launcher = NULL;
  tegula_status status = choose_launcher(job, &launcher);
  word_list list = {.words = report_allocate((values->path_count + 16) * sizeof *list.words)};
  if (status == TEGULA_OK && list.words == NULL) {
    status = report_no_memory(&job->error);
  }
  if (status == TEGULA_OK) {
    const char *own = own_program(values->paths[0]);
    add_launcher(values, launcher, &list);
    if (own != NULL) {
      add(&list, own);
    }
    for (size_t i = 0; i < values->path_count; i++) {
      add(&list, values->paths[i]);
    }
    add(&list, NULL);
    fflush(NULL);
    execvp(launcher, (char *const *)list.words);
    status = report_fail_os(&job->error, launcher, errno, NULL, "could not start %s", launcher);
  }
  free(list.words);
  return status;
}

static const cli_option run_rows[] = {
    {"ranks", "N", "start N ranks", FIELD(ranks), 1, MAX_RANKS, OPTION_INTEGER, 0},
    {"nodes", "N", "on N machines", FIELD(nodes), 1, MAX_RANKS, OPTION_INTEGER, 0},
    {"ranks-per-node", "R", "R ranks on each machine", FIELD(ranks_per_node), 1, MAX_RANKS,
     OPTION_INTEGER, 0},
    {"launcher", "mpirun|mpiexec|srun", "default: srun in an allocation of Slurm, else mpirun",
     FIELD(launcher), 0, 0, OPTION_CHOICE, 0},
};

static const option_group run_group = {"How many", run_rows, sizeof run_rows / sizeof run_rows[0]};

const cli_command run_command_row = {
    .name = "run",
    .summary = "start a program, or a command of tegula, on several ranks",
    .paths = "-- PROGRAM [ARGUMENT...]",
    .description =
        "Starts a program several times by mpirun or srun, as ranks that know of each other. A "
        "PROGRAM that is the name\n"
        "of a command of tegula stands for that command. Options behind -- belong to the "
        "program.\n\n"
        "`tegula load` then loads on all ranks: each one its tiles, one tile for each rank unless "
        "told otherwise, with the\n"
        "machine's processors shared among its ranks. The report comes once, with sums over all "
        "ranks. copy,\n"
        "compare and verify share the work, too; of all other commands rank 0 does it.\n\n"
        "More ranks than processors are allowed, and ranks are not bound to one processor each, "
        "unless the environment\n"
        "says something else (OMPI_MCA_*, PRTE_MCA_*). srun ends the others when one rank fails "
        "(SLURM_KILL_BAD_EXIT). The exit\n"
        "status is the launcher's.\n\n"
        "The MPI is that of the launcher where it can be found; TEGULA_MPI_LIBRARY names "
        "another.\n",
    .examples = "  tegula run --ranks 4 -- load shards --hash     four ranks on this machine\n"
                "  tegula run --nodes 8 --ranks-per-node 2 -- load shards\n"
                "                                                 sixteen ranks on eight machines\n"
                "  tegula run --ranks 4 -- python train.py        a program of your own\n",
    .min_paths = 1,
    .max_paths = SIZE_MAX,
    .groups = {&run_group, &options_common, NULL},
    .on_ranks = RANKS_NONE,
    .run = run_run,
};
