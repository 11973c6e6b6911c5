// memcpy and related functions. libc's functions work on hpe memory, because page faults fetch the data. hpe lets
// devices execute large calls where devices are faster. In CUDA programs, several threads make large copies to and from
// pinned memory: libraries such as safetensors and JAX fill and empty their pinned buffers with one thread, which is
// much slower than the link. Every other call costs one comparison and one indirect jump more than libc's function.
//
// These functions may be called before this library is initialized or even relocated, and by the lookup of libc's
// functions. So the pointers to libc's functions are null until the constructor in this file has run. Until then, slow
// loops in this file copy and compare the bytes. The compiler must not replace these loops by calls of the same
// functions (-fno-builtin, no sanitizers).
//
// hpe's runtime calls these functions too, but only with ordinary memory or through its own mapping of hpe memory (the
// alias), never through the mapping that the program uses (the view).

#undef _FORTIFY_SOURCE

#include <pthread.h>

#include <algorithm>
#include <csignal>
#include <cstring>

#include "interpose/adopted_pointers.h"
#include "interpose/io/next.h"
#include "interpose/io/staged_buffers.h"
#include "runtime/core/runtime.h"
#include "runtime/os/signals.h"

namespace {

using namespace hpe::interpose;  // NOLINT(google-build-using-namespace): this file is part of that namespace

using bytes_of = std::size_t;

// The smallest number of bytes for which a copy by a device's copy engine is faster than page faults and the prefetches
// that follow them.
constexpr bytes_of worth_it = bytes_of{1} << 20;

template <class Function>
using looked_up = std::atomic<Function*>;
using move = void*(void*, const void*, bytes_of) noexcept;

constinit looked_up<move> next_memcpy{nullptr};
constinit looked_up<move> next_memmove{nullptr};
constinit looked_up<void*(void*, int, bytes_of) noexcept> next_memset{nullptr};
constinit looked_up<int(const void*, const void*, bytes_of) noexcept> next_memcmp{nullptr};

[[gnu::constructor]] void look_up() {
  next_memcpy.store(next::memcpy.find(), std::memory_order_relaxed);
  next_memmove.store(next::memmove.find(), std::memory_order_relaxed);
  next_memset.store(next::memset.find(), std::memory_order_relaxed);
  next_memcmp.store(next::memcmp.find(), std::memory_order_relaxed);
}

// ---- before the constructor has run

void* early_move(void* to, const void* from, bytes_of n) noexcept {
  auto* destination = static_cast<std::byte*>(to);
  const auto* source = static_cast<const std::byte*>(from);
  if (destination <= source || destination >= source + n) {
    asm volatile("rep movsb" : "+D"(destination), "+S"(source), "+c"(n) : : "memory");
  } else {
    for (; n > 0; --n) const_cast<volatile std::byte*>(destination)[n - 1] = source[n - 1];
  }
  return to;
}

void* early_set(void* to, int value, bytes_of n) noexcept {
  void* destination = to;
  asm volatile("rep stosb" : "+D"(destination), "+c"(n) : "a"(value) : "memory");
  return to;
}

int early_compare(const void* a, const void* b, bytes_of n) noexcept {
  const auto* x = static_cast<const unsigned char*>(a);
  const auto* y = static_cast<const unsigned char*>(b);
  for (; n > 0; --n, ++x, ++y)
    if (*x != *y) return *x < *y ? -1 : 1;
  return 0;
}

// ---- large calls

// Whether a pointer is outside hpe memory. This includes device memory that the CUDA driver allocated (adopted memory),
// whose data page faults fetch.
bool other(const void* p) noexcept { return hpe::core::host_access::of(p) == nullptr; }

// Whether devices should copy or fill this range. Returns false if the data is valid only in host memory, because then
// CPU code is as fast and leaves the data in host memory. Examines only the first and the last byte; a wrong answer
// affects only the speed.
bool for_devices(const void* p, bytes_of n) noexcept {
  const auto host_has_it = [](const void* q) {
    hpePointerInfo info{};
    return hpeGetPointerInfo(q, &info) != HPE_SUCCESS || info.kind == HPE_MEMORY_ORDINARY ||
           info.kind == HPE_MEMORY_HOST || (info.on_host != 0 && info.on_device == 0);
  };
  return !host_has_it(p) || !host_has_it(static_cast<const std::byte*>(p) + n - 1);
}

bool apart(const void* a, const void* b, bytes_of n) noexcept {
  const auto x = reinterpret_cast<std::uintptr_t>(a);
  const auto y = reinterpret_cast<std::uintptr_t>(b);
  return (x < y ? y - x : x - y) >= n;
}

// Whether another thread may end this thread between any two instructions (asynchronous cancellation). Such a thread
// must not copy in hpe, which takes locks and uses other threads. The thread may end in this function, in libc's
// function and in their callers, so none of these may contain a call that the compiler believes to throw: the thread
// could not be unwound. Therefore the functions with such calls (copied, filled, compared) are not inlined, and the
// compiler must not know that pthread_setcanceltype may throw.
[[gnu::noinline]] bool may_end_at_any_time() noexcept {
  const auto set_type = reinterpret_cast<int (*)(int, int*) noexcept>(&::pthread_setcanceltype);
  int type = PTHREAD_CANCEL_DEFERRED;
  set_type(PTHREAD_CANCEL_DEFERRED, &type);
  if (type == PTHREAD_CANCEL_DEFERRED) return false;
  set_type(type, nullptr);
  return true;
}

// Runs `body`; returns false if it throws. In that case, the caller calls libc's function, whose page faults report the
// error. The program's signals wait meanwhile, because a handler may leave memcpy by a long jump, or fork: locks would
// stay locked, and other threads would go on with the copy.
template <class Body>
bool done(Body body) noexcept {
  const hpe::os::signals_blocked until_done;
  const int before = errno;
  bool result = true;
  try {
    body();
  } catch (const std::exception&) {
    result = false;
  }
  errno = before;
  return result;
}

// Whether the program handles a signal that a memory access raises: SIGBUS for a truncated file, SIGSEGV for a
// protected page. Its handler expects to run in the thread that has called memcpy.
bool handles_faults() noexcept {
  const auto handles = [](int signal) {
    struct sigaction now {};
    return ::sigaction(signal, nullptr, &now) != 0 || (now.sa_handler != SIG_DFL && now.sa_handler != SIG_IGN);
  };
  return handles(SIGBUS) || handles(SIGSEGV);
}

bool copied_by_threads(void* to, const void* from, bytes_of n) noexcept {
  adopted_pointers* const cuda = adopted_pointers::instance();
  if (n < adopted_pointers::worth_copy_on_host || cuda == nullptr || !apart(to, from, n) ||
      adopted_pointers::of(to) != nullptr || adopted_pointers::of(from) != nullptr || handles_faults())
    return false;
  // Touches by these threads have no place in the program.
  tell_touch(from, n, host_use::read);
  tell_touch(to, n, host_use::write);
  open_watched(from, n);
  open_watched(to, n);
  bool result = false;
  return done([&] { result = cuda->copy_on_host(to, from, n); }) && result;
}

[[gnu::noinline]] bool copied(void* to, const void* from, bytes_of n) noexcept {
  const bool to_ordinary = other(to);
  if (to_ordinary && other(from)) return copied_by_threads(to, from, n);
  if (!apart(to, from, n) || (!to_ordinary && !for_devices(to, n))) return false;
  tell_touch(from, n, host_use::read);
  tell_touch(to, n, host_use::write);
  return done([&] { hpe::core::runtime::instance().copies().copy_for_program(to, from, n); });
}

[[gnu::noinline]] bool filled(void* to, int value, bytes_of n) noexcept {
  if (other(to) || !for_devices(to, n)) return false;
  tell_touch(to, n, host_use::write);
  return done(
      [&] { hpe::core::runtime::instance().copies().fill_for_program(to, static_cast<std::uint8_t>(value), n); });
}

// Compares chunk by chunk, because the first difference is often near the beginning.
[[gnu::noinline]] bool compared(const void* a, const void* b, bytes_of n, int& result) noexcept {
  if (other(a) && other(b)) return false;
  for (const void* const each : {a, b}) tell_touch(each, n, host_use::read);
  return done([&] {
    for (bytes_of at = 0; at < n && result == 0; at += worth_it) {
      const bytes_of size = std::min(worth_it, n - at);
      const buffer_access x(static_cast<const std::byte*>(a) + at, size, host_use::read);
      const buffer_access y(static_cast<const std::byte*>(b) + at, size, host_use::read);
      result = next_memcmp.load(std::memory_order_relaxed)(x.data(), y.data(), size);
    }
  });
}

// ---- large calls; not inlined, so that the functions below need not save registers

[[gnu::noinline]] void* move_large(void* to, const void* from, bytes_of n, looked_up<move>& next) noexcept {
  if (!may_end_at_any_time() && copied(to, from, n)) return to;
  auto* const known = next.load(std::memory_order_relaxed);
  return known != nullptr ? known(to, from, n) : early_move(to, from, n);
}

[[gnu::noinline]] void* set_large(void* to, int value, bytes_of n) noexcept {
  if (!may_end_at_any_time() && filled(to, value, n)) return to;
  auto* const known = next_memset.load(std::memory_order_relaxed);
  return known != nullptr ? known(to, value, n) : early_set(to, value, n);
}

[[gnu::noinline]] int compare_large(const void* a, const void* b, bytes_of n) noexcept {
  int result = 0;
  if (!may_end_at_any_time() && compared(a, b, n, result)) return result;
  auto* const known = next_memcmp.load(std::memory_order_relaxed);
  return known != nullptr ? known(a, b, n) : early_compare(a, b, n);
}

}  // namespace

