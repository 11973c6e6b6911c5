#pragma once

/// Records which bytes of memory kernels read and write. After each access to global memory, the program stores a
/// number that stands for the accessing instruction into the *record*, memory whose place follows from the accessed
/// address. Both engines execute these stores, so both record the same accesses, and vector code records in vectors.
///
/// Accesses of 4, 8, 16 or 32 bytes have a byte for each word of 4 bytes; smaller accesses have a byte for each byte.
///
/// The record also tells accesses of different blocks apart. Each block has one of two colours, which differ for
/// neighbours, and each colour has a record of its own. So if both colours have accessed a byte, at least two blocks
/// have. Accesses that may be ordered after accesses of other blocks have a third colour: all accesses of a block after
/// one of its threads has read memory with an atomic operation, a volatile, relaxed or acquire load, or has waited for
/// the other blocks of its cluster. Two accesses of the first two colours are certainly not ordered.

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "runtime/ptx/program/ptx_program.h"

namespace hpe::ptx {

enum class recorded_use : std::uint8_t {
  read,
  write,
  atomic,  // atomic operations, and stores that programs use to tell other threads something (volatile, relaxed ...)
  strong_read,  // loads that programs use to wait for other threads
};
inline constexpr std::size_t recorded_uses = 4;
inline constexpr std::size_t recorded_colours = 3;  // of blocks: 0 and 1; of accesses that may be ordered: 2

/// Which reads are recorded. `first`: those of bytes that neither the same block nor a block that may be ordered before
/// has written, as far as writes are recorded.
enum class recorded_reads : std::uint8_t { all, first };

/// Where accesses are recorded: for each colour, a record of words for each use, then a record of bytes for each use.
struct record_places {
  static constexpr std::uint64_t word = 4;  // the bytes of memory for each byte of a record of words

  // The addresses [base, base + size) whose accesses are recorded. Both are multiples of `word` pages.
  std::uint64_t base = 0, size = 0;
  std::uint64_t begin = 0;  // where the record begins. bytes() bytes must be writable while kernels run

  [[nodiscard]] std::uint64_t colour_stride() const { return recorded_uses * (size / word + size); }
  [[nodiscard]] std::uint64_t bytes() const { return recorded_colours * colour_stride(); }
  /// The offset, from `begin`, of the record of a use and a colour.
  [[nodiscard]] std::uint64_t words_of(recorded_use use, std::size_t colour) const {
    return colour * colour_stride() + static_cast<std::uint64_t>(use) * (size / word);
  }
  [[nodiscard]] std::uint64_t bytes_of(recorded_use use, std::size_t colour) const {
    return colour * colour_stride() + recorded_uses * (size / word) + static_cast<std::uint64_t>(use) * size;
  }
};

/// An instruction whose accesses are recorded.
struct access_site {
  const function* in = nullptr;
  const instruction* what = nullptr;
  recorded_use use = recorded_use::read;
  std::uint8_t number = 0;
  /// Equal for stores that write the same value in all threads of a launch; empty if the value is not known.
  std::optional<std::uint64_t> value{};
  bool adds = false;  // an atomic addition, whose sum no other thread expects to read meanwhile
};

/// Returns the sites of a program without recording, in the order of the code. The sites of one line of the source have
/// the same number; if more than most_site_numbers lines have sites, several lines have. 0 is no number.
inline constexpr std::size_t most_site_numbers = 255;
[[nodiscard]] std::vector<access_site> find_access_sites(const program& p);

/// Which accesses of two blocks, without an order between them, are a race.
class site_pairs {
 public:
  explicit site_pairs(const std::vector<access_site>& sites);

  /// `first` and `second`: numbers of sites with these uses. Not a race are reads; atomic and strong accesses among
  /// each other; stores of the same value, such as `changed = true`; and reads of words that others replace atomically,
  /// because programs often look at a word before they change it. In doubt, returns false.
  [[nodiscard]] bool race(recorded_use how, std::uint8_t number, recorded_use other_how,
                          std::uint8_t other_number) const;

 private:
  struct known {
    std::vector<std::uint64_t> values;  // that its stores write, as far as they are known
    bool replaces = false;              // whether an atomic access does not add
  };
  std::array<known, most_site_numbers + 1> numbers_{};
};

/// Returns whether kernels of the program may write memory without a record: by copies and fills that they queue.
[[nodiscard]] bool writes_unrecorded(const program& p);

/// Inserts the stores. Call this before the program is used. Accesses to textures, surfaces and matrices (wmma) and
/// bulk copies, whose bytes only their execution knows, get numbers and record themselves (record_range).
void record_accesses(program& p, const record_places& where, recorded_reads reads = recorded_reads::all);

}  // namespace hpe::ptx
