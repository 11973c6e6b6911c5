#pragma once

/// Decides which receives hpe inspects, because MPI may match them with an envelope (envelope.h). An inspected receive
/// takes several times as long as MPI's own receive. So the ranks of a machine inspect no receives until one of them
/// passes device memory to MPI as a buffer of a message. This rank asks all ranks of the machine to begin (ask_all()).
/// The other ranks notice this in their next calls that receive, probe, or complete requests. A rank that has begun
/// inspects each later receive. When its earlier receives have completed, it tells the other ranks, and only then do
/// they send it envelopes. Until then, MPI sends their messages as a whole.
///
/// If envelopes can come from ranks that do not share memory with this rank, it inspects receives from MPI_Init on.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory_resource>
#include <optional>
#include <vector>

#include "interpose/mpi/messages/job.h"
#include "interpose/mpi/real.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

/// Each process has one object. Thread safe.
class receive_inspection {
 public:
  static receive_inspection& of_process();

  /// job::begin calls this after it has opened the boards.
  void open(const job& of) noexcept;

  /// Asks all ranks of this machine, including this one, to begin.
  void ask_all() noexcept;
  /// Begins if another rank has asked. Costs two loads if no rank has asked.
  static void notice() noexcept { (void)any(); }

  /// Whether hpe must inspect any receive that begins now. If not, hpe has taken no message out of MPI (set_aside.h).
  [[nodiscard]] static bool any() noexcept {
    return (inspected_now.load() != extent::none || is_asked()) && of_process().current() != extent::none;
  }
  /// Whether hpe must inspect a receive that begins now. `fits_envelope`: whether an envelope of full length fits into
  /// the receive buffer.
  [[nodiscard]] bool needs(bool fits_envelope) noexcept;

  /// Whether this rank has told other ranks that it inspects its receives, so that MPI may contain envelopes.
  [[nodiscard]] static bool told() noexcept { return inspected_as_told.load() != extent::none; }

  /// Whether rank `rank` of MPI_COMM_WORLD inspects its receives, so that this rank may send it a message of `bytes`
  /// bytes by envelope.
  [[nodiscard]] static bool accepts_envelope(int rank, std::size_t bytes) noexcept;

  /// A receive or probe in progress that hpe does not inspect. Create the object, check that hpe need not inspect the
  /// operation, and then call MPI: if another thread makes the rank begin after the check, the rank waits until the
  /// object is destroyed before it tells other ranks.
  class uninspected {
   public:
    explicit uninspected(bool fits_envelope) noexcept;
    ~uninspected();
    uninspected(const uninspected&) = delete;
    uninspected& operator=(const uninspected&) = delete;

    /// For a nonblocking receive that has begun: it is in progress until the program has completed the request.
    void lasts(MPI_Request request) noexcept;
    /// Call this when MPI has posted the receive, because another thread can then no longer take the receive's message
    /// out of MPI. If no envelope fits into the receive buffer, the rank need not wait for this receive any longer
    /// before it tells other ranks that they may send it large messages by envelope.
    void posted() noexcept;

   private:
    const bool counts_;
    const bool fits_envelope_;
    bool is_large_;  // whether the operation counts in large_
    bool lasts_ = false;
  };

  /// A call of the program that may complete requests. The destructor ends the uninspected receives whose requests the
  /// call has freed, and begins to inspect receives if another rank has asked.
  class completion {
   public:
    completion(int count, const MPI_Request* requests);
    ~completion();
    completion(const completion&) = delete;
    completion& operator=(const completion&) = delete;

   private:
    static constexpr int usual = 32;

    const MPI_Request* now_;
    int count_ = 0;
    std::array<MPI_Request, usual> few_;  // the requests before the call, unless they are in many_
    std::vector<MPI_Request> many_;
    const MPI_Request* before_ = nullptr;
  };
  /// Call this before the program frees a request itself. If its receive has not completed, hpe does not learn when it
  /// completes, so the receive counts as in progress until the process ends.
  void freed(MPI_Request request) noexcept;

 private:
  /// Which receives are inspected: none; those into which an envelope of full length fits; or all.
  enum class extent : std::uint8_t { none, large, all };

  receive_inspection() = default;
  [[nodiscard]] static bool is_asked() noexcept;
  [[nodiscard]] extent current() noexcept;
  [[nodiscard]] extent widened() noexcept;
  void tell() noexcept;
  void end(int small, int large) noexcept;
  [[nodiscard]] std::optional<bool> remove(MPI_Request request) noexcept HPE_REQUIRES(mutex_);

  inline static bool all_ranks_inspect = false;  // whether all ranks of the job inspect receives from MPI_Init on
  inline static std::atomic<extent> inspected_now{extent::none};
  inline static std::atomic<extent> inspected_as_told{extent::none};
  // The numbers of uninspected operations in progress. If several threads may call MPI, an operation into which no
  // envelope fits also counts as large until MPI has posted it.
  std::atomic<int> small_{0};
  std::atomic<int> large_{0};

  mutex mutex_;
  // The requests of the nonblocking receives among these operations, and whether they are large. A handle may occur
  // several times: another thread may begin a receive whose request gets the handle of a request that MPI has just
  // freed. A multimap keeps equal handles in the order of their insertion, so remove() removes the oldest one. The pool
  // saves an allocation for each receive.
  std::pmr::unsynchronized_pool_resource pool_ HPE_GUARDED_BY(mutex_);
  std::pmr::multimap<MPI_Request, bool> requests_ HPE_GUARDED_BY(mutex_){&pool_};
  inline static std::atomic<bool> has_requests{false};
};

}  // namespace hpe::interpose::mpi
