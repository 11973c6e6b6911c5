#pragma once

/// The copies between shadow and home of a region's blocks: uploads, shadow to home, and downloads, home to shadow.
/// Launches, lanes and migration use these and no others.

#include "runtime/transfer/engine.h"
#include "runtime/work/accesses.h"
#include "runtime/work/host_view.h"

namespace hpe::work {

class residency;
class host_memory;

/// The objects that device work on regions needs. Owned by the runtime, which outlives its users.
struct resources {
  device::device_set& devices;
  transfer::engine& engine;
  host_view& views;
  residency& room;
  host_memory& host;
};

/// Queues the upload of blocks in state host behind the home's users. Their view must be closed to writers. Each block
/// becomes shared when its upload is queued; if queuing throws, the later blocks stay in state host. A region with a
/// single copy has nothing to upload; only the states change. Returns all copies, because each can fail. The caller
/// holds the region's mutex.
std::vector<timepoint> upload(const resources& with, coherence::region& r, coherence::block_run run,
                              device::priority level) HPE_REQUIRES(r.mutex);

/// Queues the download of blocks, and appends all copies to `copies`, because each can fail. The blocks' view must be
/// closed and the home's writers must have finished. If it throws, `copies` has the copies that were queued. The caller
/// holds the region's mutex.
void download(const resources& with, coherence::region& r, coherence::block_run run, device::priority level,
              std::vector<timepoint>& copies) HPE_REQUIRES(r.mutex);

/// Copies all bytes that only homes have to the shadow. Waits for the region's users and for the copies. Every block
/// that is not fresh is in state host then; views do not change. If it throws, no state has changed. The caller holds
/// the region's mutex.
void bring_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

/// Makes a region one block, because the kernel has no room for more mappings; the caller holds its mutex. For an
/// access of the host: the block is in state host, and the view is writable.
void degrade_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);
/// For device work: blocks in state host are uploaded, the one block is in state device, and the view is closed.
/// Returns the copies.
std::vector<timepoint> degrade_to_homes(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

}  // namespace hpe::work
