// Wrappers of the probe functions. If a probe finds an envelope, the program gets the status of the large message that
// the envelope describes.

#include "interpose/mpi/checks/checked_call.h"
#include "interpose/mpi/groups.h"
#include "interpose/mpi/messages/board/receive_inspection.h"
#include "interpose/mpi/messages/message_progress.h"
#include "interpose/mpi/messages/set_aside.h"
#include "interpose/mpi/pending.h"
#include "interpose/mpi/waiting_call.h"

namespace hpe::interpose::mpi {

namespace {

// Whether hpe must check the message that a probe finds, because the message may be an envelope.
bool is_looked_at(int source, MPI_Comm comm) {
  return job::current() != nullptr && receive_inspection::any() && source != MPI_PROC_NULL && is_intra(comm);
}

// Calls unlooked(), which calls MPI's own probe, or look() if hpe must check the message. Returns the result.
template <class Unlooked, class Look>
int probe_in(int source, MPI_Comm comm, Unlooked&& unlooked, Look&& look) {
  if (!is_looked_at(source, comm)) {
    const receive_inspection::uninspected not_inspected(true);
    if (!is_looked_at(source, comm)) return leave(unlooked());
  }
  return leave(look());
}

void tell(const MPI_Status& what, MPI_Status* status) {
  if (status == MPI_STATUS_IGNORE) return;
  const int error = status->MPI_ERROR;
  *status = what;
  status->MPI_ERROR = error;
}

// Whether the message that MPI's probe has found may be an envelope. No message is one if this rank has not told others
// before the end of the probe that it inspects its receives. hpe then also takes no message out of MPI which a receive
// that it does not inspect should get.
bool is_like_envelope(const MPI_Status& met) {
  return receive_inspection::told() && envelope::is_length(bytes_received(met));
}

// Stores the handle and the status of a matched message in the program's variables.
void give(const matched& what, MPI_Message* message, MPI_Status* status) {
  set_aside::of_process().handed_out(what);
  *message = what.handle;
  tell(what.status, status);
}

// Implements MPI_Iprobe. The overload below implements MPI_Improbe.
int probe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const progress::guard held;
  while (true) {
    if (const auto found = set_aside::of_process().find(comm, source, tag)) {
      *flag = 1;
      tell(*found, status);
      return MPI_SUCCESS;
    }
    MPI_Status met;
    const int result = HPE_REAL(Iprobe)(source, tag, comm, flag, &met);
    if (result != MPI_SUCCESS || *flag == 0) return result;
    if (!is_like_envelope(met)) {
      tell(met, status);
      return result;
    }
    set_aside::of_process().take_from_mpi(met, comm);
  }
}

int matched_probe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  const progress::guard held;
  if (const auto found = set_aside::of_process().take(comm, source, tag)) {
    *flag = 1;
    give(*found, message, status);
    return MPI_SUCCESS;
  }
  MPI_Status met;
  const int result = HPE_REAL(Improbe)(source, tag, comm, flag, message, &met);
  if (result != MPI_SUCCESS || *flag == 0) return result;
  if (is_like_envelope(met)) {
    give(set_aside::of_process().look_into(*message, met, comm), message, status);
  } else {
    tell(met, status);
  }
  return result;
}

// Repeats a nonblocking probe until it finds a message or fails. MPI's own blocking probe might never return, because
// another thread may take the message out of MPI.
template <class Probe>
int until_there(Probe&& probe_once) {
  int flag = 0;
  int result = MPI_SUCCESS;
  progress::of_process().until([&] {
    result = probe_once(&flag);
    return result != MPI_SUCCESS || flag != 0;
  });
  return result;
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): what follows is C

extern "C" {

int MPI_Probe(int source, int tag, MPI_Comm comm, MPI_Status* status) {
  const checked_thread checked;
  static constexpr named_call about{"MPI_Probe", "source", "tag"};
  const waiting_call here(about, source, tag);
  return probe_in(
      source, comm, [&] { return HPE_REAL(Probe)(source, tag, comm, status); },
      [&] { return until_there([&](int* flag) { return probe(source, tag, comm, flag, status); }); });
}

int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  const checked_thread checked;
  progress::of_process().help();
  return probe_in(
      source, comm, [&] { return HPE_REAL(Iprobe)(source, tag, comm, flag, status); },
      [&] { return probe(source, tag, comm, flag, status); });
}

int MPI_Mprobe(int source, int tag, MPI_Comm comm, MPI_Message* message, MPI_Status* status) {
  const checked_thread checked;
  static constexpr named_call about{"MPI_Mprobe", "source", "tag"};
  const waiting_call here(about, source, tag);
  return probe_in(
      source, comm, [&] { return HPE_REAL(Mprobe)(source, tag, comm, message, status); },
      [&] { return until_there([&](int* flag) { return matched_probe(source, tag, comm, flag, message, status); }); });
}

int MPI_Improbe(int source, int tag, MPI_Comm comm, int* flag, MPI_Message* message, MPI_Status* status) {
  const checked_thread checked;
  progress::of_process().help();
  return probe_in(
      source, comm, [&] { return HPE_REAL(Improbe)(source, tag, comm, flag, message, status); },
      [&] { return matched_probe(source, tag, comm, flag, message, status); });
}
}
