#pragma once

/// The one engine that moves bytes, for the coherence protocol, hpeMemcpy and all other copies. It knows homes and
/// routes, but no states: its caller has decided what to move and after which work.
///
/// Addresses of device memory are addresses in the UVAS with a single home, given with them. Copies are queued in
/// streams, one for each priority and device, after the timepoints in `after`. A waiting stream holds up what is queued
/// behind it, so where that must not be, the caller passes points that are reached, or nearly.
///
/// Functions throw hpe::error, also HPE_ERROR_DEVICE_LOST, with nothing of the failed piece queued. Thread-safe.

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
  /// Whether the first large copy through staging buffers measures what suits the machine (calibration.h).
  enum class fitting : std::uint8_t { off, once, again };
  struct staging_options {
    std::size_t buffer = 0;
    std::size_t count = 0;
    unsigned threads = 0;  ///< 0: as calibration finds
    fitting fit = fitting::off;
    device_groups near{};  ///< each group has this many buffers and threads

    /// The bytes of the runtime segment that the buffers take, from its beginning.
    [[nodiscard]] std::size_t bytes() const noexcept { return buffer * count * near.groups(); }
  };

  /// The whole alias of the UVAS must be registered with the devices. The staging buffers lie in its runtime segment,
  /// those of group 0 first.
  engine(device::device_set& devices, const memory::uvas& space, const staging_options& staging, counters& count);

  /// Queue copies of [address, address + bytes): shadow to home, and home to shadow.
  timepoint upload(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);
  timepoint download(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);

  /// Like download, for bytes whose device memory is about to be used for other data: beside the copies that arrive, so
  /// that the link is busy in both directions.
  timepoint evict(unsigned home, std::byte* address, std::size_t bytes, points after);

  /// A hint: uploads or downloads of these bytes are likely, in ascending order.
  void expect(const std::byte* address, std::size_t bytes) { devices_.expect_copies(space_.alias(address), bytes); }

  /// Queues a fill of device memory.
  timepoint fill(unsigned home, std::byte* address, std::uint8_t value, std::size_t bytes, points after);

  /// Copy any host memory to a home, in steps of at most staging_size() bytes, so that the caller need hold no lock
  /// while the source is read: stage begins to copy the source into a buffer; filled waits until that is done, so that
  /// the source may be changed; write queues a copy of a part of the buffer, which may then be released at once. stage
  /// waits for a buffer, so its caller must hold none. A caller that holds one may begin the next with try_stage, which
  /// gives none if all are taken. whole: the bytes of the whole copy.
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

  /// Copies between host memories in the calling thread, with the help of cores near `home`, where the bytes come from,
  /// if that is faster.
  void copy_on_host(unsigned home, void* to, const void* from, std::size_t bytes) {
    begin_copy(home, to, from, bytes, copy_crew::writing::past_caches).finish();
  }

  /// An empty buffer of at least staging_size() bytes, near a home; every home can use it. A thread that holds a buffer
  /// may wait for locks, so a thread that holds locks must not wait for a buffer. borrow waits, and its caller must
  /// hold no other buffer; try_borrow gives none if all are taken.
  [[nodiscard]] staged borrow(unsigned home);
  [[nodiscard]] std::optional<staged> try_borrow(unsigned home);

  /// Queues a copy from a home to the start of a buffer, and sets the buffer's busy_until to the end of the copy.
  timepoint read(unsigned home, staged& into, const std::byte* address, std::size_t bytes);
  /// Waits in the calling thread for the point, and throws the error of its work.
  void finish(timepoint point);

  /// Queue copies between a home and memory that is registered with the devices, but is not the alias of the bytes: to
  /// the host for a thread that waits, from the host after other work.
  timepoint copy_to_host(unsigned home, std::byte* registered, const std::byte* address, std::size_t bytes);
  timepoint copy_from_host(unsigned home, std::byte* address, const std::byte* registered, std::size_t bytes,
                           points after);

  /// The route of copies between two homes.
  [[nodiscard]] route route_between(unsigned to, unsigned from) const;
  /// Whether every two homes copy without a staging buffer.
  [[nodiscard]] bool all_connected() const noexcept { return all_connected_; }

  /// Queues a copy from home to home. The ranges must not overlap.
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after);
  /// Queues a copy from home to home through a part of a staging buffer (route peer_staged).
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after, staged& through, std::size_t offset);

  /// Queues a copy from memory of another process (device_set::import_memory) to a home whose device reaches it.
  timepoint copy_foreign(unsigned home, std::byte* destination, const std::byte* source, std::size_t bytes,
                         points after);

  /// Visits the streams of a device, for example to wait until all of them have finished.
  void for_each_stream(unsigned home, const std::function<void(const device::stream&)>& visit) const;

 private:
  struct device_streams {
    device::stream* by_priority[4];
    device::stream* leaving;  // for evictions, and copies to staging buffers on the way to peers
  };

  /// The staging buffers and copy threads near some devices.
  struct group {
    staging_ring ring;
    std::unique_ptr<copy_crew> crew{};  // made by the first large copy
  };

  [[nodiscard]] group& near(unsigned home) { return *groups_[options_.near.group(home)]; }
  device::stream& stream_of(unsigned home, device::priority level) {
    return *streams_[home].by_priority[unsigned(level)];
  }
  static void wait_all(device::stream& stream, points after);

  /// Begins a copy between host memories. The first large one calibrates the crews, which may take 100 ms.
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
