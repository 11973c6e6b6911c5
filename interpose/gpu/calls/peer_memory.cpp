#include "interpose/gpu/calls/peer_memory.h"

#include <algorithm>
#include <cstring>

#include "hpe/error.hpp"
#include "runtime/base/log.h"

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::peer_bytes;

peer_memory::mapping::mapping(const device::cuda::driver& cu, const peer_bytes& which,
                              std::shared_ptr<context_parts> parts)
    : cu_(cu), which_(which), parts_(std::move(parts)) {
  CUipcMemHandle handle;
  static_assert(sizeof handle == sizeof which_.handle);
  std::memcpy(&handle, which_.handle.data(), sizeof handle);
  const entered here(cu_, parts_->context());
  cu_.check(cu_.cuIpcOpenMemHandle(&base_, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS),
            "mapping device memory of another process");
}

peer_memory::mapping::~mapping() {
  const entered here(cu_, parts_->context());
  if (parts_->alive()) cu_.cuIpcCloseMemHandle(base_);
}

std::shared_ptr<peer_memory::mapping> peer_memory::open(const peer_bytes& which,
                                                        const std::shared_ptr<context_parts>& parts) {
  std::list<cached_mapping> gone;  // destroyed after the mutex is unlocked
  const lock_guard lock(mutex_);
  for (auto it = entries_.begin(); it != entries_.end();) {
    const auto here = it++;
    if (here->context != parts->context() || here->which.process != which.process || here->which.base != which.base)
      continue;
    if (here->which.allocation == which.allocation) {
      entries_.splice(entries_.begin(), entries_, here);
      return here->mapped;
    }
    gone.splice(gone.begin(), entries_, here);
  }
  // Unmaps the old allocation first, because the driver may map the new allocation at the same address.
  gone.clear();
  std::list<cached_mapping> made;
  made.push_back({which, parts->context(), nullptr});
  try {
    made.front().mapped = std::make_shared<mapping>(cu_, which, parts);
  } catch (const error& e) {
    log(log_level::info, "messages from device memory of another process are copied by way of the host: {}", e.what());
  }
  entries_.splice(entries_.begin(), made);
  if (entries_.size() > most) gone.splice(gone.begin(), entries_, std::prev(entries_.end()));
  return entries_.front().mapped;
}

void peer_memory::clear() noexcept {
  std::list<cached_mapping> gone;
  const lock_guard lock(mutex_);
  gone.swap(entries_);
}

}  // namespace hpe::cuda_hooks
