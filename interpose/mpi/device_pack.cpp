#include "interpose/mpi/device_pack.h"

#include "interpose/mpi/layout.h"
#include "interpose/mpi/left_memory.h"

namespace hpe::interpose::mpi {

namespace {

// The bytes of one call: contiguous bytes, and elements of a datatype.
struct packing {
  adopted_pointers* driver;
  std::uintptr_t contiguous;
  layout::elements_of_type typed;
  std::uintptr_t first;  ///< the address of the first element
  std::size_t bytes;
};

std::uintptr_t number_of(const void* p) { return reinterpret_cast<std::uintptr_t>(p); }

adopted_pointers* driver_of(const void* p) {
  if (core::host_access::of(p) != nullptr || left_memory::has(p)) return nullptr;
  return adopted_pointers::of(p);
}

// MPI defines no format of packed data. hpe packs only if the packed data is as long as the data, so that it consists
// of the data alone, in the order of the type map, as in all MPI libraries between machines of one kind.
std::optional<packing> examine(const void* contiguous, int room, const int* position, const void* typed, int count,
                               MPI_Datatype type, MPI_Comm comm) {
  if (!adopted_pointers::exist() || position == nullptr || *position < 0 || count <= 0) return std::nullopt;
  adopted_pointers* const driver = driver_of(typed);
  if (driver == nullptr || driver_of(contiguous) == nullptr) return std::nullopt;
  const layout which = elements(count, type);
  const auto elements_of_one = which.scattered();
  if (!elements_of_one || which.size() > static_cast<std::size_t>(std::max(room - *position, 0)) ||
      pack_size(count, type, comm) != static_cast<MPI_Aint>(which.size()))
    return std::nullopt;
  const packing result{driver, number_of(contiguous) + static_cast<std::uintptr_t>(*position), *elements_of_one,
                       number_of(moved(typed, elements_of_one->displacement)), which.size()};
  const bool inside = driver->bytes_from(number_of(moved(typed, which.begin()))) >= which.extent() &&
                      driver->bytes_from(result.contiguous) >= result.bytes;
  return inside ? std::optional(result) : std::nullopt;
}

}  // namespace

taken device_pack(const void* inbuf, int incount, MPI_Datatype type, void* outbuf, int outsize, int* position,
                  MPI_Comm comm) {
  return guarded(comm, [&]() -> taken {
    const auto what = examine(outbuf, outsize, position, inbuf, incount, type, comm);
    if (!what || !what->driver->pack(what->contiguous, what->first, what->typed.which, what->bytes))
      return std::nullopt;
    *position += static_cast<int>(what->bytes);
    return MPI_SUCCESS;
  });
}

taken device_unpack(const void* inbuf, int insize, int* position, void* outbuf, int outcount, MPI_Datatype type,
                    MPI_Comm comm) {
  return guarded(comm, [&]() -> taken {
    const auto what = examine(inbuf, insize, position, outbuf, outcount, type, comm);
    if (!what || !what->driver->unpack(what->first, what->typed.which, what->contiguous, what->bytes))
      return std::nullopt;
    *position += static_cast<int>(what->bytes);
    return MPI_SUCCESS;
  });
}

}  // namespace hpe::interpose::mpi
