// Wrappers of the split collective file functions (_begin and _end). MPI allows one split collective operation at a
// time on each file. _begin stores the staged buffer in a table; _end passes the same staged buffer to MPI.

#include <map>

#include "interpose/mpi/reduction_operation.h"
#include "runtime/base/thread_safety.h"

namespace hpe::interpose::mpi {

namespace {

// A split collective operation on a file, between its _begin and its _end function. If the program's buffer cannot be
// staged, the rank takes part without data, because other ranks wait for it, and _end reports the error.
struct half {
  staged_buffer buffer;
  std::optional<error> failure;
};

half stage(const void* buffer, MPI_Count count, MPI_Datatype type, host_use use) {
  try {
    return {staged_buffer(buffer, elements(count, type), use, false), std::nullopt};
  } catch (const error& e) {
    return {staged_buffer(layout{}), e};
  }
}

class halves {
 public:
  static halves& all() {
    static auto* const it = new halves;
    return *it;
  }
  void put(MPI_File file, half made) {
    const lock_guard lock(mutex_);
    begun_.insert_or_assign(file, std::move(made));
  }
  std::optional<half> take(MPI_File file) {
    const lock_guard lock(mutex_);
    auto found = begun_.extract(file);
    if (found.empty()) return std::nullopt;
    return std::move(found.mapped());
  }

 private:
  mutex mutex_;
  std::map<MPI_File, half> begun_ HPE_GUARDED_BY(mutex_);
};

// A read that reaches the end of the file does not change the rest of the buffer, so the staged buffer must first
// contain the bytes of the program's buffer.
constexpr host_use reads = host_use::read_write;
constexpr host_use writes = host_use::read;

template <class Count, class Call>
int begin(MPI_File file, const void* buffer, Count count, MPI_Datatype type, host_use use, Call&& call) {
  if (!concerns(buffer)) return leave(call(buffer, count));
  return leave(carry_out(
      on_file{file},
      [&](operation&) {
        half made = stage(buffer, count, type, use);
        const int result = call(made.buffer.pointer(), made.failure ? Count{0} : count);
        if (result == MPI_SUCCESS) halves::all().put(file, std::move(made));
        return result;
      },
      [&] { return call(buffer, count); }));
}

template <class Call>
int end(MPI_File file, const void* buffer, Call&& call) {
  if (!concerns(buffer)) return leave(call(buffer));
  auto begun = halves::all().take(file);
  if (!begun) return leave(call(buffer));
  int result = call(begun->buffer.pointer());
  if (result == MPI_SUCCESS) {
    try {
      if (begun->failure) throw *begun->failure;
      begun->buffer.written();
    } catch (const error& e) {
      result = raise(on_file{file}, e);
    }
  }
  return leave(result);
}

}  // namespace

}  // namespace hpe::interpose::mpi

using namespace hpe::interpose::mpi;  // NOLINT(google-build-using-namespace): the functions below are C

// Defines the wrappers of one operation: the _begin functions with counts of int and of MPI_Count, and the _end
// function. `CONST`: the qualifier of the buffer argument.
#define HPE_SPLIT(name, use, CONST)                      \
  HPE_SPLIT_BEGIN(name##_begin, int, use, CONST)         \
  HPE_SPLIT_BEGIN(name##_begin_c, MPI_Count, use, CONST) \
  HPE_SPLIT_END(name, CONST)

#define HPE_SPLIT_AT(name, use, CONST)                      \
  HPE_SPLIT_AT_BEGIN(name##_begin, int, use, CONST)         \
  HPE_SPLIT_AT_BEGIN(name##_begin_c, MPI_Count, use, CONST) \
  HPE_SPLIT_END(name, CONST)

#define HPE_SPLIT_BEGIN(function, COUNT, use, CONST)                                          \
  int MPI_File_##function(MPI_File fh, CONST void* buf, COUNT count, MPI_Datatype datatype) { \
    return begin(fh, buf, count, datatype, use, [&](const void* p, COUNT n) {                 \
      return HPE_REAL(File_##function)(fh, const_cast<void*>(p), n, datatype);                \
    });                                                                                       \
  }

#define HPE_SPLIT_AT_BEGIN(function, COUNT, use, CONST)                                                          \
  int MPI_File_##function(MPI_File fh, MPI_Offset offset, CONST void* buf, COUNT count, MPI_Datatype datatype) { \
    return begin(fh, buf, count, datatype, use, [&](const void* p, COUNT n) {                                    \
      return HPE_REAL(File_##function)(fh, offset, const_cast<void*>(p), n, datatype);                           \
    });                                                                                                          \
  }

#define HPE_SPLIT_END(name, CONST)                                                                                     \
  int MPI_File_##name##_end(MPI_File fh, CONST void* buf, MPI_Status* status) {                                        \
    return end(fh, buf, [&](const void* p) { return HPE_REAL(File_##name##_end)(fh, const_cast<void*>(p), status); }); \
  }

#define HPE_NO_QUALIFIER

#pragma GCC visibility push(default)
extern "C" {
HPE_SPLIT(read_all, reads, HPE_NO_QUALIFIER)
HPE_SPLIT(read_ordered, reads, HPE_NO_QUALIFIER)
HPE_SPLIT_AT(read_at_all, reads, HPE_NO_QUALIFIER)
HPE_SPLIT(write_all, writes, const)
HPE_SPLIT(write_ordered, writes, const)
HPE_SPLIT_AT(write_at_all, writes, const)
}
#pragma GCC visibility pop
