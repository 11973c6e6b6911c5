#pragma once

/// A program that uses hpe, with a model of its memory. Each operation is a call of the C interface (or a touch by CPU
/// code) together with its effect on the model. A failed operation leaves each byte either unchanged or as after
/// success; verify() determines which, and expects the same bytes on the host and on the devices.

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "hpe/hpe.h"
#include "hpe/ptx.h"
#include "tests/sweep/failing_set.h"
#include "tests/sweep/sweep.h"

namespace sweep {

/// Bytes in which neighbouring blocks and pages differ.
[[nodiscard]] std::vector<std::uint8_t> pattern(std::size_t bytes, std::uint8_t first);

/// The values that a byte may have.
enum class knowledge : std::uint8_t {
  exact,    ///< the value in the model
  either,   ///< the value in the model, or the value that a failed operation would have written
  unknown,  ///< any value, the same for host and device
  anything  ///< a copy to its home failed late: host and device may differ
};

struct memory {
  std::uint8_t* data = nullptr;
  std::size_t bytes = 0;
  bool on_host = false;  ///< hpeMallocHost
  bool told = false;     ///< whether an error in this memory was reported; only the first error is reported
  std::vector<std::uint8_t> model;
  std::vector<std::uint8_t> other;
  std::vector<knowledge> known;
  std::vector<bool> host_valid;  ///< for each block: whether the host had a valid copy when the latest operation began
};

struct part {
  memory* of = nullptr;
  std::size_t begin = 0;
  std::size_t bytes = 0;
};

/// Thrown to end an action early, because its next steps depend on lost data.
struct action_over {};

class world {
 public:
  /// report: called with one sentence for each error.
  world(order first, std::function<void(const std::string&)> report);

  [[nodiscard]] unsigned devices() const noexcept { return devices_; }
  /// Whether the latest operation succeeded.
  [[nodiscard]] bool succeeded() const noexcept { return status_ == HPE_SUCCESS; }

  // A failed allocation returns nullptr.
  memory* allocate(std::size_t bytes, int device);
  memory* allocate_host(std::size_t bytes);
  memory* allocate_striped(std::size_t bytes, std::size_t chunk = 0);
  void free(memory* m);
  void free_all();

  // CPU code.
  void write(const part& p, std::uint8_t first);
  void read(const part& p);

  void set(const part& p, std::uint8_t value);
  void copy(const part& to, const part& from);
  void copy_in(const part& to, std::uint8_t first);
  void copy_out(const part& from);
  void prefetch(const part& p, int where);
  void advise(memory* m, hpeAdvice advice);
  void migrate(memory* m, int device);

  /// Launches a kernel that adds a number to bytes. everything: the launch declares the access HPE_ALL instead of
  /// HPE_INOUT.
  void launch_add(int device, const part& p, std::uint8_t by, bool everything = false);
  void launch_copy(int device, const part& to, const part& from);
  /// Launches on a team of devices. Each device adds `by` to its own part of the bytes.
  void team_add(const std::vector<int>& on, const part& p, std::uint8_t by);
  void enqueue(int device, const part& p);
  void synchronize();

  /// Makes any other call of hpe. writes: the effect on memory if the call succeeds.
  hpeStatus call(const char* name, const std::function<hpeStatus()>& function,
                 const std::vector<std::pair<part, std::vector<std::uint8_t>>>& writes = {});
  /// Adds memory that the world has not allocated to the model.
  memory* adopt(void* data, std::vector<std::uint8_t> contents);

  void report(const std::string& what) { report_(what); }
  /// Adds a function that runs before the memory is freed, however the action ends.
  void at_end(std::function<void()> cleanup) { cleanups_.push_back(std::move(cleanup)); }
  /// Called when no more failures are injected. If hpe has not reported a late failure before, it must report the
  /// failure in this call.
  void end_of_failures();
  /// Compares all memory with the model, as the host and as the devices see it.
  void verify();
  /// Makes small allocations on all devices, which verify() needs. Must be called before the first verify().
  void prepare();

 private:
  void begin_operation();
  void end_operation(const char* name, const std::vector<std::pair<part, std::vector<std::uint8_t>>>& writes);
  void check_message(const char* name);
  void account_for_late_failure();
  void mark_late_failure(const std::vector<std::pair<part, std::vector<std::uint8_t>>>& writes);
  [[nodiscard]] memory* add(void* data, std::size_t bytes, bool on_host);
  void mark_lost_work(const std::vector<std::pair<part, std::vector<std::uint8_t>>>& writes);
  static void set_known(const part& p, knowledge what);

  struct view {
    std::vector<std::uint8_t> bytes;
    std::vector<bool> readable;  ///< for each block
  };
  [[nodiscard]] view host_view(const memory& m);
  [[nodiscard]] view device_view(const memory& m);
  void compare(memory& m, const view& host, const view& devices);
  [[nodiscard]] bool may_be_gone(const memory& m, std::size_t block) const;

  order first_;
  std::function<void(const std::string&)> report_;
  unsigned devices_ = 0;
  hpeKernel copy_bytes_ = nullptr;
  hpeKernel add_to_bytes_ = nullptr;
  std::vector<std::unique_ptr<memory>> all_;
  std::vector<std::function<void()>> cleanups_;
  std::vector<std::uint8_t*> probes_;  // one on each device; device_view copies to it
  hpeStatus status_ = HPE_SUCCESS;
  std::string message_;
  std::string operation_;  ///< the name of the latest operation
  bool fired_before_ = false;
  bool accounted_ = false;  ///< whether the model includes the effect of the command that failed late
  bool over_ = false;       ///< whether the action ends at the next operation
  bool told_ = false;       ///< whether hpe has reported the injected failure
};

/// The unit of the model's host_valid and of data lost with a device: no smaller than a block of hpe.
inline constexpr std::size_t model_block = std::size_t{64} << 10;
inline constexpr std::size_t granule = std::size_t{2} << 20;
/// The largest number of bytes that device_view copies at once.
inline constexpr std::size_t probe_bytes = granule;

}  // namespace sweep
