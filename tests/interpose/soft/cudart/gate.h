#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>

#include "interpose/soft/cudart/stream/cudart_stream.h"

namespace hpe::cudart::testing {

/// Creates work that does not finish before the gate is opened. The destructor opens the gate; the work may run longer
/// than the test.
class gate {
 public:
  gate() = default;
  ~gate() { open(); }
  gate(const gate&) = delete;
  gate& operator=(const gate&) = delete;

  void open() {
    const std::scoped_lock lock(state_->mutex);
    state_->open = true;
    state_->changed.notify_all();
  }

  void pass() { state_->pass(); }

  stream_task as_task() {
    return [state = state_] {
      state->pass();
      return cudaSuccess;
    };
  }

 private:
  struct state {
    std::mutex mutex;
    std::condition_variable changed;
    bool open = false;

    void pass() {
      std::unique_lock lock(mutex);
      changed.wait(lock, [this] { return open; });
    }
  };
  std::shared_ptr<state> state_ = std::make_shared<state>();
};

}  // namespace hpe::cudart::testing
