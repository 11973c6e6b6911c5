#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interpose/cudart/stream/timeline.h"

namespace hpe::cudart {

struct shared_event_page;  // the content of the memory file

/// The state that processes share of an event created with cudaEventInterprocess: the last recording, and which
/// recordings are reached. It is in a memory file that the creator keeps open and that others open through the creator,
/// so nothing is left behind however processes end. A recording of a process that has ended counts as reached, so that
/// nobody waits for it. Thread safe. Members throw failure.
class shared_event : public std::enable_shared_from_this<shared_event> {
 public:
  /// Names one recording of the event; 0 means none. A name is not used again (until the counter wraps after 2^31).
  using position = std::uint64_t;

  /// A recording of this process. It is reached when this object is destroyed.
  class pending {
   public:
    pending(std::shared_ptr<shared_event> of, position where) : of_(std::move(of)), where_(where) {}
    ~pending();
    pending(const pending&) = delete;
    pending& operator=(const pending&) = delete;
    position where() const { return where_; }

   private:
    const std::shared_ptr<shared_event> of_;
    const position where_;
  };

  static std::shared_ptr<shared_event> create();  ///< cudaErrorMemoryAllocation if no memory file can be made

  /// Throws cudaErrorInvalidResourceHandle for an invalid handle, or if its creator has ended or destroyed the event.
  static std::shared_ptr<shared_event> open(const cudaIpcEventHandle_t& handle);

  ~shared_event();
  shared_event(const shared_event&) = delete;
  shared_event& operator=(const shared_event&) = delete;

  const cudaIpcEventHandle_t& handle() const { return handle_; }

  /// Begins a recording, which publish() then makes the last one. Waits while 256 recordings of the event are pending.
  std::shared_ptr<pending> begin();
  void publish(const pending& recording);

  position last() const;
  bool reached(position where) const;
  void wait(position where) const;

 private:
  shared_event(shared_event_page* page, int file, const cudaIpcEventHandle_t& handle);
  void end(position where);

  shared_event_page* const page_;
  const int file_;  // -1 except in the process that created the event
  const cudaIpcEventHandle_t handle_;
};

/// A recording of another process, as a timeline with one piece of work.
class foreign_recording final : public timeline {
 public:
  foreign_recording(std::shared_ptr<const shared_event> of, shared_event::position where)
      : of_(std::move(of)), where_(where) {}
  std::uint64_t finished() const override { return of_->reached(where_) ? 1 : 0; }
  void wait(std::uint64_t /*position*/) const override { of_->wait(where_); }

 private:
  const std::shared_ptr<const shared_event> of_;
  const shared_event::position where_;
};

}  // namespace hpe::cudart
