#include "tests/mpi/programs/fake_mpi.h"

#include <cstdlib>
#include <cstring>
#include <set>

#include "interpose/mpi/messages/job.h"

extern "C" void hpe_mpi_use(void* (*behind)(const char* name));

namespace fake_mpi {

namespace {

using hpe::interpose::mpi::handles;

// Objects to which the handles of this library point.
MPI_Comm machine() {
  static int object = 0;
  return reinterpret_cast<MPI_Comm>(&object);
}
MPI_Group group_of(MPI_Comm comm) { return reinterpret_cast<MPI_Group>(comm); }

int (*registered)() = nullptr;

int register_progress(int (*each)()) {
  registered = each;
  return 0;
}
void own_progress() { ++progress_calls(); }

int get_library_version(char* text, int* length) {
  std::memcpy(text, library().version.c_str(), library().version.size() + 1);
  *length = static_cast<int>(library().version.size());
  return library().version_result;
}
int all_reduce(const void*, void*, int count, MPI_Datatype, MPI_Op, MPI_Comm) {
  EXPECT_EQ(count, 1) << "more than the one number that the ranks agree on";
  return MPI_SUCCESS;
}
int broadcast(void* buffer, int bytes, MPI_Datatype, int root, MPI_Comm) {
  // Rank 0 has another limit for messages to ranks of other machines: the number after the job's number.
  constexpr std::uint64_t large = 9000;
  if (root == 0 && bytes >= 24) std::memcpy(static_cast<std::byte*>(buffer) + 16, &large, sizeof large);
  return MPI_SUCCESS;
}
int comm_rank(MPI_Comm, int* result) {
  *result = rank;
  return MPI_SUCCESS;
}
int comm_size(MPI_Comm comm, int* result) {
  *result = comm == machine() ? 2 : 3;
  return MPI_SUCCESS;
}
int comm_dup(MPI_Comm of, MPI_Comm* made) {
  *made = of;
  return MPI_SUCCESS;
}
int comm_set_errhandler(MPI_Comm, MPI_Errhandler) { return MPI_SUCCESS; }
int comm_split_type(MPI_Comm, int, int, MPI_Info, MPI_Comm* made) {
  *made = machine();
  return MPI_SUCCESS;
}
int comm_group(MPI_Comm of, MPI_Group* made) {
  *made = group_of(of);
  return MPI_SUCCESS;
}
int comm_free(MPI_Comm* comm) {
  *comm = nullptr;
  return MPI_SUCCESS;
}
int group_free(MPI_Group* group) {
  *group = nullptr;
  return MPI_SUCCESS;
}
int translate_ranks(MPI_Group, int count, const int* from, MPI_Group, int* to) {
  for (int n = 0; n < count; ++n) to[n] = from[n];
  return MPI_SUCCESS;
}

int begin(bool is_send, void* buffer, int bytes, int peer, int tag, MPI_Request* request) {
  messages().push_back({.is_send = is_send, .buffer = buffer, .bytes = bytes, .peer = peer, .tag = tag});
  *request = reinterpret_cast<MPI_Request>(&messages().back());
  return MPI_SUCCESS;
}
int i_send(const void* buffer, int bytes, MPI_Datatype, int to, int tag, MPI_Comm, MPI_Request* request) {
  return begin(true, const_cast<void*>(buffer), bytes, to, tag, request);
}
int i_receive(void* buffer, int bytes, MPI_Datatype, int from, int tag, MPI_Comm, MPI_Request* request) {
  return begin(false, buffer, bytes, from, tag, request);
}
int test_some(int count, MPI_Request* requests, int* done, int* indices, MPI_Status* statuses) {
  *done = 0;
  bool failed = false;
  for (int n = 0; n < count; ++n) {
    const auto* const its = reinterpret_cast<const message*>(requests[n]);
    if (!its->is_complete) continue;
    MPI_Status status{};
    status.MPI_SOURCE = its->peer;
    status.MPI_TAG = its->tag;
    status.MPI_ERROR = its->error;
    status._ucount = its->received;
    failed = failed || its->error != MPI_SUCCESS;
    statuses[*done] = status;
    indices[(*done)++] = n;
  }
  return failed ? MPI_ERR_IN_STATUS : MPI_SUCCESS;
}
int get_elements(const MPI_Status* status, MPI_Datatype, MPI_Count* bytes) {
  *bytes = static_cast<MPI_Count>(status->_ucount);
  return MPI_SUCCESS;
}
int request_get_status(MPI_Request, int* flag, MPI_Status*) {
  *flag = library().request_is_complete;
  return MPI_SUCCESS;
}

int type_get_envelope(MPI_Datatype, int* integers, int* addresses, int* types, int* combiner) {
  *integers = static_cast<int>(library().integers.size());
  *addresses = static_cast<int>(library().addresses.size());
  *types = static_cast<int>(library().types.size());
  *combiner = library().combiner;
  return MPI_SUCCESS;
}
int type_get_contents(MPI_Datatype, int integers, int addresses, int types, int* its_integers, MPI_Aint* its_addresses,
                      MPI_Datatype* its_types) {
  std::copy_n(library().integers.begin(), integers, its_integers);
  std::copy_n(library().addresses.begin(), addresses, its_addresses);
  std::copy_n(library().types.begin(), types, its_types);
  return MPI_SUCCESS;
}

void* behind(const char* name) {
  static const std::map<std::string, void*> functions{
      {"PMPI_Allreduce", reinterpret_cast<void*>(all_reduce)},
      {"PMPI_Bcast", reinterpret_cast<void*>(broadcast)},
      {"PMPI_Comm_dup", reinterpret_cast<void*>(comm_dup)},
      {"PMPI_Comm_free", reinterpret_cast<void*>(comm_free)},
      {"PMPI_Comm_group", reinterpret_cast<void*>(comm_group)},
      {"PMPI_Comm_rank", reinterpret_cast<void*>(comm_rank)},
      {"PMPI_Comm_set_errhandler", reinterpret_cast<void*>(comm_set_errhandler)},
      {"PMPI_Comm_size", reinterpret_cast<void*>(comm_size)},
      {"PMPI_Comm_split_type", reinterpret_cast<void*>(comm_split_type)},
      {"PMPI_Get_elements_x", reinterpret_cast<void*>(get_elements)},
      {"PMPI_Get_library_version", reinterpret_cast<void*>(get_library_version)},
      {"PMPI_Group_free", reinterpret_cast<void*>(group_free)},
      {"PMPI_Group_translate_ranks", reinterpret_cast<void*>(translate_ranks)},
      {"PMPI_Irecv", reinterpret_cast<void*>(i_receive)},
      {"PMPI_Isend", reinterpret_cast<void*>(i_send)},
      {"PMPI_Request_get_status", reinterpret_cast<void*>(request_get_status)},
      {"PMPI_Testsome", reinterpret_cast<void*>(test_some)},
      {"PMPI_Type_get_contents", reinterpret_cast<void*>(type_get_contents)},
      {"PMPI_Type_get_envelope", reinterpret_cast<void*>(type_get_envelope)},
      {"opal_progress", reinterpret_cast<void*>(own_progress)},
      {"opal_progress_register", reinterpret_cast<void*>(register_progress)},
  };
  if (const auto found = functions.find(name); found != functions.end()) return found->second;
  if (const auto found = symbols().find(name); found != symbols().end()) return found->second;
  // Each predefined handle is the address of an object of its own.
  static std::set<std::string> objects;
  const std::string text = name;
  return text.starts_with("ompi_") ? const_cast<std::string*>(&*objects.insert(text).first) : nullptr;
}

}  // namespace

std::deque<message>& messages() {
  static auto& all = *new std::deque<message>;
  return all;
}

void complete(message& which, std::size_t received, int error) {
  which.is_complete = true;
  which.received = received;
  which.error = error;
}

std::map<std::string, void*>& symbols() {
  static auto& all = *new std::map<std::string, void*>;
  return all;
}

answers& library() {
  static answers all;
  return all;
}

void use() { ::hpe_mpi_use(behind); }

void begin_job() {
  static const bool begun = [] {
    use();
    ::setenv("HPE_MPI_LARGE", "7000", 1);
    ::setenv("HPE_MPI_DIRECT", "1", 1);
    ::setenv("HPE_MPI_CHUNK", "64k", 1);
    hpe::interpose::mpi::job::begin(MPI_THREAD_MULTIPLE);
    return true;
  }();
  static_cast<void>(begun);
}

int make_progress() { return registered(); }

int& progress_calls() {
  static int count = 0;
  return count;
}

}  // namespace fake_mpi
