#include "runtime/fault/service.h"

#include "runtime/fault/handler.h"
#include "runtime/trace/measured.h"

namespace hpe::fault {

service::service(const memory::uvas& space, const lane_environment& environment, unsigned lane_count)
    : space_(space), granules_(environment.granules) {
  std::vector<device::gate*> gates;
  for (unsigned i = 0; i < lane_count; ++i) {
    lanes_.push_back(std::make_unique<lane>(i, lane_count, environment, environment.devices.create_gate()));
    gates.push_back(&lanes_.back()->gate());
  }
  board_ = std::make_unique<request_board>(gates);
  for (const auto& l : lanes_) l->start(*board_);
  handle_faults_with(this);
}

service::~service() {
  handle_faults_with(nullptr);
  lanes_.clear();
}

void service::look_again() {
  for (const auto& l : lanes_) l->gate().ring();
}

verdict service::resolve(std::byte* address, bool write) noexcept {
  trace::measured measure(trace::way::touch, 0, address);
  coherence::announced_thread& thread = coherence::this_announced_thread();
  thread.used_a_view = thread.at_work;
  const unsigned lane = granules_.find(address).region % lanes_.size();
  const verdict result = board_->ask(lane, address, write, !thread.at_work);
  if (result != verdict::retry) measure.forget();
  return result;
}

}  // namespace hpe::fault
