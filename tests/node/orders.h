#pragma once

/// The orders that a test sends to a process of node-test-process over pipes. The process answers each order with one
/// report.

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hpe/node.h"

namespace node_test {

struct order {
  enum class kind : std::uint32_t {
    allocate,    // on: a device, or one of the places below; bytes -> number
    free,        // number
    fill,        // number, offset, bytes, seed: by CPU code
    fill_copy,   // the same as fill, by hpeMemcpy
    add,         // number, offset, bytes, seed, from: a kernel on device `on` adds seed to 32-bit words, after `from`
                 // microseconds; if `from` is not 0, the order ends before the kernel
    add_over,    // number, offset, bytes, seed, from: a kernel of PTX on all devices adds seed to 32-bit words; if from
                 // is not 0, the order ends before the kernel -> parts of the launch
    mix_over,    // number, offset, bytes, seed, other, other_offset, from: like add_over, but the kernel sets each
                 // word to 3 word + other + seed
    sum_over,    // number, offset, bytes, seed, other, other_offset, from: like add_over, but the kernel sets each
                 // word to the sum of some of the `seed` words of the other memory; bytes: a multiple of sum_block
    check,       // number, offset, bytes, seed, from: CPU code finds the pattern of seed, from byte `from` on -> 1
    check_copy,  // the same as check, by hpeMemcpy
    check_word,  // number, offset, bytes, seed: whether all 32-bit words are seed -> 1
    hash,        // number, offset, bytes: CPU code reads the bytes -> hash_of them
    hash_copy,   // the same as hash, by hpeMemcpy
    hash_export,  // handle, from, bytes: by hpeExportCopy to ordinary memory -> hash_of them
    begin,        // number, offset, bytes -> handle
    end,          // handle
    reachable,    // handle -> 0 or 1
    copy,         // number, offset, bytes, handle, from
    copy_out,     // to ordinary memory: bytes, handle, from, seed -> 1 if the bytes are the pattern of seed from byte
                  // `at` on
    open,         // handle -> number
    migrate,      // number, on
    descriptors,  // -> open file descriptors
    mappings,     // -> mappings of the process
    other_user,   // the process changes its user id to `seed`
    connect_raw,  // connects to the exporter's socket without hpe: handle -> 1 if the exporter answers
    repeat,       // number, bytes, seed: begins and ends `seed` exports -> number
    statistics,   // -> bytes_staged
    given_back,   // -> bytes_given_back
    evicted,      // -> bytes_evicted
    spilled,      // -> bytes_spilled
    fork_child,   // makes a child that waits for a signal or, if seed is 1, ends by exit() -> the child's process
    own_network   // moves the process into a new network namespace -> 1 if that was possible
  };
  kind what = kind::allocate;
  std::int32_t on = 0;
  std::uint64_t number = 0;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
  std::uint64_t seed = 0;
  std::uint64_t from = 0;
  std::uint64_t other = 0;
  std::uint64_t other_offset = 0;
  hpeExport handle = {};
};

/// The bytes that one block of threads of sum_over writes. The word at position i of such a block is the sum of the
/// words of the other memory whose positions are i modulo sum_threads.
inline constexpr std::uint64_t sum_threads = 128;
inline constexpr std::uint64_t sum_block = sum_threads * sizeof(std::uint32_t);

inline constexpr std::int32_t on_host = -1;
inline constexpr std::int32_t striped = -3;

struct report {
  hpeStatus status = HPE_SUCCESS;
  std::uint64_t value = 0;
  hpeExport handle = {};
  char words[512] = "";
};

/// Byte i of the pattern of a seed.
[[nodiscard]] inline std::byte pattern(std::uint64_t seed, std::uint64_t i) noexcept {
  std::uint64_t x = seed * 0x9e3779b97f4a7c15 + i / 8;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return static_cast<std::byte>(x >> 8 * (i % 8));
}

[[nodiscard]] inline std::uint64_t hash_of(const std::byte* p, std::uint64_t bytes) noexcept {
  std::uint64_t sum = 0xcbf29ce484222325;
  std::uint64_t i = 0;
  for (std::uint64_t word = 0; i + sizeof word <= bytes; i += sizeof word) {
    std::memcpy(&word, p + i, sizeof word);
    sum = (sum ^ word) * 0x100000001b3;
    sum ^= sum >> 29;
  }
  for (; i < bytes; ++i) sum = (sum ^ static_cast<std::uint64_t>(p[i])) * 0x100000001b3;
  return sum;
}

}  // namespace node_test
