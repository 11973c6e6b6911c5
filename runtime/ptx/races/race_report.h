#pragma once

/// Collects the races in shared memory during the launches of one kernel, and describes each as a sentence.

#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "runtime/base/thread_safety.h"
#include "runtime/ptx/execution/block.h"

namespace hpe::ptx {

/// How an instruction uses memory. Strong loads and stores (ld.acquire, st.relaxed, ...) count as atomic operations.
enum class memory_use : std::uint8_t { read, write, atomic, asynchronous_copy };

/// Two accesses to the same bytes of shared memory that no barrier orders.
struct race {
  struct access {
    const instruction* what = nullptr;
    memory_use how = memory_use::read;
    dimensions block, thread;
  };
  access earlier, later;     // the two accesses, in the order in which they were executed
  std::uint32_t offset = 0;  // offset of a byte that both accesses use, in the shared memory of `owner`
  dimensions owner;          // the block that owns this shared memory
};

/// Stores one race for each pair of source lines. Thread-safe.
class race_report {
 public:
  /// Both arguments must outlive the report.
  race_report(const ptx::program& program, const function& kernel) : program_(program), kernel_(kernel) {}

  void add(const race& found);
  /// Returns one sentence for each pair of source lines that no earlier call of take() has returned, in the order of
  /// the lines.
  [[nodiscard]] std::vector<std::string> take();
  /// A race with the places of its accesses in the source, and the name of the variable.
  struct placed_race {
    race what;
    std::string earlier, later, variable;
  };
  /// Like take(), independent of its calls.
  [[nodiscard]] std::vector<placed_race> take_placed();

 private:
  // The source file, line and use of both accesses; file 0 and the line of the PTX text if the source is unknown.
  using pair_of_lines = std::tuple<std::uint32_t, std::uint32_t, memory_use, std::uint32_t, std::uint32_t, memory_use>;
  struct counted_race {
    race example;  // the race in the block that comes first in the grid
    std::uint64_t times = 0;
    bool is_told = false, is_placed = false;  // whether take() and take_placed() have returned it
  };

  [[nodiscard]] std::string sentence(const counted_race& e) const;
  [[nodiscard]] std::string place(const instruction& i) const;

  const ptx::program& program_;
  const function& kernel_;
  mutex mutex_;
  std::map<pair_of_lines, counted_race> entries_ HPE_GUARDED_BY(mutex_);
};

}  // namespace hpe::ptx
