// Wrappers of the functions that complete, start and free requests, and of those that free communicators. If no
// operation is pending, a wrapper only loads a few variables and calls MPI's own function; wrappers that wait also
// record the call for reports of stalls.

#include <array>

#include "interpose/mpi/checks/checked_call.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/unmatched_sends.h"
#include "interpose/mpi/messages/waits.h"
#include "interpose/mpi/pending.h"
#include "interpose/mpi/waiting_call.h"

namespace hpe::interpose::mpi {

namespace {

// The requests of one wait or test, and their pending operations. The constructor takes the operations out of the
// table, before MPI can reuse the handle of a completed request. The destructor puts the operations that are not
// complete back into the table.
class watched {
 public:
  watched(int count, MPI_Request* requests)
      : program_(requests), requests_(requests, requests + count), given_(requests_) {
    for (MPI_Request& r : given_) {
      operations_.push_back(pending_table::all().take(r));
      const auto& operation = operations_.back();
      if (operation == nullptr) continue;
      any_ = true;
      // A persistent operation of hpe's that is not active has no stand-in. Its handle is of a request of MPI that was
      // never started, and Intel MPI counts such a request as completed.
      const MPI_Request instead = operation->stand_in();
      if (instead != handles::get().request_null || (operation->persistent && operation->starts_itself())) r = instead;
    }
  }

  ~watched() {
    for (std::size_t i = 0; i < operations_.size(); ++i)
      if (operations_[i] != nullptr && !operations_[i]->persistent)
        pending_table::all().put_back(requests_[i], operations_[i]);
  }
  watched(const watched&) = delete;
  watched& operator=(const watched&) = delete;

  [[nodiscard]] bool any() const noexcept { return any_; }

  /// Calls await() of each pending operation. Call this before an MPI function that waits for all these requests.
  void await() {
    for (const auto& operation : operations_)
      if (operation != nullptr) operation->await();
  }

  /// Calls MPI with the stand-ins of the program's requests, and stores the handles that MPI has changed in the
  /// program's array.
  template <class Call>
  int call(Call&& next) {
    const std::vector<MPI_Request> before = given_;
    const int result = next(given_.data());
    for (std::size_t i = 0; i < given_.size(); ++i) {
      if (before[i] == requests_[i])
        program_[i] = given_[i];
      else if (given_[i] == handles::get().request_null)
        operations_[i]->stand_in_gone();
    }
    return result;
  }

  /// Finishes the operation of request i, after MPI has completed the request with the error code `code`. Returns
  /// MPI_SUCCESS, or the code of an error of hpe.
  int over(int i, int code, const MPI_Status* status) {
    const auto at = static_cast<std::size_t>(i);
    const std::shared_ptr<pending> operation =
        operations_[at] != nullptr && !operations_[at]->persistent ? std::move(operations_[at]) : operations_[at];
    if (operation == nullptr) return MPI_SUCCESS;
    // Open MPI 4.1 also frees a persistent request if it fails.
    const bool gone = !operation->persistent || program_[i] == handles::get().request_null;
    int result = MPI_SUCCESS;
    if (code == MPI_SUCCESS)
      result = operation->finish(status);
    else
      operation->drop();
    if (gone) pending_table::all().remove(requests_[at], operation);
    return result;
  }

 private:
  MPI_Request* program_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Request> given_;
  std::vector<std::shared_ptr<pending>> operations_;
  bool any_ = false;
};

// The program's array of statuses, or an array of hpe if the program passes MPI_STATUSES_IGNORE.
class status_array {
 public:
  status_array(MPI_Status* given, int count)
      : own_(given == MPI_STATUSES_IGNORE ? static_cast<std::size_t>(count) : 0) {
    statuses_ = own_.empty() ? given : own_.data();
  }
  [[nodiscard]] MPI_Status* get() noexcept { return statuses_; }
  MPI_Status& operator[](int i) noexcept { return statuses_[i]; }

