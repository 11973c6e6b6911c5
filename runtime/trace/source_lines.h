#pragma once

#include <cstddef>

extern "C" {

/// In libhpe-source-lines.so: writes "file:line" of an instruction of this process into text, or nothing where there is
/// no debug information for it. False then.
bool hpe_source_line(const void* instruction, char* text, std::size_t capacity);
}
