// An MPI program with device memory that CUDA allocated. The program is linked neither with hpe nor with a CUDA-aware
// MPI. `hpe run` runs it in two ranks, with the stand-in for the CUDA driver.
#include <cstdint>
#include <vector>

#include "tests/mpi/adopted/frame.h"

using namespace adopted;  // NOLINT(google-build-using-namespace): this file is part of that namespace

namespace {

std::vector<std::uint32_t> numbers(std::size_t count, std::uint32_t seed) {
  std::vector<std::uint32_t> result(count);
  for (std::size_t i = 0; i < count; ++i) result[i] = static_cast<std::uint32_t>(i * 2654435761U + seed);
  return result;
}

class device_words {
 public:
  explicit device_words(std::size_t count) : count_(count) { cuMemAlloc(&address_, count * 4); }
  ~device_words() { cuMemFree(address_); }
  device_words(const device_words&) = delete;
  device_words& operator=(const device_words&) = delete;

  // Queues a copy to the device and does not wait for it. A send of the words must wait for the copy.
  void put(const std::vector<std::uint32_t>& words) const {
    cuMemcpyHtoDAsync(address_, words.data(), words.size() * 4, nullptr);
  }
  [[nodiscard]] std::vector<std::uint32_t> get() const {
    std::vector<std::uint32_t> result(count_);
    cuMemcpyDtoH(result.data(), address_, count_ * 4);
    return result;
  }
  [[nodiscard]] std::uint32_t* data() const { return reinterpret_cast<std::uint32_t*>(address_); }

 private:
  std::size_t count_;
  CUdeviceptr address_ = 0;
};

void messages(std::size_t count) {
  const device_words mine(count);
  const auto here = numbers(count, static_cast<std::uint32_t>(rank));
  const auto there = numbers(count, static_cast<std::uint32_t>(1 - rank));
  const int n = static_cast<int>(count);
  mine.put(here);
  if (rank == 0) {
    MPI_Send(mine.data(), n, MPI_UINT32_T, 1, 7, MPI_COMM_WORLD);
    MPI_Recv(mine.data(), n, MPI_UINT32_T, 1, 8, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT(mine.get() == there);
  } else {
    const device_words other(count);
    MPI_Recv(other.data(), n, MPI_UINT32_T, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    MPI_Send(mine.data(), n, MPI_UINT32_T, 0, 8, MPI_COMM_WORLD);
    EXPECT(other.get() == there);
  }
  const device_words received(count);
  MPI_Request requests[2];
  mine.put(here);
  MPI_Irecv(received.data(), n, MPI_UINT32_T, 1 - rank, 9, MPI_COMM_WORLD, &requests[0]);
  MPI_Isend(mine.data(), n, MPI_UINT32_T, 1 - rank, 9, MPI_COMM_WORLD, &requests[1]);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT(received.get() == there);
}

void collectives(std::size_t count) {
  const device_words mine(count);
  const device_words sums(count);
  mine.put(std::vector<std::uint32_t>(count, static_cast<std::uint32_t>(rank + 3)));
  MPI_Allreduce(mine.data(), sums.data(), static_cast<int>(count), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(sums.get() == std::vector<std::uint32_t>(count, 7));
  MPI_Allreduce(MPI_IN_PLACE, mine.data(), static_cast<int>(count), MPI_UINT32_T, MPI_SUM, MPI_COMM_WORLD);
  EXPECT(mine.get() == std::vector<std::uint32_t>(count, 7));
}

// Receives into every third word. The receive must not change the other words.
void strided() {
  constexpr std::size_t count = 3000;
  const device_words mine(count);
  auto expected = numbers(count, static_cast<std::uint32_t>(rank));
  mine.put(expected);
  MPI_Datatype thirds = MPI_DATATYPE_NULL;
  MPI_Type_vector(count / 3, 1, 3, MPI_UINT32_T, &thirds);
  MPI_Type_commit(&thirds);
  MPI_Sendrecv_replace(mine.data(), 1, thirds, 1 - rank, 1, 1 - rank, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Type_free(&thirds);
  const auto other = numbers(count, static_cast<std::uint32_t>(1 - rank));
  for (std::size_t i = 0; i < count; i += 3) expected[i] = other[i];
  EXPECT(mine.get() == expected);
}

void tests() {
  for (const std::size_t count : {std::size_t{1}, std::size_t{1000}, std::size_t{3} << 20}) messages(count);
  for (const std::size_t count : {std::size_t{5}, std::size_t{1} << 20}) collectives(count);
  strided();
}

}  // namespace

int main(int argc, char** argv) {
  return run(
      argc, argv, "adopted", [] { return 0; }, tests);
}
