#pragma once

/// Functions that compiled code calls. Object code refers to these functions by names (link_names.h). A function
/// without a thread parameter acts for thread block->current.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx::helpers {

[[noreturn]] void fail(block_context* block, std::uint32_t why, std::uint64_t address, const instruction* at);
void call_function(block_context* block, const function* callee, std::uint8_t* formals);
std::uint64_t special(block_context* block, std::uint32_t thread, std::uint32_t which);
std::uint64_t convert_address(block_context* block, const instruction* i, std::uint64_t address);
void access_texture(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources,
                    std::uint64_t* results);
std::uint64_t routine(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources);
/// The outcome (the result of execution_engine::run) of an empty range of threads.
inline constexpr std::uint32_t no_outcome = 0;
/// Runs threads first <= t < last one after the other, from meeting point `point` on. Uses the kernel's code for a
/// single lane, which the first call compiles. `before` is the outcome of threads begin <= t < first. Returns the
/// outcome of threads begin <= t < last. `kernel` is the kernel's native_kernel, whose address the linker provides for
/// the symbol link_names::own_kernel.
std::uint32_t run_alone(block_context* block, std::uint32_t point, std::uint32_t begin, std::uint32_t first,
                        std::uint32_t last, std::uint32_t before, void* kernel);
/// Sets block.next of threads first <= t < last to `point`. Does nothing if `point` is block_context::mixed, because
/// block.next then contains the points.
void set_next(block_context* block, std::uint32_t first, std::uint32_t last, std::uint32_t point);
/// Converts an address in shared::cluster to an address in this process.
std::uint8_t* find_in_cluster(block_context* block, const instruction* i, std::uint64_t address);
void copy_async(block_context* block, const instruction* i, std::uint64_t to, std::uint64_t from, std::uint64_t size,
                std::uint64_t given);
void load_fragment(const block_context* block, const instruction* i, std::uint32_t lane, const void* matrix,
                   std::uint64_t stride, std::uint64_t* registers);
void store_fragment(const block_context* block, const instruction* i, std::uint32_t lane, void* matrix,
                    std::uint64_t stride, const std::uint64_t* registers);

}  // namespace hpe::ptx::helpers
