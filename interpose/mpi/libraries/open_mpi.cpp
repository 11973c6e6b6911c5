// Open MPI 4 and 5. Handles are addresses of variables of the library.

#include <dlfcn.h>

#include "interpose/mpi/libraries/library.h"

namespace hpe::interpose::mpi {

namespace {

// The program may have a copy of the variable (a copy relocation), which the MPI library then uses too.
template <class Handle>
Handle handle(const char* name) {
  void* const found = ::dlsym(RTLD_DEFAULT, name);
  return static_cast<Handle>(found != nullptr ? found : find_in_library(name));
}

void* function_of_opal(const char* name) {
  void* const library = ::dlopen("libopen-pal.so.40", RTLD_LAZY | RTLD_NOLOAD);
  return library != nullptr ? ::dlsym(library, name) : nullptr;
}

}  // namespace

const handles& handles::get() {
  static const handles all{
      .comm_world = handle<MPI_Comm>("ompi_mpi_comm_world"),
      .comm_self = handle<MPI_Comm>("ompi_mpi_comm_self"),
      .comm_null = handle<MPI_Comm>("ompi_mpi_comm_null"),
      .byte = handle<MPI_Datatype>("ompi_mpi_byte"),
      .integer = handle<MPI_Datatype>("ompi_mpi_int"),
      .packed = handle<MPI_Datatype>("ompi_mpi_packed"),
      .datatype_null = handle<MPI_Datatype>("ompi_mpi_datatype_null"),
      .errors_return = handle<MPI_Errhandler>("ompi_mpi_errors_return"),
      .file_null = handle<MPI_File>("ompi_mpi_file_null"),
      .info_null = handle<MPI_Info>("ompi_mpi_info_null"),
      .message_null = handle<MPI_Message>("ompi_message_null"),
      .bitwise_or = handle<MPI_Op>("ompi_mpi_op_bor"),
      .min = handle<MPI_Op>("ompi_mpi_op_min"),
      .request_null = handle<MPI_Request>("ompi_request_null"),
      .win_null = handle<MPI_Win>("ompi_mpi_win_null"),
  };
  return all;
}

bool stands_for_many(MPI_Request request) noexcept {
  static const auto empty = handle<MPI_Request>("ompi_request_empty");
  return request == empty;
}

bool status_is_silent() noexcept { return true; }
bool shows_added_strings() noexcept { return true; }

progress_function call_in_progress(int (*each)()) {
  const auto add = reinterpret_cast<int (*)(int (*)())>(function_of_opal("opal_progress_register"));
  const auto make_progress = reinterpret_cast<progress_function>(function_of_opal("opal_progress"));
  return add != nullptr && make_progress != nullptr && add(each) == 0 ? make_progress : nullptr;
}

std::optional<reduction::number> number_of(MPI_Datatype type) {
  using number = reduction::number;
  static const auto named = [](const char* name, number meaning) {
    return named_handle<MPI_Datatype, number>{handle<MPI_Datatype>(name), meaning};
  };
  static const std::array all{named("ompi_mpi_int", number::i32),
                              named("ompi_mpi_int32_t", number::i32),
                              named("ompi_mpi_unsigned", number::u32),
                              named("ompi_mpi_uint32_t", number::u32),
                              named("ompi_mpi_long", number::i64),
                              named("ompi_mpi_long_long_int", number::i64),
                              named("ompi_mpi_int64_t", number::i64),
                              named("ompi_mpi_unsigned_long", number::u64),
                              named("ompi_mpi_unsigned_long_long", number::u64),
                              named("ompi_mpi_uint64_t", number::u64),
                              named("ompi_mpi_float", number::f32),
                              named("ompi_mpi_real", number::f32),
                              named("ompi_mpi_double", number::f64),
                              named("ompi_mpi_dblprec", number::f64)};
  return meaning_of(type, all);
}

std::optional<reduction::operation> operation_of(MPI_Op op) {
  using operation = reduction::operation;
  static const auto named = [](const char* name, operation meaning) {
    return named_handle<MPI_Op, operation>{handle<MPI_Op>(name), meaning};
  };
  static const std::array all{named("ompi_mpi_op_sum", operation::sum), named("ompi_mpi_op_prod", operation::product),
                              named("ompi_mpi_op_min", operation::least),
                              named("ompi_mpi_op_max", operation::greatest)};
  return meaning_of(op, all);
}

type_envelope envelope_of(MPI_Datatype type) { return envelope_with_int(type); }
type_contents contents_of(MPI_Datatype type) { return contents_with_int(type); }

}  // namespace hpe::interpose::mpi
