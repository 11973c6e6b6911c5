#pragma once

/// Addresses and special registers of a thread, for both the interpreter and compiled code.

#include "runtime/ptx/execution/block.h"
#include "runtime/ptx/program/special_register.h"

namespace hpe::ptx {

enum class address_window : std::uint8_t { generic, own_shared, cluster_shared };

[[nodiscard]] std::uint64_t read_special(const block_context& block, std::uint32_t thread, special_register which);
/// Returns the address of a variable; for a shared variable, the offset in shared memory.
[[nodiscard]] std::uint64_t address_of_symbol(const block_context& block, std::uint32_t symbol);
/// Executes cvta and isspacep.
[[nodiscard]] std::uint64_t convert_address(const block_context& block, const instruction& i, std::uint64_t address);
[[nodiscard]] bool lies_in_shared(const block_context& block, std::uint64_t address);
/// Returns the block of the cluster whose shared memory contains an address; null if there is no such block.
[[nodiscard]] const block_context* owner_of_shared(const block_context& block, std::uint64_t address);
/// The largest size of a block's shared memory, in bytes. Offsets below this size leave the upper 8 bits of an address
/// free for a rank.
inline constexpr std::uint32_t most_shared_memory = 1 << 24;
/// Returns the address in shared::cluster for an offset in the shared memory of the block with rank `rank`.
[[nodiscard]] std::uint32_t address_in_cluster(std::uint32_t rank, std::uint64_t offset);
/// An address in shared::cluster. `owner` is null if no block of the cluster has the rank in the address.
struct cluster_address {
  const block_context* owner = nullptr;
  std::uint32_t offset = 0;
};
[[nodiscard]] cluster_address split_cluster_address(const block_context& block, std::uint64_t address);
/// Returns the address, in this process, of `bytes` bytes at `address`; null if the thread may not access them.
[[nodiscard]] std::uint8_t* reach(const block_context& block, std::uint32_t thread, address_window window,
                                  std::uint64_t address, std::uint64_t bytes);
/// Returns whether an address is in the local memory of a thread.
[[nodiscard]] bool lies_in_local(const block_context& block, std::uint32_t thread, std::uint64_t address);
/// Returns whether the instruction's addresses are offsets into the block's own shared memory.
[[nodiscard]] bool is_shared_access(const instruction& i);
[[nodiscard]] address_window window_of(const instruction& i);
/// Whether the instruction is a load or store of the record that record_accesses has inserted. Its address is the
/// address of the recorded access. A load with a colour is of the record of this colour if the block's accesses may be
/// ordered after those of other blocks; all other loads and stores are of the record of the block's colour.
[[nodiscard]] inline bool is_record(const instruction& i) {
  return i.has(modifier::recorded_words) || i.has(modifier::recorded_bytes);
}
/// Records the access of `bytes` bytes at `at` by an instruction that records itself (access_recording.h). Does nothing
/// if the instruction has no number, or if these bytes are not recorded, such as shared memory.
void record_range(const block_context& block, const instruction& i, const void* at, std::uint64_t bytes, bool writes);
/// Like record_range, for the elements of a thread's fragment that wmma.load or wmma.store accesses (matrix.h).
void record_fragment(const block_context& block, const instruction& i, std::uint32_t lane, const void* matrix,
                     std::uint64_t stride);
/// The number of accessed bytes for each byte of the record, as a power of two.
[[nodiscard]] inline unsigned record_shift(const instruction& i) { return i.has(modifier::recorded_words) ? 2 : 0; }

/// The colour of the accesses of a block that may be ordered after accesses of other blocks.
inline constexpr std::uint32_t ordered_colour = 2;
/// The colour of a block: 0 or 1, and different for neighbours (access_recording.h).
[[nodiscard]] inline std::uint32_t block_colour(std::uint32_t x, std::uint32_t y, std::uint32_t z) {
  return (x + y + z) & 1;
}

/// Returns a name for a byte of a kernel's shared memory: the last variable that begins at or before the byte, and the
/// distance in bytes ("tile" or "tile + 8"). Empty if no variable begins at or before the byte. The variable has its
/// name in the source code, without the function that declares it.
[[nodiscard]] std::string name_of_shared(const program& p, const function& kernel, std::uint64_t offset);

/// Returns the position of an instruction, for example: "PTX line 12, 'st.global.u32 [%rd1], %r2;', kernel.cu:7"
[[nodiscard]] std::string place_of(const program& p, const function& f, const instruction& i);
/// Returns the position, in the same form, of an instruction of the kernel that the block runs.
[[nodiscard]] std::string place_of(const block_context& block, const instruction& i);

}  // namespace hpe::ptx
