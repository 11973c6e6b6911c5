#include "tests/sweep/world.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "tests/sweep/injection.h"
#include "tests/sweep/kernels.h"
#include "tests/sweep/touch.h"

namespace sweep {

namespace {

using changes = std::vector<std::pair<part, std::vector<std::uint8_t>>>;

std::vector<std::uint8_t> model_of(const part& p) {
  const auto begin = p.of->model.begin() + static_cast<std::ptrdiff_t>(p.begin);
  return {begin, begin + static_cast<std::ptrdiff_t>(p.bytes)};
}

// The status of a touch by CPU code that raised SIGSEGV; no call of hpe returns this status.
constexpr auto touch_failed = static_cast<hpeStatus>(15);

constexpr hpeShape four_tiles{{4, 1, 1}, {1, 1, 1}};

hpeAccess access_to(const part& p, hpeAccessMode mode) { return {p.of->data + p.begin, p.bytes, mode}; }

}  // namespace

std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint8_t first) {
  std::vector<std::uint8_t> result(bytes);
  for (std::size_t i = 0; i < bytes; ++i) result[i] = static_cast<std::uint8_t>(first + i % 251);
  return result;
}

world::world(order first, std::function<void(const std::string&)> report) : first_(first), report_(std::move(report)) {}

void world::prepare() {
  int count = 0;
  hpeModule module = nullptr;
  if (hpeGetDeviceCount(&count) != HPE_SUCCESS || hpeModuleLoad(&module, SWEEP_KERNELS) != HPE_SUCCESS ||
      hpeModuleGetKernel(&copy_bytes_, module, "copy_bytes") != HPE_SUCCESS ||
      hpeModuleGetKernel(&add_to_bytes_, module, "add_to_bytes") != HPE_SUCCESS)
    return report_(std::string("the test's kernels were not loaded: ") + hpeGetLastErrorMessage());
  devices_ = static_cast<unsigned>(count);
  for (unsigned d = 0; d < devices_; ++d) {
    void* probe = nullptr;
    if (hpeMallocOn(&probe, probe_bytes, static_cast<int>(d)) != HPE_SUCCESS)
      report_(std::string("no memory for verification: ") + hpeGetLastErrorMessage());
    probes_.push_back(static_cast<std::uint8_t*>(probe));
  }
}

// ---- operations ---------------------------------------------------------------------------------------------------

// Accounts for a late failure of a command that the runtime's own threads queued between two operations of the
// scenario.
void world::account_for_late_failure() {
  if (injected().armed_for() != failure::late || !injected().fired() || accounted_) return;
  mark_late_failure({});
  over_ = true;
}

void world::begin_operation() {
  account_for_late_failure();
  if (over_ && injected().armed_for() != failure::none) {
    over_ = false;
    throw action_over();
  }
  forget_accepted();
  fired_before_ = injected().fired();
  const failure kind = injected().armed_for();
  if (kind != failure::loss_before && kind != failure::loss_after) return;
  (void)hpeSynchronize();  // so that a loss leaves at most one operation incomplete
  for (auto& m : all_) {
    m->host_valid.clear();
    for (std::size_t at = 0; at < m->bytes; at += model_block) {
      hpePointerInfo info{};
      m->host_valid.push_back(hpeGetPointerInfo(m->data + at, &info) == HPE_SUCCESS && info.on_host != 0);
    }
  }
}

hpeStatus world::call(const char* name, const std::function<hpeStatus()>& function, const changes& writes) {
  begin_operation();
  {
    const runtime_call counted;
    status_ = function();
  }
  message_ = status_ == HPE_SUCCESS ? "" : hpeGetLastErrorMessage();
  end_operation(name, writes);
  return status_;
}

