// hpe asks for huge pages in memory of the program (os::allow_huge_pages), unless the program excludes huge pages from
// some of its memory.

#include <sys/mman.h>

#include "interpose/io/next.h"
#include "runtime/os/virtual_memory.h"

namespace {

constinit hpe::os::next_function<int(void*, std::size_t, int)> next_madvise("madvise");

[[gnu::constructor]] void look_up_madvise() { next_madvise.find(); }

}  // namespace

HPE_INTERPOSE int madvise(void* address, std::size_t bytes, int advice) noexcept {
  if (advice == MADV_NOHUGEPAGE) hpe::os::leave_pages_small();
  return next_madvise(address, bytes, advice);
}
