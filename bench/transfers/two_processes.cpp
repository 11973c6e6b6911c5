#include "bench/transfers/two_processes.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <span>
#include <stdexcept>
#include <string>

#include "bench/common/devices.h"
#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"

namespace hpe::bench {

namespace {

void pass(const hpe::array<std::uint32_t>& data, std::size_t part) {
  constexpr std::uint32_t tiles_on_gpu = 1024;
  for (std::size_t at = 0; at + part <= data.size(); at += part) {
    const std::span some(data.data() + at, part);
    hpe::launch(test_kernel().increment, hpe::grid(on_gpus() ? tiles_on_gpu : test_tiles), {some.data(), part, 1, 0},
                hpe::inout(some));
  }
}

// The child process reads the number of passes of each phase from a pipe, makes the passes, and then writes 1 byte as
// the answer. Each pass adds 1 to every element, so that every element must equal the number of passes.
void work(std::size_t memory, std::size_t part_bytes, int orders, int answers) {
  const std::size_t part = part_bytes / sizeof(std::uint32_t);
  const hpe::array<std::uint32_t> data(memory / 4 * 3 / part_bytes * part);
  std::uint32_t passes = 0;
  for (unsigned more = 0; ::read(orders, &more, sizeof more) == sizeof more;) {
    for (unsigned i = 0; i < more; ++i) pass(data, part);
    hpe::synchronize();
    passes += more;
    if (::write(answers, "", 1) != 1) return;
  }
  for (const std::uint32_t x : data.span())
    if (x != passes) throw std::runtime_error(fmt::format("an element is {} after {} passes", x, passes));
}

}  // namespace

sharing_process::sharing_process(const char* group, std::size_t memory, std::size_t part) {
  int to[2], from[2];
  if (::pipe(to) != 0 || ::pipe(from) != 0) throw std::runtime_error("cannot create the pipes for a child process");
  std::fflush(nullptr);
  pid_ = ::fork();
  if (pid_ < 0) throw std::runtime_error("cannot create a child process");
  orders_ = to[1];
  answers_ = from[0];
  if (pid_ != 0) {
    ::close(to[0]);
    ::close(from[1]);
    return;
  }
  ::close(to[1]);
  ::close(from[0]);
  ::setenv("HPE_SHARE", group, 1);
  ::setenv("HPE_DEVICE_MEMORY", std::to_string(memory).c_str(), 1);
  try {
    work(memory, part, to[0], from[1]);
  } catch (const std::exception& e) {
    fmt::print(stderr, "one of two processes that share a device: {}\n", e.what());
    ::_exit(1);
  }
  std::exit(0);  // runs the exit handlers, which remove the file that the processes share
}

sharing_process::~sharing_process() {
  ::close(orders_);
  ::close(answers_);
  int status = 0;
  ::waitpid(pid_, &status, 0);
  if (status != 0) fmt::print(stderr, "one of two processes that share a device failed\n");
}

void sharing_process::start(unsigned passes) {
  if (::write(orders_, &passes, sizeof passes) != sizeof passes)
    throw std::runtime_error("a process that shares the device has ended");
}

void sharing_process::finish() {
  char answer = 0;
  if (::read(answers_, &answer, 1) != 1) throw std::runtime_error("a process that shares the device has failed");
}

}  // namespace hpe::bench
