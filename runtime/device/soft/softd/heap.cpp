#include "runtime/device/soft/softd/heap.h"

#include <algorithm>
#include <iterator>

namespace hpe::device::soft {

kernel_heap::kernel_heap(std::size_t bytes, std::uintptr_t place) : space_(place, bytes, os::page_size()) {
  const os::file_descriptor file = os::create_memory_file("hpe-heap", bytes);
  os::map_file(space_.data(), bytes, os::page_protection::read_write, file.get(), 0);
  free_.emplace(0, bytes);
}

void* kernel_heap::allocate(std::size_t bytes) {
  constexpr std::size_t alignment = 16;
  if (bytes == 0 || bytes > space_.size()) return nullptr;
  const std::size_t size = (bytes + alignment - 1) / alignment * alignment;
  const lock_guard lock(mutex_);
  const auto found = std::find_if(free_.begin(), free_.end(), [&](const auto& block) { return block.second >= size; });
  if (found == free_.end()) return nullptr;
  const auto [offset, available] = *found;
  free_.erase(found);
  if (available > size) free_.emplace(offset + size, available - size);
  in_use_.emplace(offset, size);
  return space_.data() + offset;
}

void kernel_heap::release(void* memory) {
  const auto offset = reinterpret_cast<std::uintptr_t>(memory) - reinterpret_cast<std::uintptr_t>(space_.data());
  const lock_guard lock(mutex_);
  const auto found = in_use_.find(offset);
  if (found == in_use_.end()) return;
  std::size_t begin = offset, size = found->second;
  in_use_.erase(found);
  const auto next = free_.lower_bound(begin);
  if (next != free_.begin()) {
    const auto before = std::prev(next);
    if (before->first + before->second == begin) {
      begin = before->first;
      size += before->second;
      free_.erase(before);
    }
  }
  if (next != free_.end() && next->first == begin + size) {
    size += next->second;
    free_.erase(next);
  }
  free_.emplace(begin, size);
}

}  // namespace hpe::device::soft
