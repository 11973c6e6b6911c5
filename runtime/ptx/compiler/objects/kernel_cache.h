#pragma once

/// Object code of kernels in files, kept between runs.

#include <llvm/Support/MemoryBuffer.h>

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/ptx/compiler/compiler.h"

namespace hpe::ptx {

/// The files of one program. Several processes may use one folder: a file appears complete and is never changed.
/// Never throws for a file or folder that cannot be used: such a kernel counts as absent, and the first reason is
/// logged at level info. For one thread.
class kernel_cache {
 public:
  using digest = std::array<std::uint8_t, 32>;

  /// inputs: everything that the code of a kernel depends on, except for the name by which find and store know it:
  /// that of the kernel, with its number of lanes.
  kernel_cache(kernel_store where, const std::vector<std::string_view>& inputs);

  /// Null if there is no file of this kernel, or it is damaged, or this user did not write it.
  [[nodiscard]] std::unique_ptr<llvm::MemoryBuffer> find(std::string_view kernel);
  /// Replaces the file of the kernel. Removes the files that were not used for longest where the folder becomes larger
  /// than it may.
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
  std::uint64_t before_shrinking_ = 0;  // bytes that may be written before shrink() is due
};

}  // namespace hpe::ptx
