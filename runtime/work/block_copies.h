#pragma once

/// The copies that bring the two copies of a region's blocks together: uploads, shadow to home, and downloads, home to
/// shadow. Launches, lanes and migration use these and no others.

#include "runtime/transfer/engine.h"
#include "runtime/work/accesses.h"
#include "runtime/work/host_view.h"

namespace hpe::work {

/// What device work on regions needs. Owned by the runtime, which outlives its users.
struct resources {
  device::device_set& devices;
  transfer::engine& engine;
  host_view& views;
};

/// Queues the upload of blocks in state host, whose view no thread can write through, behind the home's users. Each
/// block becomes shared when its upload is queued. If queuing throws, the blocks behind stay the host's. Under the
/// region's mutex. Regions with a single copy have nothing to upload; their blocks change state alone. Gives the
/// copies: each of them, because each can fail.
std::vector<timepoint> upload(const resources& with, coherence::region& r, coherence::block_run run,
                              device::priority level) HPE_REQUIRES(r.mutex);

/// Queues the copy of blocks to the shadow, which no thread can see, and adds the copies to `copies`: each of them,
/// because each can fail. The home's writers have finished. If this throws, the copies that were queued are in
/// `copies`. Under the region's mutex.
void download(const resources& with, coherence::region& r, coherence::block_run run, device::priority level,
              std::vector<timepoint>& copies) HPE_REQUIRES(r.mutex);

/// Brings all bytes that only homes have to the shadow, waiting for the region's users and for the copies: every block
/// that is not fresh is the host's then. Views stay as they are. Throws what went wrong, with all states as they were.
/// Under the region's mutex.
void bring_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

/// When the kernel has no room for more mappings, a region is kept coherent as one block. Under the region's mutex.
/// The host needs it: the block is the host's, and the view writable.
void degrade_to_host(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);
/// Device work needs it: what the host has is uploaded, the block is at its home, and the view closed. Gives the
/// copies.
std::vector<timepoint> degrade_to_homes(const resources& with, coherence::region& r) HPE_REQUIRES(r.mutex);

}  // namespace hpe::work
