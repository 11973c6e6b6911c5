#include "runtime/device/cuda/cuda_ptx_module.h"

#include "runtime/base/error.h"
#include "runtime/device/cuda/cuda_set.h"
#include "runtime/device/ptx/description.h"
#include "runtime/ptx/text/parser.h"

namespace hpe::device::cuda {

cuda_ptx_module::cuda_ptx_module(cuda_set& set, std::vector<std::string> texts) : set_(set) {
  HPE_REQUIRE(texts.size() == 1, HPE_ERROR_NOT_SUPPORTED,
              "a module of PTX has {} texts; on GPUs hpe takes one, and leaves linking to the CUDA driver",
              texts.size());
  program_ = ptx::parse(std::move(texts));
  kernels_ = describe_kernels(*program_);
  id_ = set_.load_ptx(program_->texts.front());
}

cuda_ptx_module::~cuda_ptx_module() { set_.kernels().unload(id_); }

}  // namespace hpe::device::cuda
