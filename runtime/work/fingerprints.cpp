#include "runtime/work/fingerprints.h"

#include <sys/mman.h>

#include <deque>
#include <utility>

#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/base/log.h"
#include "runtime/os/virtual_memory.h"
#include "runtime/work/accesses.h"

namespace hpe::work {

using coherence::byte_range;
using coherence::piece_fingerprint;
using coherence::region;

namespace {

constexpr std::size_t bytes_of_results = granule_size;

}  // namespace

/// Registered host memory to which devices write fingerprints. A place is used again when its last fingerprint was
/// written. Thread-safe.
class fingerprints::results : public std::enable_shared_from_this<results> {
 public:
  explicit results(device::device_set& devices) : file_(os::create_memory_file("hpe-fingerprints", bytes_of_results)) {
    void* const mapped = ::mmap(nullptr, bytes_of_results, PROT_READ | PROT_WRITE, MAP_SHARED, file_.get(), 0);
    HPE_REQUIRE(mapped != MAP_FAILED, HPE_ERROR_OUT_OF_MEMORY, "no memory for fingerprints");
    places_ = static_cast<device::fingerprint*>(mapped);
    try {
      devices.register_host(places_, bytes_of_results, file_.get(), 0);
    } catch (...) {
      ::munmap(places_, bytes_of_results);
      throw;
    }
  }
  results(const results&) = delete;
  results& operator=(const results&) = delete;
  ~results() { ::munmap(places_, bytes_of_results); }

  /// The devices must not write any fingerprint afterwards.
  void unregister(device::device_set& devices) noexcept { devices.unregister_host(places_, bytes_of_results); }

  struct place {
    std::shared_ptr<results> of;
    device::fingerprint* at = nullptr;
    timepoint written{};

    place(std::shared_ptr<results> whose, device::fingerprint* where) : of(std::move(whose)), at(where) {}
    place(const place&) = delete;
    place& operator=(const place&) = delete;
    ~place() {
      const lock_guard lock(of->mutex_);
      of->returned_[of->end_++ % count] = {at, written};
    }
  };

  /// Returns null if all places are in use.
  [[nodiscard]] std::shared_ptr<place> take(const device::device_set& devices) {
    device::fingerprint* found = nullptr;
    {
      const lock_guard lock(mutex_);
      if (used_ < count) {
        found = places_ + used_++;
      } else if (begin_ != end_ && devices.reached(returned_[begin_ % count].second)) {
        found = returned_[begin_++ % count].first;
      }
    }
    if (found == nullptr) return nullptr;
    return std::make_shared<place>(shared_from_this(), found);
  }

 private:
  static constexpr std::size_t count = bytes_of_results / sizeof(device::fingerprint);

  const os::file_descriptor file_;
  device::fingerprint* places_ = nullptr;
  hpe::mutex mutex_;
  std::size_t used_ HPE_GUARDED_BY(mutex_) = 0;  // later places were never used
  // A ring of the places that are not in use, with the timepoints of their last fingerprints.
  std::vector<std::pair<device::fingerprint*, timepoint>> returned_ HPE_GUARDED_BY(mutex_) =
      std::vector<std::pair<device::fingerprint*, timepoint>>(count);
  std::size_t begin_ HPE_GUARDED_BY(mutex_) = 0;
  std::size_t end_ HPE_GUARDED_BY(mutex_) = 0;
};

fingerprints::fingerprints(device::device_set& devices, log_level level, std::string without)
    : devices_(devices), level_(level), without_(std::move(without)), streams_(devices.size()) {}

fingerprints::~fingerprints() {
  if (results_ == nullptr) return;
  const lock_guard lock(making_);
  for (const device::stream* s : streams_) {
    if (s == nullptr) continue;
    const timepoint last = s->last();
    wait_for(std::span(&last, 1), devices_);
  }
  results_->unregister(devices_);
}

device::stream& fingerprints::stream_of(unsigned home) {
  const lock_guard lock(making_);
  device::stream*& made = streams_[home];
  if (made == nullptr) made = &devices_.at(home).create_stream(device::priority::rolling);
  return *made;
}

std::optional<piece_fingerprint> fingerprints::take(unsigned home, region& r, byte_range bytes, timepoint behind) {
  const bool is_whole = bytes.size() % device::fingerprint_unit == 0;
  if (!work_.load(std::memory_order_relaxed) || (!is_whole && bytes.size() > device::fingerprint_unit))
    return std::nullopt;
  try {
    std::call_once(results_made_, [this] { results_ = std::make_shared<results>(devices_); });
    device::stream& stream = stream_of(home);
    const std::shared_ptr<results::place> place = results_->take(devices_);
    if (place == nullptr) return std::nullopt;
    const device_access access{&r, bytes, HPE_IN};
    piece_fingerprint made;
    collect(std::span(&access, 1), devices_, made.writers);
    for (const timepoint point : made.writers.points()) stream.wait(point);
    if (!behind.none()) stream.wait(behind);
    const std::byte* const source = r.layout.base + bytes.begin;
    *place->at = {};
    place->written = is_whole ? stream.take_fingerprint(place->at, source, bytes.size())
                              : stream.copy(place->at, source, bytes.size());
    made.computed = place->written;
    record(std::span(&access, 1), std::span(&made.computed, 1), devices_);
    made.value = std::shared_ptr<const void>(place, place->at);
    return made;
  } catch (const std::exception& e) {
    work_ = false;
    log(level_, "{}: {}", without_, e.what());
    return std::nullopt;
  }
}

bool fingerprints::are_same(const piece_fingerprint& a, const piece_fingerprint& b) const {
  if (devices_.status_of(a.computed) || devices_.status_of(b.computed)) return false;
  return *static_cast<const device::fingerprint*>(a.value.get()) ==
         *static_cast<const device::fingerprint*>(b.value.get());
}

}  // namespace hpe::work
