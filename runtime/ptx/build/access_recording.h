#pragma once

/// Records which bytes of memory kernels read and write. After each access to global memory, the program stores a
/// number that stands for the accessing instruction, once for each byte, into memory at a constant distance from the
/// accessed bytes. Both engines execute these stores like any others, so both record the same accesses, and vector code
/// records in vectors.

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

enum class recorded_use : std::uint8_t {
  read,
  write,
  atomic,  // atomic operations, and loads and stores that programs use to wait for each other (volatile, relaxed ...)
};
inline constexpr std::size_t recorded_uses = 3;

/// Which reads are recorded. `first`: those of bytes that no recorded write has written before, since the owner has
/// last cleared the numbers.
enum class recorded_reads : std::uint8_t { all, first };

/// Where accesses are recorded.
struct record_places {
  std::uint64_t base = 0;  // the first address whose accesses are recorded
  std::uint64_t size = 0;
  /// For each use, the distance from an accessed byte to the byte that contains the number of the access. All bytes of
  /// [base + distance, base + distance + size) must be writable while kernels run.
  std::array<std::uint64_t, recorded_uses> distances{};
};

/// An instruction whose accesses are recorded.
struct access_site {
  const function* in = nullptr;
  const instruction* what = nullptr;
  recorded_use use = recorded_use::read;
};

/// Returns the sites of a program without recording, in the order of their numbers. Site n has the number
/// 1 + n % most_site_numbers, because a number must fit into a byte.
inline constexpr std::size_t most_site_numbers = 255;
[[nodiscard]] std::vector<access_site> find_access_sites(const program& p);
/// Returns whether the program contains instructions that may write global memory and whose accesses are not recorded.
[[nodiscard]] bool writes_unrecorded(const program& p);

/// Inserts the stores. Call this before the program is used. Not recorded are accesses of textures and surfaces, of
/// matrices (wmma), bulk copies, and atomic operations on 128 bits.
void record_accesses(program& p, const record_places& where, recorded_reads reads = recorded_reads::all);

}  // namespace hpe::ptx
