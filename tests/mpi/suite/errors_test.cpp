// Tests the errors that hpe returns to programs that handle errors (MPI_ERRORS_RETURN, or an error handler of the
// program).
#include <sys/resource.h>
#include <unistd.h>

#include <fstream>
#include <string>

#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 1000;

class errors : public testing::Test {
 protected:
  void SetUp() override {
    if (is_mpich) on_world_.emplace();
    MPI_Comm_dup(MPI_COMM_WORLD, &comm_);
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  void TearDown() override {
    MPI_Comm_free(&comm_);
    on_world_.reset();
  }

  static int class_of(int code) {
    int c = 0;
    MPI_Error_class(code, &c);
    return c;
  }
  static std::string text_of(int code) {
    std::array<char, MPI_MAX_ERROR_STRING> text{};
    int length = 0;
    MPI_Error_string(code, text.data(), &length);
    return text.data();
  }

  MPI_Comm comm_ = MPI_COMM_NULL;

 private:
  std::optional<errors_returned> on_world_;
};

TEST_F(errors, ATruncatedMessageLeavesTheMemoryAsItWas) {
  const hpe::array<word> a(n);
  hpe::launch(test_kernel().fill, hpe::grid(1), {a.data(), n, 3}, hpe::out(a));
  std::vector<word> sent(n);
  for (const bool blocking : {true, false}) {
    MPI_Request request;
    MPI_Isend(sent.data(), n, MPI_UINT32_T, next_rank(), 0, comm_, &request);
    int code = MPI_SUCCESS;
    if (blocking) {
      code = MPI_Recv(a.data(), n / 2, MPI_UINT32_T, previous_rank(), 0, comm_, MPI_STATUS_IGNORE);
    } else {
      MPI_Request receive;
      MPI_Irecv(a.data(), n / 2, MPI_UINT32_T, previous_rank(), 0, comm_, &receive);
      code = MPI_Wait(&receive, MPI_STATUS_IGNORE);
      EXPECT_EQ(receive, MPI_REQUEST_NULL);
    }
    EXPECT_EQ(class_of(code), MPI_ERR_TRUNCATE);
    MPI_Wait(&request, MPI_STATUS_IGNORE);
    for (word i = 0; i < n; ++i) ASSERT_EQ(a[i], 3 + i);
  }
}

TEST_F(errors, OneOfSeveralRequestsFails) {
  const hpe::array<word> a(2 * n);
  std::vector<word> sent(n, word(rank() + 1));
  std::array<MPI_Request, 2> sends{};
  MPI_Isend(sent.data(), n, MPI_UINT32_T, next_rank(), 0, comm_, &sends[0]);
  MPI_Isend(sent.data(), n, MPI_UINT32_T, next_rank(), 1, comm_, &sends[1]);
  std::array<MPI_Request, 2> r{};
  MPI_Irecv(a.data(), n, MPI_UINT32_T, previous_rank(), 0, comm_, &r[0]);
  MPI_Irecv(a.data() + n, n / 2, MPI_UINT32_T, previous_rank(), 1, comm_, &r[1]);
  std::array<MPI_Status, 2> statuses{};
  int code = MPI_SUCCESS;
  // MPI_Testall instead of MPI_Waitall, because with MPI_THREAD_MULTIPLE, MPI_Waitall of Open MPI 4.1 waits forever if
  // one of several requests has failed.
  for (int flag = 0; flag == 0 && code == MPI_SUCCESS;) code = MPI_Testall(2, r.data(), &flag, statuses.data());
  EXPECT_EQ(code, MPI_ERR_IN_STATUS);
  EXPECT_EQ(class_of(statuses[1].MPI_ERROR), MPI_ERR_TRUNCATE);
  if (statuses[0].MPI_ERROR == MPI_ERR_PENDING) MPI_Wait(&r[0], MPI_STATUS_IGNORE);
  MPI_Waitall(2, sends.data(), MPI_STATUSES_IGNORE);
  // MPI may reuse the handle of the failed request for a request with ordinary memory.
  for (int round = 0; round < 4; ++round) {
    word got = 0;
    MPI_Request receive;
    MPI_Irecv(&got, 1, MPI_UINT32_T, previous_rank(), 2, comm_, &receive);
    MPI_Send(sent.data(), 1, MPI_UINT32_T, next_rank(), 2, comm_);
    EXPECT_EQ(MPI_Wait(&receive, MPI_STATUS_IGNORE), MPI_SUCCESS);
    EXPECT_EQ(got, word(previous_rank() + 1));
  }
  for (int i = 0; i < n; ++i) ASSERT_EQ(a[i], word(previous_rank() + 1));
  for (int i = n; i < 2 * n; ++i) ASSERT_EQ(a[i], 0U);
}

TEST_F(errors, MpiAnswersForArgumentsThatAreWrong) {
  const hpe::array<word> a(n);
  EXPECT_EQ(class_of(MPI_Send(a.data(), -1, MPI_UINT32_T, next_rank(), 0, comm_)), MPI_ERR_COUNT);
  EXPECT_EQ(class_of(MPI_Send(a.data(), 1, MPI_DATATYPE_NULL, next_rank(), 0, comm_)), MPI_ERR_TYPE);
  EXPECT_EQ(class_of(MPI_Send(a.data(), 1, MPI_UINT32_T, ranks(), 0, comm_)), MPI_ERR_RANK);
  EXPECT_EQ(class_of(MPI_Recv(a.data(), 1, MPI_UINT32_T, 0, -7, comm_, MPI_STATUS_IGNORE)), MPI_ERR_TAG);
  MPI_Request request = MPI_REQUEST_NULL;
  EXPECT_EQ(class_of(MPI_Isend(a.data(), 1, MPI_UINT32_T, ranks(), 0, comm_, &request)), MPI_ERR_RANK);
  EXPECT_EQ(class_of(MPI_Irecv(a.data(), 1, MPI_UINT32_T, 0, -7, comm_, &request)), MPI_ERR_TAG);
  EXPECT_EQ(class_of(MPI_Recv_init(a.data(), 1, MPI_UINT32_T, 0, -7, comm_, &request)), MPI_ERR_TAG);
  EXPECT_EQ(class_of(MPI_Bsend_init(a.data(), 1, MPI_UINT32_T, ranks(), 0, comm_, &request)), MPI_ERR_RANK);
  EXPECT_EQ(class_of(MPI_Ibcast(a.data(), 1, MPI_UINT32_T, ranks(), comm_, &request)), MPI_ERR_ROOT);
  const errors_returned on_world;
  EXPECT_EQ(class_of(MPI_Bcast(a.data(), 1, MPI_UINT32_T, 0, MPI_COMM_NULL)), MPI_ERR_COMM);
  MPI_Barrier(comm_);
}

TEST_F(errors, ABufferThatLeavesItsAllocation) {
  const hpe::array<word> a(n);
  const int code = MPI_Send(a.data() + 1, n, MPI_UINT32_T, next_rank(), 0, comm_);
  EXPECT_EQ(class_of(code), MPI_ERR_BUFFER);
  EXPECT_NE(text_of(code).find("4 bytes past the end"), std::string::npos) << text_of(code);
}

// The distance of the first from the last element wraps around to 0.
TEST_F(errors, ABufferBeyondTheAddressSpace) {
  const hpe::array<word> a(n);
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_resized(MPI_UINT32_T, 0, MPI_Aint{1} << 40, &made);
  const datatype sparse(made);
  const auto expect = [](int code) {
    EXPECT_EQ(class_of(code), MPI_ERR_BUFFER);
    EXPECT_NE(text_of(code).find("beyond the address space"), std::string::npos) << text_of(code);
  };
  constexpr int many = (1 << 24) + 1;
  expect(MPI_Send(a.data(), many, sparse, next_rank(), 0, comm_));
  expect(MPI_Recv(a.data(), many, sparse, previous_rank(), 0, comm_, MPI_STATUS_IGNORE));
  MPI_Request request = MPI_REQUEST_NULL;
  expect(MPI_Isend(a.data(), many, sparse, next_rank(), 0, comm_, &request));
  expect(MPI_Bcast(a.data(), many, sparse, 0, comm_));
}

// Open MPI prints the words of an error when it ends the program. MPICH only prints the code, so hpe logs the words.
TEST_F(errors, WordsAreInTheLogWhereMpiDoesNotShowThem) {
  const hpe::array<word> a(n);
  testing::internal::CaptureStderr();
  const int code = MPI_Send(a.data() + 1, n, MPI_UINT32_T, next_rank(), 0, comm_);
  const std::string told = testing::internal::GetCapturedStderr();
  ASSERT_NE(code, MPI_SUCCESS);
  EXPECT_EQ(told.find("hpe: ") != std::string::npos, is_mpich) << told;
  EXPECT_EQ(text_of(code).find("hpe: "), 0U) << text_of(code);
}

// If the packed data ends before all elements have been unpacked, MPI itself must report this, not hpe
// (MPI_ERR_BUFFER).
TEST_F(errors, PackedDataThatEndsTooEarly) {
  if (is_mpich) GTEST_SKIP() << "MPICH 4.0 reads on";
  const hpe::array<word> a(2);
  std::array<word, 3> unpacked{};
  int position = 0;
  const int code = MPI_Unpack(a.data(), 2 * sizeof(word), &position, unpacked.data(), 3, MPI_UINT32_T, comm_);
  EXPECT_NE(code, MPI_SUCCESS);
  EXPECT_NE(class_of(code), MPI_ERR_BUFFER) << text_of(code);
}

TEST_F(errors, AbsoluteAddressesOfDeviceMemory) {
  const hpe::array<word> a(n);
  MPI_Aint address = 0;
  MPI_Get_address(a.data(), &address);
  const int length = 10;
  MPI_Datatype made = MPI_DATATYPE_NULL;
  MPI_Type_create_hindexed(1, &length, &address, MPI_UINT32_T, &made);
  const datatype absolute(made);
  const int code = MPI_Send(MPI_BOTTOM, 1, absolute, next_rank(), 0, comm_);
  EXPECT_EQ(class_of(code), MPI_ERR_BUFFER);
  EXPECT_NE(text_of(code).find("MPI_BOTTOM"), std::string::npos) << text_of(code);

  // Calls with absolute addresses in ordinary memory must succeed.
  std::vector<word> ordinary(length, 5);
  MPI_Get_address(ordinary.data(), &address);
  MPI_Type_create_hindexed(1, &length, &address, MPI_UINT32_T, &made);
  const datatype host(made);
  std::vector<word> received(length);
  MPI_Sendrecv(MPI_BOTTOM, 1, host, next_rank(), 0, received.data(), length, MPI_UINT32_T, previous_rank(), 0, comm_,
               MPI_STATUS_IGNORE);
  EXPECT_EQ(received, ordinary);
}

int seen = MPI_SUCCESS;

void remember(MPI_Comm*, int* code, ...) { seen = *code; }  // NOLINT(cert-dcl50-cpp): MPI requires variadic handlers

TEST_F(errors, TheProgramsHandlerIsCalled) {
  seen = MPI_SUCCESS;
  MPI_Errhandler handler = MPI_ERRHANDLER_NULL;
  MPI_Comm_create_errhandler(remember, &handler);
  MPI_Comm_set_errhandler(comm_, handler);
  const hpe::array<word> a(n);
  const int code = MPI_Send(a.data() + 1, n, MPI_UINT32_T, next_rank(), 0, comm_);
  EXPECT_NE(code, MPI_SUCCESS);
  EXPECT_EQ(seen, code);
  MPI_Errhandler_free(&handler);
}

// A rank that cannot stage its buffer in a collective call must take part in the call nevertheless, so that the other
// ranks do not wait forever.
TEST_F(errors, OneRankFailsInACollectiveCall) {
  const hpe::array<word> a(n);
  hpe::launch(test_kernel().fill, hpe::grid(1), {a.data(), n, 3}, hpe::out(a));
  const bool fails = rank() == 0;
  word* const mine = a.data() + (fails ? 1 : 0);
  const auto expect = [&](int code) {
    EXPECT_EQ(class_of(code), fails ? MPI_ERR_BUFFER : MPI_SUCCESS);
    const bool told = text_of(code).find("4 bytes past the end") != std::string::npos;
    EXPECT_EQ(told, fails) << text_of(code);
  };
  std::vector<word> all(static_cast<std::size_t>(n) * static_cast<std::size_t>(ranks()), 7);
  const std::vector<word> before = all;
  expect(MPI_Allgather(mine, n, MPI_UINT32_T, all.data(), n, MPI_UINT32_T, comm_));
  if (!fails) {
    for (int r = 0; r < ranks(); ++r) EXPECT_EQ(all[static_cast<std::size_t>(r) * n + 5], r == 0 ? 0U : 8U);
  }
  MPI_Request request = MPI_REQUEST_NULL;
  ASSERT_EQ(MPI_Ibcast(mine, n, MPI_UINT32_T, ranks() - 1, comm_, &request), MPI_SUCCESS);
  expect(MPI_Wait(&request, MPI_STATUS_IGNORE));
  EXPECT_EQ(request, MPI_REQUEST_NULL);
  for (word i = 0; i < n; ++i) ASSERT_EQ(a[i], 3 + i);
  MPI_File file = MPI_FILE_NULL;
  int pid = ::getpid();
  MPI_Bcast(&pid, 1, MPI_INT, 0, comm_);
  const std::string name = "/tmp/hpe-test-collective-" + std::to_string(pid);
  ASSERT_EQ(MPI_File_open(comm_, name.c_str(), MPI_MODE_CREATE | MPI_MODE_RDWR | MPI_MODE_DELETE_ON_CLOSE,
                          MPI_INFO_NULL, &file),
            MPI_SUCCESS);
  expect(MPI_File_write_at_all(file, MPI_Offset{4} * n * rank(), mine, n, MPI_UINT32_T, MPI_STATUS_IGNORE));
  expect([&] {
    const int code = MPI_File_write_at_all_begin(file, MPI_Offset{4} * n * rank(), mine, n, MPI_UINT32_T);
    return code == MPI_SUCCESS ? MPI_File_write_at_all_end(file, mine, MPI_STATUS_IGNORE) : code;
  }());
  MPI_File_close(&file);
}

#if defined(__SANITIZE_ADDRESS__)
constexpr bool sanitizer_needs_memory = true;
#else
constexpr bool sanitizer_needs_memory = false;
#endif

// If the process reaches its memory limit, MPI_Buffer_attach must return an error, and the process must not end.
TEST_F(errors, TheHostHasNoMemoryForTheBufferOfBufferedSends) {
  if (sanitizer_needs_memory) GTEST_SKIP() << "the sanitizer ends the program when it gets no memory";
  constexpr int bytes = 1 << 30;
  void* p = nullptr;
  ASSERT_EQ(hpeMallocHost(&p, bytes), HPE_SUCCESS);
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  const rlimit tight{static_cast<rlim_t>(pages) * 4096 + (rlim_t{128} << 20), before.rlim_max};
  const errors_returned on_world;
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &tight), 0);
  const int code = MPI_Buffer_attach(p, bytes);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_EQ(class_of(code), MPI_ERR_NO_MEM);
  EXPECT_EQ(hpeFree(p), HPE_SUCCESS);
}

TEST_F(errors, MemoryFreedUnderAReceive) {
  void* p = nullptr;
  ASSERT_EQ(hpeMalloc(&p, 1 << 20), HPE_SUCCESS);
  MPI_Request request;
  MPI_Irecv(p, n, MPI_UINT32_T, previous_rank(), 0, comm_, &request);
  ASSERT_EQ(hpeFree(p), HPE_SUCCESS);
  MPI_Barrier(comm_);  // so that no message arrives before all ranks have freed the memory
  std::vector<word> sent(n);
  MPI_Send(sent.data(), n, MPI_UINT32_T, next_rank(), 0, comm_);
  EXPECT_EQ(class_of(MPI_Wait(&request, MPI_STATUS_IGNORE)), MPI_ERR_BUFFER);
}

}  // namespace
