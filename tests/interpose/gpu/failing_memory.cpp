// Replaces operator new in the whole process, including libhpe.so. The stand-in for the driver has its own operator
// new.
#include "tests/interpose/gpu/failing_memory.h"

#include <utility>

#include "tests/operator_new.h"

namespace {

constinit thread_local unsigned left = 0;  // how many calls remain until a call throws; 0: no call throws
constinit thread_local bool has_thrown = false;

void* allocate(std::size_t bytes, std::size_t alignment) {
  if (left != 0 && --left == 0) {
    has_thrown = true;
    throw std::bad_alloc();
  }
  return allocate_by_malloc(bytes, alignment);
}

void release(void* p) noexcept { std::free(p); }

}  // namespace

void failing_memory::arm(unsigned k) noexcept {
  has_thrown = false;
  left = k;
}

bool failing_memory::disarm() noexcept {
  left = 0;
  return std::exchange(has_thrown, false);
}
