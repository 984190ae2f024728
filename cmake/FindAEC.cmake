# The target tegula::aec, where libaec is. Used by the build, and by tegulaConfig.cmake for the static library.
#
# SPDX-License-Identifier: Apache-2.0
find_library(TEGULA_AEC_LIBRARY aec)
find_path(TEGULA_AEC_INCLUDE libaec.h)
mark_as_advanced(TEGULA_AEC_LIBRARY TEGULA_AEC_INCLUDE)
if(TEGULA_AEC_LIBRARY AND TEGULA_AEC_INCLUDE AND NOT TARGET tegula::aec)
  add_library(tegula::aec INTERFACE IMPORTED)
  set_target_properties(tegula::aec PROPERTIES INTERFACE_INCLUDE_DIRECTORIES "${TEGULA_AEC_INCLUDE}" INTERFACE_LINK_LIBRARIES
                                               "${TEGULA_AEC_LIBRARY}")
endif()
