#include "runtime/device/cuda/cuda_ptx_module.h"

#include "runtime/device/cuda/cuda_set.h"
#include "runtime/device/ptx/description.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::device::cuda {

cuda_ptx_module::cuda_ptx_module(cuda_set& set, std::vector<std::string> texts) : set_(set) {
  program_ = ptx::parse(std::move(texts), ptx::warp_order::independent, ptx::unknown_code::left_out);
  kernels_ = describe_kernels(*program_);
  id_ = set_.load_ptx(program_->texts);
}

cuda_ptx_module::~cuda_ptx_module() { set_.kernels().unload(id_); }

}  // namespace hpe::device::cuda
