#include "interpose/mpi/messages/direct_copy.h"

#include <algorithm>
#include <memory>

#include "interpose/mpi/messages/progress.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose::mpi {

namespace {

// What one call of MPI copies, so that nothing else waits long; large enough for devices to reach their rate.
constexpr std::size_t piece = std::size_t{64} << 20;

// A copy of the driver's memory takes less than 10 us up to that, and looking at MPI in between costs more than it
// gains where nothing else goes on.
constexpr std::size_t waited_for_awake = std::size_t{1} << 20;

class direct_copy {
 public:
  direct_copy(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then)
      : to_(to), from_(from), bytes_(bytes), then_(std::move(then)) {}

  bool step() {
    const std::size_t size = std::min(piece, bytes_ - done_);
    const hpeStatus status = hpeExportCopy(to_ + done_, &from_, done_, size);
    done_ += size;
    if (status == HPE_SUCCESS && done_ < bytes_) return false;
    then_(status == HPE_SUCCESS ? std::nullopt : std::optional(error(status, hpeGetLastErrorMessage())));
    return true;
  }

 private:
  std::byte* const to_;
  const hpeExport from_;
  const std::size_t bytes_;
  const transfer_over then_;
  std::size_t done_ = 0;
};

}  // namespace

bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then) {
  int reachable = 0;
  if (hpeExportReachable(&from, &reachable) != HPE_SUCCESS || reachable == 0) return false;
  auto it = std::make_shared<direct_copy>(to, from, bytes, std::move(then));
  progress::of_process().repeat([it] { return it->step(); });
  return true;
}

bool copy_directly(std::byte* to, const peer_bytes& from, const copied_rows& shape, std::uint64_t queued,
                   transfer_over then) {
  adopted_pointers* const devices = adopted_pointers::instance();
  if (devices == nullptr || core::host_access::of(to) != nullptr) return false;
  try {
    const auto copy = devices->pull(to, from, shape, queued);
    if (!copy) return false;
    if (progress::of_process().only_one() && shape.bytes() <= waited_for_awake) {
      while (!copy->done()) {
      }
      then(std::nullopt);
      return true;
    }
    progress::of_process().repeat([copy = *copy, then = std::move(then)] {
      try {
        if (!copy.done()) return false;
        then(std::nullopt);
      } catch (const error& e) {
        then(e);
      }
      return true;
    });
    return true;
  } catch (const error&) {
    return false;  // the chunks tell
  }
}

}  // namespace hpe::interpose::mpi
