#include "interpose/cuda/calls/copy_kernels.h"

#include <algorithm>
#include <bit>
#include <string>

// What nvcc makes of copy_kernels.cu.
extern "C" const unsigned char hpe_copy_kernels_image[];

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::copied_rows;

namespace {

// From here on each row is a transfer that keeps a copy engine busy, and the program's kernels have the processors.
constexpr std::size_t wide = std::size_t{16} << 10;

constexpr unsigned threads = 256;
constexpr std::size_t most_blocks = 1024;
constexpr std::size_t most_units = std::size_t{1} << 31;

byte_places places(CUdeviceptr base, const copied_rows& shape, const copied_rows::distances& apart) {
  return {base, shape.rows > 1 ? apart.row : 0,    shape.planes > 1 ? apart.plane : 0, nullptr,
          0,    static_cast<unsigned>(shape.rows), static_cast<unsigned>(shape.width)};
}

// The bits in which any of these is not a multiple of a power of two.
std::size_t bits_of(const byte_places& side) { return side.base | side.row | side.plane | side.width; }

}  // namespace

copy_kernels::copy_kernels(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts)
    : cu_(cu), parts_(std::move(parts)) {
  const entered here(cu_, parts_->context());
  cu_.check(cu_.cuModuleLoadData(&module_, hpe_copy_kernels_image), "loading the kernels that copy rows");
  for (std::size_t n = 0; n < functions_.size(); ++n)
    cu_.check(cu_.cuModuleGetFunction(&functions_[n], module_, ("hpe_copy_units_" + std::to_string(n)).c_str()),
              "finding the kernels that copy rows");
}

copy_kernels::~copy_kernels() {
  const entered here(cu_, parts_->context());
  if (parts_->alive()) cu_.cuModuleUnload(module_);
}

bool copy_kernels::suit(const copied_rows& shape) noexcept {
  return !shape.is_one_run() && shape.width < wide && shape.bytes() < most_units;
}

CUresult copy_kernels::copy(CUdeviceptr to, CUdeviceptr from, const copied_rows& shape, CUstream stream) {
  return launch(places(to, shape, shape.to), places(from, shape, shape.from), shape.bytes(), stream);
}

CUresult copy_kernels::launch(byte_places to, byte_places from, std::size_t bytes, CUstream stream) {
  const auto n = std::min<std::size_t>(std::countr_zero(bits_of(to) | bits_of(from)), functions_.size() - 1);
  to.width >>= n;
  from.width >>= n;
  auto units = static_cast<unsigned>(bytes >> n);
  const auto blocks = static_cast<unsigned>(std::min((units + threads - 1) / std::size_t{threads}, most_blocks));
  void* parameters[] = {&to, &from, &units};
  return cu_.cuLaunchKernel(functions_[n], blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace hpe::cuda_hooks
