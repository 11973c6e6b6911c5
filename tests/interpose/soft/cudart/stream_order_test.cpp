// Runs random programs with streams and events. CUDA's rules determine which tasks must have finished before another
// task begins; each task records when it began and finished.

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <random>
#include <set>
#include <thread>
#include <vector>

#include "interpose/soft/cudart/stream/capture.h"
#include "interpose/soft/cudart/stream/event.h"
#include "interpose/soft/cudart/stream/stream_table.h"

namespace hpe::cudart {
namespace {

struct ordered_task {
  std::atomic<int> began{0};
  std::atomic<int> finished{0};
  std::set<int> before;  // the tasks that must have finished before this task begins
};

/// CUDA's rules as sets: for each stream, the tasks that must precede its next task.
struct rules {
  explicit rules(int streams) : behind(streams), blocking(streams) {}

  // Returns the tasks that must precede the next task on a stream; stream 0 is the legacy stream.
  std::set<int> of(int stream) const {
    std::set<int> result = behind[stream];
    if (stream == 0) {
      for (std::size_t s = 1; s < behind.size(); ++s) {
        if (blocking[s]) result.insert(behind[s].begin(), behind[s].end());
      }
    } else if (blocking[stream]) {
      result.insert(behind[0].begin(), behind[0].end());
    }
    return result;
  }

  std::vector<std::set<int>> behind;
  std::vector<bool> blocking;
};

void run_random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  constexpr int stream_count = 6;
  constexpr int event_count = 4;
  constexpr int steps = 120;

  stream_table table(1);
  std::vector<std::shared_ptr<cudart_stream>> streams{table.find(nullptr, 0)};
  rules expected(stream_count);
  for (int s = 1; s < stream_count; ++s) {
    expected.blocking[s] = below(2) == 0;
    const unsigned flags = expected.blocking[s] ? cudaStreamDefault : cudaStreamNonBlocking;
    streams.push_back(table.find(table.create(0, flags, 0), 0));
  }
  std::vector<std::shared_ptr<event>> events;
  std::vector<std::set<int>> recorded(event_count);
  for (int e = 0; e < event_count; ++e) events.push_back(std::make_shared<event>(0, 0));

  std::vector<std::unique_ptr<ordered_task>> tasks;
  std::atomic<int> clock{0};
  for (int step = 0; step < steps; ++step) {
    const int s = below(stream_count);
    const int e = below(event_count);
    switch (below(5)) {
      case 0:
        record_event(*streams[s], nullptr, events[e], 0);
        recorded[e] = expected.of(s);
        expected.behind[s] = expected.of(s);  // a recording is work, too: later legacy work follows it
        break;
      case 1:
        wait_for_event(*streams[s], nullptr, events[e], 0);
        if (events[e]->last()) {
          expected.behind[s] = expected.of(s);
          expected.behind[s].insert(recorded[e].begin(), recorded[e].end());
        }
        break;
      default: {
        const int number = static_cast<int>(tasks.size());
        tasks.push_back(std::make_unique<ordered_task>());
        ordered_task& made = *tasks.back();
        made.before = expected.of(s);
        const int micros = below(200);
        ASSERT_EQ(streams[s]->enqueue([&made, &clock, micros] {
          made.began = ++clock;
          if (micros > 100) std::this_thread::sleep_for(std::chrono::microseconds(micros));
          made.finished = ++clock;
          return cudaSuccess;
        }),
                  cudaSuccess);
        expected.behind[s] = made.before;
        expected.behind[s].insert(number);
      }
    }
  }
  ASSERT_EQ(table.of_device(0).synchronize(), cudaSuccess);
  for (const auto& each : tasks) {
    ASSERT_NE(each->finished, 0);
    for (const int before : each->before) {
      ASSERT_LT(tasks[before]->finished, each->began) << "seed " << seed << ", behind task " << before;
    }
  }
}

TEST(StreamOrder, RandomProgramsKeepTheRules) {
  const unsigned first = std::random_device()();
  for (unsigned i = 0; i < 60; ++i) {
    run_random_program(first + i);
    if (HasFatalFailure()) return;
  }
}

}  // namespace
}  // namespace hpe::cudart
