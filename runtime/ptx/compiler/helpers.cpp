#include "runtime/ptx/compiler/helpers.h"

#include <algorithm>
#include <cstring>

#include "runtime/ptx/arithmetic/matrix.h"
#include "runtime/ptx/execution/calls/system_call.h"
#include "runtime/ptx/execution/scheduler.h"
#include "runtime/ptx/execution/textures/texture_access.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/routine.h"

namespace hpe::ptx::helpers {

namespace {

void require_aligned(block_context* block, const instruction* i, std::uint64_t address, std::uint64_t bytes) {
  if (address % bytes != 0) fail(block, static_cast<std::uint32_t>(trap::reason::misaligned), address, i);
}

}  // namespace

void fail(block_context* block, std::uint32_t why, std::uint64_t address, const instruction* at) {
  block->record(static_cast<trap::reason>(why), address, place_of(*block, *at));
  block->stop();
}

void call_function(block_context* block, const function* callee, std::uint8_t* formals) {
  call_system(*block, *callee, formals);
}

std::uint64_t special(block_context* block, std::uint32_t thread, std::uint32_t which) {
  return read_special(*block, thread, static_cast<special_register>(which));
}

std::uint64_t convert_address(block_context* block, const instruction* i, std::uint64_t address) {
  return ptx::convert_address(*block, *i, address);
}

void access_texture(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources,
                    std::uint64_t* results) {
  ptx::access_texture(*block, thread, *i, sources, results);
}

std::uint64_t routine(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources) {
  return run_routine(*block, thread, *i, sources);
}

void set_next(block_context* block, std::uint32_t first, std::uint32_t last, std::uint32_t point) {
  if (point != block_context::mixed) std::fill(block->next + first, block->next + last, point);
}

std::uint8_t* find_in_cluster(block_context* block, const instruction* i, std::uint64_t address) {
  const std::uint64_t bytes = std::uint64_t{bytes_of(i->types[0])} * i->vector;
  std::uint8_t* const at = reach(*block, block->current, address_window::cluster_shared, address, bytes);
  if (at == nullptr) fail(block, static_cast<std::uint32_t>(trap::reason::address), address, i);
  require_aligned(block, i, reinterpret_cast<std::uint64_t>(at), bytes);
  return at;
}

void copy_async(block_context* block, const instruction* i, std::uint64_t to, std::uint64_t from, std::uint64_t size,
                std::uint64_t given) {
  std::uint8_t* const target = block->shared + static_cast<std::uint32_t>(to);
  given = std::min(given, size);
  require_aligned(block, i, reinterpret_cast<std::uint64_t>(target), size);
  if (given != 0) require_aligned(block, i, from, size);
  std::memcpy(target, reinterpret_cast<const void*>(from), given);
  std::memset(target + given, 0, size - given);
}

void load_fragment(const block_context* block, const instruction* i, std::uint32_t lane, const void* matrix,
                   std::uint64_t stride, std::uint64_t* registers) {
  record_fragment(*block, *i, lane, matrix, stride);
  ptx::load_fragment(*i, lane, matrix, stride, registers);
}

void store_fragment(const block_context* block, const instruction* i, std::uint32_t lane, void* matrix,
                    std::uint64_t stride, const std::uint64_t* registers) {
  record_fragment(*block, *i, lane, matrix, stride);
  ptx::store_fragment(*i, lane, matrix, stride, registers);
}

}  // namespace hpe::ptx::helpers
