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
/// when it is complete, and never changes. If a file or the folder cannot be used, nothing is thrown: find() returns
/// null, and the first reason is logged at level info. For one thread.
class kernel_cache {
 public:
  using digest = std::array<std::uint8_t, 32>;

  /// `inputs`: everything on which the code of a kernel depends, except for the argument of find and store, which
  /// consists of the kernel's name and its number of lanes.
  kernel_cache(kernel_store where, const std::vector<std::string_view>& inputs);

  /// Returns the object code of a kernel. Null if the kernel has no file, or if the file is damaged or this user did
  /// not write it.
  [[nodiscard]] std::unique_ptr<llvm::MemoryBuffer> find(std::string_view kernel);
  /// Replaces the file of the kernel. If the folder then exceeds its limit, removes the least recently used files.
  void store(std::string_view kernel, llvm::MemoryBufferRef object);

 private:
  [[nodiscard]] digest key_of(std::string_view kernel) const;
  [[nodiscard]] std::string file_of(const digest& key) const;
  bool prepare_folder();
  void shrink() const;
  void give_up(std::string_view why);

  kernel_store where_;
  digest inputs_{};
  bool is_ready_ = false;               // the folder exists, and only this user may write in it
  std::uint64_t before_shrinking_ = 0;  // how many bytes may be written before shrink() is called again
};

}  // namespace hpe::ptx
