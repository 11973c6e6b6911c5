#include "runtime/ptx/execution/block.h"

#include <fmt/core.h>
#include <sys/mman.h>

#include <algorithm>
#include <bit>

#include "runtime/base/demangled.h"
#include "runtime/base/error.h"
#include "runtime/base/granule.h"
#include "runtime/ptx/execution/thread_memory.h"
#include "runtime/ptx/program/call_graph.h"

namespace hpe::ptx {

namespace {

constexpr std::size_t before = (std::size_t{1} << 32) + (64 << 10);
constexpr std::size_t behind = before;
constexpr std::size_t page = 4096;
constexpr std::size_t alignment = 1024;

std::uint8_t* reserve(std::size_t bytes) {
  void* const place = ::mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) throw_system_error("reserving address space around shared memory");
  return static_cast<std::uint8_t*>(place);
}

const char* sentence_of(trap::reason why) {
  switch (why) {
    case trap::reason::address: return "touched an address that does not belong to the device";
    case trap::reason::misaligned: return "touched a misaligned address";
    case trap::reason::trap: return "executed a trap";
    case trap::reason::assertion: return "failed an assertion";
    case trap::reason::stack: return "ran out of local memory for calls";
    case trap::reason::deadlock: return "waits for threads that will never arrive";
    case trap::reason::bad_function: return "called an address that is not a function";
    case trap::reason::surface: return "left a surface";
    default: return "executed an invalid operation";
  }
}

}  // namespace

std::string trap::message() const {
  std::string text = fmt::format("kernel {}: thread ({}, {}, {}) of block ({}, {}, {}) {}", demangled(kernel), thread.x,
                                 thread.y, thread.z, block.x, block.y, block.z, sentence_of(why));
  if (shared) {
    text += fmt::format(" (shared memory, offset {}{}, where the block has {} bytes)", shared->offset,
                        shared->variable.empty() ? "" : ", at " + shared->variable, shared->block_bytes);
  } else if (why == reason::address || why == reason::misaligned || why == reason::bad_function) {
    text += fmt::format(" ({:#x})", address);
  }
  if (!detail.empty()) text += ": " + detail;
  return text;
}

void block_context::record(ptx::trap::reason why, std::uint64_t address, const std::string& detail) {
  trap = {why, configuration->kernel->name, ctaid, thread_of(current), address, detail, {}};
  const bool has_address = why == ptx::trap::reason::address || why == ptx::trap::reason::misaligned;
  if (!has_address || !shared_memory::is_near(shared, address)) return;
  const auto offset = static_cast<std::int64_t>(address - reinterpret_cast<std::uint64_t>(shared));
  trap.shared = {offset, dynamic_shared_offset + dynamic_shared_size, {}};
  if (offset >= 0)
    trap.shared->variable =
        name_of_shared(configuration->image->program(), *configuration->kernel, static_cast<std::uint64_t>(offset));
}

void block_context::stop() {
  if (in_compiled_code) longjmp(landing, 1);
  throw trap_exception{trap};
}

std::uint32_t execution_engine::run_block(block_context& block, std::uint32_t point, std::uint32_t most) {
  do {
    point = run(block, point, 0, block.thread_count);
  } while (point != block_context::ended && point != block_context::mixed && is_block_barrier(at(point)) &&
           --most != 0);
  return point;
}

// Meeting points are numbered in the order of the code, so the earliest lanes are the lanes at the smallest point.
std::uint32_t execution_engine::earliest(const block_context& block, std::uint32_t first, std::uint32_t lanes) const {
  std::uint32_t place = block_context::ended, found = 0;
  for (std::uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
    const std::uint32_t point = block.next[first + lane];
    if (point < place) found = 0;
    place = std::min(place, point);
    if (point == place) found |= 1U << lane;
  }
  return found;
}

struct shared_memory::mapping {
  explicit mapping(std::size_t bytes) : open(bytes), begin(reserve(before + bytes + behind)) {
    if (::mprotect(begin + before, open, PROT_READ | PROT_WRITE) == 0) return;
    ::munmap(begin, before + open + behind);
    throw_system_error("making shared memory accessible");
  }
  mapping(const mapping&) = delete;
  mapping& operator=(const mapping&) = delete;
  ~mapping() { ::munmap(begin, before + open + behind); }

  std::size_t open;
  std::uint8_t* begin;
};

namespace {

// Each CPU thread keeps its last mapping for the next block with the same size of shared memory, because a new mapping
// needs system calls.
thread_local std::unique_ptr<shared_memory::mapping> kept;

}  // namespace

shared_memory::shared_memory(std::size_t bytes) {
  if (bytes == 0) {
    static std::uint8_t* const nothing = reserve(before + behind) + before;
    data_ = nothing;
    return;
  }
  const std::size_t used = round_up(bytes, alignment), open = round_up(used, page);
  mapping_ = kept != nullptr && kept->open == open ? std::move(kept) : std::make_unique<mapping>(open);
  data_ = mapping_->begin + before + open - used;
}

shared_memory::~shared_memory() {
  if (mapping_ != nullptr) kept = std::move(mapping_);
}

bool shared_memory::is_near(const std::uint8_t* data, std::uint64_t address) noexcept {
  const auto begin = reinterpret_cast<std::uint64_t>(data);
  return address >= begin - before && address - begin + before < before + behind;
}

}  // namespace hpe::ptx
