#include "interpose/cuda/calls/copy_kernels.h"

#include <algorithm>
#include <bit>
#include <string>

// The image that nvcc compiles from copy_kernels.cu.
extern "C" const unsigned char hpe_copy_kernels_image[];

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::copied_rows;

namespace {

// Rows of this width or more keep a copy engine busy, and the multiprocessors stay free for the program's kernels.
constexpr std::size_t wide = std::size_t{16} << 10;

constexpr unsigned threads = 256;
constexpr unsigned enough_blocks = 512;  // to keep any GPU busy
constexpr unsigned most_blocks = 2048;
constexpr unsigned most_in_a_thread = 16;

byte_places rows_at(CUdeviceptr base, const copied_rows& shape, const copied_rows::distances& apart) {
  return {base, shape.rows > 1 ? apart.row : 0, shape.planes > 1 ? apart.plane : 0, static_cast<unsigned>(shape.rows),
          static_cast<unsigned>(shape.width)};
}

// The lowest set bit is the largest power of two that divides all four values.
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
  return !shape.is_one_run() && shape.width < wide && shape.bytes() < most_bytes;
}

CUresult copy_kernels::copy(CUdeviceptr to, CUdeviceptr from, const copied_rows& shape, CUstream stream) {
  return launch(rows_at(to, shape, shape.to), rows_at(from, shape, shape.from), shape.bytes(), stream);
}

CUresult copy_kernels::launch(byte_places to, byte_places from, std::size_t bytes, CUstream stream) {
  const std::size_t all = bits_of(to) | bits_of(from);
  const auto n = std::min<std::size_t>(static_cast<std::size_t>(std::countr_zero(all)), functions_.size() - 1);
  to.width >>= n;
  from.width >>= n;
  auto units = static_cast<unsigned>(bytes >> n);
  auto in_a_thread = std::clamp(units / (threads * enough_blocks), 1U, most_in_a_thread);
  const unsigned tile = threads * in_a_thread;
  const unsigned blocks = std::min((units + tile - 1) / tile, most_blocks);
  void* parameters[] = {&to, &from, &units, &in_a_thread};
  return cu_.cuLaunchKernel(functions_[n], blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

}  // namespace hpe::cuda_hooks
