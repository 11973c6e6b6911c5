#pragma once

/// One rank's side of an exchange between two ranks: how it sends and receives a message. A message counts as received
/// when its data is in device memory. Messages use the first bytes of an end point's memory; the constructor sets the
/// size of the memory.

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

/// Passes hpe's device memory to MPI.
class device_memory final : public end_point {
 public:
  device_memory(int device, std::size_t bytes);
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  hpe::array<std::byte> memory_;
};

/// Messages from one kind of memory to another. The rank whose `sender` is true sends the data and receives an empty
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

/// The code of a program without hpe: a copy between device and host memory, and MPI on host memory.
class staged_by_hand final : public end_point {
 public:
  staged_by_hand(by_hand& device, std::byte* staging) : device_(device), staging_(staging) {}
  void send(std::size_t bytes) override;
  void receive(std::size_t bytes) override;

 private:
  by_hand& device_;
  std::byte* staging_;
};

/// Sends a message there and back `turns` times. Both ranks call it.
void exchange(end_point& mine, std::size_t bytes, unsigned turns);

}  // namespace hpe::bench
