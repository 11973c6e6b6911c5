#pragma once

/// One rank's side of an exchange between two ranks: send() and receive() transfer one message. receive() returns when
/// the data is in device memory. The constructor allocates the end point's memory. A message uses the first bytes of
/// this memory.

#include <cstddef>
#include <vector>

#include "bench/mpi/by_hand.h"
#include "hpe/hpe.hpp"

namespace hpe::bench {

/// Returns this process's rank in MPI_COMM_WORLD, which has two ranks.
[[nodiscard]] int rank();

class end_point {
 public:
  end_point() = default;
  virtual ~end_point() = default;
  end_point(const end_point&) = delete;
  end_point& operator=(const end_point&) = delete;

  virtual void send(std::size_t bytes) = 0;
  virtual void receive(std::size_t bytes) = 0;
};

class host_memory final : public end_point {
 public:
  explicit host_memory(std::size_t bytes) : memory_(bytes) {}
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  std::vector<std::byte> memory_;
};

/// Passes pointers to hpe's device memory to MPI.
class device_memory final : public end_point {
 public:
  device_memory(int device, std::size_t bytes);
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  hpe::array<std::byte> memory_;
};

/// Sends messages from one kind of memory to another. The rank whose `sender` is true sends data and receives an empty
/// message.
class one_direction final : public end_point {
 public:
  one_direction(bool sender, end_point& from, end_point& to) : sender_(sender), from_(from), to_(to) {}
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  bool sender_;
  end_point& from_;
  end_point& to_;
};

/// Stages as a program without hpe does: copies between device and host memory, and passes host memory to MPI.
class staged_by_hand final : public end_point {
 public:
  staged_by_hand(by_hand& device, std::byte* staging) : device_(device), staging_(staging) {}
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  by_hand& device_;
  std::byte* staging_;
};

/// Sends a message to the other rank and back `turns` times. Both ranks must call this function.
void exchange(end_point& mine, std::size_t bytes, unsigned turns);

}  // namespace hpe::bench
