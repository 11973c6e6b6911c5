// The stand-in allocates its memory by malloc, so that tests in which allocations of hpe fail do not affect the
// stand-in. So the stand-in also does not use a sanitizer's operator new, which replaces the operator of the whole
// process.
#include "tests/operator_new.h"

namespace {

void* allocate(std::size_t bytes, std::size_t alignment) { return allocate_by_malloc(bytes, alignment); }
void release(void* p) noexcept { std::free(p); }

}  // namespace
