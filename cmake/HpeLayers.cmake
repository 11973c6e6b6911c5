# hpe_layer(<name> SOURCES <files> [SEES <layers>] [LIBRARIES <targets>])
#
# Defines the static library hpe-<name> for a folder of the runtime. The library links only the layers in SEES, so that
# a call into another layer fails to link. The linker does not notice inline code of another layer; therefore,
# scripts/check-layers checks the includes.
function(hpe_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;SEES;LIBRARIES")
  set(target hpe-${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  set(seen ${arg_SEES})
  list(TRANSFORM seen PREPEND hpe-)
  target_link_libraries(${target} PUBLIC ${seen} ${arg_LIBRARIES})
endfunction()

# For layers that the page fault handler calls. In a library that a program loads by dlopen, the first access of a
# thread to a thread-local variable calls malloc by default, which a signal handler must not do.
function(hpe_no_lazy_thread_locals name)
  target_compile_options(hpe-${name} PRIVATE -ftls-model=initial-exec)
endfunction()