void world::end_operation(const char* name, const changes& writes) {
  const bool fired_now = injected().fired() && !fired_before_;
  operation_ = name;
  if (status_ != HPE_SUCCESS) check_message(name);
  for (const auto& [p, bytes] : writes) {
    memory& m = *p.of;
    for (std::size_t i = 0; i < p.bytes; ++i) {
      const std::size_t at = p.begin + i;
      if (status_ == HPE_SUCCESS) {
        m.model[at] = bytes[i];
      } else {
        m.other[at] = bytes[i];
        m.known[at] = knowledge::either;
      }
    }
  }
  const failure kind = injected().armed_for();
  if (fired_now && kind == failure::late) mark_late_failure(writes);
  const bool loss = kind == failure::loss_before || kind == failure::loss_after;
  if (fired_now && loss) mark_lost_work(writes);
  over_ = fired_now && (loss || kind == failure::late);
  if (status_ != HPE_SUCCESS && fired_now && !over_) verify();
}

void world::mark_late_failure(const changes& writes) {
  accounted_ = true;
  await_late_command();
  // The operation may have used bytes that did not arrive, so its results may have any value.
  for (const auto& [p, bytes] : writes) set_known(p, knowledge::unknown);
  const device_write late = late_command();
  for (auto& m : all_)
    for (std::size_t i = 0; i < m->bytes; ++i) {
      const auto at = reinterpret_cast<std::uintptr_t>(m->data + i);
      if (late.begin <= at && at < late.end) m->known[i] = knowledge::anything;
    }
}

// After the loss of a device, marks the bytes that the operation wrote as unknown, if the operation used this device.
void world::mark_lost_work(const changes& writes) {
  const int lost = killed_device();
  hpeDeviceInfo info{};
  while (hpeGetDeviceInfo(lost, &info) == HPE_SUCCESS && info.lost == 0) std::this_thread::yield();
  const accepted_work work = accepted();
  const auto on_it = [&](const device_write& w) { return static_cast<int>(w.device) == lost; };
  if (std::none_of(work.writes.begin(), work.writes.end(), on_it) &&
      std::find(work.launches.begin(), work.launches.end(), static_cast<unsigned>(lost)) == work.launches.end())
    return;
  for (const auto& [p, bytes] : writes) set_known(p, knowledge::unknown);
}

void world::set_known(const part& p, knowledge what) {
  std::fill_n(p.of->known.begin() + static_cast<std::ptrdiff_t>(p.begin), p.bytes, what);
}

// Checks that the error message describes the injected failure.
void world::check_message(const char* name) {
  const auto wrong = [&](const char* what) {
    report_(std::string(name) + " gave " + hpeStatusName(status_) + " (\"" + message_ + "\"), " + what);
  };
  told_ = told_ || message_.find(mark) != std::string::npos || status_ == touch_failed;
  if (!injected().fired()) return wrong("though nothing was made to fail");
  if (status_ == HPE_ERROR_INTERNAL) return wrong("a defect of hpe");
  if (status_ == touch_failed) return;  // the message is in the log
  if (message_.empty()) return wrong("without a sentence");
  switch (injected().armed_for()) {
    case failure::refusal:
    case failure::late:
      if (message_.find(mark) == std::string::npos) wrong("which does not name the injected failure");
      break;
    case failure::loss_before:
    case failure::loss_after:
      if (status_ != HPE_ERROR_DEVICE_LOST) wrong("and not that the device is lost");
      break;
    case failure::system_call:
      if (message_.find(injected().what()) == std::string::npos) wrong("which does not name the failed call");
      break;
    case failure::allocation:
    case failure::allocations:
      if (status_ != HPE_ERROR_OUT_OF_MEMORY) wrong("and not that memory is short");
      break;
    case failure::none: break;
  }
}

void world::end_of_failures() {
  injected().disarm();
  await_late_command();
  account_for_late_failure();
  over_ = false;
  const bool late = injected().fired() && injected().armed_for() == failure::late;
  if (hpeSynchronize() == HPE_SUCCESS) {
    if (late && !told_) report_("no call reported the failure");
    return;
  }
  const std::string text = hpeGetLastErrorMessage();
  if (text.find(mark) == std::string::npos && text.find("is lost") == std::string::npos)
    report_("hpeSynchronize tells: " + text);
}

