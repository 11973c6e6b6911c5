#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "interpose/message_checks.h"
#include "runtime/base/thread_safety.h"
#include "runtime/check/checker.h"

namespace hpe::interpose {

/// Lets the wrappers of MPI's functions tell the checker which buffers MPI uses. A call of MPI is an access by CPU
/// code; it lasts until CPU code has completed its request. The watch of the process (runtime/check/host_watch.h)
/// watches the buffers.
class message_uses : public message_checks {
 public:
  /// To be called once. The object must exist until the process ends.
  void make_known() noexcept { start(); }

  std::uint64_t begin(const char* function, std::span<const buffer> buffers) override;
  void end(std::uint64_t use, bool is_new) override;
  void enter() noexcept override;
  void leave() noexcept override;

 protected:
  enum class buffer_memory : std::uint8_t {
    ordinary,  ///< the program's own memory
    pinned,    ///< memory of CUDA whose pages can be watched for messages
    of_cuda,   ///< memory of CUDA whose pages cannot be watched
    other      ///< memory that is not checked, for example hpe memory
  };
  /// Returns the checker, and starts it and the watch.
  [[nodiscard]] virtual check::checker& started_checker() = 0;
  [[nodiscard]] virtual buffer_memory memory_at(const void* address) const = 0;

 private:
  /// Bytes of a buffer from which MPI reads, in pages that are not watched.
  struct kept_bytes {
    const std::byte* begin = nullptr;
    std::vector<std::byte> bytes;
    [[nodiscard]] std::size_t first_change() const;
  };
  struct active {
    std::uint32_t line = 0;
    check::operation_run run;
    std::vector<kept_bytes> unwatched;
  };

  [[nodiscard]] std::uint64_t begin_use(const char* function, std::span<const buffer> buffers);
  void watch(const buffer& used, const check::past_ptr& work) const;
  [[nodiscard]] std::vector<kept_bytes> unwatched(std::span<const buffer> buffers) const;
  [[nodiscard]] std::vector<check::access_range> ranges_of(std::span<const buffer> buffers, bool in_cuda) const;
  [[nodiscard]] std::uint32_t take_line(check::checker& to);

  mutex mutex_;
  std::uint64_t last_ HPE_GUARDED_BY(mutex_) = 0;
  std::map<std::uint64_t, active> active_ HPE_GUARDED_BY(mutex_);
  std::vector<std::uint32_t> free_lines_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::interpose
