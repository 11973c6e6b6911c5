// Random programs of streams, events, waits and accesses, compared with an oracle that builds the graph of all
// dependences and searches it for paths.

#include <gtest/gtest.h>

#include <algorithm>
#include <bitset>
#include <cstdlib>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "runtime/check/byte_history.h"
#include "runtime/check/checker.h"
#include "runtime/check/order.h"

using namespace hpe::check;

namespace {

constexpr std::size_t most_nodes = 64;
using nodes = std::bitset<most_nodes>;

/// The dependences, as an engineer would draw them: a node for each piece of work and for each wait of the host.
class oracle {
 public:
  std::size_t add(const std::vector<std::size_t>& after) {
    nodes before;
    for (const std::size_t each : after) before |= before_[each] | nodes(1) << each;
    before_.push_back(before);
    return before_.size() - 1;
  }
  [[nodiscard]] bool is_ordered(std::size_t earlier, std::size_t later) const { return before_[later][earlier]; }

 private:
  std::vector<nodes> before_;  // for each node, all nodes from which a path leads to it
};

struct made_access {
  std::size_t node;
  unsigned byte;
  use how;
};

class random_program {
 public:
  explicit random_program(unsigned seed) : random_(seed) {}

  void run() {
    const unsigned lines = number(1, 4);
    for (unsigned i = 0; i < lines; ++i) {
      order_.add_line();
      ends_.emplace_back();
    }
    const unsigned steps = number(2, 30);
    for (unsigned i = 0; i < steps; ++i) step();
  }

  /// Whether two pieces of work have the order that the oracle says, for all pairs.
  [[nodiscard]] bool agrees_on_order() const {
    for (std::size_t later = 0; later < works_.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier)
        if (order_.is_ordered(works_[earlier].past->self, *works_[later].past) !=
            oracle_.is_ordered(works_[earlier].node, works_[later].node))
          return false;
    return true;
  }
  [[nodiscard]] bool found() const { return found_; }
  /// Whether any two accesses conflict.
  [[nodiscard]] bool has_conflict() const {
    for (std::size_t later = 0; later < accesses_.size(); ++later)
      for (std::size_t earlier = 0; earlier < later; ++earlier) {
        const made_access &a = accesses_[earlier], &b = accesses_[later];
        if (a.byte != b.byte || a.node == b.node) continue;
        const auto are = [&](use one, use other) {
          return (a.how == one && b.how == other) || (a.how == other && b.how == one);
        };
        if (a.how != use::write && b.how != use::write && !are(use::read, use::atomic)) continue;
        if (!oracle_.is_ordered(a.node, b.node)) return true;
      }
    return false;
  }
  /// Whether each reported pair is a pair of the oracle.
  [[nodiscard]] bool reported_wrongly() const { return wrong_; }

 private:
  struct work {
    std::size_t node;
    past_ptr past;
  };

  unsigned number(unsigned from, unsigned to) { return std::uniform_int_distribution(from, to)(random_); }

  void step() {
    const unsigned line = number(0, static_cast<unsigned>(ends_.size()) - 1);
    switch (number(0, 7)) {
      case 0:  // an event
        if (ends_[line]) events_.push_back(*ends_[line]);
        return;
      case 1:  // the host waits for a line or an event
        if (number(0, 1) == 0 && !events_.empty())
          return wait(events_[number(0, static_cast<unsigned>(events_.size()) - 1)]);
        if (ends_[line]) wait(*ends_[line]);
        return;
      case 2:  // like the legacy default stream: after the ends of all lines
        return queue(line, true, false);
      case 3: return queue(line, false, true);
      default: return queue(line, false, false);
    }
  }

  void wait(const work& ended) {
    order_.wait(ended.past);
    std::vector<std::size_t> after{ended.node};
    if (host_) after.push_back(*host_);
    host_ = oracle_.add(after);
  }

  void queue(unsigned line, bool after_all, bool after_event) {
    std::vector<std::size_t> nodes_before;
    std::vector<past_ptr> pasts_before;
    if (ends_[line]) nodes_before.push_back(ends_[line]->node);
    if (host_) nodes_before.push_back(*host_);
    const auto add = [&](const work& w) {
      nodes_before.push_back(w.node);
      pasts_before.push_back(w.past);
    };
    if (after_all)
      for (const auto& each : ends_)
        if (each) add(*each);
    if (after_event && !events_.empty()) add(events_[number(0, static_cast<unsigned>(events_.size()) - 1)]);
    const work made{oracle_.add(nodes_before), order_.queue(line, pasts_before)};
    ends_[line] = made;
    works_.push_back(made);
    for (unsigned n = number(0, 2); n > 0; --n) access(made);
  }

  void access(const work& by) {
    const made_access made{by.node, number(0, 2), static_cast<use>(number(0, 3))};
    const actor_ptr who = std::make_shared<actor>(
        actor{{nullptr, std::make_shared<const checked_work>(checked_work{by.past, 0, nullptr})}, 0});
    nodes_of_[who.get()] = by.node;
    kept_.push_back(who);
    const touched what{1 + made.byte, 2 + made.byte, &who};
    history_.add(
        {&what, 1}, made.how, true,
        [&](const actor& a, const actor& b) {
          const past_ptr& earlier = a.run.work->when;
          const past_ptr& later = b.run.work->when;
          return earlier == later || order_.is_ordered(earlier->self, *later);
        },
        [&](std::uintptr_t, std::uintptr_t, const actor_ptr&, const actor* earlier, use) {
          found_ = true;
          wrong_ = wrong_ || oracle_.is_ordered(nodes_of_.at(earlier), by.node);
        });
    accesses_.push_back(made);
  }

  std::minstd_rand random_;
  work_order order_;
  oracle oracle_;
  byte_history history_{1, 3, true};
  std::vector<std::optional<work>> ends_;
  std::vector<work> events_, works_;
  std::optional<std::size_t> host_;
  std::vector<made_access> accesses_;
  std::vector<actor_ptr> kept_;
  std::map<const actor*, std::size_t> nodes_of_;
  bool found_ = false, wrong_ = false;
};

}  // namespace

TEST(Oracle, AgreesOnRandomPrograms) {
  const char* const wanted = std::getenv("HPE_TEST_CHECK_PROGRAMS");
  const unsigned programs = wanted != nullptr ? static_cast<unsigned>(std::atoi(wanted)) : 20000;
  unsigned with_conflict = 0;
  for (unsigned seed = 1; seed <= programs; ++seed) {
    random_program program(seed);
    program.run();
    ASSERT_TRUE(program.agrees_on_order()) << "program " << seed;
    ASSERT_EQ(program.found(), program.has_conflict()) << "program " << seed;
    ASSERT_FALSE(program.reported_wrongly()) << "program " << seed;
    with_conflict += program.found() ? 1 : 0;
  }
  EXPECT_GT(with_conflict, programs / 10);
  EXPECT_LT(with_conflict, programs - programs / 10);
}
