# hpe_layer(<name> SOURCES <files> [SEES <layers>] [LIBRARIES <targets>])
#
# One static library hpe-<name> for one folder of the runtime. It links only the layers that it may see, so that a call
# into another layer does not link; scripts/check-layers checks the includes, because the linker does not notice inline
# code of another layer.
function(hpe_layer name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;SEES;LIBRARIES")
  set(target hpe-${name})
  add_library(${target} STATIC ${arg_SOURCES})
  target_include_directories(${target} PUBLIC ${PROJECT_SOURCE_DIR} ${PROJECT_SOURCE_DIR}/include)
  set(seen ${arg_SEES})
  list(TRANSFORM seen PREPEND hpe-)
  target_link_libraries(${target} PUBLIC ${seen} ${arg_LIBRARIES})
endfunction()

# For layers that the fault handler calls. In a library that a program loads with dlopen, the first touch of a thread-local
# variable calls malloc by default, which a signal handler must not.
function(hpe_no_lazy_thread_locals name)
  target_compile_options(hpe-${name} PRIVATE -ftls-model=initial-exec)
endfunction()