HPE_INTERPOSE void* memcpy(void* to, const void* from, bytes_of n) noexcept {
  auto* const known = next_memcpy.load(std::memory_order_relaxed);
  if (n >= worth_it || known == nullptr) [[unlikely]]
    return move_large(to, from, n, next_memcpy);
  return known(to, from, n);
}

HPE_INTERPOSE void* memmove(void* to, const void* from, bytes_of n) noexcept {
  auto* const known = next_memmove.load(std::memory_order_relaxed);
  if (n >= worth_it || known == nullptr) [[unlikely]]
    return move_large(to, from, n, next_memmove);
  return known(to, from, n);
}

HPE_INTERPOSE void* memset(void* to, int value, bytes_of n) noexcept {
  auto* const known = next_memset.load(std::memory_order_relaxed);
  if (n >= worth_it || known == nullptr) [[unlikely]]
    return set_large(to, value, n);
  return known(to, value, n);
}

HPE_INTERPOSE int memcmp(const void* a, const void* b, bytes_of n) noexcept {
  auto* const known = next_memcmp.load(std::memory_order_relaxed);
  if (n >= worth_it || known == nullptr) [[unlikely]]
    return compare_large(a, b, n);
  return known(a, b, n);
}

// Programs compiled with _FORTIFY_SOURCE call these functions. If the target is too small, libc's function ends the
// program.

HPE_INTERPOSE void* __memcpy_chk(void* to, const void* from, bytes_of n, bytes_of room) noexcept {
  return n > room ? next::__memcpy_chk(to, from, n, room) : ::memcpy(to, from, n);
}

HPE_INTERPOSE void* __memmove_chk(void* to, const void* from, bytes_of n, bytes_of room) noexcept {
  return n > room ? next::__memmove_chk(to, from, n, room) : ::memmove(to, from, n);
}

HPE_INTERPOSE void* __memset_chk(void* to, int value, bytes_of n, bytes_of room) noexcept {
  return n > room ? next::__memset_chk(to, value, n, room) : ::memset(to, value, n);
}
