#pragma once

#include <memory>
#include <mutex>
#include <string>

#include "runtime/device/ptx_module.h"
#include "runtime/os/file_descriptor.h"
#include "runtime/ptx/compiler.h"
#include "runtime/ptx/image.h"

namespace hpe::device::soft {

/// A module of PTX in a device process: parsed when its first kernel is launched. Any thread.
class softd_ptx_module {
 public:
  /// texts: as pack_texts made it. parts: where its variables are.
  softd_ptx_module(os::file_descriptor texts, std::size_t bytes, const ptx_addresses& parts, bool interpret);

  /// Throws HPE_ERROR_NOT_FOUND.
  [[nodiscard]] const ptx::function& find(const std::string& kernel);
  /// After find.
  [[nodiscard]] const ptx::image& image() const { return *image_; }
  /// Runs blocks of a kernel in one thread. Compiles it when it is first asked for. After find.
  [[nodiscard]] std::shared_ptr<ptx::engine> engine_for(const ptx::function& kernel);

 private:
  void prepare();

  os::file_descriptor texts_;
  std::size_t bytes_;
  ptx_addresses parts_;
  bool interpret_;
  std::once_flag prepared_;
  std::unique_ptr<ptx::image> image_;
  std::unique_ptr<ptx::compiled_image> compiled_;  // null: interpreted
};

}  // namespace hpe::device::soft
