// The host's first access to memory whose host pages are new (no earlier allocation used the pages), compared with the
// rate at which the operating system allocates huge pages. Also measures what it costs to prepare such pages.
#include <fmt/core.h>
#include <sys/mman.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <memory>
#include <stdexcept>
#include <thread>

#include "bench/transfers/parts.h"
#include "tests/core/kernels.h"

namespace hpe::bench {

namespace {

constexpr std::size_t words = stream_bytes / sizeof(std::uint32_t);
using words_array = hpe::array<std::uint32_t>;

/// Calls body(memory) with anonymous memory for which no pages are allocated yet.
template <class Body>
void with_new_memory(std::size_t bytes, Body body) {
  constexpr std::size_t huge_page = 2 * mebi;
  const std::size_t all = bytes + huge_page;
  void* const p = ::mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) throw std::runtime_error("mmap failed");
  ::madvise(p, all, MADV_HUGEPAGE);
  const std::size_t past = reinterpret_cast<std::uintptr_t>(p) % huge_page;
  body(static_cast<std::byte*>(p) + (past == 0 ? 0 : huge_page - past));
  ::munmap(p, all);
}

/// Allocates and frees as many pages as the benchmark uses later. A virtual machine gets memory from its host when it
/// first uses the memory, which takes longer than all times measured here.
void wake_memory(std::size_t bytes) {
  with_new_memory(bytes, [&](std::byte* p) {
    in_crowd(bytes, 8 * mebi, [&](std::size_t at, std::size_t size) {
      for (std::size_t i = 0; i < size; i += page) p[at + i] = std::byte{1};
    });
  });
}

/// Returns the time in which four threads allocate huge pages. Four threads are the fastest number on the hosts of
/// H200s.
timing make_pages(unsigned repeats) {
  constexpr unsigned threads = 4;
  constexpr std::size_t chunk = 16 * mebi;
  timing result{};
  with_new_memory(stream_bytes, [&](std::byte* p) {
    result = timed(
        repeats, [&] { ::madvise(p, stream_bytes, MADV_DONTNEED); },
        [&] {
          in_crowd(
              stream_bytes, chunk,
              [&](std::size_t at, std::size_t size) {
                for (std::size_t i = 0; i < size; i += page) p[at + i] = std::byte{1};
              },
              threads);
        });
  });
  return result;
}

}  // namespace

namespace {

using body = std::function<void()>;
using seconds = std::chrono::seconds;

/// A new array for each repeat, which the GPU writes. Earlier arrays are not freed, so that no array reuses the host
/// pages of another array.
class new_arrays {
 public:
  void allocate() { all_.push_back(std::make_unique<words_array>(words)); }
  void allocate_and_fill(seconds between) {
    allocate();
    if (between != seconds(0)) std::this_thread::sleep_for(between);
    launch_fill(*all_.back());
  }
  [[nodiscard]] std::byte* latest() const { return reinterpret_cast<std::byte*>(all_.back()->data()); }

 private:
  std::vector<std::unique_ptr<words_array>> all_;
};

void measure_first_touches(table& t, const link_rates& is, bool later_too) {
  new_arrays arrays;
  wake_memory(((later_too ? 5 : 3) * (t.repeats + 1) + 4) * stream_bytes);
  const timing pages = make_pages(t.repeats);
  t.rate("4 threads make huge pages", stream_bytes, pages);
  const double made = rate_of(stream_bytes, pages.median);
  const body touch = [&] { touch_pages(arrays.latest(), stream_bytes); };
  const body read = [&] { read_all(arrays.latest(), stream_bytes); };
  for (const auto& [touches, who] : {std::pair<body, const char*>{touch, "1 thread"}, {read, "8 threads"}}) {
    const timing at_once = timed(
        t.repeats, [&] { arrays.allocate_and_fill(seconds(0)); }, touches);
    t.rate(fmt::format("first touch right after hpeMalloc, {}", who), stream_bytes, at_once, made,
           "of the rate at which 4 threads make huge pages", 0.9);
    t.share(at_once, stream_bytes, is.down, "of the link");
    if (!later_too) continue;
    t.rate(fmt::format("first touch 1 s after hpeMalloc, {}", who), stream_bytes,
           timed(
               t.repeats, [&] { arrays.allocate_and_fill(seconds(1)); }, touches),
           is.down, "of the link", 0.85);
  }
  // During each call, hpe's threads are still preparing the pages of the previous array.
  t.time("hpeMalloc of 1 GiB",
         timed(
             t.repeats, [] {}, [&] { arrays.allocate(); }),
         1, 1e-3);
}

}  // namespace

void first_touches(table& t, const link_rates& is) { measure_first_touches(t, is, true); }

void touches_at_once(table& t, const link_rates& is) { measure_first_touches(t, is, false); }

void work_without_touches() {
  const words_array a(words);
  // On an H200, these launches take about two seconds.
  for (int i = 0; i < 6000; ++i)
    hpe::launch(test_kernel().fill, hpe::grid(1024), {a.data(), a.size(), fresh_seed()}, hpe::out(a));
  hpe::synchronize();
}

void untouched_programs(table& t) {
  const auto run = [program = std::filesystem::read_symlink("/proc/self/exe").string()](const char* budget) {
    const std::string command = fmt::format("HPE_PREPARED_MEMORY={} '{}' --only untouched", budget, program);
    if (std::system(command.c_str()) != 0)
      throw std::runtime_error(command + " failed");  // NOLINT(concurrency-mt-unsafe,cert-env33-c)
  };
  const auto nothing = [] {};
  const auto times = paired_timings(
      t.repeats, nothing, [&] { run("2G"); }, nothing, [&] { run("0"); });
  t.time("a program whose CPU code never touches its 1 GiB, with HPE_PREPARED_MEMORY=2G", times.first);
  t.time("the same with HPE_PREPARED_MEMORY=0", times.second, 1);
  const double more = times.first.median / times.second.median - 1;
  t.lines.push_back({"  additional time of prepared pages", more * 100, "%", "< 1", more < 0.01});
}

}  // namespace hpe::bench
