#include "runtime/fault/service.h"

#include <fmt/core.h>

#include "runtime/fault/handler.h"
#include "runtime/trace/measured.h"
#include "runtime/trace/stalls.h"

namespace hpe::fault {

service::service(const memory::uvas& space, const lane_environment& environment, unsigned lane_count)
    : space_(space), env_(environment) {
  std::vector<device::gate*> gates;
  for (unsigned i = 0; i < lane_count; ++i) {
    lanes_.push_back(std::make_unique<lane>(i, lane_count, environment, environment.devices.create_gate()));
    gates.push_back(&lanes_.back()->gate());
  }
  board_ = std::make_unique<request_board>(gates);
  for (const auto& l : lanes_) l->start(*board_);
  handle_faults_with(this);
}

service::~service() { handle_faults_with(nullptr); }

void service::look_again() {
  for (const auto& l : lanes_) l->gate().ring();
}

std::string service::words_for_touch(const void* of, std::uint64_t address, std::uint64_t write) {
  const lane_environment& env = static_cast<const service*>(of)->env_;
  const std::string touch = fmt::format("its {} of {:#x} waits for ", write != 0 ? "write" : "read", address);
  auto* const at = reinterpret_cast<std::byte*>(address);  // NOLINT(performance-no-int-to-ptr): made from a pointer
  const memory::granule_entry entry = env.granules.find(at);
  coherence::point_set users;
  if (entry.region != 0) {
    coherence::region& r = env.regions.at(entry.region);
    if (r.mutex.try_lock()) {  // the thread that holds the mutex may be the thread that stalls
      try {
        if (r.alive && r.contains(at)) {
          const std::uint64_t block = r.block_of(r.offset_of(at));
          r.order.before_write(r.bytes_of({block, block + 1}), users);
        }
      } catch (...) {
        r.mutex.unlock();
        throw;
      }
      r.mutex.unlock();
    }
  }
  for (const timepoint p : users.points())
    if (!env.devices.reached(p)) return touch + env.devices.work_before(p);
  return touch + "its data, or for work that was announced";
}

fault_verdict service::resolve(std::byte* address, bool write) noexcept {
  trace::measured measure(trace::way::touch, 0, address);
  coherence::announced_thread& thread = coherence::this_announced_thread();
  thread.used_a_view = thread.at_work;
  const unsigned lane = env_.granules.find(address).region % lanes_.size();
  const trace::awaited here({words_for_touch, this, reinterpret_cast<std::uintptr_t>(address), write ? 1U : 0U});
  const fault_verdict result = board_->ask(lane, address, write, !thread.at_work);
  if (result != fault_verdict::retry) measure.forget();
  return result;
}

}  // namespace hpe::fault
