#pragma once

/// The measurements of hpe-bench-transfers. Each function adds lines to the table t.

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "bench/common/table.h"
#include "bench/transfers/raw_gpu.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

/// The rates of the driver's copies of pinned memory in GB/s: alone, and while eight threads access ordinary memory. If
/// CPU threads and the link share the bandwidth of host memory, the rates measured beside the eight threads are the
/// upper bounds for hpe.
struct link_rates {
  double up;
  double down;
  double up_while_filling = 0;
  double down_while_reading = 0;
  double up_while_copying = 0;
  double down_while_copying = 0;
};

/// Measures copies without hpe. links_alone: measures only copies of pinned memory, which are the only reference that
/// most of the functions below need.
link_rates plain_copies(table& t, const raw_gpu& gpu, bool links_alone);
/// Measures CUDA's managed memory, with and without prefetch.
void managed_memory(table& t, const raw_gpu& gpu, const link_rates& is);

/// Measures the host's first access to memory whose host pages are new (no earlier allocation used the pages).
void first_touches(table& t, const link_rates& is);
/// Measures only hpeMalloc, and first accesses directly after hpeMalloc.
void touches_at_once(table& t, const link_rates& is);
/// Measures the time of a program whose CPU code never touches its hpe memory, with and without prepared pages. The
/// program is this benchmark with the option --only untouched, which runs work_without_touches().
void untouched_programs(table& t);
void work_without_touches();

/// Measure accesses by the host and the GPU through one pointer.
void host_reads(table& t, const link_rates& is);
void host_writes(table& t, const link_rates& is);
/// Measures hpeMemcpy from and to pageable memory.
void pageable_copies(table& t, const link_rates& is);

/// Measures the latency of page faults.
void faults(table& t, const raw_gpu& gpu);
/// Measures the time of a page fault that a program without hpe handles itself, and the parts of this time.
void faults_in_parts(table& t, const raw_gpu& gpu, std::size_t block);
void random_touches(table& t, const raw_gpu& gpu);
void launches(table& t, const raw_gpu& gpu);

/// Measure copies between two GPUs: directly, or through the host if the GPUs cannot access each other.
void peers(table& t, const raw_gpu& first, const raw_gpu& second);
void staged_exchange(table& t, const raw_gpu& first, const raw_gpu& second);

/// Divides `bytes` bytes into chunks of `chunk` bytes and calls body(offset, size) for each chunk, in `crowd` threads.
template <class Body>
void in_crowd(std::size_t bytes, std::size_t chunk, Body body, unsigned crowd = 8) {
  std::atomic<std::size_t> next{0};
  std::vector<std::jthread> threads;
  for (unsigned t = 0; t < crowd; ++t)
    threads.emplace_back([&] {
      for (std::size_t at = 0; (at = next.fetch_add(chunk)) < bytes;) body(at, std::min(chunk, bytes - at));
    });
}

/// Access one byte of each page, on the calling thread.
void touch_pages(const std::byte* data, std::size_t bytes);
void write_pages(std::byte* data, std::size_t bytes);
/// Access every byte, on eight threads.
void read_all(const std::byte* data, std::size_t bytes);
void write_all(std::byte* data, std::size_t bytes);
void fill_all(std::byte* data, std::size_t bytes);
void copy_all(std::byte* to, const std::byte* from, std::size_t bytes);
/// Launches, through hpe, a kernel that writes all elements of an array, and waits for the kernel.
void launch_fill(const hpe::array<std::uint32_t>& a);

}  // namespace hpe::bench