memory* world::add(void* data, std::size_t bytes, bool on_host) {
  auto m = std::make_unique<memory>();
  m->data = static_cast<std::uint8_t*>(data);
  m->bytes = bytes;
  m->on_host = on_host;
  m->model.assign(bytes, 0);
  m->other.assign(bytes, 0);
  m->known.assign(bytes, knowledge::exact);
  return all_.emplace_back(std::move(m)).get();
}

memory* world::adopt(void* data, std::vector<std::uint8_t> contents) {
  memory* m = add(data, contents.size(), true);
  m->model = std::move(contents);
  return m;
}

memory* world::allocate(std::size_t bytes, int device) {
  void* p = nullptr;
  call("hpeMallocOn", [&] { return hpeMallocOn(&p, bytes, device); });
  return p == nullptr ? nullptr : add(p, bytes, false);
}

memory* world::allocate_host(std::size_t bytes) {
  void* p = nullptr;
  call("hpeMallocHost", [&] { return hpeMallocHost(&p, bytes); });
  return p == nullptr ? nullptr : add(p, bytes, true);
}

memory* world::allocate_striped(std::size_t bytes, std::size_t chunk) {
  void* p = nullptr;
  const hpeDistribution dealt{HPE_DISTRIBUTE_BLOCK_CYCLIC, chunk, nullptr, 0};
  call("hpeMallocStriped", [&] { return hpeMallocStriped(&p, bytes, chunk == 0 ? nullptr : &dealt); });
  return p == nullptr ? nullptr : add(p, bytes, false);
}

void world::free(memory* m) {
  if (m == nullptr) return;
  call("hpeFree", [&] { return hpeFree(m->data); });
  // A failed call changed nothing. At most two allocations fail, so the third call must succeed.
  for (int more = 2; more > 0 && !succeeded(); --more) call("hpeFree again", [&] { return hpeFree(m->data); });
  std::erase_if(all_, [&](const auto& each) { return each.get() == m; });
}

void world::free_all() {
  for (; !cleanups_.empty(); cleanups_.pop_back()) cleanups_.back()();
  while (!all_.empty()) free(all_.back().get());
  for (std::uint8_t* probe : probes_) hpeFree(probe);
  probes_.clear();
}

void world::write(const part& p, std::uint8_t first) {
  const auto bytes = pattern(p.bytes, first);
  call("a write by the CPU",
       [&] {
         // On failure, the message is in the log, and the thread gets SIGSEGV.
         return touch(p.of->data + p.begin, bytes.data(), bytes.size()) ? HPE_SUCCESS : touch_failed;
       },
       {{p, bytes}});
}

void world::read(const part& p) {
  std::vector<std::uint8_t> got(p.bytes);
  call("a read by the CPU",
       [&] { return touch(got.data(), p.of->data + p.begin, got.size()) ? HPE_SUCCESS : touch_failed; });
  if (!succeeded()) return;
  for (std::size_t i = 0; i < p.bytes; ++i)
    if (p.of->known[p.begin + i] == knowledge::exact && got[i] != p.of->model[p.begin + i])
      return report_("the CPU read another value than was written, at " + std::to_string(p.begin + i));
}

void world::set(const part& p, std::uint8_t value) {
  call("hpeMemset", [&] { return hpeMemset(p.of->data + p.begin, value, p.bytes); },
       {{p, std::vector<std::uint8_t>(p.bytes, value)}});
}

void world::copy(const part& to, const part& from) {
  call("hpeMemcpy", [&] { return hpeMemcpy(to.of->data + to.begin, from.of->data + from.begin, to.bytes); },
       {{to, model_of(from)}});
}

