#include "interpose/mpi/errors.h"

#include <map>
#include <mutex>
#include <string>

namespace hpe::interpose::mpi {

namespace {

int class_for(hpeStatus status) {
  switch (status) {
    case HPE_ERROR_INVALID_ARGUMENT:
    case HPE_ERROR_NOT_A_REGION:
    case HPE_ERROR_NOT_SUPPORTED: return MPI_ERR_BUFFER;
    case HPE_ERROR_OUT_OF_MEMORY: return MPI_ERR_NO_MEM;
    default: return MPI_ERR_OTHER;
  }
}

// One error code for each status, because MPI 3.1 cannot free codes. The code's string describes the last error.
int code_for(const error& what) {
  static std::mutex mutex;
  static std::map<hpeStatus, int> codes;
  const std::lock_guard lock(mutex);
  const auto [entry, made] = codes.try_emplace(what.status(), MPI_ERR_OTHER);
  if (made) HPE_REAL(Add_error_code)(class_for(what.status()), &entry->second);
  const std::string sentence = std::string("hpe: ") + what.what();
  HPE_REAL(Add_error_string)(entry->second, sentence.substr(0, MPI_MAX_ERROR_STRING - 1).c_str());
  return entry->second;
}

struct call_handler {
  int code;
  void operator()(no_object) const { HPE_REAL(Comm_call_errhandler)(handles::get().comm_world, code); }
  void operator()(MPI_Comm comm) const {
    if (comm == nullptr || comm == handles::get().comm_null) return (*this)(no_object{});
    HPE_REAL(Comm_call_errhandler)(comm, code);
  }
  void operator()(MPI_Win win) const { HPE_REAL(Win_call_errhandler)(win, code); }
  void operator()(MPI_File file) const { HPE_REAL(File_call_errhandler)(file, code); }
};

}  // namespace

int raise(const mpi_object& object, const error& what) { return raise(object, code_for(what)); }

int raise(const mpi_object& object, int code) {
  std::visit(call_handler{code}, object);
  return code;
}

}  // namespace hpe::interpose::mpi
