#pragma once

#include <functional>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/core/environment.h"

namespace hpe::core {

/// Bytes of one region that device work is about to use.
struct device_access {
  coherence::region* region = nullptr;
  coherence::byte_range range;
  hpeAccessMode mode = HPE_INOUT;
  bool if_alive = false;    ///< left out if the region was freed meanwhile, instead of an error
  bool concurrent = false;  ///< not ordered against other concurrent work (coherence::access_order); mode is HPE_INOUT
};

/// What precedes device work, the release of the consistency model: it locks the regions, closes the views of what
/// will be written, queues the uploads of what the host wrote, and says what the work must wait for. The caller queues
/// the work, records its timepoints and commits, all within the life of this object; without a commit the host's rights
/// are restored, so that a failed launch loses nothing. Nothing here waits for device work.
///
///   device_work work(env, accesses);
///   point_set after;
///   work.collect(after);
///   ... queue it after `after`, giving `point` ...
///   work.record(point);
///   work.commit();
class device_work {
 public:
  /// Called for each access when its region is locked, before anything is released.
  using preparation = std::function<void(const device_access&)>;

  /// Throws HPE_ERROR_NOT_A_REGION if a region was freed meanwhile, and what the preparation and queuing uploads throw.
  device_work(const environment& env, std::vector<device_access> accesses, const preparation& prepare = {});
  ~device_work();
  device_work(const device_work&) = delete;
  device_work& operator=(const device_work&) = delete;

  /// Adds what the whole work waits for.
  void collect(coherence::point_set& after) const;
  /// The whole work was queued as `points`: one, or one for each of the devices that do it together.
  void record(std::span<const timepoint> points);
  void record(timepoint point) { record(std::span(&point, 1)); }
  void commit() noexcept { undo_.clear(); }
  /// Instead of a commit: the work failed, pieces of it may have run, and nothing of it runs any more. Where the host
  /// has a copy of what it may have written, that copy is what counts; elsewhere the home is as the pieces left it.
  void abandon() noexcept;

 private:
  struct change {
    coherence::region* region;
    std::uint64_t block;
    coherence::block_state before;
    bool written;
  };

  void lock_regions();
  void unlock_regions() noexcept;
  void release(const device_access& access);
  void release_run(coherence::region& r, coherence::block_run run, coherence::block_event event);
  void upload(coherence::region& r, coherence::byte_range bytes);
  void degrade(coherence::region& r);
  void roll_back() noexcept;

  environment env_;
  std::vector<device_access> accesses_;      // by region, pure writes last
  std::vector<coherence::region*> regions_;  // locked, by number
  std::vector<change> undo_;
};

}  // namespace hpe::core
