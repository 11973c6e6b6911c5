// Kernels for the tests of devices.

#include "tests/device/kernels.h"

#include <sched.h>
#include <time.h>

#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

#include "hpe/kernel.h"

namespace {

void sleep_us(std::uint64_t us) {
  const timespec time{static_cast<time_t>(us / 1000000), static_cast<long>(us % 1000000 * 1000)};
  ::nanosleep(&time, nullptr);
}

}  // namespace

HPE_HOST_KERNEL(add, add_parameters) {
  for (std::uint64_t tile = tiles->begin; tile < tiles->end; ++tile)
    for (std::uint64_t i = 0; i < parameters->per_tile; ++i)
      parameters->data[tile * parameters->per_tile + i] += parameters->value;
}

HPE_HOST_KERNEL(number_tiles, number_parameters) {
  for (std::uint64_t tile = tiles->begin; tile < tiles->end; ++tile) {
    const std::uint64_t x = tile % tiles->grid[0];
    const std::uint64_t y = tile / tiles->grid[0] % tiles->grid[1];
    const std::uint64_t z = tile / tiles->grid[0] / tiles->grid[1];
    parameters->data[tile] += 1 + x + 1000 * y + 1000000 * z;
  }
}

HPE_HOST_KERNEL(store_last_byte, large_parameters) {
  if (tiles->begin == 0) *parameters->out = parameters->filler[sizeof parameters->filler - 1];
}

HPE_HOST_KERNEL(rest, rest_parameters) {
  if (tiles->begin == 0) sleep_us(parameters->microseconds);
}

HPE_HOST_KERNEL(rest_and_store, rest_parameters) {
  if (tiles->begin != 0) return;
  sleep_us(parameters->microseconds);
  *parameters->out = parameters->value;
}

HPE_HOST_KERNEL(tell_cores, cores_parameters) {
  if (tiles->begin != 0) return;
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ::sched_getaffinity(0, sizeof allowed, &allowed);
  *parameters->cores = 0;
  for (std::size_t core = 0; core < 64; ++core)
    if (CPU_ISSET(core, &allowed)) *parameters->cores |= std::uint64_t{1} << core;
}

HPE_HOST_KERNEL(load, load_parameters) {
  if (tiles->begin == 0) *parameters->out = *parameters->in;
}

HPE_HOST_KERNEL(divide, load_parameters) {
  if (tiles->begin == 0) *parameters->out = *parameters->out / *parameters->in;
}

HPE_HOST_KERNEL(overflow_stack, load_parameters) {
  struct deep {
    static int down(int n) {  // NOLINT(misc-no-recursion): endless recursion is the purpose
      volatile char frame[4096] = {};
      frame[0] = static_cast<char>(n);
      return n == 0 ? 0 : down(n + 1) + frame[0];
    }
  };
  if (tiles->begin == 0) *parameters->out = static_cast<std::uint64_t>(deep::down(1));
}

HPE_HOST_KERNEL(throw_something, load_parameters) {
  static_cast<void>(parameters);
  if (tiles->begin == 0) throw std::runtime_error("thrown by a kernel");
}

HPE_HOST_KERNEL(abort_process, load_parameters) {
  static_cast<void>(parameters);
  static_cast<void>(tiles);
  std::abort();
}

// Overwrites all memory that the device may write and that it shares with the owner and the other devices.
HPE_HOST_KERNEL(overwrite_shared_state, load_parameters) {
  static_cast<void>(parameters);
  if (tiles->begin != 0) return;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0;
    if (std::strstr(line, "hpe-fabric") != nullptr && std::strstr(line, " rw") != nullptr &&
        std::sscanf(line, "%lx-%lx", &begin, &end) == 2)
      std::memset(reinterpret_cast<void*>(begin), 0xff, end - begin);
  }
  std::fclose(maps);
}

// Overwrites only the wait queues: the words on which all processes sleep, in the first writable section of the shared
// file.
HPE_HOST_KERNEL(overwrite_wait_queues, load_parameters) {
  static_cast<void>(parameters);
  if (tiles->begin != 0) return;
  std::FILE* const maps = std::fopen("/proc/self/maps", "r");
  char line[512];
  unsigned long first = 0, last = 0, least = ~0UL;
  while (std::fgets(line, sizeof line, maps) != nullptr) {
    unsigned long begin = 0, end = 0, offset = 0;
    if (std::strstr(line, "hpe-fabric") != nullptr && std::strstr(line, " rw") != nullptr &&
        std::sscanf(line, "%lx-%lx %*s %lx", &begin, &end, &offset) == 3 && offset < least) {
      first = begin;
      last = end;
      least = offset;
    }
  }
  std::fclose(maps);
  std::memset(reinterpret_cast<void*>(first), 0xff, last - first);
}

// Damages a chunk of malloc's heap, so that the next call of malloc crashes while it holds malloc's lock.
HPE_HOST_KERNEL(crash_in_malloc, load_parameters) {
  static_cast<void>(parameters);
  if (tiles->begin != 0) return;
  static void** volatile chunk;  // volatile, so that the compiler cannot remove the allocation
  static void* volatile other;
  chunk = static_cast<void**>(std::malloc(4000));
  other = std::malloc(4000);
  std::free(chunk);
  chunk[1] = reinterpret_cast<void*>(0x10);
  other = std::malloc(100000);
  static_cast<void>(other);
}

HPE_HOST_KERNEL(empty, load_parameters) {
  static_cast<void>(parameters);
  static_cast<void>(tiles);
}
