# What makes the command at home in a shell: completion for bash and zsh, and man pages.
#
# SPDX-License-Identifier: Apache-2.0
#
# The command prints its own completion, so it must be able to run here: not when it is built for another machine, nor with a
# sanitizer. The man pages need scdoc; without it there are none.
set(tegula_shell_files)

if(NOT CMAKE_CROSSCOMPILING AND NOT TEGULA_SANITIZE)
  foreach(shell bash zsh)
    set(script ${PROJECT_BINARY_DIR}/completion/tegula.${shell})
    add_custom_command(OUTPUT ${script} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/completion
                       COMMAND tegula_cli completion ${shell} > ${script} DEPENDS tegula_cli VERBATIM)
    list(APPEND tegula_shell_files ${script})
  endforeach()
  install(FILES ${PROJECT_BINARY_DIR}/completion/tegula.bash DESTINATION ${CMAKE_INSTALL_DATADIR}/bash-completion/completions RENAME tegula)
  install(FILES ${PROJECT_BINARY_DIR}/completion/tegula.zsh DESTINATION ${CMAKE_INSTALL_DATADIR}/zsh/site-functions RENAME _tegula)
endif()

find_program(TEGULA_SCDOC scdoc DOC "Makes the man pages")
mark_as_advanced(TEGULA_SCDOC)
if(TEGULA_SCDOC)
  file(GLOB pages CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/docs/man/*.scd)
  foreach(page IN LISTS pages)
    get_filename_component(name ${page} NAME_WLE) # tegula-load.1
    set(made ${PROJECT_BINARY_DIR}/man/${name})
    add_custom_command(OUTPUT ${made} COMMAND ${CMAKE_COMMAND} -E make_directory ${PROJECT_BINARY_DIR}/man
                       COMMAND ${TEGULA_SCDOC} < ${page} > ${made} DEPENDS ${page} VERBATIM)
    list(APPEND tegula_shell_files ${made})
    install(FILES ${made} DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
  endforeach()
endif()

add_custom_target(tegula_shell ALL DEPENDS ${tegula_shell_files})
