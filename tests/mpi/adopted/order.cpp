// Tests messages with HPE_SCOPE=args: sends and receives must wait for the kernels whose parameters point to the
// message's memory, and for no other kernels.
#include <atomic>
#include <chrono>
#include <string_view>
#include <thread>

#include "tests/mpi/adopted/adopted.h"

namespace adopted {

namespace {

struct gate {
  std::atomic<bool> open{false};
  std::atomic<bool> passed{false};
};

// A kernel that waits until a gate is open, and then fills memory with a byte. Parameters: address, number of bytes,
// gate, byte.
const stand_in::kernel held{[](const std::uint64_t* parameters) {
                              auto* const g = reinterpret_cast<gate*>(parameters[2]);
                              while (!g->open) std::this_thread::sleep_for(std::chrono::microseconds(100));
                              auto* const p = static_cast<std::uint8_t*>(
                                  of_stand_in<stand_in::memory_function>("stand_in_memory")(parameters[0]));
                              for (std::uint64_t i = 0; i < parameters[1]; ++i)
                                p[i] = static_cast<std::uint8_t>(parameters[3]);
                              g->passed = true;
                            },
                            4};

void launch(const device_bytes& where, std::uint64_t count, gate& g, std::uint64_t value, CUstream stream) {
  CUdeviceptr address = where.address();
  gate* at = &g;
  void* parameters[] = {&address, &count, static_cast<void*>(&at), &value};
  auto* const function = reinterpret_cast<CUfunction>(const_cast<stand_in::kernel*>(&held));
  EXPECT(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, parameters, nullptr) == CUDA_SUCCESS);
}

}  // namespace

void messages_wait_for_users() {
  const char* const scope = std::getenv("HPE_SCOPE");
  if (scope == nullptr || std::string_view(scope) != "args") return;
  CUstream stream = nullptr;
  EXPECT(cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
  for (const std::size_t count : {std::size_t{8}, std::size_t{5000}, std::size_t{1} << 20}) {
    const int n = static_cast<int>(count);
    const bytes mine = random_bytes(count, seed_of(rank, count));
    const device_bytes out(mine);
    const device_bytes in(count);
    const device_bytes inner(count);
    const auto exchange = [&] {
      MPI_Sendrecv(out.data(), n, MPI_BYTE, other(), tag, in.data(), n, MPI_BYTE, other(), tag, world,
                   MPI_STATUS_IGNORE);
    };
    exchange();
    // During these messages, a kernel that uses other memory runs.
    gate inside;
    launch(inner, count, inside, 1, stream);
    for (int i = 0; i < 3; ++i) exchange();
    MPI_Request requests[2];
    MPI_Irecv(in.data(), n, MPI_BYTE, other(), tag, world, &requests[0]);
    MPI_Isend(out.data(), n, MPI_BYTE, other(), tag, world, &requests[1]);
    MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
    EXPECT(!inside.passed);
    inside.open = true;
    EXPECT(cuStreamSynchronize(stream) == CUDA_SUCCESS);
    EXPECT(in.get() == random_bytes(count, seed_of(other(), count)));
    // In the first round, a kernel writes the send buffer during the message; in the second round, the receive buffer.
    for (const bool sends : {true, false}) {
      gate users;
      launch(sends ? out : in, count, users, sends ? 40 : 99, stream);
      std::thread later([&] {
        std::this_thread::sleep_for(std::chrono::milliseconds(20));
        users.open = true;
      });
      exchange();
      EXPECT(users.passed);
      later.join();
      EXPECT(in.get() == bytes(count, 40));
      MPI_Barrier(world);
    }
  }
  EXPECT(cuStreamDestroy(stream) == CUDA_SUCCESS);
}

}  // namespace adopted
