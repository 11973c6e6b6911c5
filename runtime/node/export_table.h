#pragma once

/// What a process exports, in a memory file that it shows to those who ask, so that they see without a message whether
/// a handle still holds. The exporting process writes it, the others read.

#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::node {

/// Exported bytes: a part of a memory (an allocation) of the process. Numbers of memories are never used again.
struct exported {
  std::uint64_t memory = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend bool operator==(const exported&, const exported&) = default;
};

struct export_page;  // the shared form

/// Any thread.
class export_table {
 public:
  export_table();

  /// Names one export: an entry is used again, a token never.
  struct key {
    std::uint32_t entry = 0;
    std::uint64_t token = 0;
  };
  /// Throws HPE_ERROR_OUT_OF_MEMORY when there are 65,536 exports.
  [[nodiscard]] key publish(const exported& what);
  /// Returns the bytes that were exported; empty if the export ended before.
  std::optional<exported> end(const key& which) noexcept;
  /// The memory is given back: importers drop their mappings of it.
  void retire(std::uint64_t memory);

  [[nodiscard]] std::optional<exported> find(const key& which) const;
  [[nodiscard]] int file() const noexcept { return file_.get(); }

 private:
  mutable mutex mutex_;
  os::file_descriptor file_;
  os::reservation memory_;
  export_page* page_;
  std::vector<std::uint32_t> unused_ HPE_GUARDED_BY(mutex_);  // with room for all that were ever used
  std::uint32_t used_ HPE_GUARDED_BY(mutex_) = 0;
};

/// Another process's table. Any thread.
class export_view {
 public:
  /// Throws HPE_ERROR_SYSTEM for a file that is no table of this build.
  explicit export_view(const os::file_descriptor& file);

  [[nodiscard]] std::optional<exported> find(const export_table::key& which) const;

  struct retirement {
    bool all = false;  ///< too many to be told
    std::vector<std::uint64_t> memories;
  };
  /// What was retired since the last call.
  [[nodiscard]] retirement retired();

 private:
  os::reservation memory_;
  const export_page* page_;
  mutex mutex_;
  std::uint64_t seen_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::node