 private:
  std::vector<MPI_Status> own_;
  MPI_Status* statuses_;
};

void keep_first(int& result, int next) {
  if (result == MPI_SUCCESS) result = next;
}

// Finishes the operations after an MPI call that has completed `count` requests: those at `indices`, or all requests if
// `indices` is nullptr. Returns the result of the program's call.
int all_over(watched& w, status_array& statuses, int result, int count, const int* indices) {
  if (result != MPI_SUCCESS && result != MPI_ERR_IN_STATUS) return result;
  const bool in_status = result == MPI_ERR_IN_STATUS;
  std::vector<int> codes;
  for (int k = 0; k < count; ++k) {
    int code = in_status ? statuses[k].MPI_ERROR : MPI_SUCCESS;
    if (code != MPI_ERR_PENDING) keep_first(code, w.over(indices != nullptr ? indices[k] : k, code, &statuses[k]));
    codes.push_back(code);
    if (code != MPI_SUCCESS) result = MPI_ERR_IN_STATUS;
  }
  if (result == MPI_ERR_IN_STATUS)
    for (int k = 0; k < count; ++k) statuses[k].MPI_ERROR = codes[static_cast<std::size_t>(k)];
  return result;
}

bool nothing_pending() { return pending_table::all().empty(); }

// Whether the program may free a communicator.
bool may_be_freed(const MPI_Comm* comm) {
  return comm != nullptr && *comm != handles::get().comm_world && *comm != handles::get().comm_self;
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

extern "C" {

int MPI_Wait(MPI_Request* request, MPI_Status* status) {
  const checked_requests checked(1, request);
  const receive_inspection::completion completed(1, request);
  static constexpr named_call about{"MPI_Wait"};
  const waiting_call here(about);
  constexpr auto next = waits::one;
  if (nothing_pending() || request == nullptr) return leave(next(request, status));
  watched w(1, request);
  if (!w.any()) return leave(next(request, status));
  w.await();
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  int result = w.call([&](MPI_Request* r) { return next(r, status); });
  keep_first(result, w.over(0, result, status));
  return leave(result);
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  const checked_requests checked(1, request);
  const receive_inspection::completion completed(1, request);
  progress::of_process().help();
  auto& next = HPE_REAL(Test);
  if (nothing_pending() || request == nullptr) return leave(next(request, flag, status));
  watched w(1, request);
  if (!w.any()) return leave(next(request, flag, status));
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  int result = w.call([&](MPI_Request* r) { return next(r, flag, status); });
  if (result != MPI_SUCCESS || *flag != 0) keep_first(result, w.over(0, result, status));
  return leave(result);
}

int MPI_Waitany(int count, MPI_Request* requests, int* index, MPI_Status* status) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  static constexpr named_call about{"MPI_Waitany", "count"};
  const waiting_call here(about, count);
  constexpr auto next = waits::any;
  if (nothing_pending() || count <= 0 || requests == nullptr) return leave(next(count, requests, index, status));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, index, status));
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  int result = w.call([&](MPI_Request* r) { return next(count, r, index, status); });
  if (*index != MPI_UNDEFINED) keep_first(result, w.over(*index, result, status));
  return leave(result);
}

int MPI_Testany(int count, MPI_Request* requests, int* index, int* flag, MPI_Status* status) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  progress::of_process().help();
  auto& next = HPE_REAL(Testany);
  if (nothing_pending() || count <= 0 || requests == nullptr) return leave(next(count, requests, index, flag, status));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, index, flag, status));
  MPI_Status own;
  if (status == MPI_STATUS_IGNORE) status = &own;
  *index = MPI_UNDEFINED;
  int result = w.call([&](MPI_Request* r) { return next(count, r, index, flag, status); });
  if (*index != MPI_UNDEFINED && (result != MPI_SUCCESS || *flag != 0))
    keep_first(result, w.over(*index, result, status));
  return leave(result);
}

int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  static constexpr named_call about{"MPI_Waitall", "count"};
  const waiting_call here(about, count);
  constexpr auto next = waits::all;
  if (nothing_pending() || count <= 0 || requests == nullptr) return leave(next(count, requests, statuses));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, statuses));
  w.await();
  status_array all(statuses, count);
  const int result = w.call([&](MPI_Request* r) { return next(count, r, all.get()); });
  return leave(all_over(w, all, result, count, nullptr));
}

int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  progress::of_process().help();
  auto& next = HPE_REAL(Testall);
  if (nothing_pending() || count <= 0 || requests == nullptr) return leave(next(count, requests, flag, statuses));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, flag, statuses));
  status_array all(statuses, count);
  const int result = w.call([&](MPI_Request* r) { return next(count, r, flag, all.get()); });
  return leave(result == MPI_SUCCESS && *flag == 0 ? result : all_over(w, all, result, count, nullptr));
}

int MPI_Waitsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  static constexpr named_call about{"MPI_Waitsome", "count"};
  const waiting_call here(about, count);
  constexpr auto next = waits::some;
  if (nothing_pending() || count <= 0 || requests == nullptr)
    return leave(next(count, requests, done, indices, statuses));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, done, indices, statuses));
  status_array all(statuses, count);
  const int result = w.call([&](MPI_Request* r) { return next(count, r, done, indices, all.get()); });
  return leave(*done == MPI_UNDEFINED ? result : all_over(w, all, result, *done, indices));
}

int MPI_Testsome(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  const checked_requests checked(count, requests);
  const receive_inspection::completion completed(count, requests);
  progress::of_process().help();
  auto& next = HPE_REAL(Testsome);
  if (nothing_pending() || count <= 0 || requests == nullptr)
    return leave(next(count, requests, done, indices, statuses));
  watched w(count, requests);
  if (!w.any()) return leave(next(count, requests, done, indices, statuses));
  status_array all(statuses, count);
  const int result = w.call([&](MPI_Request* r) { return next(count, r, done, indices, all.get()); });
  return leave(*done == MPI_UNDEFINED ? result : all_over(w, all, result, *done, indices));
}

