#pragma once

/// The processes that share a run, in two levels: groups of processes compute different shots, and the processes of a
/// group have consecutive slabs of one grid. The devices of a process may also form groups, which compute different
/// shots.

#include <cstddef>
#include <cstdint>
#include <future>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace hpe::rtm {

/// Exchanges the outermost planes of a slab with the processes that compute the neighbouring slabs. Ranges are hpe
/// memory; ranges on a side without a neighbour are ignored.
class halo_exchange {
 public:
  virtual ~halo_exchange() = default;

  /// Begins to send the outermost planes of the slab, and to receive the planes beyond the slab. Waits only for the
  /// kernels that write the sent planes, so it returns while other queued kernels run.
  virtual void begin(std::span<float> first, std::span<float> before, std::span<float> last,
                     std::span<float> after) = 0;
  /// Waits until kernels that are queued after this call can read the received planes. Does nothing if no exchange was
  /// begun.
  virtual void finish() = 0;
};

/// This base class is a team of a single process. All processes of a team make the same calls in the same order.
/// Failures throw hpe::error.
class team {
 public:
  virtual ~team() = default;

  [[nodiscard]] virtual int part() const { return 0; }    ///< the number of this process's slab
  [[nodiscard]] virtual int parts() const { return 1; }   ///< number of slabs of a grid
  [[nodiscard]] virtual int group() const { return 0; }   ///< number of this process's group
  [[nodiscard]] virtual int groups() const { return 1; }  ///< number of groups, which compute different shots
  [[nodiscard]] bool first() const { return part() == 0 && group() == 0; }

  /// Makes an exchange with the neighbours in this group; null if the grid is not cut.
  [[nodiscard]] virtual std::unique_ptr<halo_exchange> halo() { return nullptr; }

  /// Returns the values of all parts of a group, in the order of the parts, on part 0; an empty vector on the other
  /// parts.
  [[nodiscard]] virtual std::vector<float> gather(std::vector<float> mine) { return mine; }

  /// Returns the values that part 0 of a group passed, on the first process; an empty vector on all other processes.
  [[nodiscard]] virtual std::vector<float> from_group(int /*group*/, std::vector<float> mine) { return mine; }

  /// Returns the value that the first process passed.
  [[nodiscard]] virtual std::int64_t of_first(std::int64_t mine) { return mine; }
};

/// Makes the shots [first, shots) in rounds. In a round, each group of the team makes `here` shots, one on each group
/// of devices of its processes. make(g, n) makes shot n on group g of this process and returns an array of lists of
/// values; a thread for each group calls it. take(n, lists) is called on the first process for each shot, in ascending
/// order, with the lists of part 0 of the group that made the shot.
template <class Make, class Take>
void in_rounds(team& with, std::size_t here, std::size_t first, std::size_t shots, Make make, Take take) {
  using lists = decltype(make(here, first));
  const std::size_t at_once = here * static_cast<std::size_t>(with.groups());
  for (std::size_t round = first; round < shots; round += at_once) {
    const std::size_t mine = round + here * static_cast<std::size_t>(with.group());
    const auto make_one = [&](std::size_t g) { return mine + g < shots ? make(g, mine + g) : lists{}; };
    std::vector<std::future<lists>> others;
    for (std::size_t g = 1; g < here; ++g) others.push_back(std::async(std::launch::async, make_one, g));
    std::vector<lists> made;
    made.push_back(make_one(0));
    for (std::future<lists>& it : others) made.push_back(it.get());
    for (std::size_t g = 0; g < at_once && round + g < shots; ++g) {
      const auto group = static_cast<int>(g / here);
      lists taken;
      for (std::size_t i = 0; i < taken.size(); ++i)
        taken[i] = with.from_group(group, group == with.group() ? std::move(made[g % here][i]) : std::vector<float>{});
      if (with.first()) take(round + g, std::move(taken));
    }
  }
}

}  // namespace hpe::rtm
