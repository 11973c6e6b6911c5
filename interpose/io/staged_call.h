#pragma once

/// Helper functions with which interposed functions make their calls with staged buffers.

#include <algorithm>
#include <climits>
#include <new>
#include <type_traits>

#include "interpose/io/staged_buffers.h"
#include "runtime/base/touch.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/trace/recorder.h"

namespace hpe::interpose {

/// The largest number of bytes that Linux transfers in one call.
inline constexpr std::size_t most_of_one_call = 0x7ffff000;

/// Makes a call with the program's own buffer. The call reads a buffer whose type is const, and writes any other
/// buffer. If the call has failed, first logs an explanation (explain() in staged_buffers.h).
template <class Call, class Byte>
ssize_t passed(const Call& make, const char* call, Byte* p, std::size_t bytes) {
  open_watched(p, bytes);
  const ssize_t result = make();
  if (result == -1) [[unlikely]]
    explain(call, p, bytes);
  else
    tell_touch(p, static_cast<std::size_t>(result), std::is_const_v<Byte> ? host_use::read : host_use::write);
  return result;
}

/// Likewise, for a vector of buffers.
template <class Call>
ssize_t passed_vector(const Call& make, host_use use, const iovec* vector, std::size_t count) {
  if (watcher_of_touches() == nullptr || vector == nullptr || count > IOV_MAX) [[likely]]
    return make();
  for (std::size_t i = 0; i < count; ++i) open_watched(vector[i].iov_base, vector[i].iov_len);
  const ssize_t result = make();
  std::size_t left = result > 0 ? static_cast<std::size_t>(result) : 0;
  for (std::size_t i = 0; left > 0 && i < count; ++i) {
    const std::size_t part = std::min(left, vector[i].iov_len);
    tell_touch(vector[i].iov_base, part, use);
    left -= part;
  }
  return result;
}

/// Runs the body, which makes a call with staged buffers and returns an outcome. Returns the count of the outcome, or
/// -1 with errno set; if the call succeeds, errno does not change. Does not catch the exception with which libc cancels
/// a thread.
template <class Body>
ssize_t staged_call(const char* call, Body&& body) {
  const trace::recorded here(trace::category::file, call);
  const int before = errno;
  int error = 0;
  try {
    core::require_no_callback();
    const outcome result = body();
    if (result.count >= 0) {
      errno = before;
      return result.count;
    }
    error = result.error;
  } catch (const hpe::error& failure) {
    error = error_number(call, failure);
  } catch (const std::bad_alloc&) {
    error = ENOMEM;
  }
  errno = error;
  return -1;
}

/// Makes a call with one buffer. If the buffer is inside its allocation, calls `one` with an address and a size;
/// otherwise calls `many` with a vector. Both functions return -1 and set errno if the call fails.
template <class One, class Many>
ssize_t with_buffer(const char* call, host_use use, const void* p, std::size_t n, One one, Many many) {
  return staged_call(call, [&] {
    staging buffers(use);
    buffers.add(p, std::min(n, most_of_one_call));
    const auto& list = buffers.list();
    return buffers.finish(call, outcome(buffers.single() && list[0].iov_base != nullptr
                                            ? one(list[0].iov_base, list[0].iov_len)
                                            : many(list.data(), static_cast<int>(list.size()))));
  });
}

/// Makes a call with a vector of buffers; only the first `most` bytes of the buffers are passed to the operating
/// system.
template <class Many>
ssize_t with_vector(const char* call, host_use use, const iovec* vector, std::size_t count, Many many,
                    std::size_t most = SIZE_MAX) {
  return staged_call(call, [&] {
    staging buffers(use);
    buffers.add(vector, count, most);
    return buffers.finish(call, outcome(many(buffers.list().data(), static_cast<int>(buffers.list().size()))));
  });
}

}  // namespace hpe::interpose
