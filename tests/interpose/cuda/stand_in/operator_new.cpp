// The stand-in takes its memory from malloc, so that tests that refuse memory to hpe refuse none to the stand-in. A
// sanitizer's operator new, which would be the whole process's, does not reach it either.
#include "tests/operator_new.h"

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) { return allocate_by_malloc(bytes, alignment); }
void release(void* p) noexcept { std::free(p); }

}  // namespace
