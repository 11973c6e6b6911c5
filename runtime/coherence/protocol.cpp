#include "runtime/coherence/protocol.h"

// Invariants of the table:
//  - A view is writable only in state host, so a host write cannot be missed.
//  - A view is readable only in states shared and host, so a stale shadow cannot be read.
//  - If the state is host, device work that uses old bytes runs only after an upload (no stale read on the device).
//    Device work that writes makes the state device (no lost write).
//  - A fetch writes the shadow only while the view is closed: in state fetching, and in state device when a launch has
//    made the fetch useless.
//  - A host write waits for every copy that still uses the shadow: a useless fetch, or an upload. An upload can be
//    running only if the state changed from host to shared or device; a useless fetch only if the state changed from
//    fetching to device. So host_write and host_overwrite in shared, and host_overwrite in device, wait. It is enough
//    to wait for the home's writers: an upload is a writer of the home, and so is the launch that made a fetch useless,
//    which is queued behind that fetch.
//  - If device work fails part-way (abandoned), the shadow stays the valid copy where it was valid. Elsewhere the bytes
//    that the work left at the home become the valid copy. In both cases host and devices use the same valid copy. A
//    fetch of the home that began before the work is useless.

namespace hpe::coherence {

namespace {

using enum block_state;
using enum block_event;

constexpr block_actions nothing{};
constexpr block_actions open_for_read{.open_read = true};
constexpr block_actions open_for_write{.open_write = true};
constexpr block_actions close_view{.close = true};

constexpr transition from_fresh(block_event event) noexcept {
  switch (event) {
    case host_read:
    case host_write:
    case host_overwrite: return {host, open_for_write};
    case device_read:
    case device_write:
    case device_overwrite:
    case abandoned: return {device, nothing};
    default: return {fresh, nothing};
  }
}

constexpr transition from_device(block_event event) noexcept {
  switch (event) {
    case host_read:
    case host_write:
    case prefetch: return {fetching, {.fetch = true}};
    case host_overwrite: return {host, {.wait_upload = true, .open_write = true}};
    case brought_to_host: return {host, nothing};
    default: return {device, nothing};
  }
}

constexpr transition from_shared(block_event event) noexcept {
  switch (event) {
    case host_read: return {shared, open_for_read};
    case host_write:
    case host_overwrite: return {host, {.wait_upload = true, .open_write = true}};
    case device_write:
    case device_overwrite: return {device, close_view};
    case abandoned:
    case brought_to_host: return {host, nothing};
    default: return {shared, nothing};
  }
}

constexpr transition from_host(block_event event) noexcept {
  switch (event) {
    case host_read:
    case host_write:
    case host_overwrite: return {host, open_for_write};
    case device_read:
    case flush: return {shared, {.open_read = true, .upload = true}};
    case device_write: return {device, {.close = true, .upload = true}};
    case device_overwrite: return {device, close_view};
    default: return {host, nothing};
  }
}

constexpr transition from_fetching(block_event event) noexcept {
  switch (event) {
    case host_read:
    case host_write:
    case host_overwrite: return {fetching, {.wait = true}};
    case device_write:
    case device_overwrite:                     // the fetch is useless; the device work waits for it
    case abandoned: return {device, nothing};  // the fetch is useless: it may have copied bytes from before the work
    case fetched: return {shared, open_for_read};
    case fetched_for_write: return {host, open_for_write};
    case fetch_failed: return {device, nothing};
    case brought_to_host: return {host, nothing};
    default: return {fetching, nothing};
  }
}

}  // namespace

transition apply(block_state state, block_event event) noexcept {
  switch (state) {
    case fresh: return from_fresh(event);
    case device: return from_device(event);
    case shared: return from_shared(event);
    case host: return from_host(event);
    case fetching: return from_fetching(event);
  }
  return {state, nothing};
}

const char* name_of(block_state state) noexcept {
  static constexpr std::array<const char*, block_state_count> names{"fresh", "device", "shared", "host", "fetching"};
  return names[static_cast<unsigned>(state)];
}

const char* name_of(block_event event) noexcept {
  static constexpr std::array<const char*, block_event_count> names{
      "host_read", "host_write", "host_overwrite",    "device_read",  "device_write", "device_overwrite", "flush",
      "prefetch",  "fetched",    "fetched_for_write", "fetch_failed", "abandoned",    "brought_to_host"};
  return names[static_cast<unsigned>(event)];
}

}  // namespace hpe::coherence
