#pragma once

/// A process that uses hpe and is controlled by a test.

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/node/orders.h"

namespace node_test {

class process {
 public:
  /// devices: the value of HPE_DEVICES. variables: more variables, as NAME=value. starter: words of a command that
  /// starts the program.
  explicit process(const std::string& devices = "soft:2", const std::vector<std::string>& variables = {},
                   const std::vector<std::string>& starter = {});
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  /// Ends the process normally, if it still runs.
  ~process();

  /// Sends an order and waits for the report. If the process dies before it reports, the report has the status
  /// HPE_ERROR_SYSTEM.
  report tell(const order& o);
  /// The two steps of tell(), between which other processes can act.
  void start(const order& o);
  report finish();

  // These functions expect success.
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

  // These functions return the report, because they may fail.
  report copy(std::uint64_t number, std::size_t offset, const hpeExport& handle, std::size_t from, std::size_t bytes);
  report copy_out(const hpeExport& handle, std::size_t from, std::size_t bytes, std::uint64_t seed, std::uint64_t at);

  [[nodiscard]] pid_t pid() const { return pid_; }
  void kill();
  /// Closes the input of the process, so that it returns from main, and returns its exit status.
  int leave();

 private:
  int reap();

  pid_t pid_ = -1;
  int orders_ = -1;
  int reports_ = -1;
};

/// A fresh seed, which is printed if the test fails.
[[nodiscard]] std::uint64_t fresh_seed();

}  // namespace node_test
