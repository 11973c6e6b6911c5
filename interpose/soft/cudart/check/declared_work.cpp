#include "interpose/soft/cudart/check/declared_work.h"

#include <map>
#include <span>

#include "hpe/check.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"

namespace hpe::cudart {

namespace {

struct declarations {
  hpe::mutex mutex;
  std::map<std::uint64_t, std::span<const hpeAccess>> all HPE_GUARDED_BY(mutex);  // by stream
};

// Never destroyed, because streams' threads run until the process ends.
declarations& declared() {
  static auto* const made = new declarations;
  return *made;
}

}  // namespace

declared_work::declared_work(std::uint64_t stream, const hpeAccess* accesses, std::size_t count) : stream_(stream) {
  const lock_guard lock(declared().mutex);
  declared().all[stream] = {accesses, count};
}

declared_work::~declared_work() {
  const lock_guard lock(declared().mutex);
  declared().all.erase(stream_);
}

void compare_with_declared(const check::operation_ptr& what, const std::vector<check::access_range>& ranges) {
  const running_work* const now = this_threads_work();
  if (now == nullptr || now->work == nullptr) return;
  const lock_guard lock(declared().mutex);
  const auto found = declared().all.find(now->work->stream);
  if (found == declared().all.end()) return;
  if (::hpeCompareAccesses(&what, &ranges, found->second.data(), found->second.size()) != HPE_SUCCESS)
    log(log_level::warn, "HPE_CHECK: a call of hpeEnqueue is not checked: {}", ::hpeGetLastErrorMessage());
}

}  // namespace hpe::cudart
