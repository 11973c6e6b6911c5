#pragma once

/// Programs that run the same text on each of several devices, as threads of one process or as processes of a
/// distributed job. A *member* is one such thread or process with its device; the members of a run are a *team*.
///
/// The first member has the input and gets the result, in host memory. Work is a sequence of phases, each of which ends
/// before the next one begins, so the time of a run is the sum of its phases.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hpe::imaging {

/// The kinds of work of a member. links: copies between host memory and its device. exchange: bytes from and to other
/// members.
enum class phase { kernels, links, exchange, cpu };
inline constexpr std::array phase_names{"kernels", "links", "exchange", "cpu"};

/// The seconds of a run, and those that the slowest member was in each phase.
struct times {
  double seconds = 0;
  std::array<double, phase_names.size()> phases{};
};

/// The bytes of an array that each member has: from `begin` on. Parts may overlap.
struct part {
  std::size_t begin, bytes;
};
using division = std::vector<part>;

/// The part of `count` units, of `unit` bytes each, for each of so many members; sizes differ by at most one unit.
[[nodiscard]] division divide(std::int64_t count, int members, std::size_t unit);

class member {
 public:
  member(int rank, int size, int device) : rank_(rank), size_(size), device_(device) {}
  member(const member&) = delete;
  member& operator=(const member&) = delete;
  virtual ~member() = default;

  [[nodiscard]] int rank() const { return rank_; }
  [[nodiscard]] int size() const { return size_; }
  [[nodiscard]] int device() const { return device_; }

  /// Waits until all members have called it.
  virtual void wait_for_all() = 0;

  /// This member's part of `all`, which only the first member needs to have, in host memory. All members call it.
  [[nodiscard]] virtual const std::byte* fetch(const void* all, const division& parts) = 0;
  /// Host memory for this member to write its part of `all` to; valid until the next call.
  [[nodiscard]] virtual std::byte* room(void* all, const division& parts) = 0;
  /// Brings what each member wrote to its room to `all`, which the first member has. All members call it.
  virtual void deliver(void* all, const division& parts) = 0;
  /// The first member's bytes in host memory; all members call it, and each gets the address of the bytes or of a copy.
  [[nodiscard]] virtual const std::byte* broadcast_host(const void* data, std::size_t bytes) = 0;

  /// All members have an array on their device, and each member's part of it has new values: brings them to all others.
  virtual void all_gather(std::byte* array, const division& parts) = 0;
  /// Brings bytes on the root's device to those of the same row of a square of members: ranks [first, first + count).
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, int first, int count) = 0;
  /// Sends bytes on this member's device to another member, and receives as many from a third one.
  virtual void shift(const std::byte* out, int to, std::byte* in, int from, std::size_t bytes) = 0;

  /// Does a phase of a measured run, until everything that the member queued on its device has finished.
  void in(phase which, const std::function<void()>& work);
  /// Runs something several times, from when all members are ready until all have finished.
  void measure(std::int64_t repeats, const std::function<void()>& run);
  [[nodiscard]] const std::vector<times>& measured() const { return measured_; }

 private:
  const int rank_, size_, device_;
  times current_;
  std::vector<times> measured_;
};

class team {
 public:
  team() = default;
  team(const team&) = delete;
  team& operator=(const team&) = delete;
  virtual ~team() = default;

  [[nodiscard]] virtual int size() const = 0;
  /// The number of devices that this process uses.
  [[nodiscard]] virtual int devices_here() const = 0;
  /// Whether this process has the first member, and so input, result and output.
  [[nodiscard]] virtual bool leads() const = 0;
  /// Runs the work of all members at once; returns the fastest of the measured runs, in the process that leads.
  /// Rethrows an exception of a member, after which the team must not be used.
  virtual times run(const std::function<void(member&)>& work) = 0;
};

/// Makes a team of so many devices, 0 being all; a distributed job has a member in each process instead.
using make_team = std::function<std::unique_ptr<team>(std::int64_t devices)>;

/// A team of threads of this process. Throws bad_input for more devices than there are.
[[nodiscard]] std::unique_ptr<team> make_threads(std::int64_t devices);

/// The run that took least time, from the runs of all members: other load only adds time.
[[nodiscard]] times fastest(const std::vector<std::vector<times>>& of_members);

}  // namespace hpe::imaging
