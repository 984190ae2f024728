# How everything in this tree is compiled: one interface target that libraries, programs and tests link to, and where they land.
#
# SPDX-License-Identifier: Apache-2.0
#
# Nothing here reaches users of the installed library.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Release, RelWithDebInfo or Debug" FORCE)
endif()

set(CMAKE_C_STANDARD 17)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)

add_library(tegula_build_options INTERFACE)
target_compile_definitions(tegula_build_options INTERFACE _GNU_SOURCE)
target_compile_options(tegula_build_options INTERFACE -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes)
if(TEGULA_WERROR)
  target_compile_options(tegula_build_options INTERFACE -Werror)
endif()
if(TEGULA_SANITIZE)
  set(tegula_sanitize_flags -fsanitize=${TEGULA_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_compile_options(tegula_build_options INTERFACE ${tegula_sanitize_flags})
  target_link_options(tegula_build_options INTERFACE ${tegula_sanitize_flags})
endif()
