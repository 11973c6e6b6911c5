// Copies and memsets, compared with the same operations on the host. The tests compare whole buffers, so that they
// notice bytes that are written by mistake.

#include <algorithm>
#include <cstring>
#include <future>

#include "check.h"

// Functions that programs call if they are compiled with --default-stream per-thread.
// NOLINTBEGIN(readability-identifier-naming): the names that nvcc gives them
extern "C" cudaError_t cudaMemcpy_ptds(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind);
extern "C" cudaError_t cudaMemsetAsync_ptsz(void* to, int value, std::size_t bytes, cudaStream_t stream);
extern "C" cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream);
// NOLINTEND(readability-identifier-naming)

namespace {

// Memory of one kind, and its expected content.
class held {
 public:
  enum class kind { device, other_device, pinned, managed, pageable };

  held(kind of, std::vector<char> bytes) : kind_(of), expected_(std::move(bytes)) {
    void* made = nullptr;
    switch (of) {
      case kind::device: EXPECT_CUDA(cudaMalloc(&made, expected_.size())); break;
      case kind::other_device:
        EXPECT_CUDA(cudaSetDevice(1));
        EXPECT_CUDA(cudaMalloc(&made, expected_.size()));
        EXPECT_CUDA(cudaSetDevice(0));
        break;
      case kind::pinned: EXPECT_CUDA(cudaMallocHost(&made, expected_.size())); break;
      case kind::managed: EXPECT_CUDA(cudaMallocManaged(&made, expected_.size(), cudaMemAttachGlobal)); break;
      case kind::pageable: made = new char[expected_.size()]; break;
    }
    data_ = static_cast<char*>(made);
    EXPECT_CUDA(cudaMemcpy(data_, expected_.data(), expected_.size(), cudaMemcpyDefault));
  }
  ~held() {
    if (kind_ == kind::pageable) {
      delete[] data_;
    } else if (kind_ == kind::pinned) {
      cudaFreeHost(data_);
    } else {
      cudaFree(data_);
    }
  }
  held(const held&) = delete;
  held& operator=(const held&) = delete;

  [[nodiscard]] char* data() const { return data_; }
  [[nodiscard]] std::size_t size() const { return expected_.size(); }
  std::vector<char>& expected() { return expected_; }
  [[nodiscard]] bool is_host() const { return kind_ == kind::pageable || kind_ == kind::pinned; }

  // Returns the number of wrong bytes.
  [[nodiscard]] std::size_t wrong() const {
    std::vector<char> there(size(), 77);
    EXPECT_CUDA(cudaMemcpy(there.data(), data_, size(), cudaMemcpyDefault));
    std::size_t count = 0;
    for (std::size_t i = 0; i < size(); ++i) count += there[i] != expected_[i] ? 1 : 0;
    return count;
  }

 private:
  kind kind_;
  char* data_ = nullptr;
  std::vector<char> expected_;
};

cudaMemcpyKind direction(const held& to, const held& from) {
  if (to.is_host()) return from.is_host() ? cudaMemcpyHostToHost : cudaMemcpyDeviceToHost;
  return from.is_host() ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToDevice;
}

constexpr held::kind kinds[] = {held::kind::device, held::kind::other_device, held::kind::pinned, held::kind::managed,
                                held::kind::pageable};

template <class Body>
void for_all_pairs(std::size_t bytes, const Body& body) {
  random_bytes random;
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  for (const held::kind from_kind : kinds) {
    for (const held::kind to_kind : kinds) {
      SCOPED_TRACE(testing::Message() << static_cast<int>(from_kind) << " to " << static_cast<int>(to_kind));
      held from(from_kind, random.make(bytes));
      held to(to_kind, random.make(bytes));
      for (int round = 0; round < 4; ++round)
        body(random, to, from, round % 2 == 0 ? direction(to, from) : cudaMemcpyDefault);
      EXPECT_EQ(to.wrong(), 0U);
      EXPECT_EQ(from.wrong(), 0U);
    }
  }
}

TEST(Copies, OfOneDimension) {
  for_all_pairs(100'003, [](random_bytes& random, held& to, held& from, cudaMemcpyKind kind) {
    const std::size_t begin = random.below(from.size());
    const std::size_t place = random.below(to.size());
    const std::size_t count = random.below(std::min(from.size() - begin, to.size() - place) + 1);
    EXPECT_CUDA(cudaMemcpy(to.data() + place, from.data() + begin, count, kind));
    std::copy_n(&from.expected()[begin], count, &to.expected()[place]);
  });
}

