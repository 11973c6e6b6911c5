#pragma once

/// The coherence protocol of one block as a pure function: (state, event) -> (new state, actions). The function does
/// not deal with threads, faults or devices. A model checker (docs/model) checks exactly this function, together with a
/// model of threads, faults and devices; tests/coherence/print_protocol.cpp prints the function as a table for the
/// checker. The idea follows the asymmetric distributed shared memory of GMAC (Gelado et al., ASPLOS 2010), in the form
/// that Cabezas (2015, section 5.2.3) extended to several devices.

#include <array>
#include <cstdint>

namespace hpe::coherence {

/// The state of a block says which of its two copies (shadow and home) are valid, and therefore which accesses its view
/// allows.
enum class block_state : std::uint8_t {
  fresh,    ///< the block was never written; the host reads zeros. View closed.
  device,   ///< only the home is valid. View closed.
  shared,   ///< both copies are valid. View readable, or closed if the block is a prefetch marker.
  host,     ///< only the shadow is valid. View writable.
  fetching  ///< the home is valid and is being copied to the shadow. View closed.
};
inline constexpr unsigned block_state_count = 5;

enum class block_event : std::uint8_t {
  host_read,          ///< the host wants to read
  host_write,         ///< the host wants to write
  host_overwrite,     ///< the host wants to write, and does not need the old bytes
  device_read,        ///< queued device work reads the home
  device_write,       ///< queued device work writes parts of the home, or reads and writes it
  device_overwrite,   ///< queued device work writes every byte of the block
  flush,              ///< the block is uploaded after the host has written it, before device work needs it
  prefetch,           ///< the block is fetched before the host touches it
  fetched,            ///< the copy home -> shadow has finished
  fetched_for_write,  ///< the copy home -> shadow has finished, and a host thread waits to write
  fetch_failed,       ///< the copy home -> shadow failed or was cancelled; the device may be lost
  abandoned,          ///< device work that writes the home failed, perhaps after parts of it ran; all parts have ended
  brought_to_host     ///< every byte that only the home had was copied to the shadow, and no work uses the block
};
inline constexpr unsigned block_event_count = 13;

/// The actions that the caller must carry out, in the order of the members.
struct block_actions {
  bool wait = false;         ///< repeat the event when the copy in progress has finished; the state does not change
  bool wait_upload = false;  ///< wait until no copy uses the shadow any more, and only then enter the new state
  bool close = false;        ///< close the view
  bool open_read = false;    ///< make the view readable (and not writable)
  bool open_write = false;   ///< make the view readable and writable
  bool upload = false;       ///< queue a copy shadow -> home before the device work
  bool fetch = false;        ///< start a copy home -> shadow after the home's last writer

  friend bool operator==(const block_actions&, const block_actions&) = default;
};

struct transition {
  block_state next = block_state::fresh;
  block_actions actions;
};

/// The transition for a state and an event. Every pair has a transition; an event that does not matter in a state has
/// no effect.
[[nodiscard]] transition apply(block_state state, block_event event) noexcept;

[[nodiscard]] const char* name_of(block_state state) noexcept;
[[nodiscard]] const char* name_of(block_event event) noexcept;

}  // namespace hpe::coherence
