#include "tests/stress/support.h"

#include <cstdio>
#include <cstdlib>
#include <thread>

#include "tests/threads_told.h"

namespace stress {

namespace {

std::uint64_t number_from(const char* variable, std::uint64_t otherwise) {
  const char* text = std::getenv(variable);  // NOLINT(concurrency-mt-unsafe)
  return text != nullptr ? std::strtoull(text, nullptr, 0) : otherwise;
}

}  // namespace

const loaded_kernels& kernels() {
  static const loaded_kernels all;
  return all;
}

std::uint64_t dice::length(std::uint64_t most) {
  unsigned bits = 0;
  while (bits < 63 && (most >> (bits + 1)) != 0) ++bits;
  const std::uint64_t top = std::uint64_t{2} << below(bits + 1);
  return std::min(most, 1 + below(top));
}

std::uint8_t* allocate_anywhere(dice& random, std::size_t& size) {
  constexpr std::size_t mebi = std::size_t{1} << 20;
  static constexpr std::size_t sizes[] = {100,    256,      1000,     5000,         70000,    200000,
                                          300000, mebi + 3, 2 * mebi, 3 * mebi + 9, 5 * mebi, 8 * mebi};
  size = sizes[random.below(std::size(sizes))];
  void* pointer = nullptr;
  switch (random.below(5)) {
    case 0: {
      // hpe never moves host memory to the spill file, so allocating host memory may fail if host memory has a limit.
      // In this case, allocates device memory.
      const hpeStatus status = hpeMallocHost(&pointer, size);
      if (status == HPE_ERROR_OUT_OF_MEMORY && std::getenv("HPE_HOST_MEMORY") != nullptr)
        hpe::check(hpeMallocOn(&pointer, size, random.device()));
      else
        hpe::check(status);
      break;
    }
    case 1:
    case 2: {
      const int devices[] = {random.device(), random.device()};
      const hpeDistribution spread{static_cast<hpeDistributionKind>(random.below(3)), 2 * mebi * (1 + random.below(2)),
                                   random.one_in(2) || devices[0] == devices[1] ? nullptr : devices, 2};
      hpe::check(hpeMallocStriped(&pointer, size, &spread));
      break;
    }
    default: hpe::check(hpeMallocOn(&pointer, size, random.device()));
  }
  return static_cast<std::uint8_t*>(pointer);
}

void run_state::fail(const std::string& what) {
  if (!failed_.exchange(true)) std::fprintf(stderr, "stress: %s\n", what.c_str());
  stop();
}

void run_threads(unsigned count, run_state& state, const std::function<void(unsigned, std::uint64_t)>& body) {
  using clock = std::chrono::steady_clock;
  const std::uint64_t seed = number_from("HPE_STRESS_SEED", std::random_device{}());
  const auto end = clock::now() + std::chrono::seconds(number_from("HPE_STRESS_SECONDS", 3));
  std::printf("HPE_STRESS_SEED=%llu\n", static_cast<unsigned long long>(seed));
  std::fflush(stdout);

  std::atomic<unsigned> running{count};
  std::vector<std::thread> threads;
  for (unsigned i = 0; i < count; ++i)
    threads.emplace_back([&, i] {
      body(i, seed * 1000 + i);
      --running;
    });

  std::uint64_t seen = 0;
  auto last_step = clock::now();
  while (running != 0) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    if (clock::now() > end && state.steps() >= fewest_steps) state.stop();
    if (state.steps() != seen) {
      seen = state.steps();
      last_step = clock::now();
    } else if (clock::now() - last_step > std::chrono::minutes(1)) {
      std::fprintf(stderr, "stress: no step for a minute, after %llu; %u threads hang\n",
                   static_cast<unsigned long long>(seen), running.load());
      tell_where_threads_are();
      std::abort();
    }
  }
  for (std::thread& t : threads) t.join();
  std::printf("%llu steps\n", static_cast<unsigned long long>(state.steps()));
}

std::vector<std::uint64_t> memory_in_use() {
  static_cast<void>(hpeSynchronize());
  std::vector<std::uint64_t> used;
  for (int d = 0; d < hpe::device_count(); ++d) {
    const hpeDeviceInfo info = hpe::device_info(d);
    used.push_back(info.memory_total - info.memory_free);
  }
  return used;
}

bool no_more_in_use_than(const std::vector<std::uint64_t>& before) {
  const std::vector<std::uint64_t> now = memory_in_use();
  bool result = true;
  for (std::size_t d = 0; d < now.size(); ++d) {
    if (now[d] <= before.at(d)) continue;
    std::printf("device %zu has %llu bytes in use, %llu before\n", d, static_cast<unsigned long long>(now[d]),
                static_cast<unsigned long long>(before[d]));
    result = false;
  }
  return result;
}

}  // namespace stress
