#include "bench/mpi/by_hand.h"

#include <cstring>

#include "hpe/hpe.hpp"

namespace hpe::bench {

namespace {

class soft_by_hand final : public by_hand {
 public:
  soft_by_hand(int device, std::size_t bytes) : memory_(bytes, hpe::on_device(device)), pinned_(bytes, hpe::on_host()) {
    hpeMemset(memory_.data(), 1, bytes);
    std::memset(pinned_.data(), 1, bytes);
  }
  void to_host(void* host, std::size_t bytes) override { copy(host, memory_.data(), bytes); }
  void to_device(const void* host, std::size_t bytes) override { copy(memory_.data(), host, bytes); }
  std::byte* pinned() override { return pinned_.data(); }

 private:
  static void copy(void* to, const void* from, std::size_t bytes) {
    hpe::copy(to, from, bytes);
    hpe::synchronize();
  }

  hpe::array<std::byte> memory_;
  hpe::array<std::byte> pinned_;
};

}  // namespace

std::unique_ptr<by_hand> make_by_hand(int device, std::size_t bytes) {
  if (hpe::device_info(device).kind == HPE_DEVICE_CUDA) return gpu_by_hand(device, bytes);
  return std::make_unique<soft_by_hand>(device, bytes);
}

}  // namespace hpe::bench