void world::copy_in(const part& to, std::uint8_t first) {
  const auto bytes = pattern(to.bytes, first);
  call("hpeMemcpy from ordinary memory", [&] { return hpeMemcpy(to.of->data + to.begin, bytes.data(), to.bytes); },
       {{to, bytes}});
}

void world::copy_out(const part& from) {
  std::vector<std::uint8_t> got(from.bytes, 0xEE);
  call("hpeMemcpy to ordinary memory", [&] { return hpeMemcpy(got.data(), from.of->data + from.begin, from.bytes); });
  for (std::size_t i = 0; i < from.bytes; ++i) {
    if (from.of->known[from.begin + i] != knowledge::exact || got[i] == from.of->model[from.begin + i]) continue;
    if (!succeeded() && got[i] == 0xEE) continue;
    return report_("a copy out gave another value than was written, at " + std::to_string(from.begin + i));
  }
}

void world::prefetch(const part& p, int where) {
  call("hpePrefetch", [&] { return hpePrefetch(p.of->data + p.begin, p.bytes, where); });
}

void world::advise(memory* m, hpeAdvice advice) {
  call("hpeAdvise", [&] { return hpeAdvise(m->data, advice); });
}

void world::migrate(memory* m, int device) {
  call("hpeMigrate", [&] { return hpeMigrate(m->data, device); });
}

void world::launch_add(int device, const part& p, std::uint8_t by, bool everything) {
  auto bytes = model_of(p);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(b + by);
  const add_parameters parameters{p.of->data + p.begin, p.bytes, by, 0};
  const hpeAccess access = access_to(p, HPE_INOUT);
  call("hpeLaunch",
       [&] {
         return hpeLaunch(device, add_to_bytes_, &four_tiles, &parameters, sizeof parameters,
                          everything ? nullptr : &access, everything ? HPE_ALL : 1);
       },
       {{p, bytes}});
}

void world::launch_copy(int device, const part& to, const part& from) {
  const copy_parameters parameters{to.of->data + to.begin, from.of->data + from.begin, to.bytes};
  const hpeAccess accesses[] = {access_to(to, HPE_OUT), access_to(from, HPE_IN)};
  call("hpeLaunch",
       [&] { return hpeLaunch(device, copy_bytes_, &four_tiles, &parameters, sizeof parameters, accesses, 2); },
       {{to, model_of(from)}});
}

void world::team_add(const std::vector<int>& on, const part& p, std::uint8_t by) {
  auto bytes = model_of(p);
  for (std::uint8_t& b : bytes) b = static_cast<std::uint8_t>(b + by);
  const std::size_t share = p.bytes / on.size();
  std::vector<add_parameters> parameters(on.size());
  std::vector<hpeTeamMember> members(on.size());
  for (std::size_t i = 0; i < on.size(); ++i) {
    parameters[i] = {p.of->data + p.begin + i * share, share, by, 0};
    members[i] = {on[i], four_tiles, &parameters[i]};
  }
  const hpeAccess access = access_to(p, HPE_INOUT);
  call("hpeLaunchTeam",
       [&] { return hpeLaunchTeam(members.data(), members.size(), add_to_bytes_, sizeof(add_parameters), &access, 1); },
       {{p, bytes}});
}

void world::enqueue(int device, const part& p) {
  const hpeAccess access = access_to(p, HPE_INOUT);
  begin_operation();
  {
    const runtime_call counted;
    status_ = hpeEnqueueLocked(
        device, [](void* /*stream*/, void* /*argument*/) { return 0; }, nullptr, &access, 1);
  }
  message_ = hpeGetLastErrorMessage();
  if (status_ == HPE_ERROR_NOT_SUPPORTED) status_ = HPE_SUCCESS;  // soft devices cannot enqueue functions
  end_operation("hpeEnqueueLocked", {{p, model_of(p)}});
}

void world::synchronize() {
  call("hpeSynchronize", [] { return hpeSynchronize(); });
}

}  // namespace sweep
