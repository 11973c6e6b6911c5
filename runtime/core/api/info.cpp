// The C interface: devices, options, statistics, synchronisation.

#include <cstring>
#include <deque>
#include <string>
#include <vector>

#include "hpe/placement.h"
#include "runtime/core/api/api_guard.h"
#include "runtime/core/runtime.h"
#include "runtime/device/checks.h"

namespace hpe::core {

namespace {

thread_local int chosen_device = 0;
thread_local bool in_callback = false;

}  // namespace

inside_callback::inside_callback() noexcept { in_callback = true; }
inside_callback::~inside_callback() { in_callback = false; }

void require_no_callback() {
  HPE_REQUIRE(!in_callback, HPE_ERROR_INVALID_ARGUMENT,
              "the function that hpeEnqueueLocked calls may only queue work on its stream, but it has called a "
              "function of hpe");
}

int current_device() noexcept { return chosen_device; }

unsigned device_or_current(const runtime& it, int device) {
  if (device == HPE_CURRENT_DEVICE) device = chosen_device;
  device::require_device(it.devices(), device);
  return static_cast<unsigned>(device);
}

std::span<const hpeAccess> require_accesses(std::string_view work, const hpeAccess* accesses, std::size_t count) {
  HPE_REQUIRE(accesses != nullptr || count == 0, HPE_ERROR_INVALID_ARGUMENT,
              "{} with {} accesses, but their list is a null pointer", work, count);
  HPE_REQUIRE(count <= HPE_MAX_ACCESSES, HPE_ERROR_INVALID_ARGUMENT, "{} with {} accesses; at most {} are possible",
              work, count, HPE_MAX_ACCESSES);
  return {accesses, count};
}

}  // namespace hpe::core

using hpe::core::guarded;
using hpe::core::runtime;

int hpeVersion(void) { return HPE_VERSION; }

hpeStatus hpeInit(void) {
  return guarded([] { runtime::instance(); });
}

hpeStatus hpeGetDeviceCount(int* count) {
  return guarded([&] {
    HPE_REQUIRE(count != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetDeviceCount: the pointer for the count is null");
    *count = static_cast<int>(runtime::instance().devices().size());
  });
}

hpeStatus hpeGetDeviceInfo(int device, hpeDeviceInfo* info) {
  return guarded([&] {
    HPE_REQUIRE(info != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetDeviceInfo: the pointer for the answer is null");
    auto& devices = runtime::instance().devices();
    hpe::device::require_device(devices, device);
    hpe::device::device& it = devices.at(static_cast<unsigned>(device));
    hpeDeviceInfo result{};
    result.kind = it.info().kind;
    std::strncpy(result.name, it.info().name.c_str(), sizeof result.name - 1);
    const auto memory = it.memory();
    result.memory_total = memory.total;
    result.memory_free = memory.free;
    result.compute_units = it.info().compute_units;
    result.lost = it.lost() ? 1 : 0;
    for (unsigned d = 0; d < devices.size(); ++d)
      if (it.can_access(d)) result.peers |= std::uint64_t{1} << d;
    hpe::core::give_answer(info, result, "hpeGetDeviceInfo");
  });
}

hpeStatus hpeGetDeviceNumaNode(int device, int* node) {
  return guarded([&] {
    HPE_REQUIRE(node != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeGetDeviceNumaNode: the pointer for the answer is null");
    auto& devices = runtime::instance().devices();
    hpe::device::require_device(devices, device);
    *node = devices.at(static_cast<unsigned>(device)).info().numa_node;
  });
}

hpeStatus hpeSetDevice(int device) {
  return guarded([&] {
    hpe::device::require_device(runtime::instance().devices(), device);
    hpe::core::chosen_device = device;
  });
}

hpeStatus hpeGetDevice(int* device) {
  return guarded([&] {
    HPE_REQUIRE(device != nullptr, HPE_ERROR_INVALID_ARGUMENT, "hpeGetDevice: the pointer for the number is null");
    *device = hpe::core::chosen_device;
  });
}

hpeStatus hpeSynchronize(void) {
  return guarded([] { runtime::instance().synchronize(-1); });
}

hpeStatus hpeSynchronizeDevice(int device) {
  return guarded([&] {
    auto& it = runtime::instance();
    it.synchronize(static_cast<int>(hpe::core::device_or_current(it, device)));
  });
}

hpeStatus hpeWait(const void* pointer, size_t size) {
  return guarded([&] { runtime::instance().for_host_code().wait_for_users(pointer, size); });
}

hpeStatus hpeGetOptions(const hpeOptionInfo** options, size_t* count) {
  return guarded([&] {
    HPE_REQUIRE(options != nullptr && count != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeGetOptions: the pointer for the table or for its length is null");
    // The table is never destroyed, because the program may keep a pointer to it.
    static const auto& table = *new const std::vector<hpeOptionInfo>([] {
      std::vector<hpeOptionInfo> lines;
      static auto& sentences = *new std::deque<std::string>;
      for (const auto& line : hpe::describe_options()) {
        const std::string values =
            line.values.empty() ? "" : fmt::format(" Values: {}.", hpe::listed(line.values, "or"));
        sentences.push_back(line.sentence + values);
        lines.push_back({line.variable.c_str(), line.initial.c_str(), sentences.back().c_str()});
      }
      return lines;
    }());
    *options = table.data();
    *count = table.size();
  });
}

namespace {

// Calls visit(member of hpeStatistics, member of counters) for each pair of members that correspond.
template <class Visit>
void for_each_statistic(hpeStatistics& s, hpe::counters& c, Visit visit) {
  visit(s.faults_read, c.faults_read);
  visit(s.faults_write, c.faults_write);
  visit(s.bytes_to_device, c.bytes_to_device);
  visit(s.bytes_to_host, c.bytes_to_host);
  visit(s.bytes_peer, c.bytes_peer);
  visit(s.bytes_staged, c.bytes_staged);
  visit(s.blocks_prefetched, c.blocks_prefetched);
  visit(s.blocks_rolled, c.blocks_rolled);
  visit(s.launches, c.launches);
  visit(s.protections, c.protections);
  visit(s.migrations, c.migrations);
  visit(s.degraded, c.degraded);
  visit(s.bytes_evicted, c.bytes_evicted);
  visit(s.bytes_written_back, c.bytes_written_back);
  visit(s.bytes_brought_in, c.bytes_brought_in);
  visit(s.evicting_ns, c.evicting_ns);
  visit(s.bytes_given_back, c.bytes_given_back);
  visit(s.turn_wait_ns, c.turn_wait_ns);
  visit(s.bytes_spilled, c.bytes_spilled);
  visit(s.bytes_unspilled, c.bytes_unspilled);
}

}  // namespace

hpeStatus hpeGetStatistics(hpeStatistics* statistics) {
  return guarded([&] {
    HPE_REQUIRE(statistics != nullptr, HPE_ERROR_INVALID_ARGUMENT,
                "hpeGetStatistics: the pointer for the answer is null");
    hpeStatistics result{};
    for_each_statistic(result, runtime::instance().count(),
                       [](std::uint64_t& value, auto& counter) { value = counter.load(std::memory_order_relaxed); });
    hpe::core::give_answer(statistics, result, "hpeGetStatistics");
  });
}

hpeStatus hpeResetStatistics(void) {
  return guarded([] {
    hpeStatistics ignored{};
    for_each_statistic(ignored, runtime::instance().count(),
                       [](std::uint64_t&, auto& counter) { counter.store(0, std::memory_order_relaxed); });
  });
}
