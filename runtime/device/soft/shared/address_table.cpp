#include "runtime/device/soft/shared/address_table.h"

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

void address_table::insert(std::uintptr_t begin, std::size_t bytes, location where) {
  const lock_guard lock(mutex_);
  const std::uintptr_t end = begin + bytes;
  HPE_REQUIRE(bytes != 0 && end > begin, HPE_ERROR_INVALID_ARGUMENT, "{} bytes at {:#x} are no range of addresses",
              bytes, begin);
  HPE_REQUIRE(!ranges_.overlaps(begin, end), HPE_ERROR_INVALID_ARGUMENT,
              "a part of the {} bytes at {:#x} is backed or registered already", bytes, begin);
  ranges_.insert(begin, end, where);
}

std::size_t address_table::erase(std::uintptr_t begin, std::size_t bytes, int device) {
  const lock_guard lock(mutex_);
  const std::uintptr_t end = begin + bytes;
  std::size_t found = 0, of_device = 0;
  ranges_.for_each(begin, end, [&](std::uintptr_t from, std::uintptr_t to, const location& where) {
    if (where.device == device) found += to - from;
    if (!where.zero_copy) of_device += to - from;
  });
  HPE_REQUIRE(found == bytes, HPE_ERROR_INVALID_ARGUMENT, "not all of the {} bytes at {:#x} are {}", bytes, begin,
              in_words(device));
  ranges_.erase(begin, end);
  return of_device;
}

void address_table::set_zero_copy(std::uintptr_t begin, std::size_t bytes, int device, bool zero_copy) {
  const lock_guard lock(mutex_);
  const auto found = ranges_.find(begin);
  HPE_REQUIRE(found != ranges_.end() && found->first == begin && found->second.end == begin + bytes &&
                  found->second.value.device == device,
              HPE_ERROR_INVALID_ARGUMENT, "the {} bytes at {:#x} are not a whole range of {}", bytes, begin,
              in_words(device));
  found->second.value.zero_copy = zero_copy;
}

std::optional<address_table::backed_range> address_table::find(std::uintptr_t address) const {
  const shared_lock_guard lock(mutex_);
  const auto found = ranges_.find(address);
  if (found == ranges_.end()) return std::nullopt;
  return backed_range{found->second.value, found->second.end};
}

}  // namespace hpe::device::soft
