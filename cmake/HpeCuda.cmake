# Uses the CUDA toolkit if CMake finds one: cuda.h for GPUs as devices (runtime/device/cuda), and nvcc for kernels. hpe
# loads the CUDA driver at run time; no program links the toolkit's libraries, except CUDA programs of tests and
# benchmarks.
set(HPE_CUDA AUTO CACHE STRING "Build for CUDA devices: AUTO (if CMake finds the toolkit), ON or OFF")
set(HPE_CUDA_CODE "compute_80,code=sm_80;compute_90,code=sm_90;compute_90,code=compute_90" CACHE STRING
  "The GPUs for which kernels are compiled, as in nvcc -gencode arch=...; the last entry, PTX, is for newer GPUs")

set(HPE_CUDA_INCLUDE "")
set(HPE_NVCC "")
if(NOT HPE_CUDA STREQUAL "OFF")
  set(cuda_places $ENV{CUDA_PATH} $ENV{CUDA_HOME} /usr/local/cuda /opt/cuda)
  find_path(HPE_CUDA_HEADER_FOLDER cuda.h PATHS ${cuda_places} PATH_SUFFIXES include)
  find_program(HPE_NVCC_PROGRAM nvcc PATHS ${cuda_places} PATH_SUFFIXES bin)
  mark_as_advanced(HPE_CUDA_HEADER_FOLDER HPE_NVCC_PROGRAM)
  if(HPE_CUDA_HEADER_FOLDER AND HPE_NVCC_PROGRAM)
    set(HPE_CUDA_INCLUDE ${HPE_CUDA_HEADER_FOLDER})
    set(HPE_NVCC ${HPE_NVCC_PROGRAM})
    find_library(HPE_CUDART_STATIC cudart_static PATHS ${cuda_places} PATH_SUFFIXES lib64 targets/x86_64-linux/lib)
    find_library(HPE_CUDART_SHARED cudart PATHS ${cuda_places} PATH_SUFFIXES lib64 targets/x86_64-linux/lib)
    # The toolkit's stub of the CUDA driver, which tests link as CUDA programs do.
    find_library(HPE_CUDA_STUB cuda PATHS ${HPE_CUDA_INCLUDE}/.. PATH_SUFFIXES lib64/stubs lib/stubs NO_DEFAULT_PATH)
    mark_as_advanced(HPE_CUDART_STATIC HPE_CUDART_SHARED HPE_CUDA_STUB)
  elseif(HPE_CUDA STREQUAL "ON")
    message(FATAL_ERROR "HPE_CUDA is ON, but cuda.h or nvcc was not found; set CUDA_PATH to the toolkit")
  endif()
endif()
if(HPE_NVCC)
  enable_language(ASM)
  message(STATUS "CUDA devices: yes (${HPE_NVCC})")
else()
  message(STATUS "CUDA devices: no (HPE_CUDA=${HPE_CUDA})")
endif()

# hpe_cuda_kernels(<target> [HIDDEN <symbol>] SOURCES <.cu files>) compiles kernels into a library of kernels, as the
# symbol hpe_cuda_image, so that both GPUs and soft devices can load the library. In any other library, HIDDEN names the
# symbol, and only code of this library sees the symbol. The function does nothing if there is no toolkit.
function(hpe_cuda_kernels target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "HIDDEN" "SOURCES")
  if(NOT HPE_NVCC)
    return()
  endif()
  set(symbol hpe_cuda_image)
  set(visibility "")
  if(arg_HIDDEN)
    set(symbol ${arg_HIDDEN})
    set(visibility ".hidden ${symbol}")
  endif()
  set(base ${CMAKE_CURRENT_BINARY_DIR}/${target})
  set(includes "")
  foreach(source ${arg_SOURCES})
    get_filename_component(path ${source} ABSOLUTE)
    string(APPEND includes "#include \"${path}\"\n")
  endforeach()
  file(CONFIGURE OUTPUT ${base}.cu CONTENT "${includes}" @ONLY)
  list(TRANSFORM HPE_CUDA_CODE PREPEND "-gencode;arch=" OUTPUT_VARIABLE code)
  add_custom_command(OUTPUT ${base}.fatbin
    COMMAND ${HPE_NVCC} -fatbin -std=c++17 --expt-relaxed-constexpr -O3 -lineinfo ${code} -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include
            -MD -MF ${base}.d -MT ${target}.fatbin -o ${base}.fatbin ${base}.cu
    DEPENDS ${base}.cu ${arg_SOURCES}
    DEPFILE ${base}.d
    COMMENT "CUDA code of ${target}"
    VERBATIM COMMAND_EXPAND_LISTS)
  file(CONFIGURE OUTPUT ${base}.S CONTENT [[
        .section .rodata
        .balign 64
        .globl @symbol@
        @visibility@
        .type @symbol@, @object
@symbol@:
        .incbin "@base@.fatbin"
        .size @symbol@, . - @symbol@
        .section .note.GNU-stack, "", @progbits
]] @ONLY)
  set_source_files_properties(${base}.S PROPERTIES OBJECT_DEPENDS ${base}.fatbin)
  target_sources(${target} PRIVATE ${base}.S)
endfunction()

# hpe_cuda_sources(<target> CUDART <static|shared> SOURCES <.cu files>) compiles files of a program, with kernels and
# host code, by nvcc, and links the CUDA runtime. The function needs a toolkit (HPE_NVCC).
function(hpe_cuda_sources target)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "CUDART" "SOURCES")
  list(TRANSFORM HPE_CUDA_CODE PREPEND "-gencode;arch=" OUTPUT_VARIABLE code)
  foreach(source ${arg_SOURCES})
    get_filename_component(path ${source} ABSOLUTE)
    set(object ${CMAKE_CURRENT_BINARY_DIR}/${target}.${source}.o)
    add_custom_command(OUTPUT ${object}
      COMMAND ${HPE_NVCC} -c -std=c++20 -O2 -lineinfo -Xcompiler=-fPIC,-Wall,-Wextra ${code}
              -I${PROJECT_SOURCE_DIR} -I${PROJECT_SOURCE_DIR}/include -MD -MF ${object}.d -MT ${target}.${source}.o
              -o ${object} ${path}
      DEPENDS ${path}
      DEPFILE ${object}.d
      COMMENT "CUDA program ${target}: ${source}"
      VERBATIM COMMAND_EXPAND_LISTS)
    target_sources(${target} PRIVATE ${object})
    set_source_files_properties(${object} PROPERTIES EXTERNAL_OBJECT TRUE)
  endforeach()
  set_target_properties(${target} PROPERTIES LINKER_LANGUAGE CXX)
  string(TOUPPER ${arg_CUDART} kind)
  target_link_libraries(${target} PRIVATE ${HPE_CUDART_${kind}} Threads::Threads dl rt)
endfunction()
