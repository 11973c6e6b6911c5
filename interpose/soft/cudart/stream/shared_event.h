#pragma once

#include <driver_types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "interpose/soft/cudart/stream/stream_timeline.h"

namespace hpe::cudart {

struct shared_event_page;  // the contents of the memory file

/// The state of an event that was created with cudaEventInterprocess and that processes share: the last recording, and
/// which recordings have been reached. The state is in a memory file (memfd). The process that created the event keeps
/// the file open; other processes open the file through that process's /proc entry. No file remains after the processes
/// have ended, even if they are killed. When a process has ended, its recordings count as reached, so that waits for
/// these recordings end. Thread safe. The functions throw `failure`.
class shared_event : public std::enable_shared_from_this<shared_event> {
 public:
  /// Identifies one recording of the event; 0 stands for no recording. A value is not reused (until the counter wraps
  /// after 2^31 recordings).
  using position = std::uint64_t;

  /// A recording by this process that is not reached yet. The destructor marks the recording as reached.
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

  /// Throws cudaErrorMemoryAllocation if the memory file cannot be created.
  static std::shared_ptr<shared_event> create();

  /// Throws cudaErrorInvalidResourceHandle if the handle is invalid, or if the process that created the event has ended
  /// or has destroyed the event.
  static std::shared_ptr<shared_event> open(const cudaIpcEventHandle_t& handle);

  ~shared_event();
  shared_event(const shared_event&) = delete;
  shared_event& operator=(const shared_event&) = delete;

  const cudaIpcEventHandle_t& handle() const { return handle_; }

  /// Begins a recording; publish() then makes it the last recording. If 256 recordings of the event are pending, first
  /// waits until one of them is reached.
  std::shared_ptr<pending> begin();
  void publish(const pending& recording);

  position last() const;
  bool reached(position where) const;
  void wait(position where) const;

 private:
  shared_event(shared_event_page* page, int file, const cudaIpcEventHandle_t& handle);
  void end(position where);

  shared_event_page* const page_;
  const int file_;  // -1 in all processes except the one that created the event
  const cudaIpcEventHandle_t handle_;
};

/// Represents a recording of another process as a timeline with one task.
class foreign_recording final : public stream_timeline {
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
