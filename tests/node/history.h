#pragma once

/// The latest operations of a random sequence, for the message about a difference between the model and the memory.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <string_view>

#include "tests/node/contents.h"
#include "tests/node/orders.h"

namespace node_test {

/// The effect of an operation on bytes of an allocation.
enum class effect : std::uint8_t {
  none,     // leaves the bytes as they are
  sets,     // the bytes get new values, which are copies of a source if there is one
  changes,  // the new values depend on the old values, and on a source if there is one
  agrees,   // the bytes were read, and were those of the model
};

/// A byte: the number of its allocation (contents::id), and its offset in the allocation. Allocation 0 does not exist.
struct place {
  std::uint64_t allocation = 0;
  std::size_t at = 0;
};

class history {
 public:
  /// Begins the next step of the sequence, from 1.
  void next_step() { ++step_; }
  [[nodiscard]] std::uint64_t step() const { return step_; }

  /// Records an operation of this step. `source`: the first byte of another allocation that the operation reads, if it
  /// reads another allocation.
  void note(const char* operation, const contents& of, const range& where, effect what, place source = {});

  /// Expects the success of an order of the latest operation, and prints the latest operations if the order failed.
  report well(const report& r, const contents& of, const range& where) const;

  /// Tells a process to read some bytes, and to report hash_of them.
  using read = std::function<report(const range&)>;
  /// Records a read, and expects that the process reads the bytes of the model. If a byte differs, prints the latest
  /// operations on this byte. The offsets that `from` receives count from byte `first` of the allocation.
  void expect_bytes(const char* operation, const contents& of, const range& where, const read& from,
                    std::size_t first = 0);

  /// The shortest tail of the sequence that contains the cause if the latest operation finds a wrong byte: the
  /// operations since the last one that set the byte, or since the last operation of the same name that found it right.
  /// (Operations of other names may have read another copy of the byte.) If the value of the byte was computed from
  /// other bytes, the tail also contains the operations that set those bytes. The tail has one line for each operation,
  /// the latest last. A star marks the operations on the byte and on the bytes from which its value was computed.
  [[nodiscard]] std::string tail(const place& wrong) const;

 private:
  static constexpr std::size_t most_operations = 100000;

  struct operation {
    std::uint64_t step;
    std::string_view name;
    std::uint64_t allocation;
    range where;
    effect what;
    place source;

    [[nodiscard]] bool uses(const place& p) const {
      return allocation == p.allocation && p.at >= where.begin && p.at - where.begin < where.bytes;
    }
    [[nodiscard]] std::string in_words() const;
  };

  std::uint64_t step_ = 0;
  std::deque<operation> operations_;  // the latest ones, in order
};

}  // namespace node_test
