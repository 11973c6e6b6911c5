#pragma once

/// The sender of a large message first sends an envelope: a small message with the same communicator, tag and
/// destination, so that MPI matches and orders it like the message itself. The receiver recognises an envelope by its
/// length and the job's number. The payload follows when the receiver has answered (channel.h).

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

/// The length of an envelope. It is longer than messages for which latency matters, so that hpe does not have to
/// inspect the receives of these messages, and short enough for every transport to send the envelope eagerly. The
/// length is a multiple of 16, so that an envelope does not end within an element of a datatype.
inline constexpr std::size_t envelope_bytes = 2032;
/// The length of an envelope to a rank that inspects all its receives (offer_board::looks). Open MPI sends messages of
/// up to 256 bytes in half the time that a full envelope takes, and without a request.
inline constexpr std::size_t short_envelope_bytes = 240;

/// The number of bytes of `count` elements; 0 for a null datatype.
[[nodiscard]] MPI_Count bytes_of(int count, MPI_Datatype type);

struct envelope {
  job::number job_id{};
  std::uint64_t sequence = 0;                              ///< number of the message among the sender's messages
  std::uint64_t bytes = 0;                                 ///< number of bytes of the message
  std::uint64_t chunk = 0;                                 ///< number of bytes of each chunk except the last
  std::int32_t sender = 0;                                 ///< the sender's rank in MPI_COMM_WORLD
  announcement_board::communicator_name communicator = 0;  ///< the communicator of the message
  /// A payload in memory of the driver, with the offer for it.
  struct offered_bytes {
    peer_bytes device{};
    box rows{};
    offer_board::offer offer{};
    bool awaited = false;  ///< whether the sender's thread stays in MPI until the message has completed
  };
  /// Where a receiver on the same machine finds the payload: in memory of the driver or in hpe memory.
  std::variant<std::monostate, offered_bytes, hpeExport> memory;

  [[nodiscard]] const offered_bytes* offered() const noexcept { return std::get_if<offered_bytes>(&memory); }
  [[nodiscard]] const hpeExport* exported() const noexcept { return std::get_if<hpeExport>(&memory); }

  using wire = std::array<std::byte, envelope_bytes>;
  /// Allocates memory for a packed envelope.
  [[nodiscard]] static std::shared_ptr<std::byte> landing();

  /// Whether a packed envelope fits into the receive buffer of `count` elements.
  [[nodiscard]] static bool fits(int count, MPI_Datatype type);

  /// Whether a message with this number of bytes may be an envelope.
  [[nodiscard]] static bool is_length(std::size_t bytes) noexcept {
    return bytes == short_envelope_bytes || bytes == envelope_bytes;
  }

  /// Copies the envelope to the beginning of `into` and fills it up to `length` bytes; receivers ignore the fill.
  void pack(wire& into, std::size_t length) const;
  /// Returns the envelope in a received message of `bytes` bytes; nullopt if the message is a payload.
  [[nodiscard]] static std::optional<envelope> recognise(const std::byte* received, std::size_t bytes);
  /// Like recognise(received, bytes), for a message that was received at `place` with a layout.
  [[nodiscard]] static std::optional<envelope> recognise(const void* place, const layout& which, std::size_t bytes);
};

}  // namespace hpe::interpose::mpi
