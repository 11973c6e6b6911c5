#pragma once

/// Replaces operator new and operator delete of a program, or of a shared object that binds its own symbols. One source
/// file includes this file and defines allocate() and release().

#include <cstddef>
#include <cstdlib>
#include <new>

namespace {

/// Allocates memory for operator new; throws std::bad_alloc. alignment: 0 if the default alignment is enough.
void* allocate(std::size_t bytes, std::size_t alignment);
void release(void* p) noexcept;

/// Allocates memory by malloc, for use in allocate(); throws std::bad_alloc.
inline void* allocate_by_malloc(std::size_t bytes, std::size_t alignment) {
  void* const p = alignment == 0 ? std::malloc(bytes != 0 ? bytes : 1)
                                 : std::aligned_alloc(alignment, (bytes + alignment - 1) / alignment * alignment);
  if (p == nullptr) throw std::bad_alloc();
  return p;
}

inline void* allocate_or_null(std::size_t bytes) noexcept {
  try {
    return allocate(bytes, 0);
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

}  // namespace

// NOLINTBEGIN(misc-definitions-in-headers,misc-new-delete-overloads): one file of a program includes them
void* operator new(std::size_t bytes) { return allocate(bytes, 0); }
void* operator new[](std::size_t bytes) { return allocate(bytes, 0); }
void* operator new(std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept { return allocate_or_null(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t& /*tag*/) noexcept { return allocate_or_null(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return allocate(bytes, std::size_t(a)); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return allocate(bytes, std::size_t(a)); }
void operator delete(void* p) noexcept { release(p); }
void operator delete[](void* p) noexcept { release(p); }
void operator delete(void* p, std::size_t /*bytes*/) noexcept { release(p); }
void operator delete[](void* p, std::size_t /*bytes*/) noexcept { release(p); }
void operator delete(void* p, std::align_val_t /*a*/) noexcept { release(p); }
void operator delete[](void* p, std::align_val_t /*a*/) noexcept { release(p); }
void operator delete(void* p, std::size_t /*bytes*/, std::align_val_t /*a*/) noexcept { release(p); }
void operator delete[](void* p, std::size_t /*bytes*/, std::align_val_t /*a*/) noexcept { release(p); }
void operator delete(void* p, const std::nothrow_t& /*tag*/) noexcept { release(p); }
void operator delete[](void* p, const std::nothrow_t& /*tag*/) noexcept { release(p); }
// NOLINTEND(misc-definitions-in-headers,misc-new-delete-overloads)
