#pragma once

/// A process that uses hpe, as a test drives it.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/node/orders.h"

namespace node_test {

class process {
 public:
  /// devices: as HPE_DEVICES has it. More variables as NAME=value. starter: words of a command that starts the program.
  explicit process(const std::string& devices = "soft:2", const std::vector<std::string>& variables = {},
                   const std::vector<std::string>& starter = {});
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  /// Ends it normally, if it still runs.
  ~process();

  /// Has it do something and waits for the report. A process that dies meanwhile reports HPE_ERROR_SYSTEM.
  report tell(const order& o);
  /// In two steps, so that others act in between.
  void start(const order& o);
  report finish();

  // Expect success.
  std::uint64_t allocate(std::size_t bytes, std::int32_t on = 0);
  void fill(std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t seed, std::uint64_t from = 0);
  hpeExport begin(std::uint64_t number, std::size_t offset, std::size_t bytes);
  void end(const hpeExport& handle);
  void free(std::uint64_t number);
  [[nodiscard]] bool reachable(const hpeExport& handle);
  /// Whether the bytes are the pattern of seed, from byte `from` on.
  [[nodiscard]] bool check(std::uint64_t number, std::size_t offset, std::size_t bytes, std::uint64_t seed,
                           std::uint64_t from = 0, order::kind how = order::kind::check);
  [[nodiscard]] std::uint64_t count(order::kind what);

  // Reports of what may fail.
  report copy(std::uint64_t number, std::size_t offset, const hpeExport& handle, std::size_t from, std::size_t bytes);
  report copy_out(const hpeExport& handle, std::size_t from, std::size_t bytes, std::uint64_t seed, std::uint64_t at);

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill();
  /// Closes its input, so that it returns from main, and gives its exit status.
  int leave();

 private:
  int reap();

  pid_t pid_ = -1;
  int orders_ = -1;
  int reports_ = -1;
};

/// A fresh seed, told when the test fails.
[[nodiscard]] std::uint64_t fresh_seed();

}  // namespace node_test
