#include "tests/node/history.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <vector>

namespace node_test {

namespace {

// An operation on other bytes is printed only while the tail has fewer lines than this.
constexpr std::size_t most_on_other_bytes = 100;

}  // namespace

std::string history::operation::in_words() const {
  std::string line =
      fmt::format("step {}: {}, allocation {}, {} bytes from {}", step, name, allocation, where.bytes, where.begin);
  if (source.allocation != 0) line += fmt::format(", reads allocation {} from {}", source.allocation, source.at);
  return line;
}

void history::note(const char* operation, const contents& of, const range& where, effect what, place source) {
  operations_.push_back({step_, operation, of.id, where, what, source});
  if (operations_.size() > most_operations) operations_.pop_front();
}

report history::well(const report& r, const contents& of, const range& where) const {
  EXPECT_EQ(r.status, HPE_SUCCESS) << r.words << tail({of.id, where.begin});
  return r;
}

void history::expect_bytes(const char* operation, const contents& of, const range& where, const read& from,
                           std::size_t first) {
  const auto are_right = [&](std::size_t bytes) {
    const report r = from({where.begin, bytes});
    EXPECT_EQ(r.status, HPE_SUCCESS) << r.words;
    return r.status == HPE_SUCCESS && r.value == hash_of(of.bytes.data() + first + where.begin, bytes);
  };
  const range here{first + where.begin, where.bytes};
  if (are_right(where.bytes)) return note(operation, of, here, effect::agrees);
  note(operation, of, here, effect::none);
  std::size_t right = 0;  // so many of the bytes are right, and so many are not
  std::size_t wrong = where.bytes;
  while (wrong - right > 1) {
    const std::size_t middle = right + (wrong - right) / 2;
    (are_right(middle) ? right : wrong) = middle;
  }
  ADD_FAILURE() << operation << ": byte " << here.begin + right << " of the " << of.size() << " bytes of allocation "
                << of.id << " differs" << (are_right(wrong) ? ", but not when it is read again" : "")
                << "; the tail:" << tail({of.id, here.begin + right});
}

std::string history::tail(const place& wrong) const {
  std::vector<place> sought{wrong};
  std::vector<std::string> lines;  // the latest first
  std::size_t left_out = 0;
  for (auto o = operations_.rbegin(); o != operations_.rend() && !sought.empty(); ++o) {
    std::vector<place> before;  // the bytes of which the operation made the sought bytes
    bool marked = false;
    for (const place& p : sought) {
      const bool used = o->uses(p);
      marked |= used;
      const bool begins_here =
          used && (o->what == effect::sets || (o->what == effect::agrees && o->name == operations_.back().name));
      if (!begins_here) before.push_back(p);
      if (used && o->source.allocation != 0)
        before.push_back({o->source.allocation, o->source.at + (p.at - o->where.begin)});
    }
    sought = std::move(before);
    if (marked || lines.size() < most_on_other_bytes)
      lines.push_back((marked ? "* " : "  ") + o->in_words());
    else
      ++left_out;
  }
  std::string result;
  if (!sought.empty()) result += fmt::format("\n(the cause may be before the latest {} operations)", most_operations);
  if (left_out != 0) result += fmt::format("\n({} operations on other bytes are left out)", left_out);
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) result += "\n" + *line;
  return result;
}

}  // namespace node_test
