#pragma once

/// The sender of a large message first sends an envelope: a small message with the same communicator, tag and
/// destination, so that MPI does all the matching and ordering. The receiver tells an envelope from a payload by its
/// length and by the number of the job. The payload follows after the receiver's answer (channel.h).

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <variant>

#include "hpe/node.h"
#include "interpose/adopted_pointers.h"
#include "interpose/mpi/layout.h"
#include "interpose/mpi/messages/board/announcements.h"
#include "interpose/mpi/messages/board/offers.h"
#include "interpose/mpi/messages/job.h"

namespace hpe::interpose::mpi {

/// Longer than latency-bound messages, so that hpe need not inspect their receives, and short enough that every
/// transport sends it eagerly. Lengths are multiples of 16, so that none ends within an element of a datatype.
inline constexpr std::size_t envelope_bytes = 2032;
/// An envelope to a rank that inspects all its receives (offer_board::looks). Open MPI sends up to 256 bytes in half of
/// the time, and then needs no request.
inline constexpr std::size_t short_envelope_bytes = 240;

/// Bytes of `count` elements; 0 for a null datatype.
[[nodiscard]] MPI_Count bytes_of(int count, MPI_Datatype type);

struct envelope {
  job::number job_id{};
  std::uint64_t sequence = 0;                              ///< counts the sender's messages
  std::uint64_t bytes = 0;                                 ///< of the message
  std::uint64_t chunk = 0;                                 ///< bytes of each chunk but the last
  std::int32_t sender = 0;                                 ///< its rank in MPI_COMM_WORLD
  announcement_board::communicator_name communicator = 0;  ///< of the message
  /// A payload in memory of the driver.
  struct offered_bytes {
    peer_bytes device{};
    byte_rows rows{};
    offer_board::offer offer{};
    bool awaited = false;  ///< the sender stays in MPI until the message is over
  };
  /// Where a receiver on the same machine finds the payload: in memory of the driver or of hpe.
  std::variant<std::monostate, offered_bytes, hpeExport> memory;

  [[nodiscard]] const offered_bytes* offered() const noexcept { return std::get_if<offered_bytes>(&memory); }
  [[nodiscard]] const hpeExport* exported() const noexcept { return std::get_if<hpeExport>(&memory); }

  using wire = std::array<std::byte, envelope_bytes>;
  /// Allocates memory for a packed envelope.
  [[nodiscard]] static std::shared_ptr<std::byte> landing();

  /// Whether a packed envelope fits into a receive buffer of `count` elements.
  [[nodiscard]] static bool fits(int count, MPI_Datatype type);

  /// Whether a message of this length may be an envelope.
  [[nodiscard]] static bool is_length(std::size_t bytes) noexcept {
    return bytes == short_envelope_bytes || bytes == envelope_bytes;
  }

  /// Copies the envelope to the beginning of `into` and fills the rest of `length` bytes, which receivers ignore.
  void pack(wire& into, std::size_t length) const;
  /// Returns nothing if the received message of `bytes` bytes is a payload.
  [[nodiscard]] static std::optional<envelope> recognise(const std::byte* received, std::size_t bytes);
  /// As above, for a message that was received at `place` with a layout.
  [[nodiscard]] static std::optional<envelope> recognise(const void* place, const layout& which, std::size_t bytes);
};

}  // namespace hpe::interpose::mpi
