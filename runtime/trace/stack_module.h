#pragma once

#include <cstddef>

/// What libhpe-stacks.so exports: stacks by libunwind, source lines by elfutils. It is loaded with dlopen, so only
/// processes that ask for places have those libraries in them, and libunwind's own _Unwind_RaiseException and backtrace
/// never take the place of the compiler's and of libc's.
extern "C" {

/// Writes the return addresses of the calling thread's stack into frames, innermost first, and returns how many. The
/// first call of a thread may call malloc; later ones are safe in signal handlers.
int hpe_take_stack(void** frames, int capacity);

/// Writes "file:line" of an instruction of this process into text; for one of an inline function of hpe's headers, that
/// of the call. Returns false, and writes nothing, if there is no debug information for it, or no place outside of
/// hpe's headers. One thread at a time.
bool hpe_source_line(const void* instruction, char* text, std::size_t capacity);
}
