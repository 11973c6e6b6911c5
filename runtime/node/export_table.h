#pragma once

/// What a process exports, in a memory file that it shows to those who ask, so that they see without a message whether
/// a handle still holds. The exporting process writes it, the others read.

#include <cstdint>
#include <mutex>
#include <optional>
#include <vector>

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

  struct place {
    std::uint32_t entry = 0;
    std::uint64_t token = 0;
  };
  /// Throws HPE_ERROR_OUT_OF_MEMORY when there are 65,536 exports.
  [[nodiscard]] place publish(const exported& what);
  /// What was exported there; empty if nothing is, with this token.
  std::optional<exported> end(const place& where);
  /// What ended: others drop what they keep of it.
  void retire(std::uint64_t memory);

  [[nodiscard]] std::optional<exported> find(const place& where) const;
  [[nodiscard]] int file() const noexcept { return file_.get(); }

 private:
  mutable std::mutex mutex_;
  os::file_descriptor file_;
  os::reservation memory_;
  export_page* page_;
  std::vector<std::uint32_t> unused_;
  std::uint32_t used_ = 0;
};

/// Another process's table. find may be called by any thread.
class export_view {
 public:
  /// Throws HPE_ERROR_SYSTEM for a file that is no table of this build.
  explicit export_view(const os::file_descriptor& file);

  [[nodiscard]] std::optional<exported> find(const export_table::place& where) const;

  struct retirement {
    bool all = false;  ///< too many to be told
    std::vector<std::uint64_t> memories;
  };
  /// What was retired since the last call. One thread at a time.
  [[nodiscard]] retirement retired();

 private:
  os::reservation memory_;
  const export_page* page_;
  std::uint64_t seen_ = 0;
};

}  // namespace hpe::node
