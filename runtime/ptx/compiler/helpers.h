#pragma once

/// Functions that compiled code calls; their addresses are constants in it. Without a thread parameter: for
/// block.current.

#include "runtime/ptx/execution/block.h"

namespace hpe::ptx::helpers {

[[noreturn]] void fail(block_context* block, std::uint32_t why, std::uint64_t address, const instruction* at);
void call_function(block_context* block, const function* callee, std::uint8_t* formals);
std::uint64_t special(block_context* block, std::uint32_t thread, std::uint32_t which);
std::uint64_t convert_address(block_context* block, const instruction* i, std::uint64_t address);
void access_texture(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources,
                    std::uint64_t* results);
std::uint64_t routine(block_context* block, std::uint32_t thread, const instruction* i, const std::uint64_t* sources);
/// Sets block.next of threads first <= t < last to `point`, unless it is mixed: then they have it.
void set_next(block_context* block, std::uint32_t first, std::uint32_t last, std::uint32_t point);
/// The address in this process of an address in shared::cluster.
std::uint8_t* find_in_cluster(block_context* block, const instruction* i, std::uint64_t address);
void copy_async(block_context* block, const instruction* i, std::uint64_t to, std::uint64_t from, std::uint64_t size,
                std::uint64_t given);
void load_fragment(const instruction* i, std::uint32_t lane, const void* matrix, std::uint64_t stride,
                   std::uint64_t* registers);
void store_fragment(const instruction* i, std::uint32_t lane, void* matrix, std::uint64_t stride,
                    const std::uint64_t* registers);

}  // namespace hpe::ptx::helpers
