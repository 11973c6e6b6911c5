#pragma once

/// The address space of a device process. The UVAS is mapped at the owner's addresses. Only the parts that this device
/// can access are backed by memory, so a stray access faults. The room below an allocation is an exception: it is
/// backed by separate memory, because a kernel on a GPU that reads a few bytes below its array finds other memory of
/// the driver there. Registered host memory is mapped wherever it fits.

#include <map>
#include <set>
#include <unordered_set>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/device/device.h"
#include "runtime/device/soft/shared/address_table.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::device::soft {

/// Fills this process's page tables before large writes, once for each part of its memory. Filling them in one call
/// costs half as much as page faults do. The class remembers which tables are filled, because a look-up costs less than
/// an unnecessary system call.
class page_tables {
 public:
  /// Prepares [address, address + bytes) for the write that the caller is about to make. Thread-safe.
  void prepare(void* address, std::size_t bytes);

  /// Call this when the range is unmapped or mapped again.
  void forget(const void* address, std::size_t bytes);

 private:
  static constexpr std::size_t unit = std::size_t{64} << 10;
  static constexpr std::size_t worth_huge_pages = std::size_t{4} << 20;

  [[nodiscard]] bool filled(std::uintptr_t number) const;

  mutable shared_mutex mutex_;
  std::unordered_set<std::uintptr_t> filled_ HPE_GUARDED_BY(mutex_);  // numbers of units whose page tables are filled
};

class address_space {
 public:
  /// Reserves the address space. Call this first in the process, before anything else can be mapped there. Throws
  /// HPE_ERROR_INITIALIZATION.
  explicit address_space(const uvas_layout& layout);

  void set_files(std::vector<os::file_descriptor> files) { files_ = std::move(files); }

  // These functions serve requests of the owner, which sends one request at a time.
  void map(unsigned device, std::uintptr_t address, std::size_t bytes);
  void unmap(unsigned device, std::uintptr_t address, std::size_t bytes);
  void register_host(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset);
  void unregister_host(std::uintptr_t address, std::size_t bytes);
  void import_memory(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset);
  void drop_import(std::uintptr_t address, std::size_t bytes);

  /// Returns the memory that backs an address of the program. Thread-safe.
  [[nodiscard]] std::optional<address_table::piece> find(std::uintptr_t address) const { return table_.find(address); }
  /// Whether kernels may access these bytes. Thread-safe.
  [[nodiscard]] bool holds(std::uintptr_t address, std::size_t bytes) const;
  /// Prepares addresses of this process for the write that the caller is about to make. Thread-safe.
  void prepare_for_writing(void* local, std::size_t bytes) { pages_.prepare(local, bytes); }

  [[nodiscard]] bool contains(std::uintptr_t address) const noexcept {
    return layout_.contains(reinterpret_cast<const void*>(address));
  }

 private:
  void make_room_below(std::uintptr_t address);
  void take_room(std::uintptr_t begin, std::uintptr_t end);
  void take_away(std::uintptr_t address, std::size_t bytes);

  uvas_layout layout_;
  os::reservation space_;
  std::vector<os::file_descriptor> files_;                // by device
  std::map<std::uintptr_t, os::reservation> registered_;  // ranges outside the UVAS, by the program's address
  address_table table_;
  page_tables pages_;
  mutable shared_mutex mutex_;
  std::set<std::uintptr_t> rooms_ HPE_GUARDED_BY(mutex_);  // the end of each room, where an allocation begins
};

}  // namespace hpe::device::soft
