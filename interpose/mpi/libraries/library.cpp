#include "interpose/mpi/libraries/library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace hpe::interpose::mpi {

namespace {

void* (*find_behind)(const char* name) = nullptr;

}  // namespace

void* find_in_library(const char* name) {
  void* const found = find_behind(name);
  if (found != nullptr) return found;
  std::fprintf(stderr, "hpe: the MPI library of this program has no %s\n", name);
  std::abort();
}

bool library_has(const char* name) { return find_behind(name) != nullptr; }

// The functions are in libopen-pal.so, with which Open MPI is linked. hpe does not use MPIX_Async_start of MPICH 4.3
// and later: a function that it calls must not test requests.
bool calls_while_it_waits() noexcept { return library_has("opal_progress_register") && library_has("opal_progress"); }

progress_function call_in_progress(int (*each)()) {
  if (!calls_while_it_waits()) return nullptr;
  const auto add = reinterpret_cast<int (*)(int (*)())>(find_in_library("opal_progress_register"));
  return add(each) == 0 ? reinterpret_cast<progress_function>(find_in_library("opal_progress")) : nullptr;
}

type_envelope envelope_with_int(MPI_Datatype type) {
  int integers = 0;
  int addresses = 0;
  int types = 0;
  type_envelope result;
  HPE_REAL(Type_get_envelope)(type, &integers, &addresses, &types, &result.combiner);
  result.integers = integers;
  result.addresses = addresses;
  result.types = types;
  return result;
}

type_contents contents_with_int(MPI_Datatype type) {
  const type_envelope how = envelope_with_int(type);
  type_contents result{how.combiner, {}, {}, {}};
  if (!how.is_derived()) return result;
  std::vector<int> integers(static_cast<std::size_t>(how.integers) + 1);
  result.addresses.resize(static_cast<std::size_t>(how.addresses) + 1);
  result.types.resize(static_cast<std::size_t>(how.types));
  HPE_REAL(Type_get_contents)
  (type, static_cast<int>(how.integers), static_cast<int>(how.addresses), static_cast<int>(how.types), integers.data(),
   result.addresses.data(), result.types.data());
  result.integers.assign(integers.begin(), integers.end());
  return result;
}

}  // namespace hpe::interpose::mpi

/// libhpe-mpi.so calls this function once, before any wrapper. behind(name) returns the function with this name in the
/// libraries after libhpe-mpi.so in the search order; nullptr if there is none.
extern "C" __attribute__((visibility("default"))) void hpe_mpi_use(void* (*behind)(const char* name));
void hpe_mpi_use(void* (*behind)(const char* name)) { hpe::interpose::mpi::find_behind = behind; }
