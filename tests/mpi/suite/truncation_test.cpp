// Tests messages that are longer than the receive buffer, in programs that handle the error.
#include "tests/mpi/suite/large_messages.h"

using namespace large_messages_tests;  // NOLINT(google-build-using-namespace): a test program

namespace {

int class_of(int code) {
  int result = MPI_SUCCESS;
  MPI_Error_class(code, &result);
  return result;
}

// A communicator with MPI_ERRORS_RETURN, on which each rank sends to the next rank.
class forgiving {
 public:
  forgiving() {
    if (is_mpich) on_world_.emplace();
    MPI_Comm_dup(world, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  forgiving(const forgiving&) = delete;
  forgiving& operator=(const forgiving&) = delete;
  ~forgiving() { MPI_Comm_free(&comm_); }

  enum class way { recv, irecv_and_wait, irecv_and_waitall, mrecv, sendrecv, persistent };
  // Receives a message with the function or functions that `how` names, and returns the error code. way::sendrecv also
  // sends one word.
  int receive(way how, void* to, int room, MPI_Status& status) const {
    MPI_Request request = MPI_REQUEST_NULL;
    int code = MPI_SUCCESS;
    switch (how) {
      case way::recv: return MPI_Recv(to, room, MPI_UINT32_T, previous_rank(), tag, comm_, &status);
      case way::mrecv: {
        MPI_Message message;
        MPI_Mprobe(previous_rank(), tag, comm_, &message, &status);
        return MPI_Mrecv(to, room, MPI_UINT32_T, &message, &status);
      }
      case way::sendrecv: {
        const word mine = 1;
        word theirs = 0;
        MPI_Irecv(&theirs, 1, MPI_UINT32_T, previous_rank(), tag + 1, comm_, &request);
        code = MPI_Sendrecv(&mine, 1, MPI_UINT32_T, next_rank(), tag + 1, to, room, MPI_UINT32_T, previous_rank(), tag,
                            comm_, &status);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        return code;
      }
      case way::persistent:
        MPI_Recv_init(to, room, MPI_UINT32_T, previous_rank(), tag, comm_, &request);
        MPI_Start(&request);
        code = MPI_Wait(&request, &status);
        // After an error, Open MPI itself has freed the request.
        if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
        return code;
      default: break;
    }
    MPI_Irecv(to, room, MPI_UINT32_T, previous_rank(), tag, comm_, &request);
    // MPI_Wait instead of MPI_Waitall, because Open MPI's own MPI_Waitall may not return after an error.
    if (how == way::irecv_and_wait || whole_messages()) return MPI_Wait(&request, &status);
    code = MPI_Waitall(1, &request, &status);
    if (code == MPI_SUCCESS) return code;
    EXPECT_EQ(code, MPI_ERR_IN_STATUS);
    return status.MPI_ERROR;
  }
  [[nodiscard]] MPI_Request send(const void* from, int words) const {
    MPI_Request request = MPI_REQUEST_NULL;
    MPI_Isend(from, words, MPI_UINT32_T, next_rank(), tag, comm_, &request);
    return request;
  }

  // Exchanges a message of device memory. hpe may send the first such message to a rank as a whole, and later ones by
  // envelope.
  void meet() const {
    const either from(numbered(n, 1), true);
    const either to(numbered(n, 8), true);
    MPI_Request first = send(from.data(), n);
    MPI_Status status;
    EXPECT_EQ(receive(way::recv, to.data(), n, status), MPI_SUCCESS);
    EXPECT_EQ(MPI_Wait(&first, MPI_STATUS_IGNORE), MPI_SUCCESS);
    MPI_Barrier(world);
  }

  static constexpr std::array<way, 6> ways{way::recv,  way::irecv_and_wait, way::irecv_and_waitall,
                                           way::mrecv, way::sendrecv,       way::persistent};

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
  std::optional<errors_returned> on_world_;
};

// Tests every kind of receive, with buffers that are larger and smaller than an envelope
// (interpose/mpi/messages/envelope.h). The receiver must get an error, and the sender's call must succeed.
TEST(large_messages, WhatIsTooLongIsAnErrorOfTheReceiverAlone) {
  const forgiving other;
  other.meet();
  for (const bool on_device : {false, true}) {
    const either from(numbered(n, 1), true);
    for (const auto how : forgiving::ways) {
      for (const int room : {n - 1, 1000, 507, 10, 1, 0}) {
        // In these cases, Open MPI 4.1 itself writes the whole message, even beyond the end of the buffer.
        if (whole_messages() && room != n - 1) continue;
        const either to(numbered(n, 8), on_device);
        SCOPED_TRACE("way " + std::to_string(int(how)) + ", room for " + std::to_string(room));
        MPI_Request send = other.send(from.data(), n);
        MPI_Status status;
        EXPECT_EQ(class_of(other.receive(how, to.data(), room, status)), MPI_ERR_TRUNCATE);
        EXPECT_EQ(status.MPI_SOURCE, previous_rank());
        EXPECT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
        if (on_device) {
          EXPECT_TRUE(equal(to.content(), numbered(n, 8)));
        } else if (!whole_messages()) {
          const auto before = numbered(n, 8);
          EXPECT_TRUE(std::equal(before.begin() + room * int(sizeof(word)), before.end(),
                                 to.data() + room * int(sizeof(word))));
        }
      }
    }
  }
}

// Tests short messages and small receive buffers in a program that handles errors.
TEST(large_messages, ShortMessagesWhereErrorsAreSurvived) {
  const forgiving other;
  for (const bool on_device : {false, true}) {
    const either from(numbered(600, 1), on_device);
    for (const auto how : forgiving::ways) {
      for (const int words : {0, 1, 100, 508, 600}) {
        for (const int room : {0, 1, 99, 100, 507}) {
          SCOPED_TRACE("way " + std::to_string(int(how)) + ", " + std::to_string(words) + " words, room for " +
                       std::to_string(room));
          const either to(numbered(600, 8), on_device);
          MPI_Request send = other.send(from.data(), words);
          MPI_Status status;
          const int code = other.receive(how, to.data(), room, status);
          EXPECT_EQ(class_of(code), words > room ? MPI_ERR_TRUNCATE : MPI_SUCCESS);
          EXPECT_EQ(MPI_Wait(&send, MPI_STATUS_IGNORE), MPI_SUCCESS);
          if (words > room) continue;
          EXPECT_EQ(words_in(status), words);
          auto expected = numbered(600, 8);
          const auto sent = numbered(600, 1);
          std::copy_n(sent.begin(), std::size_t(words) * sizeof(word), expected.begin());
          EXPECT_TRUE(equal(to.content(), expected));
        }
      }
    }
  }
}

TEST(large_messages, ShortMessagesWithGapsWhereErrorsAreSurvived) {
  const forgiving survives;
  const datatype type(strided(7));
  for (const bool on_device : {false, true}) {
    const either from(numbered(21, 1), on_device);
    const either to(numbered(100, 8), on_device);
    MPI_Request request;
    MPI_Isend(from.data(), 20, MPI_UINT32_T, next_rank(), tag, world, &request);
    MPI_Status status;
    MPI_Recv(to.data(), 4, type, previous_rank(), tag, world, &status);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    int count = 0;
    MPI_Get_elements(&status, type, &count);
    EXPECT_EQ(count, 20);
    auto expected = numbered(100, 8);
    const auto sent = numbered(20, 1);
    int position = 0;
    MPI_Unpack(sent.data(), int(sent.size()), &position, expected.data(), 2, type, world);
    const datatype last(strided(6));
    MPI_Unpack(sent.data(), int(sent.size()), &position, expected.data() + 2 * 19 * sizeof(word), 1, last, world);
    EXPECT_TRUE(equal(to.content(), expected));
  }
}

}  // namespace
