#pragma once

/// What the CUDA runtime tells the checker of memory: allocations, and accesses of launches, copies and memsets. All
/// functions do nothing if the program is not checked.

#include <cstddef>
#include <memory>
#include <vector>

#include "hpe/node.h"
#include "interpose/soft/cudart/memory/memory_table.h"
#include "interpose/soft/cudart/stream/checked_work.h"
#include "runtime/base/box.h"

namespace hpe::cudart {

class kernel;

/// The number of bytes that an allocation has behind its end, so that accesses behind the end touch no other
/// allocation.
[[nodiscard]] std::size_t bytes_behind_allocations() noexcept;
/// Fills memory that the program allocates with a value by which the checker recognises bytes that nothing has written.
/// Returns false if the memory is too large to fill.
bool fill_with_fresh_value(void* base, std::size_t bytes);
/// Frees memory of cudaMalloc that no work uses. If the program is checked, the memory remains until much other memory
/// has been freed, so that kernels that use it do not fault, and their accesses are recorded.
[[nodiscard]] hpeStatus free_device_memory(void* base, std::size_t bytes);
[[nodiscard]] bool is_kept_memory(const void* base);
/// Frees the memory that free_device_memory() has kept.
void free_kept_memory();
[[nodiscard]] bool is_fresh_memory(std::uint64_t begin, std::uint64_t end);

void tell_added(const cudart_allocation& made);
void tell_removed(const cudart_allocation& gone);
/// Other processes can use an allocation of this process, or the allocation is memory of another process.
void tell_shared(const cudart_allocation& memory, const hpeExport& handle);
void tell_copy(const char* to, const char* from, const box_copy& shape,
               const std::shared_ptr<const check::call_place>& place);
void tell_set(const char* to, const box& shape, const std::shared_ptr<const check::call_place>& place);

/// Exists while a launch runs on a device. The constructor waits for other launches on the device (hpeRecordLaunches);
/// the destructor adds the accesses of the launch.
class checked_launch {
 public:
  checked_launch(kernel& what, int device, const std::vector<std::byte>& arguments,
                 const std::shared_ptr<const check::call_place>& place);
  ~checked_launch();
  checked_launch(const checked_launch&) = delete;
  checked_launch& operator=(const checked_launch&) = delete;

 private:
  check::operation_ptr what_;
  std::vector<std::uint64_t> fresh_;  // checker::find_fresh()
  int device_;
  bool writes_unrecorded_ = false;
};

}  // namespace hpe::cudart