TEST(Copies, OfTwoDimensions) {
  for_all_pairs(64 * 200, [](random_bytes& random, held& to, held& from, cudaMemcpyKind kind) {
    const std::size_t width = 1 + random.below(150);
    const std::size_t height = 1 + random.below(60);
    const std::size_t to_pitch = width + random.below(50);
    const std::size_t from_pitch = width + random.below(3);
    const std::size_t begin = random.below(200);
    EXPECT_CUDA(cudaMemcpy2D(to.data() + begin, to_pitch, from.data(), from_pitch, width, height, kind));
    for (std::size_t y = 0; y < height; ++y) {
      std::copy_n(&from.expected()[y * from_pitch], width, &to.expected()[begin + y * to_pitch]);
    }
  });
}

TEST(Copies, OfThreeDimensions) {
  for_all_pairs(40 * 16 * 12, [](random_bytes& random, held& to, held& from, cudaMemcpyKind kind) {
    cudaMemcpy3DParms what{};
    what.srcPtr = {from.data(), 40, 40, 16};
    what.dstPtr = {to.data(), 32, 32, 20};
    what.srcPos = {random.below(10), random.below(8), random.below(4)};
    what.dstPos = {random.below(2), random.below(12), random.below(4)};
    what.extent = {1 + random.below(30), 1 + random.below(8), 1 + random.below(8)};
    what.kind = kind;
    EXPECT_CUDA(cudaMemcpy3D(&what));
    for (std::size_t z = 0; z < what.extent.depth; ++z) {
      for (std::size_t y = 0; y < what.extent.height; ++y) {
        const std::size_t source = ((what.srcPos.z + z) * 16 + what.srcPos.y + y) * 40 + what.srcPos.x;
        const std::size_t target = ((what.dstPos.z + z) * 20 + what.dstPos.y + y) * 32 + what.dstPos.x;
        std::copy_n(&from.expected()[source], what.extent.width, &to.expected()[target]);
      }
    }
  });
}

TEST(Copies, InStreamsLeavePageableMemoryToTheProgram) {
  random_bytes random;
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  for (const std::size_t bytes : {std::size_t{1}, std::size_t{5000}, std::size_t{3'000'001}}) {
    std::vector<char> source = random.make(bytes);
    const std::vector<char> sent = source;
    std::vector<char> back(bytes, 1);
    const on_device<char> memory(bytes);
    EXPECT_CUDA(cudaMemcpyAsync(memory.data(), source.data(), bytes, cudaMemcpyHostToDevice, stream));
    std::fill(source.begin(), source.end(), 'x');
    EXPECT_CUDA(cudaMemcpyAsync(back.data(), memory.data(), bytes, cudaMemcpyDeviceToHost, stream));
    EXPECT_EQ(back, sent);
  }
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

// The legacy default stream would wait for the other stream, which waits for this test.
TEST(Copies, InTheThreadsOwnDefaultStreamWaitForNoOther) {
  std::promise<void> gate;
  std::shared_future<void> opened = gate.get_future().share();
  cudaStream_t busy = nullptr;
  const on_device<int> memory(1);
  ASSERT_CUDA(cudaStreamCreate(&busy));
  ASSERT_CUDA(cudaLaunchHostFunc(
      busy, [](void* argument) { static_cast<std::shared_future<void>*>(argument)->wait(); }, &opened));
  int value = 0;
  EXPECT_CUDA(cudaMemsetAsync_ptsz(memory.data(), 1, 4, nullptr));
  EXPECT_CUDA(cudaStreamSynchronize_ptsz(nullptr));
  EXPECT_CUDA(cudaMemcpy_ptds(&value, memory.data(), 4, cudaMemcpyDeviceToHost));
  EXPECT_EQ(value, 0x01010101);
  EXPECT_EQ(cudaStreamQuery(busy), cudaErrorNotReady);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);  // cudaErrorNotReady was a result, not an error
  gate.set_value();
  EXPECT_CUDA(cudaDeviceSynchronize());
  EXPECT_CUDA(cudaStreamDestroy(busy));
}

