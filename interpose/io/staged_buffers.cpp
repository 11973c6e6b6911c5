#include "interpose/io/staged_buffers.h"

#include <algorithm>
#include <climits>

#include "runtime/base/log.h"
#include "runtime/base/touch.h"

// Invariant: accesses_ and addresses_ have the same length. list_ is as long as they are, or one entry longer if a
// buffer extends beyond its allocation.

namespace hpe::interpose {

std::size_t allocated(const void* p, std::size_t bytes) noexcept {
  if (core::host_access::of(p) == nullptr) {
    adopted_pointers* const behind = adopted_pointers::of(p);
    return behind != nullptr ? std::min(bytes, behind->bytes_from(reinterpret_cast<std::uintptr_t>(p))) : 0;
  }
  hpePointerInfo info{};
  if (hpeGetPointerInfo(p, &info) != HPE_SUCCESS || info.kind == HPE_MEMORY_ORDINARY) return 0;
  const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(p) - static_cast<std::byte*>(info.base));
  return std::min(bytes, info.size - std::min(offset, info.size));
}

bool ordinary(const iovec* vector, std::size_t count) noexcept {
  if (buffer_access::all_ordinary() || vector == nullptr || count > IOV_MAX) return true;
  for (std::size_t i = 0; i < count; ++i)
    if (!ordinary(vector[i].iov_base)) return false;
  return ordinary(vector);
}

std::size_t bytes_of_vector(const iovec* vector, std::size_t count) noexcept {
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (__builtin_add_overflow(bytes, vector[i].iov_len, &bytes)) return SIZE_MAX;
  return bytes;
}

void staging::add(const void* address, std::size_t bytes) {
  if (leaving_.iov_len > 0) return;
  if (bytes == 0 || ordinary(address)) {
    accesses_.emplace_back();
    addresses_.push_back(nullptr);
    list_.push_back({const_cast<void*>(address), bytes});
    return;
  }
  const std::size_t good = allocated(address, bytes);
  if (good > 0) {
    const buffer_access& access = accesses_.emplace_back(address, good, use_);
    list_.push_back({access.data(), good});
    if (use_ == host_use::read) tell_touch(address, good, use_);
    addresses_.push_back(address);
  }
  if (good == bytes) return;
  list_.push_back({nullptr, bytes - good});
  leaving_ = {const_cast<void*>(address), bytes};
}

void tell_touch(const void* begin, std::size_t bytes, host_use use) noexcept {
  const touch_watcher* const watcher = watcher_of_touches();
  if (watcher != nullptr && bytes != 0) watcher->called(begin, bytes, use != host_use::read);
}

void open_watched(const void* begin, std::size_t bytes) noexcept {
  if (const touch_watcher* const watcher = watcher_of_touches()) watcher->opens(begin, bytes);
}

void staging::add(const iovec* vector, std::size_t count, std::size_t most) {
  list_.reserve(count + 1);
  accesses_.reserve(count);
  for (std::size_t i = 0; i < count && most > 0; ++i) {
    const std::size_t part = std::min(vector[i].iov_len, most);
    add(vector[i].iov_base, part);
    most -= part;
  }
}

void staging::written(std::size_t bytes) {
  for (std::size_t i = 0; i < accesses_.size() && bytes > 0; ++i) {
    const std::size_t part = std::min(bytes, list_[i].iov_len);
    if (accesses_[i].staged()) accesses_[i].written(0, part);
    if (addresses_[i] != nullptr) tell_touch(addresses_[i], part, host_use::write);
    bytes -= part;
  }
}

int error_number(const char* call, const error& failure) noexcept {
  log(log_level::error, "{}: {}", call, failure.what());
  switch (failure.status()) {
    case HPE_ERROR_OUT_OF_MEMORY: return ENOMEM;
    case HPE_ERROR_NOT_A_REGION:
    case HPE_ERROR_INVALID_ARGUMENT:
    case HPE_ERROR_FORKED: return EFAULT;
    default: return EIO;
  }
}

void explain(const char* call, const void* p, std::size_t bytes) noexcept {
  if (errno != EFAULT || bytes == 0) return;
  try {
    if (core::host_access::inherited(p)) {
      log(log_level::warn,
          "{}: the Linux kernel refused {} bytes at {} (EFAULT): a child made by fork does not inherit hpe memory",
          call, bytes, p);
    } else if (adopted_pointers::of(p) != nullptr) {
      log(log_level::warn,
          "{}: the Linux kernel refused {} bytes at {} (EFAULT): this is CUDA device memory, which this call does not "
          "accept "
          "completely; see docs/files.md",
          call, bytes, p);
    } else if (!ordinary(p)) {
      hpePointerInfo info{};
      const bool known = hpeGetPointerInfo(p, &info) == HPE_SUCCESS && info.kind != HPE_MEMORY_ORDINARY;
      if (!known)
        log(log_level::warn,
            "{}: the Linux kernel refused {} bytes at {} (EFAULT): hpe has no allocation at this address", call, bytes,
            p);
      else if (allocated(p, bytes) < bytes)
        log(log_level::warn,
            "{}: the Linux kernel refused {} bytes at {} (EFAULT): these bytes extend beyond their allocation of {} "
            "bytes at {}",
            call, bytes, p, info.size, info.base);
      else
        log(log_level::warn,
            "{}: the Linux kernel refused {} bytes at {} (EFAULT): this is hpe memory, which this call does not "
            "accept; see "
            "docs/files.md",
            call, bytes, p);
    }
  } catch (const std::exception&) {
    return;  // there is too little memory for the message
  }
}

outcome staging::finish(const char* call, outcome result) {
  if (result.count > 0 && use_ != host_use::read) written(static_cast<std::size_t>(result.count));
  if (result.count < 0 && leaving_.iov_len > 0) {
    errno = result.error;
    explain(call, leaving_.iov_base, leaving_.iov_len);
  }
  return result;
}

}  // namespace hpe::interpose
