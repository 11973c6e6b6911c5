#pragma once

#include "runtime/device/device_ptx_module.h"
#include "runtime/ptx/program/ptx_program.h"

namespace hpe::device::cuda {

class cuda_set;

/// A module of PTX, which the driver compiles and links for each GPU. The driver allocates the module's variables, so
/// hpe allocates no memory for them: bytes_of() is 0 and variables() is empty.
class cuda_ptx_module final : public device_ptx_module {
 public:
  /// Throws the errors of ptx::parse, and HPE_ERROR_NOT_FOUND if the driver cannot load the texts.
  cuda_ptx_module(cuda_set& set, std::vector<std::string> texts);
  ~cuda_ptx_module() override;

  [[nodiscard]] std::uint32_t id() const noexcept override { return id_; }
  [[nodiscard]] const std::vector<ptx_kernel>& kernels() const noexcept override { return kernels_; }
  [[nodiscard]] const std::vector<ptx_variable>& variables() const noexcept override { return variables_; }
  [[nodiscard]] std::uint32_t architecture() const noexcept override { return program_->architecture; }
  [[nodiscard]] std::size_t bytes_of(ptx_part /*part*/) const noexcept override { return 0; }
  [[nodiscard]] std::shared_ptr<const ptx::program> program() const noexcept override { return program_; }
  std::vector<ptx_contents> place(unsigned /*device*/, const ptx_addresses& /*parts*/) override { return {}; }

 private:
  cuda_set& set_;
  std::shared_ptr<const ptx::program> program_;
  std::vector<ptx_kernel> kernels_;
  const std::vector<ptx_variable> variables_;
  std::uint32_t id_ = 0;
};

}  // namespace hpe::device::cuda
