#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interpose/cudart/timeline.h"

namespace hpe::cudart {

struct shared_event_page;  // what lies in the memory file

/// What processes share of an event that was created with cudaEventInterprocess: which recording is the last, and which
/// have been reached. It lies in a memory file that the creator keeps open and others open through it, so nothing is
/// left behind however processes end. A recording of a process that has ended counts as reached: nobody waits for the
/// dead. Thread safe. Members throw failure.
class shared_event : public std::enable_shared_from_this<shared_event> {
 public:
  /// Names one recording; 0 is none. Never used again for another one of the event (but for wrapping after 2^31).
  using position = std::uint64_t;

  /// A recording that is not reached while this object lives. Of this process.
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

  static std::shared_ptr<shared_event> create();  ///< cudaErrorMemoryAllocation where there is no memory file

  /// cudaErrorInvalidResourceHandle for what is no handle, or one whose creator has ended or destroyed the event.
  static std::shared_ptr<shared_event> open(const cudaIpcEventHandle_t& handle);

  ~shared_event();
  shared_event(const shared_event&) = delete;
  shared_event& operator=(const shared_event&) = delete;

  const cudaIpcEventHandle_t& handle() const { return handle_; }

  /// A recording that is not the last one until it is published. Waits while 256 of the event are not reached.
  std::shared_ptr<pending> begin();
  void publish(const pending& recording);

  position last() const;
  bool reached(position where) const;
  void wait(position where) const;

 private:
  shared_event(shared_event_page* page, int file, const cudaIpcEventHandle_t& handle);
  void end(position where);

  shared_event_page* const page_;
  const int file_;  // -1 but in the process that created it
  const cudaIpcEventHandle_t handle_;
};

/// A recording that another process made, as a timeline of one piece.
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
