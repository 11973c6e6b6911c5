#pragma once

/// The exports of a process, in a memory file that it shares with importing processes. With the file, an importing
/// process can check without a message whether a handle is still valid. The exporting process writes the file; the
/// importing processes read it.

#include <compare>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/os/virtual_memory.h"

namespace hpe::node {

/// Exported bytes: a part of a memory (an allocation) of the process. The number of a memory is never reused.
struct exported {
  std::uint64_t memory = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;

  friend auto operator<=>(const exported&, const exported&) = default;
};

struct export_page;  // the layout of the shared file

/// Thread-safe.
class export_table {
 public:
  export_table();

  /// Identifies one export by its entry and its token. Entries of the table are reused; tokens are never reused.
  struct key {
    std::uint32_t entry = 0;
    std::uint64_t token = 0;
  };
  /// Throws HPE_ERROR_OUT_OF_MEMORY if there are 65,536 exports.
  [[nodiscard]] key publish(const exported& what);
  /// Ends an export and returns its bytes; nullopt if it had ended before.
  std::optional<exported> end(const key& which) noexcept;
  /// Tells importers that a memory was freed, so that they drop their mappings of it.
  void retire(std::uint64_t memory);

  [[nodiscard]] std::optional<exported> find(const key& which) const;
  [[nodiscard]] int file() const noexcept { return file_.get(); }

 private:
  mutable mutex mutex_;
  os::file_descriptor file_;
  os::reservation memory_;
  export_page* page_;
  std::vector<std::uint32_t> unused_ HPE_GUARDED_BY(mutex_);  // capacity for all entries, so end() allocates nothing
  std::uint32_t used_ HPE_GUARDED_BY(mutex_) = 0;
};

/// The table of another process. Thread-safe.
class export_view {
 public:
  /// Throws HPE_ERROR_SYSTEM if the file is not a table of this build.
  explicit export_view(const os::file_descriptor& file);

  [[nodiscard]] std::optional<exported> find(const export_table::key& which) const;

  struct retirement {
    bool all = false;  ///< more memories were retired than the list can hold; any memory may be among them
    std::vector<std::uint64_t> memories;
  };
  /// Returns the memories that were retired since the last call.
  [[nodiscard]] retirement retired();

 private:
  os::reservation memory_;
  const export_page* page_;
  mutex mutex_;
  std::uint64_t seen_ HPE_GUARDED_BY(mutex_) = 0;
};

}  // namespace hpe::node
