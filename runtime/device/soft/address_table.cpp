#include "runtime/device/soft/address_table.h"

#include <iterator>
#include <mutex>

#include "runtime/base/error.h"

namespace hpe::device::soft {

namespace {

std::string in_words(int device) {
  if (device == host_location) return "registered host memory";
  if (device == foreign_location) return "memory of another process";
  return fmt::format("memory of device {}", device);
}

}  // namespace

address_table::ranges::const_iterator address_table::containing(std::uintptr_t address) const {
  auto after = ranges_.upper_bound(address);
  if (after == ranges_.begin()) return ranges_.end();
  const auto found = std::prev(after);
  return address < found->second.end ? found : ranges_.end();
}

void address_table::insert(std::uintptr_t begin, std::size_t bytes, backing what) {
  const std::unique_lock lock(mutex_);
  std::uintptr_t end = begin + bytes;
  HPE_REQUIRE(bytes != 0 && end > begin, HPE_ERROR_INVALID_ARGUMENT, "{} bytes at {:#x} are no range of addresses",
              bytes, begin);
  auto next = ranges_.lower_bound(begin);
  HPE_REQUIRE(containing(begin) == ranges_.end() && (next == ranges_.end() || next->first >= end),
              HPE_ERROR_INVALID_ARGUMENT, "a part of the {} bytes at {:#x} is backed or registered already", bytes,
              begin);

  // Neighbours of one backing become one range.
  if (next != ranges_.end() && next->first == end && next->second.what == what) {
    end = next->second.end;
    next = ranges_.erase(next);
  }
  if (next != ranges_.begin()) {
    auto& before = std::prev(next)->second;
    if (before.end == begin && before.what == what) {
      before.end = end;
      return;
    }
  }
  ranges_.emplace_hint(next, begin, range{end, what});
}

void address_table::split(std::uintptr_t address) {
  const auto found = containing(address);
  if (found == ranges_.end() || found->first == address) return;
  const range tail = found->second;
  ranges_.at(found->first).end = address;
  ranges_.emplace(address, tail);
}

void address_table::erase(std::uintptr_t begin, std::size_t bytes, int device) {
  const std::unique_lock lock(mutex_);
  const std::uintptr_t end = begin + bytes;
  for (std::uintptr_t at = begin; at < end;) {
    const auto found = containing(at);
    HPE_REQUIRE(found != ranges_.end() && found->second.what.device == device, HPE_ERROR_INVALID_ARGUMENT,
                "not all of the {} bytes at {:#x} are {}", bytes, begin, in_words(device));
    at = found->second.end;
  }
  split(begin);
  split(end);
  ranges_.erase(ranges_.lower_bound(begin), ranges_.lower_bound(end));
}

std::optional<address_table::piece> address_table::find(std::uintptr_t address) const {
  const std::shared_lock lock(mutex_);
  const auto found = containing(address);
  if (found == ranges_.end()) return std::nullopt;
  return piece{found->second.what, found->second.end};
}

}  // namespace hpe::device::soft
