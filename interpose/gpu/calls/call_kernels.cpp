#include "interpose/gpu/calls/call_kernels.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <new>
#include <string>

// The image of hpe's kernels, which nvcc compiles from copy_kernels.cu and reduce_kernels.cu.
extern "C" const unsigned char hpe_call_kernels_image[];

namespace hpe::cuda_hooks {

using device::cuda::entered;
using interpose::scattered_bytes;

namespace {

// A copy engine copies rows of at least this number of bytes: with such rows, it reaches its full rate, and the
// multiprocessors stay free for the program's kernels.
constexpr std::size_t wide = std::size_t{16} << 10;

constexpr unsigned threads = 256;
constexpr unsigned enough_blocks = 512;  // this number of thread blocks keeps any GPU busy
constexpr unsigned most_blocks = 2048;
constexpr unsigned most_in_a_thread = 16;
constexpr unsigned any_number = 1U << 31;

byte_places rows_at(CUdeviceptr base, const box& shape) {
  const auto& [extent, apart] = shape;
  return {base, extent.rows > 1 ? apart.row : 0,    extent.planes > 1 ? apart.plane : 0, nullptr,
          0,    static_cast<unsigned>(extent.rows), static_cast<unsigned>(extent.width)};
}

byte_places contiguous_at(CUdeviceptr base, std::size_t bytes) {
  return {base, 0, 0, nullptr, 0, 1, static_cast<unsigned>(bytes)};
}

byte_places elements_at(CUdeviceptr base, const scattered_bytes& which, const call_kernels::table& how) {
  return {base,
          static_cast<unsigned long long>(which.extent),
          0,
          reinterpret_cast<const byte_run*>(how.runs.get()),
          static_cast<unsigned>(which.element->size()),
          any_number,
          static_cast<unsigned>(which.element_bytes)};
}

// The lowest set bit of the result is the largest power of two that divides all four values.
std::size_t bits_of(const byte_places& side) { return side.base | side.row | side.plane | side.width; }

// Returns a copy in the largest possible units. The widths of `to` and `from` are in bytes. bits: further numbers that
// must be multiples of the unit's size, combined by "or".
unit_copy in_units(byte_places to, byte_places from, std::size_t bytes, std::size_t bits) {
  constexpr unsigned largest_unit_log = 4;
  const std::size_t all = bits_of(to) | bits_of(from) | bits;
  const auto log = std::min(static_cast<unsigned>(std::countr_zero(all)), largest_unit_log);
  to.width >>= log;
  from.width >>= log;
  const auto units = static_cast<unsigned>(bytes >> log);
  const unsigned in_a_thread = std::clamp(units / (threads * enough_blocks), 1U, most_in_a_thread);
  const unsigned tile = threads * in_a_thread;
  return {to, from, units, log, in_a_thread, std::min((units + tile - 1) / tile, most_blocks)};
}

}  // namespace

call_kernels::call_kernels(const device::cuda::driver& cu, std::shared_ptr<context_parts> parts,
                           scratch_memory::goes told)
    : cu_(cu), parts_(std::move(parts)), memory_(std::make_shared<scratch_memory>(cu, parts_, std::move(told))) {
  const entered here(cu_, parts_->context());
  cu_.check(cu_.cuModuleLoadData(&module_, hpe_call_kernels_image), "loading hpe's kernels for I/O and MPI calls");
  try {
    find_functions();
  } catch (...) {
    cu_.cuModuleUnload(module_);
    throw;
  }
}

void call_kernels::find_functions() {
  const auto find = [&](CUfunction& function, const std::string& name) {
    cu_.check(cu_.cuModuleGetFunction(&function, module_, name.c_str()), "finding hpe's kernels for I/O and MPI calls");
  };
  for (std::size_t n = 0; n < functions_.size(); ++n) find(functions_[n], "hpe_copy_units_" + std::to_string(n));
  find(several_, "hpe_copy_several");
  // The names are in the order of the enumerators in `reduction`.
  static constexpr std::array names{"sum", "product", "least", "greatest"};
  static constexpr std::array types{"i32", "u32", "i64", "u64", "f32", "f64"};
  for (std::size_t o = 0; o < operations; ++o)
    for (std::size_t t = 0; t < number_types; ++t)
      find(reducers_[o][t], std::string("hpe_reduce_") + names[o] + "_" + types[t]);
}

call_kernels::~call_kernels() {
  const entered here(cu_, parts_->context());
  if (parts_->alive()) cu_.cuModuleUnload(module_);
}

bool call_kernels::suit(const box_copy& shape) noexcept {
  return !shape.extent.is_one_row() && shape.extent.width < wide && shape.bytes() < most_bytes;
}

CUresult call_kernels::copy(CUdeviceptr to, CUdeviceptr from, const box_copy& shape, CUstream stream) {
  return launch(in_units(rows_at(to, shape.written()), rows_at(from, shape.read()), shape.bytes(), 0), stream);
}

unit_copy call_kernels::describe(CUdeviceptr contiguous, CUdeviceptr scattered, const scattered_bytes& which,
                                 const table* how, std::size_t bytes, bool scatters) {
  const byte_places together = contiguous_at(contiguous, bytes);
  const byte_places apart =
      how != nullptr ? elements_at(scattered, which, *how)
                     : contiguous_at(scattered + static_cast<CUdeviceptr>(which.element->front().offset), bytes);
  const std::size_t bits = how != nullptr ? how->bits : 0;
  return scatters ? in_units(apart, together, bytes, bits) : in_units(together, apart, bytes, bits);
}

std::uint64_t call_kernels::copy_scattered(call_queue& queue, const unit_copy& what, const shared_table& how,
                                           std::size_t bytes) {
  return queue.add(bytes, std::const_pointer_cast<table>(how), [&](CUstream stream) { return launch(what, stream); });
}

CUresult call_kernels::launch(unit_copy what, CUstream stream) {
  void* parameters[] = {&what};
  return cu_.cuLaunchKernel(functions_[what.unit_log], what.blocks, 1, 1, threads, 1, 1, 0, stream, parameters,
                            nullptr);
}

CUresult call_kernels::copy_several(std::span<const unit_copy> copies, CUstream stream) {
  if (copies.size() == 1) return launch(copies.front(), stream);
  unit_copies all{};
  std::ranges::copy(copies, all.each);
  void* parameters[] = {&all};
  const unsigned blocks = std::ranges::max(copies, {}, &unit_copy::blocks).blocks;
  return cu_.cuLaunchKernel(several_, blocks, static_cast<unsigned>(copies.size()), 1, threads, 1, 1, 0, stream,
                            parameters, nullptr);
}

CUresult call_kernels::reduce(CUdeviceptr to, CUdeviceptr with, std::size_t count, const interpose::reduction& how,
                              CUstream stream) {
  auto numbers = static_cast<unsigned long long>(count);
  const auto blocks = static_cast<unsigned>(std::min<std::size_t>((count + threads - 1) / threads, most_blocks));
  void* parameters[] = {&to, &with, &numbers};
  const CUfunction function = reducers_[static_cast<std::size_t>(how.what)][static_cast<std::size_t>(how.type)];
  return cu_.cuLaunchKernel(function, blocks, 1, 1, threads, 1, 1, 0, stream, parameters, nullptr);
}

call_kernels::shared_table call_kernels::make_table(const scattered_bytes& which) {
  auto made = std::make_shared<table>();
  made->element = which.element;
  made->key = which.element.get();
  made->begin = which.element->front().offset;
  std::vector<byte_run> runs;
  std::size_t first = 0;
  for (const auto& [offset, bytes] : *which.element) {
    runs.push_back({first, offset});
    made->bits |= first | static_cast<std::size_t>(offset);
    made->begin = std::min(made->begin, offset);
    made->end = std::max(made->end, offset + static_cast<std::ptrdiff_t>(bytes));
    first += bytes;
  }
  runs.push_back({first, 0});
  const std::size_t size = runs.size() * sizeof runs[0];
  made->bytes = size;
  made->runs = memory_->borrow(size);
  const entered here(cu_, parts_->context());
  const lent_stream lent(*parts_);
  cu_.check(cu_.cuMemcpyAsync(reinterpret_cast<CUdeviceptr>(made->runs.get()),
                              reinterpret_cast<CUdeviceptr>(runs.data()), size, lent.stream()),
            "copying a datatype's byte offsets to the device");
  cu_.check(cu_.cuStreamSynchronize(lent.stream()), "copying a datatype's byte offsets to the device");
  return made;
}

call_kernels::tables::iterator call_kernels::forget(tables::iterator which) {
  in_tables_ -= scratch_memory::lent_for((*which)->bytes);
  table_of_.erase((*which)->key);
  return tables_.erase(which);
}

void call_kernels::forget_old_tables() {
  if (tables_.size() < many_ && in_tables_ <= most_in_tables) return;
  for (auto each = tables_.begin(); each != tables_.end();)
    each = (*each)->element.expired() ? forget(each) : std::next(each);
  while (in_tables_ > most_in_tables && tables_.size() > few_tables) forget(std::prev(tables_.end()));
  many_ = std::max(few_tables, 2 * tables_.size());
}

call_kernels::shared_table call_kernels::table_of(const scattered_bytes& which) {
  const lock_guard lock(mutex_);
  if (const auto found = table_of_.find(which.element.get()); found != table_of_.end()) {
    if ((*found->second)->element.lock() == which.element) {
      tables_.splice(tables_.begin(), tables_, found->second);
      return tables_.front();
    }
    forget(found->second);
  }
  shared_table made = make_table(which);
  tables_.push_front(made);
  try {
    table_of_.emplace(which.element.get(), tables_.begin());
  } catch (const std::bad_alloc&) {
    tables_.pop_front();
    throw;
  }
  in_tables_ += scratch_memory::lent_for(made->bytes);
  forget_old_tables();
  return made;
}

}  // namespace hpe::cuda_hooks
