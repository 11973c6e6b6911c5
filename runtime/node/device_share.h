#pragma once

/// The memory of one device, which processes of one user divide among themselves (HPE_SHARE). The processes meet in a
/// small file of /dev/shm; each has a slot there, which says how much memory it has taken and how much it needs.
///
/// Claims. The sum of all claims never exceeds the device. The claim of a process that ended, however it ended, is
/// free: a lock of the kernel on the slot tells whether the process lives.
///
/// Turns. A process that needs more memory than is free waits for its turn, in which it asks the others to give memory
/// back, the one that used the device longest ago first. Memory that comes back is kept for the process whose turn it
/// is. The next turn begins when the process whose turn it is
///  - had its turn for long enough and is not collecting memory at the moment. A turn lasts many times as long as it
///    took to collect the memory, so moving data costs little. Processes take turns in the order of their arrival.
///  - uses the device no more, has ended, or is stopped (SIGSTOP).
/// Turns are a matter of speed only: a process that goes on after it lost its turn does no harm.

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/thread_safety.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::node {

struct share_page;  // the layout of the file
struct share_slot;

/// Thread-safe.
class device_share {
 public:
  /// Makes this process one of those that share a device, and starts with no memory. group: the processes that share;
  /// empty: returns nullptr. device: names the device among those of the group. bytes: its memory. patience: how long
  /// work waits for memory of a process that is stopped. There is one object for each device, which lives as long as
  /// the process. Throws HPE_ERROR_INITIALIZATION for a group that cannot be in the name of a file, for too many
  /// processes, and if the file cannot be used.
  [[nodiscard]] static device_share* join(const std::string& group, const std::string& device, std::uint64_t bytes,
                                          std::chrono::seconds patience);

  device_share(std::string group, const std::string& device, std::uint64_t bytes, std::chrono::seconds patience);
  device_share(const device_share&) = delete;
  device_share& operator=(const device_share&) = delete;

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::chrono::seconds patience() const noexcept { return patience_; }

  /// The bytes that this process can take now.
  [[nodiscard]] std::uint64_t free() const noexcept;
  /// Takes memory. Returns false if so much is not free; that may also happen when other processes try at this moment.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give(std::uint64_t bytes) noexcept;
  /// Notes that this process uses the device now.
  void use() noexcept;
  /// Whether other processes share the device now.
  [[nodiscard]] bool others() const noexcept;
  /// The other processes and their memory, for messages.
  [[nodiscard]] std::string others_in_words() const;

  /// Identifies a turn of any process.
  using turn = std::uint64_t;

  /// Waits until it is the turn of this process, and makes the turn last until leave(), unless the process is stopped.
  /// Several threads may have entered a turn.
  [[nodiscard]] turn enter() noexcept;
  void leave(turn mine) noexcept;

  enum class reply : std::uint8_t {
    memory,   ///< `enough` bytes are free
    nothing,  ///< the others have no more to give
    stopped,  ///< the same, but a process that is stopped has memory
    lost      ///< it is no longer the turn of this process
  };
  /// Asks the other processes for `bytes` bytes in all, and waits until `enough` bytes are free. By one thread at a
  /// time, between enter() and leave(). Processes that had nothing more to give are asked again after ask_all_again().
  [[nodiscard]] reply ask(turn mine, std::uint64_t bytes, std::uint64_t enough) noexcept;

  void ask_all_again() noexcept;

  /// What the other processes ask of this one.
  struct service {
    /// Gives back at least so many bytes, if it can. Returns how many.
    std::function<std::uint64_t(std::uint64_t)> give;
    /// Whether queued work of this process uses the device.
    std::function<bool()> busy;
  };
  /// Serves the other processes until `end` is set and wake() was called. Runs in a thread of its own.
  void serve(const service& by, const std::atomic<bool>& end);
  void wake() noexcept;

 private:
  [[nodiscard]] bool open_and_lock();
  void remove_if_last() noexcept;
  [[nodiscard]] share_slot& slot(unsigned index) const noexcept;
  [[nodiscard]] share_slot& own() const noexcept { return slot(index_); }
  [[nodiscard]] unsigned used_slots() const noexcept;
  [[nodiscard]] bool is_member(unsigned index) const noexcept;
  /// The bytes that all processes have taken.
  [[nodiscard]] std::uint64_t taken() const noexcept;
  /// The process of a slot as this process can name it; 0 if it has ended or cannot be named.
  [[nodiscard]] int process_of(unsigned index) const noexcept;
  [[nodiscard]] bool is_stopped(unsigned index) const noexcept;
  /// Frees the slots of processes that have ended.
  void forget_dead() noexcept HPE_EXCLUDES(forgetting_);
  [[nodiscard]] bool is_waiting(unsigned index, std::uint64_t now) const noexcept;
  [[nodiscard]] bool another_waits(std::uint64_t now) const noexcept;
  [[nodiscard]] bool may_end(turn current, std::uint64_t now) const noexcept;
  [[nodiscard]] bool is_next(std::uint64_t now) const noexcept;
  /// The process to ask next: the one with memory that used the device longest ago.
  [[nodiscard]] unsigned next_to_ask() const noexcept;
  void look_whether_idle(turn current, const service& by) noexcept;

  const std::string group_;
  const std::string path_;
  const std::uint64_t total_;
  const std::chrono::seconds patience_;
  os::file_descriptor file_;
  os::reservation memory_;
  share_page* page_ = nullptr;
  unsigned index_ = 0;  // of the own slot
  mutex forgetting_;    // locks of the kernel belong to the process, not to a thread

  std::atomic<std::uint64_t> began_{0};       // of the turn, in nanoseconds
  std::atomic<std::uint64_t> collecting_{0};  // nanoseconds of this turn in which others gave memory back
  std::uint64_t busy_at_ = 0;                 // of the thread that serves

  // Of the thread that asks; a bit for each slot.
  unsigned asked_ = ~0U;
  std::uint64_t asked_at_ = 0;
  std::uint64_t refused_ = 0;  // have no more to give
  std::uint64_t stopped_ = 0;
};

}  // namespace hpe::node
