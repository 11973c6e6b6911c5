#pragma once

/// The address space of a device process. The UVAS has the same addresses as in the owner (the process that runs the
/// program). Only ranges that this device can access are backed by memory, so an access to any other address faults.
/// There is one exception: the 64 KiB directly below an allocation (the allocation's room) are backed by separate
/// memory, because a kernel that reads a few bytes below its array does not fault on a GPU, where the driver has mapped
/// other memory. Registered host memory outside the UVAS is mapped at other addresses than in the owner.

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

/// Fills this process's page tables before large writes, once for each unit of 64 KiB. One system call for many pages
/// takes half as long as the page faults would. The class records which units are filled, because a look-up takes less
/// time than an unnecessary system call.
class page_tables {
 public:
  /// Fills the page tables for [address, address + bytes), which the caller is about to write. Thread-safe.
  void prepare(void* address, std::size_t bytes);

  /// Forgets that the page tables of this range are filled. Call this when the range is unmapped or mapped again.
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
  /// Reserves the UVAS in this process. Call this before anything else can be mapped there. Throws
  /// HPE_ERROR_INITIALIZATION if another mapping uses these addresses.
  explicit address_space(const uvas_layout& layout);
  /// Whether no other mapping uses the addresses that the constructor would reserve.
  [[nodiscard]] static bool is_free(const uvas_layout& layout);

  void set_files(std::vector<os::file_descriptor> files) { files_ = std::move(files); }

  // The next six functions carry out the owner's requests of the same names. The owner sends one request at a time.
  void map(unsigned device, std::uintptr_t address, std::size_t bytes, bool zero_copy = false);
  /// Sets whether a mapped range counts as zero-copy memory. Its bytes stay the same.
  void set_zero_copy(unsigned device, std::uintptr_t address, std::size_t bytes, bool zero_copy) {
    table_.set_zero_copy(address, bytes, static_cast<int>(device), zero_copy);
  }
  void unmap(unsigned device, std::uintptr_t address, std::size_t bytes);
  void register_host(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset);
  void unregister_host(std::uintptr_t address, std::size_t bytes);
  void import_memory(std::uintptr_t address, std::size_t bytes, int file, std::int64_t offset);
  void drop_import(std::uintptr_t address, std::size_t bytes);

  /// Returns the memory that backs an address of the program; nullopt if no memory backs it. Thread-safe.
  [[nodiscard]] std::optional<address_table::backed_range> find(std::uintptr_t address) const {
    return table_.find(address);
  }
  /// Whether kernels may access these bytes. Thread-safe.
  [[nodiscard]] bool holds(std::uintptr_t address, std::size_t bytes) const;
  /// Fills the page tables for addresses of this process that the caller is about to write. Thread-safe.
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
  std::vector<os::file_descriptor> files_;  // by device
  // This process's mappings of registered ranges outside the UVAS, by the program's address.
  std::map<std::uintptr_t, os::reservation> registered_;
  address_table table_;
  page_tables pages_;
  mutable shared_mutex mutex_;
  // The end of each room, which is the address at which an allocation begins.
  std::set<std::uintptr_t> rooms_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::device::soft
