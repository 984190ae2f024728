# The libraries that undo what chunks went through: TEGULA_WITH_NAME is ON, OFF, or AUTO where the library is installed.
#
# SPDX-License-Identifier: Apache-2.0
#
# Each that is taken (but blosc2, below) is linked, defines TEGULA_HAVE_NAME and is named in tegula.pc and tegulaConfig.cmake for static linking. libdeflate is
# always needed.
set(tegula_codec_modules DEFLATE=libdeflate) # what find_package and pkg-config look for again
set(tegula_codec_pc_libs)

pkg_check_modules(DEFLATE REQUIRED IMPORTED_TARGET libdeflate)
list(APPEND tegula_libraries PkgConfig::DEFLATE)

# tegula_codec_library(NAME pkg-config-name "what reads it")
function(tegula_codec_library name module what)
  set(TEGULA_WITH_${name} AUTO CACHE STRING "${what} (${module}): ON, OFF, or AUTO where it is installed")
  set_property(CACHE TEGULA_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  if(TEGULA_WITH_${name} STREQUAL "AUTO")
    pkg_check_modules(${name} QUIET IMPORTED_TARGET ${module})
  elseif(TEGULA_WITH_${name})
    pkg_check_modules(${name} REQUIRED IMPORTED_TARGET ${module})
  endif()
  if(NOT TEGULA_WITH_${name} OR NOT ${name}_FOUND)
    return()
  endif()
  set(tegula_libraries ${tegula_libraries} PkgConfig::${name} PARENT_SCOPE)
  set(tegula_definitions ${tegula_definitions} TEGULA_HAVE_${name} PARENT_SCOPE)
  set(tegula_codec_modules ${tegula_codec_modules} ${name}=${module} PARENT_SCOPE)
endfunction()

tegula_codec_library(ZSTD libzstd "Chunks in zstd")
tegula_codec_library(LZ4 liblz4 "Chunks in LZ4")
tegula_codec_library(BLOSC blosc "Chunks in Blosc")

# libblosc2 is not linked but opened when it is needed (src/codec/blosc2.c): its headers are taken, and the name of its binary interface.
# Where the system has none, TEGULA_BLOSC2_ROOT is the folder of the Python package, which has include/ and lib/. What is built here looks
# there; what is installed too, but not in the folders of source and build.
set(TEGULA_WITH_BLOSC2 AUTO CACHE STRING "Chunks in Blosc2 (blosc2): ON, OFF, or AUTO where it is installed")
set_property(CACHE TEGULA_WITH_BLOSC2 PROPERTY STRINGS AUTO ON OFF)
set(TEGULA_BLOSC2_ROOT "" CACHE PATH "Folder with include/b2nd.h and lib/libblosc2.so; empty: the system's")
if(TEGULA_WITH_BLOSC2)
  include(cmake/blosc2.cmake)
endif()

# libaec has no pkg-config file before 1.1.2
set(TEGULA_WITH_AEC AUTO CACHE STRING "Chunks in szip (libaec): ON, OFF, or AUTO where it is installed")
set_property(CACHE TEGULA_WITH_AEC PROPERTY STRINGS AUTO ON OFF)
if(TEGULA_WITH_AEC)
  include(cmake/FindAEC.cmake)
endif()
if(TARGET tegula::aec)
  list(APPEND tegula_libraries tegula::aec)
  list(APPEND tegula_definitions TEGULA_HAVE_AEC)
  list(APPEND tegula_codec_pc_libs -laec)
elseif(TEGULA_WITH_AEC AND NOT TEGULA_WITH_AEC STREQUAL "AUTO")
  message(FATAL_ERROR "TEGULA_WITH_AEC is ON and libaec was not found: install it (Debian: libaec-dev)")
endif()
