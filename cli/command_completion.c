/* `tegula completion bash|zsh`: completion for a shell, made from the same tables as the options
 * themselves.
 *
 * SPDX-License-Identifier: Apache-2.0
 *
 * Commands, options and the values of options that have a fixed choice are completed; where a path
 * may stand, file names are. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "cli_report.h"
#include "commands.h"

/* Calls visit(row) for each option of a command. */
static void each_option(const cli_command *command, void (*visit)(const cli_option *row)) {
  for (size_t g = 0; command->groups[g] != NULL; g++) {
    for (size_t i = 0; i < command->groups[g]->count; i++) {
      visit(&command->groups[g]->options[i]);
    }
  }
}

/* The choices of an option, separated by `between`. Those that a shell would take for something
 * else ("<") are left out. */
static void print_choices(const cli_option *row, const char *between) {
  const char *separator = "";
  for (const char *at = row->argument; *at != '\0';) {
    size_t length = strcspn(at, "|");
    if (isalnum((unsigned char)at[0])) {
      printf("%s%.*s", separator, (int)length, at);
      separator = between;
    }
    at += length + (at[length] == '|');
  }
}

static void print_command_names(void) {
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    if (!cli_commands[i]->hidden) {
      printf("%s ", cli_commands[i]->name);
    }
  }
}

/* ---- bash ---- */

static void bash_choice(const cli_option *row) {
  if (row->kind == OPTION_CHOICE) {
    printf("        --%s) words=\"", row->name);
    print_choices(row, " ");
    printf("\" ;;\n");
  }
}

/* Values of which nothing is known are not completed, with file names neither. */
static void bash_value(const cli_option *row) {
  if (row->kind != OPTION_FLAG && row->kind != OPTION_CHOICE) {
    printf("|--%s", row->name);
  }
}

static void bash_option(const cli_option *row) {
  printf(" --%s", row->name);
  if (row->letter != 0) {
    printf(" -%c", row->letter);
  }
}

static void bash_command(const cli_command *command) {
  printf("    %s)\n      case $before in\n", command->name);
  each_option(command, bash_choice);
  printf("        --''");
  each_option(command, bash_value);
  printf(") compopt +o default; return ;;\n        *) [[ $word != -* ]] || words=\"");
  each_option(command, bash_option);
  printf("\" ;;\n      esac ;;\n");
}

static void print_bash(void) {
  printf("# bash completion for tegula, made by `tegula completion bash`\n"
         "_tegula() {\n"
         "  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} words=''\n"
         "  if [[ $word == '=' ]]; then # --name=: bash takes the sign for a word of its own\n"
         "    word=''\n"
         "  elif [[ $before == '=' ]]; then\n"
         "    before=${COMP_WORDS[COMP_CWORD - 2]}\n"
         "  fi\n"
         "  COMPREPLY=()\n"
         "  if ((COMP_CWORD == 1)); then\n"
         "    compopt +o default\n"
         "    COMPREPLY=($(compgen -W \"");
  print_command_names();
  printf("--help --version\" -- \"$word\"))\n"
         "    return\n"
         "  fi\n"
         "  case ${COMP_WORDS[1]} in\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    if (!cli_commands[i]->hidden) {
      bash_command(cli_commands[i]);
    }
  }
  printf("  esac\n"
         "  [[ -z $words ]] || COMPREPLY=($(compgen -W \"$words\" -- \"$word\"))\n"
         "}\n"
         "complete -o default -F _tegula tegula\n");
}

/* ---- zsh ---- */

/* Inside single quotes and inside the brackets of _arguments. */
static void print_zsh_text(const char *text) {
  for (; *text != '\0'; text++) {
    if (*text == '\'') {
      printf("'\\''");
    } else if (strchr("[]:\\", *text) != NULL) {
      printf("\\%c", *text);
    } else {
      putchar(*text);
    }
  }
}

static void zsh_spec(const cli_option *row) {
  printf(" '--%s%s[", row->name, row->kind == OPTION_FLAG ? "" : "=");
  print_zsh_text(row->help);
  printf("]");
  if (row->kind == OPTION_CHOICE) {
    printf(":value:(");
    print_choices(row, " ");
    printf(")");
  } else if (row->kind != OPTION_FLAG) {
    printf(":");
    print_zsh_text(row->argument);
    printf(": ");
  }
  printf("'");
  if (row->letter != 0) {
    printf(" '-%c[", row->letter);
    print_zsh_text(row->help);
    printf("]'");
  }
}

static void print_zsh(void) {
  printf("#compdef tegula\n"
         "# zsh completion for tegula, made by `tegula completion zsh`\n"
         "_tegula() {\n"
         "  local -a commands\n"
         "  commands=(");
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    if (!cli_commands[i]->hidden) {
      printf("\n    '%s:", cli_commands[i]->name);
      print_zsh_text(cli_commands[i]->summary);
      printf("'");
    }
  }
  printf(")\n"
         "  if ((CURRENT == 2)); then\n"
         "    _describe command commands\n"
         "    return\n"
         "  fi\n"
         "  local command=${words[2]}\n"
         "  shift words\n"
         "  ((CURRENT--))\n"
         "  case $command in\n");
  for (size_t i = 0; cli_commands[i] != NULL; i++) {
    if (!cli_commands[i]->hidden) {
      printf("    %s) _arguments -s", cli_commands[i]->name);
      each_option(cli_commands[i], zsh_spec);
      printf("%s ;;\n", cli_commands[i]->max_paths > 0 ? " '*:path:_files'" : "");
    }
  }
  printf("  esac\n"
         "}\n"
         "if [[ $zsh_eval_context[-1] == loadautofunc ]]; then _tegula \"$@\"; else compdef "
         "_tegula tegula; fi\n");
}

/* ---- the command ---- */

static tegula_status run_completion(cli_job *job) {
  const char *shell = job->settings.paths[0];
  if (strcmp(shell, "bash") == 0) {
    print_bash();
  } else if (strcmp(shell, "zsh") == 0) {
    print_zsh();
  } else {
    return report_usage(&job->error, job->command->name,
                        "there is completion for bash and zsh, found \"%s\"", shell);
  }
  return TEGULA_OK;
}

const cli_command completion_command = {
    .name = "completion",
    .summary = "print the completion for a shell",
    .paths = "bash|zsh",
    .description = "Prints a script that teaches the shell to complete tegula's commands, options "
                   "and their values. Installing\n"
                   "tegula puts both where the shells look for them.\n",
    .examples =
        "  source <(tegula completion bash)                       in this shell\n"
        "  tegula completion zsh >~/.zfunc/_tegula                a folder that is in fpath\n",
    .min_paths = 1,
    .max_paths = 1,
    .groups = {&options_common, NULL},
    .hidden = 1,
    .run = run_completion,
};
