// Replaces operator new and operator delete of the whole program.

#include "tests/fault/refused_memory.h"

#include <cstdlib>
#include <new>

namespace hpe::fault {

thread_local bool memory_is_refused = false;

}  // namespace hpe::fault

void* operator new(std::size_t bytes) {
  void* const made = hpe::fault::memory_is_refused ? nullptr : std::malloc(bytes);
  if (made == nullptr) throw std::bad_alloc();
  return made;
}

void operator delete(void* made) noexcept { std::free(made); }
void operator delete(void* made, std::size_t) noexcept { std::free(made); }
