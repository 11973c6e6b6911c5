#pragma once

#include "runtime/trace/profile.h"
#include "runtime/trace/recorder.h"

namespace hpe::trace {

/// What the calling thread does for the program's data while it lives, for the profile and the trace. Costs two loads
/// if there is neither. May be used in signal handlers.
class measured {
 public:
  /// address: of a touch.
  measured(way how, std::uint64_t bytes, const void* address = nullptr) noexcept
      : how_(how), bytes_(bytes), address_(address), profile_(profile::active()), recorder_(recorder::active()) {
    if (wanted()) begin_ = clock::now();
  }
  [[gnu::always_inline]] ~measured() {
    if (wanted()) tell();
  }
  measured(const measured&) = delete;
  measured& operator=(const measured&) = delete;

  /// It goes another way than was thought at first.
  void goes(way how) noexcept { how_ = how; }
  /// It came to nothing, and is not told.
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
