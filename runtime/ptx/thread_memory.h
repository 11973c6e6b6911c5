#pragma once

/// Addresses and special registers of a thread: what interpreter and compiled code share beyond pure instructions.

#include "runtime/ptx/block.h"
#include "runtime/ptx/special_register.h"

namespace hpe::ptx {

enum class address_window : std::uint8_t { generic, own_shared, cluster_shared };

[[nodiscard]] std::uint64_t read_special(const block_context& block, std::uint32_t thread, special_register which);
/// A variable's address, or offset where it is shared.
[[nodiscard]] std::uint64_t address_of_symbol(const block_context& block, std::uint32_t symbol);
/// cvta and isspacep.
[[nodiscard]] std::uint64_t convert_address(const block_context& block, const instruction& i, std::uint64_t address);
[[nodiscard]] bool lies_in_shared(const block_context& block, std::uint64_t address);
/// Of the block or of another one of its cluster: whose; or null.
[[nodiscard]] const block_context* owner_of_shared(const block_context& block, std::uint64_t address);
/// A block has less shared memory than this, so that addresses have room for a rank.
inline constexpr std::uint32_t most_shared_memory = 1 << 24;
/// A shared address of the block with that rank in its cluster, as other blocks name it.
[[nodiscard]] std::uint32_t address_in_cluster(std::uint32_t rank, std::uint64_t offset);
/// An address in shared::cluster; null where no block of the cluster has the rank.
struct cluster_address {
  const block_context* owner = nullptr;
  std::uint32_t offset = 0;
};
[[nodiscard]] cluster_address split_cluster_address(const block_context& block, std::uint64_t address);
/// Where bytes of the memory that the instruction names lie in this process; null where the thread may not touch them.
[[nodiscard]] std::uint8_t* reach(const block_context& block, std::uint32_t thread, address_window window,
                                  std::uint64_t address, std::uint64_t bytes);
/// Local memory of the running thread.
[[nodiscard]] bool lies_in_local(const block_context& block, std::uint32_t thread, std::uint64_t address);
/// Whether addresses of the instruction are offsets into the block's own shared memory.
[[nodiscard]] bool is_shared_access(const instruction& i);
[[nodiscard]] address_window window_of(const instruction& i);

/// "PTX line 12, 'st.global.u32 [%rd1], %r2;', kernel.cu:7"
[[nodiscard]] std::string place_of(const program& p, const function& f, const instruction& i);
/// The same, as far as a block knows it: in its kernel.
[[nodiscard]] std::string place_of(const block_context& block, const instruction& i);

}  // namespace hpe::ptx
