#pragma once

#include "runtime/device/soft/shared/ptx_layout.h"
#include "runtime/os/file_descriptor.h"

namespace hpe::device::soft {

class soft_set;

/// A module of PTX in the owner, the process that runs the program. The owner parses the texts to describe the kernels
/// and to find errors, and sends the texts to the device processes. Each device process parses the texts when it first
/// launches a kernel of the module.
class soft_ptx_module final : public device_ptx_module {
 public:
  soft_ptx_module(soft_set& set, std::vector<std::string> texts, ptx_recording reads);
  ~soft_ptx_module() override;

  [[nodiscard]] std::uint32_t id() const noexcept override { return id_; }
  [[nodiscard]] const std::vector<ptx_kernel>& kernels() const noexcept override { return kernels_; }
  [[nodiscard]] const std::vector<ptx_variable>& variables() const noexcept override { return variables_; }
  [[nodiscard]] std::uint32_t architecture() const noexcept override { return program_->architecture; }
  [[nodiscard]] std::size_t bytes_of(ptx_part part) const noexcept override;
  [[nodiscard]] std::shared_ptr<const ptx::program> program() const noexcept override { return program_; }
  std::vector<ptx_contents> place(unsigned device, const ptx_addresses& parts) override;

 private:
  [[nodiscard]] std::vector<ptx_contents> contents(const ptx_addresses& parts) const;

  soft_set& set_;
  std::shared_ptr<const ptx::program> program_;
  ptx_layout layout_;
  std::vector<ptx_kernel> kernels_;
  std::vector<ptx_variable> variables_;
  os::file_descriptor texts_;
  std::size_t text_bytes_ = 0;
  ptx_recording recording_;
  std::uint32_t id_ = 0;
};

}  // namespace hpe::device::soft