// This function does not free the request. But if it reports the request as complete, the program may use the buffer,
// so the wrapper finishes the operation.
int MPI_Request_get_status(MPI_Request request, int* flag, MPI_Status* status) {
  MPI_Request same = request;
  const checked_requests checked(1, &same, true);
  progress::of_process().help();
  auto& next = HPE_REAL(Request_get_status);
  const auto operation = pending_table::all().find(request);
  if (operation == nullptr) return leave(next(request, flag, status));
  if (const MPI_Request instead = operation->stand_in(); instead != handles::get().request_null) request = instead;
  int result = next(request, flag, status);
  MPI_Status its;
  if (result == MPI_SUCCESS && *flag != 0 && is_complete(request, its)) keep_first(result, operation->finish(&its));
  return leave(result);
}

int MPI_Cancel(MPI_Request* request) {
  auto& next = HPE_REAL(Cancel);
  const auto operation = request != nullptr ? pending_table::all().find(*request) : nullptr;
  if (operation == nullptr) return leave(next(request));
  operation->cancel();
  MPI_Request instead = operation->stand_in();
  return leave(next(instead != handles::get().request_null ? &instead : request));
}

int MPI_Request_free(MPI_Request* request) {
  checked_requests checked(1, request);
  checked.freed();
  auto& next = HPE_REAL(Request_free);
  if (request != nullptr) unmatched_sends::freed(*request);
  if (request != nullptr) receive_inspection::of_process().freed(*request);
  const auto operation = request != nullptr ? pending_table::all().find(*request) : nullptr;
  if (operation == nullptr) return leave(next(request));
  const MPI_Request instead = operation->stand_in();
  const bool has_other = instead != handles::get().request_null;
  if (operation->active()) {
    pending_table::all().remove(*request, operation);
    pending_table::all().abandon(has_other ? instead : *request, operation);
    if (has_other) return leave(next(request));
    *request = handles::get().request_null;
    return leave(MPI_SUCCESS);
  }
  pending_table::all().remove(*request, operation);
  MPI_Request other = instead;
  if (has_other) next(&other);
  return leave(next(request));
}

// MPI_Start may change the handle: Open MPI replaces the request of a persistent buffered send whose last message it
// has not sent completely.
int MPI_Start(MPI_Request* request) {
  checked_requests checked(1, request);
  checked.start("MPI_Start");
  auto& next = HPE_REAL(Start);
  const unmatched_sends::starts here(1, request);
  const auto operation = request != nullptr ? pending_table::all().find(*request) : nullptr;
  if (operation == nullptr) return leave(next(request));
  if (const int failed = operation->begin(); failed != MPI_SUCCESS || operation->starts_itself()) return leave(failed);
  const MPI_Request before = *request;
  const int result = next(request);
  if (result != MPI_SUCCESS) operation->drop();
  pending_table::all().move(before, *request, operation);
  return leave(result);
}

int MPI_Startall(int count, MPI_Request* requests) {
  checked_requests checked(count, requests);
  checked.start("MPI_Startall");
  auto& next = HPE_REAL(Startall);
  const unmatched_sends::starts here(count, requests);
  if (nothing_pending() || count <= 0 || requests == nullptr) return leave(next(count, requests));
  std::vector<std::shared_ptr<pending>> operations;  // the operations of the requests in `left`
  std::vector<MPI_Request> left;
  std::vector<int> indices;
  for (int i = 0; i < count; ++i) {
    auto operation = pending_table::all().find(requests[i]);
    if (operation != nullptr)
      if (const int failed = operation->begin(); failed != MPI_SUCCESS) return leave(failed);
    if (operation != nullptr && operation->starts_itself()) continue;
    left.push_back(requests[i]);
    indices.push_back(i);
    operations.push_back(std::move(operation));
  }
  if (left.empty()) return leave(MPI_SUCCESS);
  const int result = next(static_cast<int>(left.size()), left.data());
  for (std::size_t k = 0; k < left.size(); ++k) {
    MPI_Request& of_program = requests[indices[k]];
    if (operations[k] != nullptr) {
      if (result != MPI_SUCCESS) operations[k]->drop();
      pending_table::all().move(of_program, left[k], operations[k]);
    }
    of_program = left[k];
  }
  return leave(result);
}

int MPI_Comm_free(MPI_Comm* comm) {
  if (!may_be_freed(comm) || !pending_table::all().keep(*comm)) return leave(HPE_REAL(Comm_free)(comm));
  *comm = handles::get().comm_null;
  return leave(MPI_SUCCESS);
}

// Waits for the operations that MPI does not know of, and for those whose requests the program has freed: MPICH waits
// until hpe has freed their requests, too.
int MPI_Comm_disconnect(MPI_Comm* comm) {
  const checked_thread checked;
  static constexpr named_call about{"MPI_Comm_disconnect"};
  const waiting_call here(about);
  if (may_be_freed(comm)) {
    pending_table& all = pending_table::all();
    progress::of_process().until([&] {
      all.look_at_freed();
      return !all.any_active(*comm);
    });
    all.forget(*comm);
  }
  return leave(HPE_REAL(Comm_disconnect)(comm));
}
}
