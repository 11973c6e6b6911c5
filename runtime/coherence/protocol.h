#pragma once

/// The coherence protocol of one block as a pure function: (state, event) -> (new state, actions). It knows no threads,
/// no faults and no devices. A model checker (docs/model) runs this very table, printed by
/// tests/coherence/print_protocol.cpp, with a model of threads, faults and devices. The idea follows the asymmetric
/// distributed shared memory of GMAC (Gelado et al., ASPLOS 2010) as extended to several devices in Cabezas, 2015,
/// section 5.2.3.

#include <array>
#include <cstdint>

namespace hpe::coherence {

/// Which of a block's two copies are valid, and therefore which accesses its view allows.
enum class block_state : std::uint8_t {
  fresh,    ///< nothing was written yet; the host reads zeros. View closed.
  device,   ///< only the home is valid. View closed.
  shared,   ///< both are valid. View readable, or still closed where a prefetch left a marker.
  host,     ///< only the shadow is valid. View writable.
  fetching  ///< the home is valid and is being copied to the shadow. View closed.
};
inline constexpr unsigned block_state_count = 5;

enum class block_event : std::uint8_t {
  host_read,          ///< the host wants to read
  host_write,         ///< the host wants to write
  host_overwrite,     ///< the host wants to write, and needs none of the old bytes
  device_read,        ///< queued device work reads the home
  device_write,       ///< queued device work writes parts of the home, or reads and writes
  device_overwrite,   ///< queued device work writes every byte of the block
  flush,              ///< upload behind a writing host
  prefetch,           ///< fetch before the host asks
  fetched,            ///< the copy home -> shadow has finished
  fetched_for_write,  ///< the copy home -> shadow has finished, and a host thread waits to write
  fetch_failed,       ///< the copy home -> shadow failed, or was given up; the device may be lost
  abandoned,       ///< device work that writes the home failed after parts of it may have run, and none runs any more
  brought_to_host  ///< every byte that only the home had was copied to the shadow, and no work uses the block
};
inline constexpr unsigned block_event_count = 13;

/// What the caller must do, in the order of the members.
struct block_actions {
  bool wait = false;         ///< repeat the event when the copy in progress has finished; the state stays
  bool wait_upload = false;  ///< wait until no copy uses the shadow any more, and only then enter the new state
  bool close = false;        ///< close the view
  bool open_read = false;    ///< make the view readable (and not writable)
  bool open_write = false;   ///< make the view readable and writable
  bool upload = false;       ///< queue shadow -> home before the device work
  bool fetch = false;        ///< start home -> shadow, after the home's last writer

  friend bool operator==(const block_actions&, const block_actions&) = default;
};

struct transition {
  block_state next = block_state::fresh;
  block_actions actions;
};

/// Total: every pair has a result. An event that does not matter in a state changes nothing.
[[nodiscard]] transition apply(block_state state, block_event event) noexcept;

[[nodiscard]] const char* name_of(block_state state) noexcept;
[[nodiscard]] const char* name_of(block_event event) noexcept;

}  // namespace hpe::coherence
