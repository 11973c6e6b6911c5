#pragma once

/// Addresses and special registers of a thread: what interpreter and compiled code share beyond pure instructions.

#include "runtime/ptx/block.h"
#include "runtime/ptx/special_register.h"

namespace hpe::ptx {

[[nodiscard]] std::uint64_t read_special(const block_context& block, std::uint32_t thread, special_register which);
/// A variable's address, or offset where it is shared.
[[nodiscard]] std::uint64_t address_of_symbol(const block_context& block, std::uint32_t symbol);
/// cvta and isspacep.
[[nodiscard]] std::uint64_t convert_address(const block_context& block, const instruction& i, std::uint64_t address);
[[nodiscard]] bool lies_in_shared(const block_context& block, std::uint64_t address);
/// Local memory of the running thread.
[[nodiscard]] bool lies_in_local(const block_context& block, std::uint32_t thread, std::uint64_t address);
/// tex: coordinates are raw, of the instruction's second type.
[[nodiscard]] std::array<std::uint32_t, 4> read_texture_at(block_context& block, const instruction& i,
                                                           std::uint64_t handle, std::uint64_t x, std::uint64_t y);
/// A 32-bit offset, or a 64-bit generic address, in the space of the instruction.
[[nodiscard]] bool is_shared_access(const instruction& i);

/// "PTX line 12, 'st.global.u32 [%rd1], %r2;', kernel.cu:7"
[[nodiscard]] std::string place_of(const program& p, const function& f, const instruction& i);

}  // namespace hpe::ptx
