#include "interpose/mpi/checks/checked_call.h"

#include <optional>
#include <unordered_map>
#include <utility>

#include "interpose/mpi/pending.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

namespace {

/// A request whose operation uses, or will use, buffers.
struct known_request {
  const char* function = nullptr;
  std::uint64_t use = 0;                          // 0: not active
  std::vector<message_checks::buffer> buffers{};  // of a persistent request
  bool is_persistent = false;
};

class known_requests {
 public:
  /// Never destroyed, because threads may use it until the process ends.
  static known_requests& of_process() {
    static auto* const it = new known_requests;
    return *it;
  }

  // Adds a request. MPI may have reused the handle of a request that it has completed.
  void set(MPI_Request request, known_request what) {
    std::uint64_t old = 0;
    {
      const lock_guard lock(mutex_);
      known_request& place = all_[request];
      old = std::exchange(place, std::move(what)).use;
    }
    if (old != 0) message_checks::of_process()->end(old, false);
  }

  // Ends the use of a request's buffers.
  void end(MPI_Request request, bool is_gone) {
    std::uint64_t old = 0;
    {
      const lock_guard lock(mutex_);
      const auto found = all_.find(request);
      if (found == all_.end()) return;
      old = std::exchange(found->second.use, 0);
      if (is_gone || !found->second.is_persistent) all_.erase(found);
    }
    if (old != 0) message_checks::of_process()->end(old, true);
  }

  [[nodiscard]] std::optional<known_request> find(MPI_Request request) {
    const lock_guard lock(mutex_);
    const auto found = all_.find(request);
    return found != all_.end() ? std::optional(found->second) : std::nullopt;
  }

  void begin(MPI_Request request, const char* function, std::span<const message_checks::buffer> buffers) {
    const std::uint64_t use = message_checks::of_process()->begin(function, buffers);
    const lock_guard lock(mutex_);
    all_[request].use = use;
  }

 private:
  mutex mutex_;
  std::unordered_map<MPI_Request, known_request> all_ HPE_GUARDED_BY(mutex_);
};

// Whether the operation of a request that MPI has not freed is complete.
bool is_complete(MPI_Request request) {
  if (const auto operation = pending_table::all().find(request)) return !operation->active();
  int flag = 0;
  MPI_Status status;
  return HPE_REAL(Request_get_status)(request, &flag, &status) == MPI_SUCCESS && flag != 0;
}

// The number of functions of MPI that the calling thread has entered and not left. If it is above 1, MPI's library has
// called the inner ones.
int& calls_of_thread() noexcept {
  static thread_local int calls = 0;
  return calls;
}

}  // namespace

bool is_in_checked_call() noexcept { return calls_of_thread() != 0; }

checked_thread::checked_thread() noexcept : checks_(message_checks::of_process()) {
  if (checks_ == nullptr) return;
  ++calls_of_thread();
  checks_->enter();
}

checked_thread::~checked_thread() {
  if (checks_ == nullptr) return;
  checks_->leave();
  --calls_of_thread();
}

checked_call::~checked_call() {
  if (use_ != 0) message_checks::of_process()->end(use_, true);
}

void checked_call::add_stretches(const void* pointer, bool is_written, const layout& which) {
  which.visit(which.size(), [&](stretch s) {
    buffers_.push_back({static_cast<const std::byte*>(pointer) + s.offset, s.bytes, is_written});
  });
}

void checked_call::begin() {
  if (!buffers_.empty()) use_ = message_checks::of_process()->begin(function_, buffers_);
}

int checked_call::lasts(int result, const MPI_Request* request) {
  if (result == MPI_SUCCESS && use_ != 0 && *request != handles::get().request_null)
    known_requests::of_process().set(*request, {function_, std::exchange(use_, 0)});
  return result;
}

int checked_call::made(int result, const MPI_Request* request) {
  if (result == MPI_SUCCESS && !buffers_.empty())
    known_requests::of_process().set(*request, {function_, 0, std::move(buffers_), true});
  return result;
}

checked_requests::checked_requests(int count, MPI_Request* requests, bool keeps) : now_(requests), keeps_(keeps) {
  if (is_checked_ && count > 0 && requests != nullptr) before_.assign(requests, requests + count);
}

checked_requests::~checked_requests() {
  for (std::size_t n = 0; n < before_.size(); ++n) {
    auto& all = known_requests::of_process();
    const auto known = all.find(before_[n]);
    if (!known || known->use == 0) continue;
    const bool is_gone = now_[n] != before_[n];
    if (is_gone || ((keeps_ || known->is_persistent) && is_complete(before_[n]))) all.end(before_[n], is_gone);
  }
}

void checked_requests::start(const char* function) {
  for (const MPI_Request request : before_)
    if (const auto known = known_requests::of_process().find(request); known && known->is_persistent && known->use == 0)
      known_requests::of_process().begin(request, function, known->buffers);
}

void checked_requests::freed() {
  for (const MPI_Request request : before_) known_requests::of_process().end(request, true);
}

}  // namespace hpe::interpose::mpi
