#include "interpose/mpi/messages/transfer/direct_copy.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <vector>

#include "interpose/mpi/messages/message.h"
#include "interpose/mpi/messages/message_progress.h"
#include "runtime/core/operations/host_access.h"

namespace hpe::interpose::mpi {

namespace {

// The largest number of bytes that one call of MPI copies: small enough that other transfers do not wait long, and
// large enough that devices copy at their full rate.
constexpr std::size_t most_of_one_step = std::size_t{64} << 20;

// A copy between devices of up to this size takes less than 10 us. If the copy is the only operation in progress, the
// thread waits for the copy, because a return to MPI's progress function would take more time.
constexpr std::size_t waited_for_at_once = std::size_t{1} << 20;

class direct_copy {
 public:
  direct_copy(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then)
      : to_(to), from_(from), bytes_(bytes), then_(std::move(then)) {}

  bool step() {
    const std::size_t size = std::min(most_of_one_step, bytes_ - done_);
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

// A queue of copies that devices carry out one after the other, so that only the first unfinished copy has to be
// queried.
class queue_of_copies : public std::enable_shared_from_this<queue_of_copies> {
 public:
  static queue_of_copies& of(const std::shared_ptr<copy_queue>& copies) {
    const auto found = std::find_if(all().begin(), all().end(), [&](const auto& q) { return q->copies_ == copies; });
    if (found != all().end()) return **found;
    const auto made = std::make_shared<queue_of_copies>();
    made->copies_ = copies;
    all().push_back(made);
    progress::of_process().repeat([made] { return made->step(); });
    return *made;
  }

  void add(std::uint64_t number, transfer_over then) { waiting_.push_back({number, std::move(then)}); }

 private:
  struct copy {
    std::uint64_t number;
    transfer_over then;
  };

  static std::vector<std::shared_ptr<queue_of_copies>>& all() {
    static auto* const them = new std::vector<std::shared_ptr<queue_of_copies>>;
    return *them;
  }

  bool step() {
    while (!waiting_.empty()) {
      std::optional<error> failure;
      try {
        if (!copies_->reached(waiting_.front().number)) return false;
      } catch (const error& e) {
        failure = e;
      }
      const transfer_over then = std::move(waiting_.front().then);
      waiting_.pop_front();
      then(failure);
    }
    std::erase(all(), shared_from_this());
    return true;
  }

  std::shared_ptr<copy_queue> copies_;
  std::deque<copy> waiting_;
};

// Returns the copy that begin() starts; nullopt if begin() starts no copy or throws. The caller then transfers the
// bytes in chunks, which reports the error if it occurs again, for example because the device is lost.
template <class Begin>
std::optional<device_copy> attempt(std::size_t bytes, Begin&& begin) {
  try {
    const auto begun = trace::clock::now();
    std::optional<device_copy> copy = begin();
    if (copy) record_part("queue a copy between devices", begun, bytes);
    return copy;
  } catch (const error&) {
    return std::nullopt;
  }
}

}  // namespace

bool copy_directly(std::byte* to, const hpeExport& from, std::size_t bytes, transfer_over then) {
  int reachable = 0;
  if (hpeExportReachable(&from, &reachable) != HPE_SUCCESS || reachable == 0) return false;
  auto it = std::make_shared<direct_copy>(to, from, bytes, std::move(then));
  progress::of_process().repeat([it] { return it->step(); });
  return true;
}

bool copy_directly(std::byte* to, const peer_bytes& from, const box_copy& shape, std::uint64_t queued,
                   transfer_over then) {
  adopted_pointers* const devices = adopted_pointers::instance();
  if (devices == nullptr || core::host_access::of(to) != nullptr) return false;
  const auto over = [devices, to, bytes = shape.written().span(),
                     then = std::move(then)](const std::optional<error>& failure) {
    first_failure both(failure);
    both.attempt([&] { devices->overwritten(reinterpret_cast<std::uintptr_t>(to), bytes); });
    then(both.what());
  };
  const auto copy = attempt(shape.bytes(), [&] { return devices->pull(to, from, shape, queued); });
  if (copy) when_copied(*copy, shape.bytes(), over);
  return copy.has_value();
}

bool copy_directly(const peer_bytes& to, const std::byte* from, const box_copy& shape, transfer_over then) {
  const auto copy = begin_copy(to, from, shape);
  if (copy) when_copied(*copy, shape.bytes(), std::move(then));
  return copy.has_value();
}

std::optional<device_copy> begin_copy(const peer_bytes& to, const std::byte* from, const box_copy& shape) {
  return attempt(shape.bytes(),
                 [&] { return adopted_pointers::instance()->push(to, reinterpret_cast<std::uintptr_t>(from), shape); });
}

void when_copied(const device_copy& what, std::size_t bytes, transfer_over then) {
  if (!progress::of_process().only_one() || bytes > waited_for_at_once)
    return queue_of_copies::of(what.queue).add(what.number, std::move(then));
  first_failure failure;
  failure.attempt([&] {
    const trace::recorded waiting(trace::category::mpi, "wait for a copy between devices", bytes);
    what.queue->wait();
  });
  then(failure.what());
}

}  // namespace hpe::interpose::mpi
