#pragma once

/// The parts of the benchmark. Each adds lines to the table.

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

/// Copies without hpe: pinned, pageable, and by hand.
link_rates plain_copies(table& t, const raw_gpu& gpu);
/// Managed memory, with and without prefetch.
void managed_memory(table& t, const raw_gpu& gpu, const link_rates& is);

/// One pointer on the host and the GPU.
void host_reads(table& t, const link_rates& is);
void host_writes(table& t, const link_rates& is);
/// hpeMemcpy from and to pageable memory.
void pageable_copies(table& t, const link_rates& is);

/// Latencies.
void faults(table& t, const raw_gpu& gpu);
void random_touches(table& t, const raw_gpu& gpu);
void launches(table& t, const raw_gpu& gpu);

/// Two GPUs: directly, or through the host where they do not reach each other.
void peers(table& t, const raw_gpu& first, const raw_gpu& second);
void staged_exchange(table& t, const raw_gpu& first, const raw_gpu& second);

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
