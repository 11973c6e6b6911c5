#pragma once

/// The sender of a large message first sends an envelope: a small message with the same communicator, tag and
/// destination, so that MPI does all the matching and ordering. The receiver tells an envelope from a payload by its
/// length and by the number of the job. The payload follows after the receiver's answer (channel.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/messages/offers.h"

namespace hpe::interpose::mpi {

/// Longer than latency-bound messages, so that hpe need not inspect their receives, and short enough that every
/// transport sends it eagerly. A multiple of 16, so that it does not end within an element of a datatype.
inline constexpr std::size_t envelope_bytes = 2032;

struct envelope {
  job::number job_id{};
  std::uint64_t sequence = 0;  ///< counts the sender's messages
  std::uint64_t bytes = 0;     ///< of the message
  std::uint64_t chunk = 0;     ///< bytes of each chunk but the last
  std::int32_t sender = 0;     ///< its rank in MPI_COMM_WORLD
  // Where the receiver finds the payload if it runs on the same machine.
  std::int32_t exported = 0;  ///< whether `memory` is set
  std::int32_t offered = 0;   ///< whether `device`, `rows` and `offer` are set: the payload is memory of the driver
  hpeExport memory{};
  peer_bytes device{};
  byte_rows rows{};
  offer_board::offer offer{};

  using wire = std::array<std::byte, envelope_bytes>;
  /// Allocates memory for a packed envelope.
  [[nodiscard]] static std::shared_ptr<std::byte> landing() {
    return {new std::byte[envelope_bytes], std::default_delete<std::byte[]>()};
  }

  /// Whether a packed envelope fits into a receive buffer of `count` elements.
  [[nodiscard]] static bool fits(int count, MPI_Datatype type);

  /// Copies the envelope to the beginning of `into`; receivers ignore the other bytes.
  void pack(wire& into) const;
  /// Returns nothing if the received message is a payload of the same length.
  [[nodiscard]] static std::optional<envelope> recognise(const std::byte* received);
  /// As above, for a message of envelope_bytes bytes that was received at `place` with a layout.
  [[nodiscard]] static std::optional<envelope> recognise(const void* place, const layout& which);
};

}  // namespace hpe::interpose::mpi
