#pragma once

/// What the sender of a large message sends in its place: a small message with the same communicator, tag and
/// destination, so that MPI does all the matching and ordering. The receiver tells it from a payload by its length and
/// by the number of the job. The payload follows after the receiver's answer (channel.h).

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

/// Longer than messages that are sent for their latency, so that receives of those need not be looked at, and sent at
/// once by every transport. A multiple of 16: elements of datatypes are not torn.
inline constexpr std::size_t envelope_bytes = 2032;

struct envelope {
  job::number job_id{};
  std::uint64_t sequence = 0;  ///< counts the sender's messages
  std::uint64_t bytes = 0;     ///< of the message
  std::uint64_t chunk = 0;     ///< bytes of each chunk but the last
  std::int32_t sender = 0;     ///< its rank in MPI_COMM_WORLD
  // Where processes of the same machine find the payload.
  std::int32_t exported = 0;  ///< whether `memory` is set
  std::int32_t offered = 0;   ///< whether the last two are set: it is memory of the driver
  hpeExport memory{};
  peer_bytes device{};
  byte_rows rows{};
  offer_board::offer offer{};

  using wire = std::array<std::byte, envelope_bytes>;
  /// Room for one.
  [[nodiscard]] static std::shared_ptr<std::byte> landing() {
    return {new std::byte[envelope_bytes], std::default_delete<std::byte[]>()};
  }

  /// Whether it fits into a buffer argument.
  [[nodiscard]] static bool fits(int count, MPI_Datatype type);

  /// The rest of it means nothing.
  void pack(wire& into) const;
  /// Nothing if it is a payload that happens to be as long.
  [[nodiscard]] static std::optional<envelope> recognise(const std::byte* received);
  /// A message of envelope_bytes bytes that was received at `place` with some layout.
  [[nodiscard]] static std::optional<envelope> recognise(const void* place, const layout& which);
};

}  // namespace hpe::interpose::mpi
