#include "interpose/mpi/mpi_errors.h"

#include <map>
#include <string>

#include "interpose/mpi/libraries/library.h"
#include "runtime/base/log.h"
#include "runtime/base/thread_safety.h"

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

// The MPI error code for one hpeStatus, and the message of the last error with this status. There is only one code for
// each status, because MPI 3.1 cannot free error codes.
struct told_error {
  int code = MPI_ERR_OTHER;
  std::string sentence;
};

struct told_errors {
  hpe::mutex mutex;
  std::map<hpeStatus, told_error> by_status HPE_GUARDED_BY(mutex);

  static told_errors& all() {
    static auto* const it = new told_errors;
    return *it;
  }
};

int code_for(const error& what) {
  told_errors& all = told_errors::all();
  const lock_guard lock(all.mutex);
  const auto [entry, made] = all.by_status.try_emplace(what.status());
  told_error& told = entry->second;
  if (made) HPE_REAL(Add_error_code)(class_for(what.status()), &told.code);
  told.sentence = (std::string("hpe: ") + what.what()).substr(0, MPI_MAX_ERROR_STRING - 1);
  HPE_REAL(Add_error_string)(told.code, told.sentence.c_str());
  if (!shows_added_strings()) log(log_level::error, "{}", what.what());
  return told.code;
}

// Returns the message of the last error with a code that hpe has created; an empty text for any other code.
std::string sentence_for(int code) {
  told_errors& all = told_errors::all();
  const lock_guard lock(all.mutex);
  for (const auto& [status, told] : all.by_status)
    if (told.code == code && code != MPI_ERR_OTHER) return told.sentence;
  return {};
}

struct call_handler {
  int code;
  void operator()(no_object) const { HPE_REAL(Comm_call_errhandler)(handles::get().comm_world, code); }
  void operator()(on_comm object) const {
    if (is_null(object.comm, handles::get().comm_null)) return (*this)(no_object{});
    HPE_REAL(Comm_call_errhandler)(object.comm, code);
  }
  void operator()(on_win object) const { HPE_REAL(Win_call_errhandler)(object.win, code); }
  void operator()(on_file object) const { HPE_REAL(File_call_errhandler)(object.file, code); }
};

}  // namespace

int raise(const mpi_object& object, const error& what) { return raise(object, code_for(what)); }

int raise(const mpi_object& object, int code) {
  std::visit(call_handler{code}, object);
  return code;
}

}  // namespace hpe::interpose::mpi

// hpe returns the text itself, because some MPI libraries do not return the text that hpe has added for a code
// (shows_added_strings()).
int MPI_Error_string(int code, char* text, int* length) {
  using namespace hpe::interpose::mpi;
  const std::string sentence = sentence_for(code);
  if (sentence.empty()) return HPE_REAL(Error_string)(code, text, length);
  *length = static_cast<int>(sentence.copy(text, sentence.size()));
  text[sentence.size()] = '\0';
  return MPI_SUCCESS;
}