TEST(Copies, ThatOverlapAreThoseOfMemmove) {
  random_bytes random;
  std::vector<char> expected = random.make(10'000);
  const on_device<char> memory(expected.size());
  EXPECT_CUDA(cudaMemcpy(memory.data(), expected.data(), expected.size(), cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemcpy(memory.data() + 100, memory.data(), 9000, cudaMemcpyDeviceToDevice));
  std::memmove(expected.data() + 100, expected.data(), 9000);
  EXPECT_CUDA(cudaMemcpy(memory.data(), memory.data(), 9000, cudaMemcpyDeviceToDevice));
  std::vector<char> back(expected.size());
  EXPECT_CUDA(cudaMemcpy(back.data(), memory.data(), back.size(), cudaMemcpyDeviceToHost));
  EXPECT_EQ(back, expected);
}

TEST(Copies, BetweenDevices) {
  random_bytes random;
  held from(held::kind::other_device, random.make(70'001));
  held to(held::kind::device, random.make(70'001));
  EXPECT_CUDA(cudaMemcpyPeer(to.data(), 0, from.data(), 1, 70'001));
  to.expected() = from.expected();
  EXPECT_EQ(to.wrong(), 0U);
  EXPECT_FAILS(cudaMemcpyPeer(to.data(), 0, from.data(), 5, 10), cudaErrorInvalidDevice);
}

TEST(Copies, OfBoxesBetweenDevices) {
  random_bytes random;
  held from(held::kind::other_device, random.make(3000));
  held to(held::kind::device, random.make(3000));
  cudaMemcpy3DPeerParms box{};
  box.srcPtr = {from.data(), 20, 20, 15};
  box.dstPtr = {to.data(), 25, 25, 12};
  box.srcPos = {3, 2, 1};
  box.dstPos = {5, 4, 3};
  box.extent = {7, 6, 2};
  box.srcDevice = 1;
  const auto expect = [&] {
    for (std::size_t z = 0; z < box.extent.depth; ++z) {
      for (std::size_t y = 0; y < box.extent.height; ++y)
        std::copy_n(from.expected().begin() + static_cast<long>(((1 + z) * 15 + 2 + y) * 20 + 3), box.extent.width,
                    to.expected().begin() + static_cast<long>(((3 + z) * 12 + 4 + y) * 25 + 5));
    }
    EXPECT_EQ(to.wrong(), 0U);
  };
  EXPECT_CUDA(cudaMemcpy3DPeer(&box));
  expect();
  box.extent = {11, 8, 5};
  EXPECT_CUDA(cudaMemcpy3DPeerAsync(&box, nullptr));
  expect();
  EXPECT_FAILS(cudaMemcpy3DPeer(nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy3DPeerAsync(nullptr, nullptr), cudaErrorInvalidValue);
}

TEST(Copies, ThatCannotBeMeantAreRefused) {
  const on_device<char> memory(1000);
  char host[2000] = {};
  char* const p = memory.data();
  EXPECT_CUDA(cudaMemcpy(p, host, 0, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyHostToDevice));
  EXPECT_FAILS(cudaMemcpy(p, host, 1001, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(p + 1, host, 1000, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(host, p + 999, 2, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(nullptr, host, 1, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(host, host + 1000, 10, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(host, host + 1000, 10, cudaMemcpyDeviceToHost), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(p, host, 10, cudaMemcpyDeviceToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy(p, host, 10, static_cast<cudaMemcpyKind>(17)), cudaErrorInvalidMemcpyDirection);
  EXPECT_FAILS(cudaMemcpy2D(p, 9, host, 10, 10, 2, cudaMemcpyHostToDevice), cudaErrorInvalidPitchValue);
  EXPECT_FAILS(cudaMemcpy2D(p, 500, host, 10, 10, 4, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy3D(nullptr), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpyAsync(p, host, 10, cudaMemcpyHostToDevice, reinterpret_cast<cudaStream_t>(host)),
               cudaErrorInvalidResourceHandle);
}

// A sum or product that wraps around would be small and so seem valid.
TEST(Copies, OfSizesBeyondTheAddressSpaceAreRefused) {
  held memory(held::kind::device, std::vector<char>(1000));
  char host[1000] = {};
  char* const p = memory.data();
  constexpr std::size_t quarter = std::size_t{1} << 62;
  EXPECT_FAILS(cudaMemcpy2D(p, quarter, host, quarter, 10, 5, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemset2D(p, quarter, 0, 10, 5), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpy2D(p, 10, host, 10, 10, ~std::size_t{0} / 10 + 2, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc floats{32, 0, 0, 0, cudaChannelFormatKindFloat};
  EXPECT_FAILS(cudaMallocArray(&array, &floats, quarter + 1, 0), cudaErrorInvalidValue);
}

TEST(Memsets, OfAllDimensions) {
  random_bytes random;
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  for (const held::kind kind :
       {held::kind::device, held::kind::other_device, held::kind::pinned, held::kind::managed}) {
    held memory(kind, random.make(20'000));
    std::vector<char>& expected = memory.expected();
    EXPECT_CUDA(cudaMemset(memory.data() + 7, 0x1234, 4321));  // only the lowest byte of the value is used
    std::fill_n(expected.begin() + 7, 4321, 0x34);
    EXPECT_CUDA(cudaMemset2D(memory.data() + 3, 100, 5, 61, 30));
    for (int y = 0; y < 30; ++y) std::fill_n(expected.begin() + 3 + 100 * y, 61, 5);
    EXPECT_CUDA(cudaMemset3DAsync({memory.data(), 50, 50, 20}, 9, {33, 11, 15}, nullptr));
    for (int z = 0; z < 15; ++z) {
      for (int y = 0; y < 11; ++y) std::fill_n(expected.begin() + (z * 20 + y) * 50, 33, 9);
    }
    EXPECT_CUDA(cudaMemset2DAsync(memory.data() + 16'000, 60, 7, 21, 9, nullptr));
    for (int y = 0; y < 9; ++y) std::fill_n(expected.begin() + 16'000 + 60 * y, 21, 7);
    EXPECT_CUDA(cudaMemset3D({memory.data() + 17'000, 10, 10, 6}, 8, {3, 4, 5}));
    for (int z = 0; z < 5; ++z) {
      for (int y = 0; y < 4; ++y) std::fill_n(expected.begin() + 17'000 + (z * 6 + y) * 10, 3, 8);
    }
    EXPECT_EQ(memory.wrong(), 0U);
    EXPECT_FAILS(cudaMemset(memory.data(), 0, 20'001), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemset2DAsync(memory.data(), 4001, 0, 4000, 5, nullptr), cudaErrorInvalidValue);
    EXPECT_FAILS(cudaMemset3D({memory.data(), 100, 100, 10}, 0, {100, 10, 21}), cudaErrorInvalidValue);
  }
  char ordinary = 0;
  EXPECT_FAILS(cudaMemset(&ordinary, 0, 1), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemset(nullptr, 0, 1), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaMemset(nullptr, 0, 0));
}

TEST(CopyBatches, OfPlainMemory) {
  random_bytes random;
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  held from(held::kind::pinned, random.make(5000));
  held to(held::kind::device, random.make(5000));
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  void* const places[] = {to.data(), to.data() + 1000, to.data() + 4999};
  const void* const sources[] = {from.data() + 7, from.data() + 3000, from.data()};
  const std::size_t sizes[] = {999, 2000, 1};
  cudaMemcpyAttributes attributes{};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  std::size_t first = 0;
  ASSERT_CUDA(cudaMemcpyBatchAsync(places, sources, sizes, 3, &attributes, &first, 1, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  std::vector<char>& expected = to.expected();
  std::copy_n(from.expected().begin() + 7, 999, expected.begin());
  std::copy_n(from.expected().begin() + 3000, 2000, expected.begin() + 1000);
  expected[4999] = from.expected()[0];
  EXPECT_EQ(to.wrong(), 0U);
  EXPECT_FAILS(cudaMemcpyBatchAsync(places, sources, sizes, 0, &attributes, &first, 1, stream), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpyBatchAsync(places, sources, sizes, 3, &attributes, &first, 1, nullptr), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

TEST(CopyBatches, OfThreeDimensionsAndArrays) {
  random_bytes random;
  SCOPED_TRACE(testing::Message() << "seed " << random.seed());
  // Copies 5 * 4 * 3 ints from rows of 7 ints and planes of 6 rows to an array at an offset, and from there to rows
  // without gaps.
  const std::vector<char> from = random.make(sizeof(int) * 7 * 6 * 3);
  std::vector<int> in(from.size() / sizeof(int));
  std::memcpy(in.data(), from.data(), from.size());
  const on_device<int> out(5 * 4 * 3);
  cudaArray_t array = nullptr;
  const cudaChannelFormatDesc format = cudaCreateChannelDesc(32, 0, 0, 0, cudaChannelFormatKindSigned);
  ASSERT_CUDA(cudaMalloc3DArray(&array, &format, {9, 8, 7}, cudaArrayDefault));
  cudaStream_t stream = nullptr;
  ASSERT_CUDA(cudaStreamCreate(&stream));
  cudaMemcpy3DBatchOp copy{};
  copy.extent = {5, 4, 3};
  copy.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  copy.src.type = cudaMemcpyOperandTypePointer;
  copy.src.op.ptr.ptr = in.data();
  copy.src.op.ptr.rowLength = 7;
  copy.src.op.ptr.layerHeight = 6;
  copy.dst.type = cudaMemcpyOperandTypeArray;
  copy.dst.op.array.array = array;
  copy.dst.op.array.offset = {2, 1, 3};
  ASSERT_CUDA(cudaMemcpy3DBatchAsync(1, &copy, 0, stream));
  copy.src = copy.dst;
  copy.dst = {};
  copy.dst.type = cudaMemcpyOperandTypePointer;
  copy.dst.op.ptr.ptr = out.data();
  ASSERT_CUDA(cudaMemcpy3DBatchAsync(1, &copy, 0, stream));
  ASSERT_CUDA(cudaStreamSynchronize(stream));
  std::vector<int> result(5 * 4 * 3);
  ASSERT_CUDA(cudaMemcpy(result.data(), out.data(), result.size() * sizeof(int), cudaMemcpyDeviceToHost));
  for (std::size_t i = 0; i < result.size(); ++i)
    EXPECT_EQ(result[i], in[i % 5 + 7 * (i / 5 % 4) + 42 * (i / 20)]) << i;
  copy.dst.op.ptr.rowLength = (std::size_t{1} << 62) + 5;  // as bytes, wraps around to the 20 bytes of a row
  EXPECT_FAILS(cudaMemcpy3DBatchAsync(1, &copy, 0, stream), cudaErrorInvalidValue);
  copy.dst.op.ptr.rowLength = 0;
  copy.extent.depth = 0;
  EXPECT_FAILS(cudaMemcpy3DBatchAsync(1, &copy, 0, stream), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaFreeArray(array));
  EXPECT_CUDA(cudaStreamDestroy(stream));
}

}  // namespace
