#pragma once

#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"

namespace hpe::trace {

/// Measures the lifetime of this object as one transfer or touch of the calling thread, for the profile and the trace.
/// Costs two loads if the process has neither a profile nor a trace. Safe in signal handlers.
class measured {
 public:
  /// address: the touched address, for way::touch.
  measured(way how, std::uint64_t bytes, const void* address = nullptr) noexcept
      : how_(how), bytes_(bytes), address_(address), profile_(profile::active()), recorder_(recorder::active()) {
    if (wanted()) begin_ = clock::now();
  }
  [[gnu::always_inline]] ~measured() {
    if (wanted()) tell();
  }
  measured(const measured&) = delete;
  measured& operator=(const measured&) = delete;

  /// Changes the recorded way of the transfer.
  void goes(way how) noexcept { how_ = how; }
  /// Discards the measurement: it enters neither the profile nor the trace.
  void forget() noexcept {
    profile_ = nullptr;
    recorder_ = nullptr;
  }

 private:
  [[nodiscard]] bool wanted() const noexcept { return profile_ != nullptr || recorder_ != nullptr; }
  HPE_API void tell() noexcept;

  way how_;
  std::uint64_t bytes_;
  const void* address_;
  profile* profile_;
  recorder* recorder_;
  clock::time_point begin_;
};

}  // namespace hpe::trace
