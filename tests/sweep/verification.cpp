// Compares the memory of a world with its model: as CPU code reads it, and as kernels on each home read it.

#include <algorithm>
#include <cstring>
#include <optional>
#include <utility>

#include "tests/sweep/injection.h"
#include "tests/sweep/kernels.h"
#include "tests/sweep/touch.h"
#include "tests/sweep/world.h"

namespace sweep {

namespace {

bool is_lost(int device) {
  hpeDeviceInfo info{};
  return hpeGetDeviceInfo(device, &info) != HPE_SUCCESS || info.lost != 0;
}

std::size_t blocks_of(const memory& m) { return (m.bytes + model_block - 1) / model_block; }

}  // namespace

world::view world::host_view(const memory& m) {
  view result{std::vector<std::uint8_t>(m.bytes), std::vector<bool>(blocks_of(m), true)};
  for (std::size_t b = 0; b < result.readable.size(); ++b) {
    const std::size_t at = b * model_block;
    const std::size_t bytes = std::min(model_block, m.bytes - at);
    const auto readable = [&] { return touch(result.bytes.data() + at, m.data + at, bytes); };
    // If a prefetch failed late, the first reader gets the failure, so the test reads again.
    result.readable[b] = readable() || (injected().armed_for() == failure::late && readable());
  }
  return result;
}

world::view world::device_view(const memory& m) {
  view result{std::vector<std::uint8_t>(m.bytes), std::vector<bool>(blocks_of(m), true)};
  for (std::size_t at = 0; at < m.bytes;) {
    hpePointerInfo info{};
    (void)hpeGetPointerInfo(m.data + at, &info);
    int home = info.device;
    for (int d = 0; home < 0 && d < static_cast<int>(devices_); ++d)
      if (!is_lost(d)) home = d;  // host memory
    const std::size_t in_granule = granule - reinterpret_cast<std::uintptr_t>(m.data + at) % granule;
    const std::size_t bytes = std::min({m.bytes - at, in_granule, probe_bytes});
    bool readable = home >= 0 && !is_lost(home);
    if (readable) {
      std::uint8_t* const probe = probes_[static_cast<std::size_t>(home)];
      const copy_parameters parameters{probe, m.data + at, bytes};
      const hpeAccess accesses[] = {{m.data + at, bytes, HPE_IN}, {probe, bytes, HPE_OUT}};
      constexpr hpeShape shape{{1, 1, 1}, {1, 1, 1}};
      const auto copy = [&] {
        return hpeLaunch(home, copy_bytes_, &shape, &parameters, sizeof parameters, accesses, 2) == HPE_SUCCESS &&
               hpeMemcpy(result.bytes.data() + at, probe, bytes) == HPE_SUCCESS;
      };
      // If the copy of evicted bytes to the host failed late, the first work that needs the room gets the failure.
      readable = copy() || (injected().armed_for() == failure::late && copy());
      if (!readable && !is_lost(home))
        report_(std::string("device ") + std::to_string(home) + " cannot read " + std::to_string(bytes) +
                " bytes: " + hpeGetLastErrorMessage());
    }
    for (std::size_t b = at / model_block; b * model_block < at + bytes; ++b)
      result.readable[b] = result.readable[b] && readable;
    at += bytes;
  }
  return result;
}

bool world::may_be_gone(const memory& m, std::size_t block) const {
  hpePointerInfo info{};
  const std::size_t at = block * model_block;
  if (hpeGetPointerInfo(m.data + at, &info) != HPE_SUCCESS || info.device < 0 || !is_lost(info.device)) return false;
  // The bytes may be lost if the host had no copy, or if the latest operation succeeded: its results may have been only
  // on the device.
  if (m.host_valid.size() <= block || !m.host_valid[block] || succeeded()) return true;
  const accepted_work work = accepted();
  const auto begin = reinterpret_cast<std::uintptr_t>(m.data + at);
  const bool written = std::any_of(work.writes.begin(), work.writes.end(), [&](const device_write& w) {
    return w.begin < begin + model_block && begin < w.end;
  });
  return written || !work.launches.empty();
}

void world::compare(memory& m, const view& host, const view& devices) {
  std::size_t wrong = 0;
  std::string first;
  const auto note = [&](std::size_t at, const std::string& what) {
    if (wrong++ == 0) first = "byte " + std::to_string(at) + " of " + std::to_string(m.bytes) + ": " + what;
  };
  for (std::size_t b = 0; b < blocks_of(m); ++b) {
    if (!host.readable[b] && !may_be_gone(m, b)) note(b * model_block, "the host cannot read it");
    const std::size_t begin = b * model_block;
    const std::size_t end = std::min(m.bytes, begin + model_block);
    if (host.readable[b] && devices.readable[b] && std::memcmp(&host.bytes[begin], &m.model[begin], end - begin) == 0 &&
        std::memcmp(&devices.bytes[begin], &m.model[begin], end - begin) == 0) {
      std::fill_n(m.known.begin() + static_cast<std::ptrdiff_t>(begin), end - begin, knowledge::exact);
      continue;
    }
    for (std::size_t i = begin; i < end; ++i) {
      std::optional<std::uint8_t> value;
      if (host.readable[b]) value = host.bytes[i];
      if (devices.readable[b]) {
        if (value && *value != devices.bytes[i] && m.known[i] != knowledge::anything)
          note(i, "the host reads " + std::to_string(*value) + ", the device " + std::to_string(devices.bytes[i]) +
                      " (before: " + std::to_string(m.model[i]) + ", after: " + std::to_string(m.other[i]) + ")");
        if (!value) value = devices.bytes[i];
      }
      if (!value) continue;
      const bool right = *value == m.model[i] || (m.known[i] == knowledge::either && *value == m.other[i]) ||
                         m.known[i] == knowledge::unknown || m.known[i] == knowledge::anything;
      if (!right)
        note(i, "it is " + std::to_string(*value) + " instead of " + std::to_string(m.model[i]) +
                    (m.known[i] == knowledge::either ? " or " + std::to_string(m.other[i]) : ""));
      m.model[i] = *value;
      m.known[i] = knowledge::exact;
    }
  }
  if (wrong == 0 || std::exchange(m.told, true)) return;
  report_(operation_ + (succeeded() ? "" : ", which failed") + ": " + first + "; " + std::to_string(wrong) +
          " bytes in all");
}

void world::verify() {
  const test_code here;
  for (auto& m : all_) {
    view host;
    view devices;
    if (first_ == order::host_first) {
      host = host_view(*m);
      devices = device_view(*m);
    } else {
      devices = device_view(*m);
      host = host_view(*m);
    }
    compare(*m, host, devices);
  }
}

}  // namespace sweep
