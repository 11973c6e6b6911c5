#pragma once

/// The transfer engine queues all copies, for the coherence protocol, hpeMemcpy and the other operations. The engine
/// uses homes and routes, but not the states of blocks: its callers decide which bytes are copied, and after which
/// work.
///
/// The address of device memory is an address in the UVAS; callers also pass the home, which must be the same for all
/// bytes of the range. Copies are queued on streams, one for each device and priority, and run after the timepoints in
/// `after`. While a stream waits for a timepoint, all later commands of the stream wait, too. To avoid this, a caller
/// passes only timepoints that are reached, or nearly reached.
///
/// Functions throw hpe::error, for example HPE_ERROR_DEVICE_LOST; the destination of the failed command is then not
/// written. Thread-safe.

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
  /// When the first large copy through staging buffers measures the best settings for the machine (calibration.h):
  /// never (off), only if no result is stored (once), or always (again).
  enum class fitting : std::uint8_t { off, once, again };
  struct staging_options {
    std::size_t buffer = 0;
    std::size_t count = 0;
    unsigned threads = 0;  ///< 0: the number that calibration finds
    fitting fit = fitting::off;
    device_groups near{};  ///< each group has `count` buffers and its own threads

    /// The number of bytes of all buffers together. The buffers begin at the start of the runtime segment.
    [[nodiscard]] std::size_t bytes() const noexcept { return buffer * count * near.groups(); }
  };

  /// The whole alias of the UVAS must be registered with the devices. The staging buffers are in the UVAS's runtime
  /// segment; the buffers of group 0 come first.
  engine(device::device_set& devices, memory::uvas& space, const staging_options& staging, counters& count);

  /// Queue a copy of [address, address + bytes): upload from the shadow to the home, download from the home to the
  /// shadow.
  timepoint upload(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);
  timepoint upload_rows(unsigned home, std::byte* address, const box& rows, points after, device::priority level);
  timepoint download(unsigned home, std::byte* address, std::size_t bytes, points after, device::priority level);

  /// Like download, for bytes whose device memory is about to be reused. Evictions have their own stream, so that they
  /// can run at the same time as uploads and use the link in both directions.
  timepoint evict(unsigned home, std::byte* address, std::size_t bytes, points after);

  /// A hint that these bytes will probably be uploaded or downloaded, in ascending order.
  void expect(const std::byte* address, std::size_t bytes) { devices_.expect_copies(space_.alias(address), bytes); }

  /// Queues a fill of device memory.
  timepoint fill(unsigned home, std::byte* address, std::uint8_t value, std::size_t bytes, points after);

  /// Functions that copy any host memory to a home, in chunks of at most staging_size() bytes, so that the caller does
  /// not have to hold a lock while the source is read. `stage` begins to copy a chunk of the source to a buffer.
  /// `filled` waits for that copy; the source may then be changed. `write` queues a copy from a part of the buffer to
  /// the home; the buffer may then be released at once. `stage` waits for a free buffer, so its caller must not hold a
  /// buffer. A caller that holds a buffer can use try_stage, which returns nullopt if no buffer is free. `whole` is the
  /// number of bytes of the whole copy.
  [[nodiscard]] std::size_t staging_size() const noexcept { return chunk_.load(std::memory_order_relaxed); }
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

  /// Copies between host memories. The calling thread copies. In large copies, helper threads on cores near `home` copy
  /// slices as well. home: the device from which the bytes come.
  void copy_on_host(unsigned home, void* to, const void* from, std::size_t bytes) {
    begin_copy(home, to, from, bytes, copy_crew::writing::past_caches).finish();
  }

  /// Returns an empty buffer of at least staging_size() bytes; it is near `home`, but every home can use it. A thread
  /// that holds a buffer may wait for locks. Therefore a thread that holds a lock must not wait for a buffer. `borrow`
  /// waits for a free buffer, and its caller must hold no other buffer; `try_borrow` returns nullopt if no buffer is
  /// free.
  [[nodiscard]] staged borrow(unsigned home);
  [[nodiscard]] std::optional<staged> try_borrow(unsigned home);

  /// Queues a copy from a home to the start of a buffer and sets the buffer's busy_until to the copy's timepoint.
  timepoint read(unsigned home, staged& into, const std::byte* address, std::size_t bytes);
  /// Waits in the calling thread for the point. Throws the error of the point's work if the work has failed.
  void finish(timepoint point);

  /// Queue copies between a home and host memory that is registered with the devices but is not the alias of the bytes:
  /// copy_to_host is for a thread that waits for the copy; copy_from_host queues the copy after other work.
  timepoint copy_to_host(unsigned home, std::byte* registered, const std::byte* address, std::size_t bytes);
  timepoint copy_from_host(unsigned home, std::byte* address, const std::byte* registered, std::size_t bytes,
                           points after);

  /// The route of copies between two homes.
  [[nodiscard]] route route_between(unsigned to, unsigned from) const;
  /// Whether copies between any two homes need no staging buffer.
  [[nodiscard]] bool all_connected() const noexcept { return all_connected_; }

  /// Queues a copy from one home to another. The ranges must not overlap.
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after);
  /// Queues a copy from one home to another through a part of a staging buffer (route peer_staged).
  timepoint copy(unsigned to, std::byte* destination, unsigned from, const std::byte* source, std::size_t bytes,
                 points after, staged& through, std::size_t offset);

  /// Queues a copy to a home from memory of another process (device_set::import_memory) that the home's device reaches.
  timepoint copy_foreign(unsigned home, std::byte* destination, const std::byte* source, std::size_t bytes,
                         points after);

  /// Calls visit for each transfer stream of a device.
  void for_each_stream(unsigned home, const std::function<void(const device::stream&)>& visit) const;

 private:
  struct device_streams {
    device::stream* by_priority[4];
    device::stream* leaving;  // for evictions, and for copies to staging buffers on the way to another device
  };

  /// The staging buffers and copy threads of one group of devices.
  struct group {
    staging_ring ring;
    std::unique_ptr<copy_crew> crew{};  // created by the first large copy
  };

  [[nodiscard]] group& near(unsigned home) { return *groups_[options_.near.group(home)]; }
  device::stream& stream_of(unsigned home, device::priority level) {
    return *streams_[home].by_priority[unsigned(level)];
  }
  static void wait_all(device::stream& stream, points after);

  /// Begins a copy between host memories. The first large copy calibrates the crews, which may take 100 ms.
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
  std::atomic<std::size_t> chunk_;
  std::once_flag fitted_;
  bool all_connected_ = true;
};

}  // namespace hpe::transfer
