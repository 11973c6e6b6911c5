#pragma once

/// The one engine that moves bytes: for the coherence protocol, hpeMemcpy and everybody else. It knows homes and
/// routes, and nothing of states: who calls it has decided what to move and after what.
///
/// Addresses of device memory are addresses in the UVAS with a single home, given with it. Copies are queued in
/// streams, one of each priority and device, after the timepoints in `after`; a stream that waits holds up what is
/// queued behind it, so the caller passes points that are reached, or near, where others must not wait.
///
/// Throws hpe::error, HPE_ERROR_DEVICE_LOST among them, with nothing of the failed piece queued. Any thread.

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "runtime/base/counters.h"
#include "runtime/device/device.h"
#include "runtime/memory/uvas.h"
#include "runtime/transfer/calibration.h"
#include "runtime/transfer/copy_crew.h"
#include "runtime/transfer/device_groups.h"
#include "runtime/transfer/route.h"
#include "runtime/transfer/staging.h"

namespace hpe::transfer {

using points = std::span<const timepoint>;

class engine {
 public:
  /// How copies through staging buffers are fitted to the machine, when the first large one comes.
  enum class fitting : std::uint8_t { off, once, again };
  struct staging_options {
    std::size_t buffer = 0;
    std::size_t count = 0;
    unsigned threads = 0;  ///< 0: as the fitting finds
    fitting fit = fitting::off;
    device_groups near{};  ///< each group has as many buffers and threads

    /// How much of the runtime segment the buffers take, from its begin on.
    [[nodiscard]] std::size_t bytes() const noexcept { return buffer * count * near.groups(); }
  };

  /// The whole alias of the UVAS is registered with the devices already. The staging buffers lie in its runtime
  /// segment, those of group 0 first.
  engine(device::device_set& devices, const memory::uvas& space, const staging_options& staging, counters& count);

  /// Shadow to home, and home to shadow, of [address, address + bytes).
  timepoint upload(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);
  timepoint download(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);

  /// A hint: uploads or downloads of the bytes from address on are likely, one after the other.
  void expect(const std::byte* address, std::size_t bytes) { devices_.expect_copies(space_.alias(address), bytes); }

  /// Sets device memory.
  timepoint fill(unsigned home, std::byte* address, std::uint8_t value, std::size_t bytes, points after);

  /// From any host memory to a home, in steps of at most staging_size() bytes, so that the caller need hold nothing
  /// while the source is read: stage begins to copy the source into a buffer; filled waits until that is done, so that
  /// the source may be changed; write queues a part of it. The buffer may be let go at once. With one buffer begun the
  /// caller may begin the next, by try_stage, which gives none when all are taken; stage waits, and its caller holds
  /// none. whole: how many bytes the copy has in all.
  [[nodiscard]] std::size_t staging_size() const noexcept { return piece_.load(std::memory_order_relaxed); }
  [[nodiscard]] const staging_options& staging() const noexcept { return options_; }
  struct filling {
    staged buffer;
    copy_crew::pending copy;
  };
  [[nodiscard]] filling stage(unsigned home, const void* source, std::size_t bytes, std::size_t whole);
  [[nodiscard]] std::optional<filling> try_stage(unsigned home, const void* source, std::size_t bytes,
                                                 std::size_t whole);
  [[nodiscard]] static staged filled(filling&& begun);
  timepoint write(unsigned home, std::byte* address, staged& from, std::size_t offset, std::size_t bytes, points after);

  /// Copies between host memories in the calling thread, and on more cores where that is faster: those near the home
  /// that the bytes come from.
  void copy_on_host(unsigned home, void* to, const void* from, std::size_t bytes) {
    begin_copy(home, to, from, bytes, copy_crew::writing::past_caches).finish();
  }

  /// An empty buffer of at least staging_size() bytes, near a home; every home can use it. Whoever holds one may wait
  /// for locks, so whoever holds locks does not wait for one. borrow waits, and its caller holds no other buffer;
  /// try_borrow gives none when all are taken.
  [[nodiscard]] staged borrow(unsigned home);
  [[nodiscard]] std::optional<staged> try_borrow(unsigned home);

  /// Queues a copy from a home to the start of a buffer, whose busy_until tells when it is there.
  timepoint read(unsigned home, staged& into, const std::byte* address, std::size_t bytes);
  /// Waits in the calling thread; throws what went wrong with it.
  void finish(timepoint point);

  /// Between a home and memory that is registered with the devices and no alias of it, for a thread that waits for the
  /// result, and after other work.
  timepoint copy_to_host(unsigned home, std::byte* registered, const std::byte* address, std::size_t bytes);
  timepoint copy_from_host(unsigned home, std::byte* address, const std::byte* registered, std::size_t bytes,
                           points after);

  /// How copies between two homes go.
  [[nodiscard]] route route_between(unsigned to, unsigned from) const;
  /// Whether no two homes need a staging buffer.
  [[nodiscard]] bool all_connected() const noexcept { return all_connected_; }

  /// From home to home. The ranges do not overlap.
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after);
  /// The same through a part of a staging buffer: route peer_staged.
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after, staged& through, std::size_t offset);

  /// From memory of another process, which devices of this one reach (device_set::import_memory), to a home that does.
  timepoint copy_foreign(unsigned home, std::byte* destination, const std::byte* source, std::size_t bytes,
                         points after);

  /// The streams of a device, for waiting until all of them are done.
  void for_each_stream(unsigned home, const std::function<void(const device::stream&)>& visit) const;

 private:
  struct device_streams {
    device::stream* by_priority[4];
    device::stream* leaving;  // to staging buffers on the way to peers, while others come in
  };

  /// What copies through staging buffers need, near some devices.
  struct group {
    staging_ring ring;
    std::unique_ptr<copy_crew> crew{};  // when the crews are fitted
  };

  [[nodiscard]] group& near(unsigned home) { return *groups_[options_.near.group(home)]; }
  device::stream& stream_of(unsigned home, device::priority level) {
    return *streams_[home].by_priority[unsigned(level)];
  }
  static void wait_all(device::stream& stream, points after);

  /// The first large one fits the crews to the machine, which may take 100 ms.
  [[nodiscard]] copy_crew::pending begin_copy(unsigned home, void* to, const void* from, std::size_t bytes,
                                              copy_crew::writing how);
  [[nodiscard]] filling fill_buffer(unsigned home, staged&& buffer, const void* source, std::size_t bytes,
                                    std::size_t whole);
  [[nodiscard]] calibration fit() noexcept;

  device::device_set& devices_;
  const memory::uvas& space_;
  const staging_options options_;
  counters& count_;
  std::vector<device_streams> streams_;
  std::vector<std::unique_ptr<group>> groups_;
  std::atomic<std::size_t> piece_;
  std::once_flag fitted_;
  bool all_connected_ = true;
};

}  // namespace hpe::transfer
