# `cmake --install`: headers, both libraries, find_package(tegula) and pkg-config files.
#
# SPDX-License-Identifier: Apache-2.0
#
# The installed tree can be moved: both kinds of file find their prefix from where they lie.
include(CMakePackageConfigHelpers)

set(tegula_cmake_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tegula)

install(DIRECTORY ${PROJECT_SOURCE_DIR}/include/tegula DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS tegula_shared tegula_static EXPORT tegulaTargets
        LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR} ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
install(EXPORT tegulaTargets NAMESPACE tegula:: DESTINATION ${tegula_cmake_dir})

list(JOIN tegula_codec_modules " " tegula_codec_items)
configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/tegulaConfig.cmake.in ${PROJECT_BINARY_DIR}/cmake/tegulaConfig.cmake
                              INSTALL_DESTINATION ${tegula_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/cmake/tegulaConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/cmake/tegulaConfig.cmake ${PROJECT_BINARY_DIR}/cmake/tegulaConfigVersion.cmake
              ${PROJECT_SOURCE_DIR}/cmake/FindAEC.cmake
        DESTINATION ${tegula_cmake_dir})

set(tegula_pc_requires "libxxhash jansson")
if(PkgConfig::URING IN_LIST tegula_libraries)
  string(APPEND tegula_pc_requires " liburing")
endif()

foreach(module IN LISTS tegula_codec_modules)
  string(REGEX REPLACE "^.*=" "" module "${module}")
  string(APPEND tegula_pc_requires " ${module}")
endforeach()
list(JOIN tegula_codec_pc_libs " " tegula_pc_libs)

# pkg-config: the prefix is the way up from the folder of tegula.pc
set(tegula_pc_dir ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(tegula_pc_prefix ${CMAKE_INSTALL_PREFIX})
else()
  file(RELATIVE_PATH tegula_pc_up /tegula/${tegula_pc_dir} /tegula)
  string(REGEX REPLACE "/$" "" tegula_pc_up "${tegula_pc_up}")
  set(tegula_pc_prefix "\${pcfiledir}/${tegula_pc_up}")
endif()
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_LIBDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE tegula_pc_libdir)
cmake_path(ABSOLUTE_PATH CMAKE_INSTALL_INCLUDEDIR BASE_DIRECTORY "\${prefix}" OUTPUT_VARIABLE tegula_pc_includedir)
configure_file(${PROJECT_SOURCE_DIR}/cmake/tegula.pc.in ${PROJECT_BINARY_DIR}/cmake/tegula.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/cmake/tegula.pc DESTINATION ${tegula_pc_dir})
