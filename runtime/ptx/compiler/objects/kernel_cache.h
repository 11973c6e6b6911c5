#pragma once

/// Files that store the object code of kernels for later runs.

#include <llvm/Support/MemoryBuffer.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/compiler/compiler.h"

namespace hpe::ptx {

/// The stored kernels of one program. Several processes may use one folder, because a file appears in the folder only
/// when it is complete, and never changes. The functions never throw because of a file or the folder: in case of an
/// error, find() returns null, and the cache logs the first error at level info. Only one thread at a time may use an
/// object.
class kernel_cache {
 public:
  using digest = std::array<std::uint8_t, 32>;

  /// `inputs`: everything on which the code of a kernel depends, except for the argument of find() and store(). That
  /// argument consists of the kernel's name and its number of lanes.
  kernel_cache(kernel_store where, const std::vector<std::string_view>& inputs);

  /// Returns the object code of a kernel; null if the kernel has no file, if the file is damaged, or if another user
  /// wrote it or may write to it.
  [[nodiscard]] std::unique_ptr<llvm::MemoryBuffer> find(std::string_view kernel);
  /// Replaces the file of the kernel. At the first call, and each time after calls have written 1/16 of the folder's
  /// limit, also removes the least recently used files if the folder exceeds the limit.
  void store(std::string_view kernel, llvm::MemoryBufferRef object);

 private:
  [[nodiscard]] digest key_of(std::string_view kernel) const;
  [[nodiscard]] std::string file_of(const digest& key) const;
  bool prepare_folder();
  void shrink() const;
  void give_up(std::string_view why);

  kernel_store where_;
  digest inputs_{};
  bool is_ready_ = false;               // whether the folder exists and only this user may write to it
  std::uint64_t before_shrinking_ = 0;  // the number of bytes that store() may write before it calls shrink() again
};

}  // namespace hpe::ptx
