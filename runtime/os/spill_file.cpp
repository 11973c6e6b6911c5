#include "runtime/os/spill_file.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <system_error>
#include <utility>

#include "runtime/base/error.h"

namespace hpe::os {

namespace {

// The number of extents by which the file grows at once. If the disk has no space for so many, the file grows by one
// extent.
constexpr std::uint32_t growth = 32;

file_descriptor create_file(const std::string& folder) {
  file_descriptor file(::open(folder.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file && (errno == EOPNOTSUPP || errno == EISDIR)) {  // the file system has no unnamed files
    std::string name = folder + "/hpe-spill-XXXXXX";
    file = file_descriptor(::mkostemp(name.data(), O_CLOEXEC));
    if (file) ::unlink(name.c_str());
  }
  if (!file) throw_system_error(fmt::format("making a file in the folder HPE_SPILL=\"{}\"", folder));
  const int flags = ::fcntl(file.get(), F_GETFL);
  ::fcntl(file.get(), F_SETFL, flags | O_DIRECT);  // where this fails, the system's cache is used
  return file;
}

}  // namespace

spill_file::spill_file(std::string folder, std::uint64_t extent_bytes)
    : folder_(std::move(folder)), extent_bytes_(extent_bytes), file_(create_file(folder_)) {}

void spill_file::grow(std::uint32_t extents) {
  const std::uint64_t end = (std::uint64_t{extents_} + extents) * extent_bytes_;
  // A file longer than the limit would raise SIGXFSZ, which ends the process.
  rlimit limit{};
  ::getrlimit(RLIMIT_FSIZE, &limit);
  HPE_REQUIRE(limit.rlim_cur == RLIM_INFINITY || end <= limit.rlim_cur, HPE_ERROR_OUT_OF_MEMORY,
              "the file in {} (HPE_SPILL) has {} bytes and cannot grow further, because files of this process may have "
              "at most {} bytes (RLIMIT_FSIZE, ulimit "
              "-f)",
              folder_, extents_ * extent_bytes_, limit.rlim_cur);
  unused_.reserve(std::size_t{extents_} + extents);
  if (::fallocate(file_.get(), 0, static_cast<off_t>(extents_ * extent_bytes_),
                  static_cast<off_t>(extents * extent_bytes_)) != 0) {
    const int reason = errno;
    const bool cannot_allocate = reason == EOPNOTSUPP;
    HPE_REQUIRE(cannot_allocate && ::ftruncate(file_.get(), static_cast<off_t>(end)) == 0, HPE_ERROR_OUT_OF_MEMORY,
                "the file in {} (HPE_SPILL), which has {} bytes, cannot grow: {}", folder_, extents_ * extent_bytes_,
                std::generic_category().message(reason));
  }
  for (std::uint32_t n = extents; n > 0; --n) unused_.push_back(extents_ + n - 1);
  extents_ += extents;
}

std::uint32_t spill_file::take() {
  const lock_guard lock(mutex_);
  if (unused_.empty()) {
    try {
      grow(growth);
    } catch (const error&) {
      grow(1);
    }
  }
  const std::uint32_t extent = unused_.back();
  unused_.pop_back();
  return extent;
}

void spill_file::give_back(std::uint32_t extent) noexcept {
  const lock_guard lock(mutex_);
  unused_.push_back(extent);
}

void spill_file::write(std::uint32_t extent, std::uint64_t offset, const std::byte* from, std::size_t bytes) {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n =
        ::pwrite(file_.get(), from + done, bytes - done, static_cast<off_t>(extent * extent_bytes_ + offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_system_error(fmt::format("writing {} bytes to the file in {} (HPE_SPILL)", bytes, folder_));
    done += static_cast<std::size_t>(n);
  }
}

void spill_file::read(std::uint32_t extent, std::uint64_t offset, std::byte* into, std::size_t bytes) const {
  for (std::size_t done = 0; done < bytes;) {
    const ssize_t n =
        ::pread(file_.get(), into + done, bytes - done, static_cast<off_t>(extent * extent_bytes_ + offset + done));
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) throw_system_error(fmt::format("pread of {} bytes of the file in {} (HPE_SPILL)", bytes, folder_));
    HPE_REQUIRE(n != 0, HPE_ERROR_SYSTEM, "the file in {} (HPE_SPILL) has become shorter: {} of {} bytes are missing",
                folder_, bytes - done, bytes);
    done += static_cast<std::size_t>(n);
  }
}

std::uint64_t spill_file::room() const noexcept {
  struct statvfs its {};
  return ::fstatvfs(file_.get(), &its) == 0 ? std::uint64_t{its.f_bavail} * its.f_frsize : 0;
}

}  // namespace hpe::os
