#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/thread_safety.h"

namespace hpe::work {

/// Counts the host memory that may hold data if it has a limit (HPE_HOST_MEMORY). Threads reserve bytes before they use
/// memory, and get them in the order in which they asked. One thread makes room before memory is needed (keep_room).
/// Thread-safe; functions that wait must be called without the mutex of a region.
class host_budget {
 public:
  /// `limit`: in bytes.
  explicit host_budget(std::uint64_t limit) : limit_(limit) {}

  /// Reserves bytes if they are free and no thread waits for memory.
  [[nodiscard]] bool try_reserve(std::uint64_t bytes);
  /// Waits until the bytes are free, and reserves them. If no data can make room, exceeds the limit if `beyond` is
  /// true, and logs the first excess; otherwise throws HPE_ERROR_OUT_OF_MEMORY, with a message that contains the sizes.
  void reserve(std::uint64_t bytes, bool beyond);
  /// Reserves bytes at once, even beyond the limit.
  void exceed(std::uint64_t bytes);
  void release(std::uint64_t bytes) noexcept;

  /// Reserves memory that never makes room (host memory of hpeMallocHost, zero-copy memory), and returns it. At most
  /// three quarters of the limit can be reserved, so that launches and copies always find some memory. Throws
  /// HPE_ERROR_OUT_OF_MEMORY.
  void take(std::uint64_t bytes);
  void give_back(std::uint64_t bytes) noexcept;
  /// Returns how many bytes take() could reserve if all data that can make room made room.
  [[nodiscard]] std::uint64_t most_to_take();

  /// Whether bytes are free and no thread waits for memory.
  [[nodiscard]] bool has_free(std::uint64_t bytes);
  /// Whether no more room must be made now: enough memory is free, or stop() has been called.
  [[nodiscard]] bool has_enough();

  /// The result of an attempt to make room. Reserved bytes that are neither freed nor stuck can be given up later:
  /// device work or a thread uses them, or they are being read from or written to the file.
  struct room_made {
    std::uint64_t freed = 0;
    std::uint64_t stuck = 0;  // bytes that cannot be given up
    std::string why;          // why these bytes cannot be given up
  };
  /// Until stop(), calls make_room(bytes) whenever so many bytes more should be free. Called by a thread of its own;
  /// make_room() releases the bytes that it frees.
  void keep_room(const std::function<room_made(std::uint64_t)>& make_room);
  void stop() noexcept;

 private:
  /// The state of the search for memory that can be given up.
  enum class search : std::uint8_t {
    wanted,    ///< something has changed since the latest search
    running,   ///< a search is running, and nothing has changed since it began
    all_stuck  ///< the search found that no memory can be given up, and nothing has changed since
  };
  [[nodiscard]] std::uint64_t shortage() const HPE_REQUIRES(mutex_);
  /// The largest value of kept_.
  [[nodiscard]] std::uint64_t most_kept() const noexcept { return limit_ / 4 * 3; }

  const std::uint64_t limit_;
  mutex mutex_;  // taken after mutexes of regions
  bool stop_ HPE_GUARDED_BY(mutex_) = false;
  std::uint64_t taken_ HPE_GUARDED_BY(mutex_) = 0;   // bytes that are, or soon will be, in memory
  std::uint64_t kept_ HPE_GUARDED_BY(mutex_) = 0;    // the part of taken_ that take() has reserved; never given up
  std::uint64_t wanted_ HPE_GUARDED_BY(mutex_) = 0;  // bytes for which threads wait
  // Threads that wait for memory are numbered; served_ is the first number whose thread still waits.
  std::uint64_t asked_ HPE_GUARDED_BY(mutex_) = 0;
  std::uint64_t served_ HPE_GUARDED_BY(mutex_) = 0;
  search search_ HPE_GUARDED_BY(mutex_) = search::wanted;
  std::string why_all_stuck_ HPE_GUARDED_BY(mutex_);  // empty: no memory can ever be given up
  bool warned_ HPE_GUARDED_BY(mutex_) = false;
  condition_variable changed_;   // signals changes of taken_, served_ and search_
  condition_variable for_room_;  // signals that the thread that makes room has work
};

}  // namespace hpe::work
