#pragma once

/// Common parts of the MPI tests. Every rank runs the same tests in the same order. A test makes the same calls with
/// ordinary memory and with hpe memory. Both memories must then contain the same bytes, including the bytes that the
/// calls must not change.

#include <gtest/gtest.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <optional>
#include <random>
#include <string_view>
#include <vector>

#include "hpe/hpe.hpp"
#include "tests/core/kernels.h"
#include "tests/mpi/suite/driver_memory.h"

using word = std::uint32_t;

inline int rank() {
  int r = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &r);
  return r;
}
inline int ranks() {
  int n = 0;
  MPI_Comm_size(MPI_COMM_WORLD, &n);
  return n;
}
/// Whether the MPI library is MPICH or is derived from MPICH.
inline const bool is_mpich = [] {
  std::array<char, MPI_MAX_LIBRARY_VERSION_STRING> text{};
  int length = 0;
  MPI_Get_library_version(text.data(), &length);
  const std::string_view name(text.data());
  return name.find("MPICH") != name.npos || name.find("Intel(R) MPI") != name.npos;
}();

/// While an object exists, calls on MPI_COMM_WORLD return errors. Tests with other communicators need this, too,
/// because MPICH passes all errors of waits and tests to the error handler of MPI_COMM_WORLD.
class errors_returned {
 public:
  errors_returned() {
    MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before_);
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  }
  errors_returned(const errors_returned&) = delete;
  errors_returned& operator=(const errors_returned&) = delete;
  ~errors_returned() {
    MPI_Comm_set_errhandler(MPI_COMM_WORLD, before_);
    MPI_Errhandler_free(&before_);
  }

 private:
  MPI_Errhandler before_ = MPI_ERRHANDLER_NULL;
};

inline int next_rank() { return (rank() + 1) % ranks(); }
inline int previous_rank() { return (rank() + ranks() - 1) % ranks(); }

/// Returns the seed of this rank's random numbers, which a failed test prints. HPE_TEST_SEED sets the seed of all
/// ranks; by default each rank uses a random seed.
inline unsigned seed() {
  static const unsigned s = [] {
    const char* given = std::getenv("HPE_TEST_SEED");
    return given != nullptr ? unsigned(std::strtoul(given, nullptr, 10)) : std::random_device{}();
  }();
  return s;
}

/// Which copy of a buffer in hpe memory is valid before the calls: the copy on the device, the copy on the host, or
/// (mixed) the copy on the host for one page and the copy on the device for all other pages.
enum class owner { device, host, mixed };

class device_bytes {
 public:
  device_bytes(const std::vector<std::byte>& content, owner who) {
    if (driver_bytes::wanted()) {
      driver_.emplace(content);
    } else {
      memory_.emplace(content.size());
    }
    if (content.empty()) return;
    if (memory_) {
      EXPECT_EQ(hpeMemcpy(memory_->data(), content.data(), content.size()), HPE_SUCCESS);
    }
    volatile std::byte* const p = data();
    if (who == owner::host)
      for (std::size_t i = 0; i < content.size(); i += 4096) p[i] = p[i];
    if (who == owner::mixed) p[content.size() / 2] = p[content.size() / 2];
  }
  [[nodiscard]] std::byte* data() const { return driver_ ? driver_->data() : memory_->data(); }
  [[nodiscard]] std::vector<std::byte> content() const {
    if (driver_) return driver_->content();
    std::vector<std::byte> result(memory_->size());
    EXPECT_EQ(hpeMemcpy(result.data(), memory_->data(), result.size()), HPE_SUCCESS);
    return result;
  }

 private:
  std::optional<hpe::array<std::byte>> memory_;
  std::optional<driver_bytes> driver_;  // memory of the CUDA driver, used instead of memory_ if driver_bytes::wanted()
};

/// Returns random words, for buffers to send and for the initial contents of receive buffers.
inline std::vector<std::byte> random_bytes(std::size_t words) {
  static std::mt19937 random(seed());
  std::vector<std::byte> result(words * sizeof(word));
  for (std::size_t i = 0; i < words; ++i) {
    const word w = random() % 100000;  // small numbers, so that sums do not overflow
    std::memcpy(result.data() + i * sizeof(word), &w, sizeof w);
  }
  return result;
}

inline testing::AssertionResult equal(const std::vector<std::byte>& found, const std::vector<std::byte>& expected) {
  const auto [f, e] = std::mismatch(found.begin(), found.end(), expected.begin(), expected.end());
  if (f == found.end() && e == expected.end()) return testing::AssertionSuccess();
  std::size_t different = 0;
  for (std::size_t i = 0; i < found.size(); ++i) different += found[i] != expected[i] ? 1 : 0;
  return testing::AssertionFailure() << different << " of " << found.size() << " bytes differ, the first one at "
                                     << f - found.begin();
}

/// The buffers of the calls in a test.
struct buffers {
  word* send;
  word* receive;
};

/// Runs calls(buffers) with buffers of these numbers of words, in ordinary memory and in hpe memory with each owner.
/// Fails if the buffers do not contain the same bytes afterwards.
template <class Calls>
void same_as_on_host(std::size_t send_words, std::size_t receive_words, Calls&& calls) {
  SCOPED_TRACE("rank " + std::to_string(rank()) + ", seed " + std::to_string(seed()));
  for (const owner who : {owner::device, owner::host, owner::mixed}) {
    auto send = random_bytes(send_words);
    auto receive = random_bytes(receive_words);
    const device_bytes device_send(send, who);
    const device_bytes device_receive(receive, who);
    calls(buffers{reinterpret_cast<word*>(send.data()), reinterpret_cast<word*>(receive.data())});
    calls(buffers{reinterpret_cast<word*>(device_send.data()), reinterpret_cast<word*>(device_receive.data())});
    EXPECT_TRUE(equal(device_send.content(), send))
        << "send buffer, owner (0: device, 1: host, 2: mixed) " << static_cast<int>(who);
    EXPECT_TRUE(equal(device_receive.content(), receive))
        << "receive buffer, owner (0: device, 1: host, 2: mixed) " << static_cast<int>(who);
  }
}

/// A datatype, which the destructor frees.
class datatype {
 public:
  explicit datatype(MPI_Datatype type) : type_(type) { MPI_Type_commit(&type_); }
  datatype(const datatype&) = delete;
  datatype& operator=(const datatype&) = delete;
  ~datatype() { MPI_Type_free(&type_); }
  operator MPI_Datatype() const { return type_; }  // NOLINT(google-explicit-constructor): used as the handle

 private:
  MPI_Datatype type_;
};

/// Returns a datatype with `words` words at a distance of three words.
inline MPI_Datatype strided(int words) {
  MPI_Datatype type = MPI_DATATYPE_NULL;
  MPI_Type_vector(words, 1, 3, MPI_UINT32_T, &type);
  return type;
}
