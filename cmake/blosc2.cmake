# Headers and library of c-blosc2: from TEGULA_BLOSC2_ROOT, else from pkg-config.
#
# SPDX-License-Identifier: Apache-2.0
if(TEGULA_BLOSC2_ROOT)
  set(tegula_blosc2_include ${TEGULA_BLOSC2_ROOT}/include)
  find_library(tegula_blosc2_library blosc2 PATHS ${TEGULA_BLOSC2_ROOT}/lib NO_DEFAULT_PATH NO_CACHE)
else()
  pkg_check_modules(BLOSC2 QUIET blosc2)
  if(BLOSC2_FOUND)
    pkg_get_variable(tegula_blosc2_include blosc2 includedir)
    find_library(tegula_blosc2_library blosc2 HINTS ${BLOSC2_LIBRARY_DIRS} NO_CACHE)
  endif()
endif()

if(tegula_blosc2_library AND EXISTS ${tegula_blosc2_include}/b2nd.h)
  execute_process(COMMAND ${CMAKE_READELF} -d ${tegula_blosc2_library} OUTPUT_VARIABLE tegula_blosc2_soname)
  string(REGEX MATCH "libblosc2\\.so[.0-9]*" tegula_blosc2_soname "${tegula_blosc2_soname}")
endif()
if(tegula_blosc2_soname)
  list(APPEND tegula_definitions TEGULA_HAVE_BLOSC2 TEGULA_BLOSC2_SONAME="${tegula_blosc2_soname}")
  set_source_files_properties(src/codec/blosc2.c PROPERTIES INCLUDE_DIRECTORIES ${tegula_blosc2_include})
elseif(TEGULA_BLOSC2_ROOT OR NOT TEGULA_WITH_BLOSC2 STREQUAL "AUTO")
  message(FATAL_ERROR "libblosc2 was not found: install it (Debian 13: libblosc2-dev), or set TEGULA_BLOSC2_ROOT to the folder of "
                      "the Python package blosc2")
endif()

if(tegula_blosc2_soname AND TEGULA_BLOSC2_ROOT)
  list(APPEND CMAKE_BUILD_RPATH ${TEGULA_BLOSC2_ROOT}/lib)
  if(TEGULA_SANITIZE)
    add_link_options(-Wl,--disable-new-dtags) # there it is the sanitizer's dlopen that calls, which has no path of its own
  endif()
  cmake_path(IS_PREFIX PROJECT_BINARY_DIR ${TEGULA_BLOSC2_ROOT} NORMALIZE tegula_blosc2_in_build)
  cmake_path(IS_PREFIX PROJECT_SOURCE_DIR ${TEGULA_BLOSC2_ROOT} NORMALIZE tegula_blosc2_in_source)
  if(NOT tegula_blosc2_in_build AND NOT tegula_blosc2_in_source)
    list(APPEND CMAKE_INSTALL_RPATH ${TEGULA_BLOSC2_ROOT}/lib)
  endif()
endif()
