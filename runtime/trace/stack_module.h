#pragma once

#include <cstddef>

/// The functions of libhpe-stacks.so: stacks by libunwind, source lines by elfutils. It is loaded with dlopen, so only
/// processes that ask for places load those libraries, and libunwind's own _Unwind_RaiseException and backtrace never
/// replace the compiler's and libc's.
extern "C" {

/// Writes the return addresses of the calling thread's stack into frames, innermost first, and returns how many. The
/// first call of a thread may call malloc; later ones are safe in signal handlers.
int hpe_take_stack(void** frames, int capacity);

/// Writes "file:line" of an instruction of this process into text; for an instruction of an inline function of hpe's
/// headers, the line of the call. Returns false, and writes nothing, if the instruction has no debug information or no
/// line outside of hpe's headers. Not thread safe.
bool hpe_source_line(const void* instruction, char* text, std::size_t capacity);
}
