#pragma once

/// The parts of the benchmark. Each adds lines to the table.

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "bench/common/table.h"
#include "bench/transfers/raw_gpu.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

/// The rates of the driver's copies of pinned memory, in GB/s: alone, and while eight threads use ordinary memory. The
/// latter is the upper bound for hpe where threads and the link share the memory.
struct link_rates {
  double up;
  double down;
  double up_while_filling = 0;
  double down_while_reading = 0;
  double up_while_copying = 0;
  double down_while_copying = 0;
};

/// Copies without hpe. links_alone: of pinned memory only, which is all that most parts are compared with.
link_rates plain_copies(table& t, const raw_gpu& gpu, bool links_alone);
/// Managed memory, with and without prefetch.
void managed_memory(table& t, const raw_gpu& gpu, const link_rates& is);

/// The first access of the host to memory whose host pages no allocation had before.
void first_touches(table& t, const link_rates& is);
/// Only those right after hpeMalloc, and hpeMalloc.
void touches_at_once(table& t, const link_rates& is);
/// The time of a program that never touches its memory, with and without prepared pages: this program again, with the
/// option --only untouched, which calls work_without_touches.
void untouched_programs(table& t);
void work_without_touches();

/// One pointer on the host and the GPU.
void host_reads(table& t, const link_rates& is);
void host_writes(table& t, const link_rates& is);
/// hpeMemcpy from and to pageable memory.
void pageable_copies(table& t, const link_rates& is);

/// Latencies.
void faults(table& t, const raw_gpu& gpu);
/// The time of a fault that is handled by hand, and the parts of this time.
void faults_in_parts(table& t, const raw_gpu& gpu, std::size_t block);
void random_touches(table& t, const raw_gpu& gpu);
void launches(table& t, const raw_gpu& gpu);

/// Two GPUs: directly, or through the host where they do not reach each other.
void peers(table& t, const raw_gpu& first, const raw_gpu& second);
void staged_exchange(table& t, const raw_gpu& first, const raw_gpu& second);

/// Calls body(offset, size) for the chunks of some bytes in several threads.
template <class Body>
void in_crowd(std::size_t bytes, std::size_t chunk, Body body, unsigned crowd = 8) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < crowd; ++t)
    threads.emplace_back([&] {
      for (std::size_t at = 0; (at = next.fetch_add(chunk)) < bytes;) body(at, std::min(chunk, bytes - at));
    });
}

/// Ways in which the host accesses memory.
void touch_pages(const std::byte* data, std::size_t bytes);
void write_pages(std::byte* data, std::size_t bytes);
/// Eight threads, every byte.
void read_all(const std::byte* data, std::size_t bytes);
void write_all(std::byte* data, std::size_t bytes);
void fill_all(std::byte* data, std::size_t bytes);
void copy_all(std::byte* to, const std::byte* from, std::size_t bytes);
/// Launches a kernel that writes a whole array, through hpe, and waits.
void launch_fill(const hpe::array<std::uint32_t>& a);

}  // namespace hpe::bench
