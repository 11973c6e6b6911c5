#pragma once

/// The memory of one device, which processes of one user divide among themselves (HPE_SHARE). The processes share a
/// small file in /dev/shm. Each process has a slot in the file, which states how many bytes the process has taken and
/// how many it needs.
///
/// Claims. The bytes that a process has taken are its claim. Processes never use more memory together than the device
/// has. The claim of a process becomes free when the process ends, even if it is killed: a file lock on the slot shows
/// whether the process is alive.
///
/// Turns. A process that needs more memory than is free waits for its turn. During its turn, it asks the other
/// processes to give memory back, beginning with the process that has not used the device for the longest time. Memory
/// that they give back is reserved for the owner of the turn. The next turn begins when the owner no longer uses the
/// device, has ended, or is stopped (SIGSTOP). It also begins when the turn has lasted long enough and its owner is not
/// collecting memory at the moment. A turn lasts many times as long as the owner's collection of memory, so moving data
/// takes only a small part of the time. Processes take turns in the order of their arrival. Turns only affect speed: a
/// process that continues after it has lost its turn does no harm.

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
  /// Makes this process one of the processes that share a device; at first, this process has taken no memory. group:
  /// the name of the group of processes that share the device; if it is empty, join returns nullptr. device: the
  /// device's name within the group. bytes: the device's memory. patience: how long work waits for memory that a
  /// stopped process has taken. Each device has one object, which exists until the process ends. Throws
  /// HPE_ERROR_INITIALIZATION if the group's name is not allowed in a file name, if too many processes already share
  /// the device, or if the file cannot be used.
  [[nodiscard]] static device_share* join(const std::string& group, const std::string& device, std::uint64_t bytes,
                                          std::chrono::seconds patience);

  device_share(std::string group, const std::string& device, std::uint64_t bytes, std::chrono::seconds patience);
  device_share(const device_share&) = delete;
  device_share& operator=(const device_share&) = delete;

  [[nodiscard]] std::uint64_t total() const noexcept { return total_; }
  [[nodiscard]] std::chrono::seconds patience() const noexcept { return patience_; }

  /// The number of bytes that this process can take now.
  [[nodiscard]] std::uint64_t free() const noexcept;
  /// Takes memory. Returns false if too little is free, and sometimes if other processes take memory at the same
  /// moment.
  [[nodiscard]] bool take(std::uint64_t bytes) noexcept;
  void give(std::uint64_t bytes) noexcept;
  /// Records that this process uses the device now.
  void use() noexcept;
  /// Whether other processes share the device now.
  [[nodiscard]] bool others() const noexcept;
  /// Describes the other processes and their memory, for messages.
  [[nodiscard]] std::string others_in_words() const;

  /// Identifies a turn of any process.
  using turn = std::uint64_t;

  /// Waits until it is the turn of this process, and makes the turn last until leave(). The turn ends earlier if the
  /// process is stopped, or if leave() is not called within 10 seconds after the turn should have ended. Several
  /// threads may be in the same turn.
  [[nodiscard]] turn enter() noexcept;
  void leave(turn mine) noexcept;

  enum class reply : std::uint8_t {
    memory,   ///< `enough` bytes are free
    nothing,  ///< the other processes have no more memory to give
    stopped,  ///< the running processes have no more memory to give, but a stopped process still has some
    lost      ///< it is no longer the turn of this process
  };
  /// Asks the other processes for `bytes` bytes in all, and waits until `enough` bytes are free. Only one thread at a
  /// time may call this, between enter() and leave(). Processes that had nothing more to give are asked again after
  /// ask_all_again().
  [[nodiscard]] reply ask(turn mine, std::uint64_t bytes, std::uint64_t enough) noexcept;

  void ask_all_again() noexcept;

  /// The functions with which serve() answers the requests of other processes.
  struct service {
    /// Gives back at least this number of bytes, if possible. Returns the number of bytes that it gave back.
    std::function<std::uint64_t(std::uint64_t)> give;
    /// Whether queued work of this process uses the device.
    std::function<bool()> busy;
  };
  /// Serves the other processes until `end` is set and wake() was called. Must run in a separate thread.
  void serve(const service& by, const std::atomic<bool>& end);
  void wake() noexcept;

 private:
  [[nodiscard]] bool open_and_lock();
  void remove_if_last() noexcept;
  [[nodiscard]] share_slot& slot(unsigned index) const noexcept;
  [[nodiscard]] share_slot& own() const noexcept { return slot(index_); }
  [[nodiscard]] unsigned used_slots() const noexcept;
  [[nodiscard]] bool is_member(unsigned index) const noexcept;
  /// The number of bytes that all processes have taken.
  [[nodiscard]] std::uint64_t taken() const noexcept;
  /// Returns the ID of a slot's process; 0 if the process has ended, or has no ID in this PID namespace.
  [[nodiscard]] int process_of(unsigned index) const noexcept;
  [[nodiscard]] bool is_stopped(unsigned index) const noexcept;
  /// Frees the slots of processes that have ended.
  void forget_dead() noexcept HPE_EXCLUDES(forgetting_);
  [[nodiscard]] bool is_waiting(unsigned index, std::uint64_t now) const noexcept;
  [[nodiscard]] bool another_waits(std::uint64_t now) const noexcept;
  [[nodiscard]] bool may_end(turn current, std::uint64_t now) const noexcept;
  [[nodiscard]] bool is_next(std::uint64_t now) const noexcept;
  /// Returns the slot of the process to ask next: of the processes that have memory, the process that has not used the
  /// device for the longest time.
  [[nodiscard]] unsigned next_to_ask() const noexcept;
  void look_whether_idle(turn current, const service& by) noexcept;

  const std::string group_;
  const std::string path_;
  const std::uint64_t total_;
  const std::chrono::seconds patience_;
  os::file_descriptor file_;
  os::reservation memory_;
  share_page* page_ = nullptr;
  unsigned index_ = 0;  // the index of this process's slot
  mutex forgetting_;    // excludes other threads of this process, because file locks belong to the whole process

  std::atomic<std::uint64_t> began_{0};       // start of the turn, in nanoseconds
  std::atomic<std::uint64_t> collecting_{0};  // nanoseconds of the turn during which others gave memory back
  std::uint64_t busy_at_ = 0;                 // used only by the thread that runs serve()

  // Used only by the thread that runs ask(). The masks refused_ and stopped_ have a bit for each slot.
  unsigned asked_ = ~0U;
  std::uint64_t asked_at_ = 0;
  std::uint64_t refused_ = 0;  // slots of processes that have no more to give
  std::uint64_t stopped_ = 0;
};

}  // namespace hpe::node
