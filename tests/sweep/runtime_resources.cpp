#include <chrono>
#include <optional>
#include <thread>

#include "hpe/hpe.h"
#include "runtime/core/runtime.h"
#include "tests/sweep/injection.h"
#include "tests/sweep/resources.h"

namespace sweep {

namespace {

void look_into_runtime(resources& result) {
  const auto& all = hpe::core::runtime::instance();
  const auto patience = std::chrono::steady_clock::now() + std::chrono::seconds(1);
  for (std::uint32_t number = 1; number < all.regions().limit(); ++number) {
    auto& r = all.regions().at(number);
    bool mine = false;
    while (!(mine = r.mutex.try_lock()) && std::chrono::steady_clock::now() < patience) std::this_thread::yield();
    if (!mine) {
      ++result.locked;
      continue;
    }
    result.regions += r.alive ? 1 : 0;
    r.mutex.unlock();
  }
  std::vector<hpe::transfer::staged> buffers;
  while (auto buffer = all.resources().engine.try_borrow(0)) buffers.push_back(std::move(*buffer));
  result.buffers = static_cast<std::int64_t>(buffers.size());
}

}  // namespace

resources of_runtime() {
  const test_code here;
  resources result = of_process();
  look_into_runtime(result);
  int count = 0;
  (void)hpeGetDeviceCount(&count);
  for (int d = 0; d < count; ++d) {
    hpeDeviceInfo info{};
    (void)hpeGetDeviceInfo(d, &info);
    result.device_memory.push_back(info.lost != 0 ? -1 : static_cast<std::int64_t>(info.memory_free));
  }
  return result;
}

}  // namespace sweep
