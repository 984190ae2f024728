/* Defaults of the public structs.
 *
 * SPDX-License-Identifier: Apache-2.0 */
#include <tegula/tegula.h>

void tegula_context_options_init(tegula_context_options *options) {
  *options = (tegula_context_options){.struct_size = sizeof *options};
}

void tegula_open_options_init(tegula_open_options *options) {
  *options = (tegula_open_options){.struct_size = sizeof *options,
                                   .shape_ndim = -1,
                                   .row_ndim = -1,
                                   .expect_files = -1,
                                   .expect_rows = -1};
}

void tegula_selection_init(tegula_selection *selection) {
  *selection = (tegula_selection){.struct_size = sizeof *selection};
}

void tegula_dataset_info_init(tegula_dataset_info_t *info) {
  *info = (tegula_dataset_info_t){.struct_size = sizeof *info};
}

void tegula_file_info_init(tegula_file_info *info) {
  *info = (tegula_file_info){.struct_size = sizeof *info};
}

void tegula_reader_init(tegula_reader *reader) {
  *reader = (tegula_reader){.struct_size = sizeof *reader};
}

void tegula_array_options_init(tegula_array_options *options) {
  *options = (tegula_array_options){.struct_size = sizeof *options};
}

void tegula_load_options_init(tegula_load_options *options) {
  *options = (tegula_load_options){.struct_size = sizeof *options};
}

void tegula_save_options_init(tegula_save_options *options) {
  *options = (tegula_save_options){.struct_size = sizeof *options};
}

void tegula_save_member_init(tegula_save_member *member) {
  *member = (tegula_save_member){.struct_size = sizeof *member};
}

void tegula_copy_options_init(tegula_copy_options *options) {
  *options = (tegula_copy_options){.struct_size = sizeof *options};
}

void tegula_copy_report_init(tegula_copy_report *report) {
  *report = (tegula_copy_report){.struct_size = sizeof *report};
}

void tegula_difference_init(tegula_difference *difference) {
  *difference = (tegula_difference){.struct_size = sizeof *difference};
}

void tegula_verify_report_init(tegula_verify_report *report) {
  *report = (tegula_verify_report){.struct_size = sizeof *report};
}

void tegula_sums_report_init(tegula_sums_report *report) {
  *report = (tegula_sums_report){.struct_size = sizeof *report};
}

void tegula_statistics_init(tegula_statistics *statistics) {
  *statistics = (tegula_statistics){.struct_size = sizeof *statistics};
}
