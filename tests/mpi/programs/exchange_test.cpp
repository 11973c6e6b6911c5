// Tests the messages of a collective call that ends by an exception: the call must return only after MPI has finished
// using the call's buffers. Runs in two ranks. The wrappers are linked into this program.
#include "interpose/mpi/collectives/exchange.h"

#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <new>
#include <vector>

extern "C" void hpe_mpi_use(void* (*behind)(const char* name));

namespace {

using namespace hpe::interpose::mpi;

constexpr int late_us = 300'000;
constexpr char sent = 1, reused = 2;

// Returns a function of the MPI library, instead of the wrapper in this program.
void* behind(const char* name) {
  static void* const library = ::dlopen("libmpi.so.40", RTLD_LAZY);
  return ::dlsym(library, name);
}

class call_of_two_ranks {
 public:
  call_of_two_ranks() : channel_(std::make_shared<near_channel>(MPI_COMM_WORLD)) {
    MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
    while (!channel_->ready()) {
    }
  }
  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] exchange::ranks who() const { return {rank_, 2, channel_, 7}; }

 private:
  std::shared_ptr<near_channel> channel_;
  int rank_ = 0;
};

bool all_are(const std::vector<char>& bytes, char value) {
  return std::all_of(bytes.begin(), bytes.end(), [value](char c) { return c == value; });
}

// Rank 0 begins a receive, fails, and reuses its buffer; rank 1 sends late.
bool failed_receive(const call_of_two_ranks& call, int count) {
  std::vector<char> buffer(static_cast<std::size_t>(count), sent);
  if (call.rank() == 0) {
    try {
      exchange messages(call.who());
      messages.receive(buffer.data(), count, MPI_CHAR, 1);
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
      std::fill(buffer.begin(), buffer.end(), reused);
    }
  } else {
    ::usleep(late_us);
    exchange messages(call.who());
    messages.send(buffer.data(), count, MPI_CHAR, 0);
    if (messages.finish(MPI_COMM_WORLD) != MPI_SUCCESS) return false;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return all_are(buffer, call.rank() == 0 ? reused : sent);
}

// Rank 0 begins a send, fails, and reuses its buffer; rank 1 receives late.
bool failed_send(const call_of_two_ranks& call, int count) {
  std::vector<char> buffer(static_cast<std::size_t>(count), call.rank() == 0 ? sent : reused);
  if (call.rank() == 0) {
    try {
      exchange messages(call.who());
      messages.send(buffer.data(), count, MPI_CHAR, 1);
      throw std::bad_alloc();
    } catch (const std::bad_alloc&) {
      std::fill(buffer.begin(), buffer.end(), reused);
    }
  } else {
    ::usleep(late_us);
    exchange messages(call.who());
    messages.receive(buffer.data(), count, MPI_CHAR, 0);
    if (messages.finish(MPI_COMM_WORLD) != MPI_SUCCESS) return false;
  }
  MPI_Barrier(MPI_COMM_WORLD);
  return all_are(buffer, call.rank() == 0 ? reused : sent);
}

}  // namespace

int main(int argc, char** argv) {
  hpe_mpi_use(behind);
  MPI_Init(&argc, &argv);
  int wrong = 0;
  {
    const call_of_two_ranks call;
    for (const int count : {1000, 4 << 20}) {
      for (const auto test : {failed_receive, failed_send})
        if (!test(call, count)) {
          std::printf("rank %d: the buffer of a failed %s of %d bytes was still in use\n", call.rank(),
                      test == failed_receive ? "receive" : "send", count);
          ++wrong;
        }
    }
  }
  MPI_Finalize();
  return wrong == 0 ? 0 : 1;
}
