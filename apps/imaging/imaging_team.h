#pragma once

/// Programs that run the same code on each of several devices, as threads of one process or as processes of a
/// distributed job. A *member* is one such thread or process with its device; the members of a run are a *team*.
///
/// The first member has the input and receives the result, in host memory. The work of a member is a sequence of
/// phases. Each phase ends before the next phase begins, so the time of a run is the sum of the times of its phases.

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

namespace hpe::imaging {

/// The kinds of work of a member. kernels: from launch to end. links: copies between host memory and its device.
/// exchange: transfers from and to other members. waiting: waits for other members before an exchange; processes of a
/// job count this time as exchange. cpu: work of the host.
enum class phase { kernels, links, exchange, waiting, cpu };
inline constexpr std::array phase_names{"kernels", "links", "exchange", "waiting", "cpu"};

/// The seconds of a run, and the seconds that the slowest member spent in each phase.
struct times {
  double seconds = 0;
  std::array<double, phase_names.size()> phases{};
};

/// One member's part of an array: the bytes [begin, begin + bytes). Parts of members may overlap.
struct part {
  std::size_t begin, bytes;
};
using division = std::vector<part>;

/// Divides `count` units of `unit` bytes into a part for each member; sizes differ by at most one unit.
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

  /// Waits until all members have called this function.
  virtual void wait_for_all() = 0;

  /// Collective: all members call this function. Returns this member's part of `all`, in host memory; it is valid until
  /// the next call of fetch(). Only the first member passes the array `all`.
  [[nodiscard]] virtual const std::byte* fetch(const void* all, const division& parts) = 0;
  /// Returns host memory to which this member writes its part of `all`. The memory is valid until the next call of
  /// room().
  [[nodiscard]] virtual std::byte* room(void* all, const division& parts) = 0;
  /// Collective. Copies the parts that members wrote to room() to `all` of the first member.
  virtual void deliver(void* all, const division& parts) = 0;
  /// Collective. Returns the address of the first member's bytes, or of a copy of them, in host memory. The copy is
  /// valid until the next call of broadcast_host().
  [[nodiscard]] virtual const std::byte* broadcast_host(const void* data, std::size_t bytes) = 0;

  /// Collective. For an array that all members have on their devices: copies each member's part of the array to all
  /// other members.
  virtual void all_gather(std::byte* array, const division& parts) = 0;
  /// Collective over the ranks [first, first + count), a row of a square of members. Copies bytes from the root's
  /// device to the devices of all other members of the row.
  virtual void broadcast(std::byte* data, std::size_t bytes, int root, int first, int count) = 0;
  /// Collective. Sends bytes from this member's device to member `to`, and receives the same number of bytes from
  /// member `from`.
  virtual void shift(const std::byte* out, int to, std::byte* in, int from, std::size_t bytes) = 0;

  /// Runs a phase of a measured run, and waits until all work that the member queued on its device has finished. All
  /// members run the same exchanges.
  void in(phase which, const std::function<void()>& work);
  /// Runs `run` several times and measures each run from a barrier before it to a barrier after it.
  void measure(std::int64_t repeats, const std::function<void()>& run);
  [[nodiscard]] const std::vector<times>& measured() const { return measured_; }

 private:
  /// Called before each exchange, so that the wait is timed apart from the transfers. Threads wait here for all
  /// members, because each exchange needs all of them. Processes do not wait here, because MPI may begin with the
  /// members that are ready.
  virtual void wait_before_exchange() {}

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
  /// Returns the number of devices that this process uses.
  [[nodiscard]] virtual int devices_here() const = 0;
  /// Whether this process runs the first member, which reads the input and writes the result.
  [[nodiscard]] virtual bool leads() const = 0;
  /// Runs the work of all members concurrently; returns the fastest of the measured runs, in the leading process.
  /// Rethrows an exception of a member, after which the team must not be used.
  virtual times run(const std::function<void(member&)>& work) = 0;
};

/// Makes a team of this number of devices (0: all). A distributed job ignores the number: it has one member per
/// process.
using make_team = std::function<std::unique_ptr<team>(std::int64_t devices)>;

/// Returns a team of threads of this process. Throws bad_input for more devices than the machine has.
[[nodiscard]] std::unique_ptr<team> make_threads(std::int64_t devices);

/// Returns the fastest run, which other programs disturb least. of_members: the times of all runs, by member.
[[nodiscard]] times fastest(const std::vector<std::vector<times>>& of_members);

}  // namespace hpe::imaging
