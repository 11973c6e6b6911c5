// Memory and arrays in hpe's libcuda.so.1: what queries and copies return after each operation, and which arguments are
// refused.
#include <cuda.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <tuple>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;

TEST_F(Queries, MemsetsOfAllSizesWriteTheirElementsOnly) {
  constexpr std::size_t room = 4096;
  CUdeviceptr base = 0;
  ASSERT_GOOD(cuMemAlloc(&base, room));
  auto model = bytes(room);
  ASSERT_GOOD(cuMemcpyHtoD(base, model.data(), room));
  CUstream stream = nullptr;
  ASSERT_GOOD(cuStreamCreate(&stream, 0));
  for (int step = 0; step < 240; ++step) {
    const std::size_t size = std::size_t{1} << below(3);
    const auto value = static_cast<unsigned>(random_());
    const bool rows = below(2) == 0;
    const bool queued = below(2) == 0;
    const std::size_t width = 1 + below(20);
    const std::size_t height = rows ? 1 + below(6) : 1;
    const std::size_t pitch = (width + below(4)) * size;
    const std::size_t offset = below((room - pitch * height) / size + 1) * size;
    const CUdeviceptr at = base + offset;
    const auto v8 = static_cast<unsigned char>(value);
    const auto v16 = static_cast<unsigned short>(value);
    CUresult result = CUDA_ERROR_UNKNOWN;
    if (size == 1) {
      result = rows ? (queued ? cuMemsetD2D8Async(at, pitch, v8, width, height, stream)
                              : cuMemsetD2D8(at, pitch, v8, width, height))
                    : (queued ? cuMemsetD8Async(at, v8, width, stream) : cuMemsetD8(at, v8, width));
    } else if (size == 2) {
      result = rows ? (queued ? cuMemsetD2D16Async(at, pitch, v16, width, height, stream)
                              : cuMemsetD2D16(at, pitch, v16, width, height))
                    : (queued ? cuMemsetD16Async(at, v16, width, stream) : cuMemsetD16(at, v16, width));
    } else {
      result = rows ? (queued ? cuMemsetD2D32Async(at, pitch, value, width, height, stream)
                              : cuMemsetD2D32(at, pitch, value, width, height))
                    : (queued ? cuMemsetD32Async(at, value, width, stream) : cuMemsetD32(at, value, width));
    }
    ASSERT_GOOD(result);
    ASSERT_GOOD(cuStreamSynchronize(stream));
    for (std::size_t y = 0; y < height; ++y)
      for (std::size_t x = 0; x < width; ++x) std::memcpy(&model[offset + y * pitch + x * size], &value, size);
    std::vector<unsigned char> out(room);
    ASSERT_GOOD(cuMemcpyDtoH(out.data(), base, room));
    ASSERT_EQ(out, model);
  }
  EXPECT_INVALID(cuMemsetD16(base + 1, 0, 1));
  EXPECT_INVALID(cuMemsetD32(base + 2, 0, 1));
  EXPECT_INVALID(cuMemsetD2D32(base, 10, 0, 1, 2));
  EXPECT_GOOD(cuMemsetD2D32(base, 10, 0, 1, 1));  // the pitch is ignored if there is only one row
  EXPECT_GOOD(cuMemsetD8(base, 0, room));
  EXPECT_INVALID(cuMemsetD8(base, 0, room + 1));
  EXPECT_GOOD(cuStreamDestroy(stream));
  EXPECT_GOOD(cuMemFree(base));
}

TEST_F(Queries, OfPointersTellTheAllocationAroundThem) {
  constexpr std::size_t size = 3000;
  CUdeviceptr device = 0;
  CUdeviceptr managed = 0;
  void* host = nullptr;
  ASSERT_GOOD(cuMemAlloc(&device, size));
  ASSERT_GOOD(cuMemAllocManaged(&managed, size, CU_MEM_ATTACH_GLOBAL));
  ASSERT_GOOD(cuMemAllocHost(&host, size));
  const auto ask = [](CUdeviceptr at, CUpointer_attribute which) {
    std::uint64_t value = 0;
    EXPECT_GOOD(cuPointerGetAttribute(&value, which, at)) << which;
    return value;
  };
  const auto pinned = reinterpret_cast<CUdeviceptr>(host);
  const auto has_host = [](CUdeviceptr at) {
    void* pointer = nullptr;
    return cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, at) == CUDA_SUCCESS;
  };
  std::vector<std::uint64_t> ids;
  for (const CUdeviceptr base : {device, managed, pinned}) {
    for (const std::size_t offset : {std::size_t{0}, std::size_t{1}, size - 1}) {
      EXPECT_EQ(ask(base + offset, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR), base);
      EXPECT_EQ(ask(base + offset, CU_POINTER_ATTRIBUTE_RANGE_SIZE), size);
      EXPECT_EQ(ask(base + offset, CU_POINTER_ATTRIBUTE_DEVICE_POINTER), base + offset);
      EXPECT_EQ(ask(base + offset, CU_POINTER_ATTRIBUTE_MEMORY_TYPE),
                std::uint64_t{base == pinned ? unsigned{CU_MEMORYTYPE_HOST} : unsigned{CU_MEMORYTYPE_DEVICE}});
      CUdeviceptr start = 0;
      std::size_t told = 0;
      EXPECT_GOOD(cuMemGetAddressRange(&start, &told, base + offset));
      EXPECT_EQ(start, base);
      EXPECT_EQ(told, size);
    }
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_IS_MANAGED), base == managed ? 1U : 0U);
    EXPECT_EQ(has_host(base), base != device);
    if (base != device) {
      EXPECT_EQ(ask(base + 7, CU_POINTER_ATTRIBUTE_HOST_POINTER), base + 7);
    }
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE), base == device ? 1U : 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL), 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_MAPPED), 1U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS), 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES), 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE), 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_ACCESS_FLAGS), std::uint64_t{CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE});
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE), 0U);
    EXPECT_EQ(ask(base, CU_POINTER_ATTRIBUTE_CONTEXT), reinterpret_cast<std::uint64_t>(current()));
    ids.push_back(ask(base, CU_POINTER_ATTRIBUTE_BUFFER_ID));
  }
  EXPECT_NE(ids[0], ids[1]);
  EXPECT_NE(ids[1], ids[2]);
  // The values have different sizes; a query must not change the bytes after the value.
  const CUpointer_attribute narrow[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                        CU_POINTER_ATTRIBUTE_SYNC_MEMOPS,
                                        CU_POINTER_ATTRIBUTE_IS_MANAGED,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
                                        CU_POINTER_ATTRIBUTE_MAPPED,
                                        CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES,
                                        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
                                        CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE,
                                        CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE,
                                        CU_POINTER_ATTRIBUTE_ACCESS_FLAGS};
  int none = 0;
  for (const CUdeviceptr at : {device, reinterpret_cast<CUdeviceptr>(&none)}) {
    for (CUpointer_attribute each : narrow) {
      unsigned values[2] = {77, 77};
      void* data = values;
      EXPECT_GOOD(cuPointerGetAttributes(1, &each, &data, at));
      EXPECT_EQ(values[1], 77U) << each;
      if (at != device) {
        EXPECT_EQ(static_cast<int>(values[0]), each == CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL ? -2 : 0);
      }
    }
    CUpointer_attribute wide = CU_POINTER_ATTRIBUTE_HOST_POINTER;
    std::uint64_t value = 99;
    void* data = &value;
    EXPECT_GOOD(cuPointerGetAttributes(1, &wide, &data, at));
    EXPECT_EQ(value, 0U);
    EXPECT_INVALID(cuPointerGetAttributes(0, &wide, &data, at));
    EXPECT_INVALID(cuPointerGetAttributes(1, nullptr, &data, at));
    EXPECT_INVALID(cuPointerGetAttributes(1, &wide, nullptr, at));
    data = nullptr;
    EXPECT_INVALID(cuPointerGetAttributes(1, &wide, &data, at));
  }
  CUdeviceptr start = 0;
  EXPECT_EQ(cuMemGetAddressRange(&start, nullptr, reinterpret_cast<CUdeviceptr>(&none)), CUDA_ERROR_NOT_FOUND);
  EXPECT_GOOD(cuMemGetAddressRange(nullptr, nullptr, device));
  unsigned on = 1;
  EXPECT_GOOD(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
  EXPECT_INVALID(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MAPPED, device));
  EXPECT_INVALID(cuPointerSetAttribute(nullptr, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, device));
  EXPECT_INVALID(cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, reinterpret_cast<CUdeviceptr>(&none)));
  EXPECT_INVALID(cuPointerGetAttribute(nullptr, CU_POINTER_ATTRIBUTE_MAPPED, device));
  EXPECT_INVALID(cuPointerGetAttribute(&on, static_cast<CUpointer_attribute>(999), device));
  EXPECT_GOOD(cuMemFree(device));
  EXPECT_INVALID(cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_MAPPED, device));
  EXPECT_GOOD(cuMemFree(managed));
  EXPECT_GOOD(cuMemFreeHost(host));
  EXPECT_INVALID(cuMemAlloc(&start, 0));
  std::size_t pitch = 0;
  for (const unsigned element : {0U, 1U, 2U, 3U, 4U, 8U, 12U, 16U, 32U}) {
    const bool good = element == 4 || element == 8 || element == 16;
    EXPECT_EQ(cuMemAllocPitch(&start, &pitch, 100, 2, element), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
    if (!good) continue;
    EXPECT_EQ(pitch, 512U);
    EXPECT_GOOD(cuMemFree(start));
  }
  EXPECT_INVALID(cuMemAllocPitch(&start, &pitch, 0, 2, 4));
  EXPECT_INVALID(cuMemAllocPitch(&start, &pitch, 2, 0, 4));
}

TEST_F(Queries, OfArraysAndTexturesAgreeWithTheirDescriptions) {
  const CUarray_format formats[] = {
      CU_AD_FORMAT_UNSIGNED_INT8, CU_AD_FORMAT_UNSIGNED_INT16, CU_AD_FORMAT_UNSIGNED_INT32, CU_AD_FORMAT_SIGNED_INT8,
      CU_AD_FORMAT_SIGNED_INT16,  CU_AD_FORMAT_SIGNED_INT32,   CU_AD_FORMAT_HALF,           CU_AD_FORMAT_FLOAT};
  const std::size_t sizes[] = {1, 2, 4, 1, 2, 4, 2, 4};
  CUarray array = nullptr;
  for (std::size_t f = 0; f < 8; ++f) {
    for (const unsigned channels : {1U, 2U, 4U}) {
      const CUDA_ARRAY3D_DESCRIPTOR wanted{37, 5, 0, formats[f], channels, CUDA_ARRAY3D_SURFACE_LDST};
      ASSERT_GOOD(cuArray3DCreate(&array, &wanted));
      CUDA_ARRAY3D_DESCRIPTOR told{};
      ASSERT_GOOD(cuArray3DGetDescriptor(&told, array));
      EXPECT_EQ(std::tuple(told.Width, told.Height, told.Depth, told.Format, told.NumChannels, told.Flags),
                std::tuple(37U, 5U, 0U, formats[f], channels, unsigned{CUDA_ARRAY3D_SURFACE_LDST}));
      CUDA_ARRAY_DESCRIPTOR flat{};
      ASSERT_GOOD(cuArrayGetDescriptor(&flat, array));
      EXPECT_EQ(std::tuple(flat.Width, flat.Height, flat.Format, flat.NumChannels),
                std::tuple(37U, 5U, formats[f], channels));

      CUDA_RESOURCE_DESC resource{};
      resource.resType = CU_RESOURCE_TYPE_ARRAY;
      resource.res.array.hArray = array;
      const bool is_float = formats[f] == CU_AD_FORMAT_FLOAT || formats[f] == CU_AD_FORMAT_HALF;
      for (const unsigned flags : {0U, unsigned{CU_TRSF_READ_AS_INTEGER}, unsigned{CU_TRSF_NORMALIZED_COORDINATES},
                                   unsigned{CU_TRSF_DISABLE_TRILINEAR_OPTIMIZATION} | CU_TRSF_READ_AS_INTEGER,
                                   unsigned{CU_TRSF_SEAMLESS_CUBEMAP}}) {
        if (channels != 1 && flags != 0) continue;  // it is enough to test the other flags with one channel
        CUDA_TEXTURE_DESC description{};
        description.flags = flags;
        description.addressMode[0] = CU_TR_ADDRESS_MODE_CLAMP;
        description.addressMode[1] = CU_TR_ADDRESS_MODE_MIRROR;
        description.addressMode[2] = CU_TR_ADDRESS_MODE_BORDER;
        description.maxAnisotropy = 3;
        description.mipmapLevelBias = 0.5F;
        description.minMipmapLevelClamp = 1.5F;
        description.maxMipmapLevelClamp = 2.5F;
        CUtexObject texture = 0;
        ASSERT_GOOD(cuTexObjectCreate(&texture, &resource, &description, nullptr));
        CUDA_TEXTURE_DESC same{};
        ASSERT_GOOD(cuTexObjectGetTextureDesc(&same, texture));
        // Only integers of 8 and 16 bits are normalised; floats and 32-bit integers are read as they are.
        const bool normalizes = (flags & CU_TRSF_READ_AS_INTEGER) == 0 && !is_float && sizes[f] < 4;
        EXPECT_EQ(same.flags, normalizes ? flags : flags | CU_TRSF_READ_AS_INTEGER);
        for (int i = 0; i < 3; ++i) EXPECT_EQ(same.addressMode[i], description.addressMode[i]);
        EXPECT_EQ(same.filterMode, CU_TR_FILTER_MODE_POINT);
        EXPECT_EQ(same.maxAnisotropy, 3U);
        EXPECT_EQ(same.mipmapLevelBias, 0.5F);
        EXPECT_EQ(same.minMipmapLevelClamp, 1.5F);
        EXPECT_EQ(same.maxMipmapLevelClamp, 2.5F);
        CUDA_RESOURCE_DESC what{};
        ASSERT_GOOD(cuTexObjectGetResourceDesc(&what, texture));
        EXPECT_EQ(what.resType, CU_RESOURCE_TYPE_ARRAY);
        EXPECT_EQ(what.res.array.hArray, array);
        CUDA_RESOURCE_VIEW_DESC view{};
        EXPECT_INVALID(cuTexObjectGetResourceViewDesc(&view, texture));
        EXPECT_GOOD(cuTexObjectDestroy(texture));
      }
      CUsurfObject surface = 0;
      ASSERT_GOOD(cuSurfObjectCreate(&surface, &resource));
      CUDA_RESOURCE_DESC what{};
      ASSERT_GOOD(cuSurfObjectGetResourceDesc(&what, surface));
      EXPECT_EQ(what.res.array.hArray, array);
      EXPECT_GOOD(cuSurfObjectDestroy(surface));
      EXPECT_GOOD(cuArrayDestroy(array));
    }
  }
  CUdeviceptr memory = 0;
  ASSERT_GOOD(cuMemAlloc(&memory, 4096));
  CUDA_TEXTURE_DESC description{};
  CUtexObject texture = 0;
  CUDA_RESOURCE_DESC resource{};
  CUDA_RESOURCE_DESC told{};
  resource.resType = CU_RESOURCE_TYPE_LINEAR;
  resource.res.linear = {memory, CU_AD_FORMAT_SIGNED_INT16, 2, 400};
  ASSERT_GOOD(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  ASSERT_GOOD(cuTexObjectGetResourceDesc(&told, texture));
  EXPECT_EQ(told.resType, CU_RESOURCE_TYPE_LINEAR);
  EXPECT_EQ(std::tuple(told.res.linear.devPtr, told.res.linear.format, told.res.linear.numChannels,
                       told.res.linear.sizeInBytes),
            std::tuple(memory, CU_AD_FORMAT_SIGNED_INT16, 2U, 400U));
  EXPECT_GOOD(cuTexObjectDestroy(texture));
  resource.resType = CU_RESOURCE_TYPE_PITCH2D;
  resource.res.pitch2D = {memory, CU_AD_FORMAT_FLOAT, 1, 17, 5, 96};
  ASSERT_GOOD(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  ASSERT_GOOD(cuTexObjectGetResourceDesc(&told, texture));
  EXPECT_EQ(told.resType, CU_RESOURCE_TYPE_PITCH2D);
  const auto& p = told.res.pitch2D;
  EXPECT_EQ(std::tuple(p.devPtr, p.format, p.numChannels, p.width, p.height, p.pitchInBytes),
            std::tuple(memory, CU_AD_FORMAT_FLOAT, 1U, 17U, 5U, 96U));
  EXPECT_GOOD(cuTexObjectDestroy(texture));
  resource.resType = static_cast<CUresourcetype>(9);
  EXPECT_INVALID(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  EXPECT_INVALID(cuTexObjectCreate(&texture, nullptr, &description, nullptr));
  const CUDA_ARRAY3D_DESCRIPTOR levels{8, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUmipmappedArray mipmap = nullptr;
  ASSERT_GOOD(cuMipmappedArrayCreate(&mipmap, &levels, 3));
  resource = {};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = mipmap;
  ASSERT_GOOD(cuTexObjectCreate(&texture, &resource, &description, nullptr));
  ASSERT_GOOD(cuTexObjectGetResourceDesc(&told, texture));
  EXPECT_EQ(told.resType, CU_RESOURCE_TYPE_MIPMAPPED_ARRAY);
  EXPECT_EQ(told.res.mipmap.hMipmappedArray, mipmap);
  CUDA_TEXTURE_DESC same{};
  ASSERT_GOOD(cuTexObjectGetTextureDesc(&same, texture));
  EXPECT_EQ(same.flags, 0U);  // the elements of the finest level are bytes, which are read as numbers from 0 to 1
  EXPECT_GOOD(cuTexObjectDestroy(texture));
  EXPECT_GOOD(cuMipmappedArrayDestroy(mipmap));
  CUDA_ARRAY3D_DESCRIPTOR wrong{8, 8, 0, CU_AD_FORMAT_UNSIGNED_INT8, 3, 0};
  EXPECT_INVALID(cuArray3DCreate(&array, &wrong));
  wrong.NumChannels = 1;
  wrong.Format = CU_AD_FORMAT_NV12;
  EXPECT_EQ(cuArray3DCreate(&array, &wrong), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_INVALID(cuArray3DCreate(&array, nullptr));
  EXPECT_GOOD(cuMemFree(memory));
}

TEST_F(Queries, CopiesOfArraysAreThoseOfAModel) {
  constexpr std::size_t width = 200;
  constexpr std::size_t element = 4;
  CUstream stream = nullptr;
  ASSERT_GOOD(cuStreamCreate(&stream, 0));
  CUarray arrays[2]{};
  CUdeviceptr memory = 0;
  std::vector<unsigned char> model[3];
  ASSERT_GOOD(cuMemAlloc(&memory, width * element));
  for (int i = 0; i < 3; ++i) {
    model[i] = bytes(width * element);
    if (i < 2) {
      const CUDA_ARRAY_DESCRIPTOR flat{width, 0, CU_AD_FORMAT_UNSIGNED_INT8, 4};
      ASSERT_GOOD(cuArrayCreate(&arrays[i], &flat));
      ASSERT_GOOD(cuMemcpyHtoA(arrays[i], 0, model[i].data(), model[i].size()));
    }
  }
  ASSERT_GOOD(cuMemcpyHtoD(memory, model[2].data(), model[2].size()));
  for (int step = 0; step < 150; ++step) {
    const std::size_t count = (1 + below(width)) * element;
    const std::size_t places = (width * element - count) / element + 1;
    const std::size_t to = below(places) * element;
    const std::size_t from = below(places) * element;
    const std::size_t a = below(2);
    const auto in = bytes(count);
    std::vector<unsigned char> out(count);
    const auto copy = [&](std::vector<unsigned char>& target, std::size_t at, const unsigned char* source) {
      std::copy_n(source, count, target.begin() + static_cast<std::ptrdiff_t>(at));
    };
    switch (below(7)) {
      case 0:
        ASSERT_GOOD(cuMemcpyHtoA(arrays[a], to, in.data(), count));
        copy(model[a], to, in.data());
        break;
      case 1:
        ASSERT_GOOD(cuMemcpyHtoAAsync(arrays[a], to, in.data(), count, stream));
        ASSERT_GOOD(cuStreamSynchronize(stream));
        copy(model[a], to, in.data());
        break;
      case 2:
        ASSERT_GOOD(cuMemcpyAtoH(out.data(), arrays[a], from, count));
        ASSERT_TRUE(std::equal(out.begin(), out.end(), model[a].begin() + static_cast<std::ptrdiff_t>(from)));
        break;
      case 3:
        ASSERT_GOOD(cuMemcpyAtoHAsync(out.data(), arrays[a], from, count, stream));
        ASSERT_GOOD(cuStreamSynchronize(stream));
        ASSERT_TRUE(std::equal(out.begin(), out.end(), model[a].begin() + static_cast<std::ptrdiff_t>(from)));
        break;
      case 4:
        ASSERT_GOOD(cuMemcpyDtoA(arrays[a], to, memory + from, count));
        copy(model[a], to, model[2].data() + from);
        break;
      case 5:
        ASSERT_GOOD(cuMemcpyAtoD(memory + to, arrays[a], from, count));
        copy(model[2], to, model[a].data() + from);
        break;
      default:
        ASSERT_GOOD(cuMemcpyAtoA(arrays[1 - a], to, arrays[a], from, count));
        copy(model[1 - a], to, model[a].data() + from);
    }
    std::vector<unsigned char> all(width * element);
    for (int i = 0; i < 2; ++i) {
      ASSERT_GOOD(cuMemcpyAtoH(all.data(), arrays[i], 0, all.size()));
      ASSERT_EQ(all, model[i]);
    }
    ASSERT_GOOD(cuMemcpyDtoH(all.data(), memory, all.size()));
    ASSERT_EQ(all, model[2]);
  }
  EXPECT_GOOD(cuArrayDestroy(arrays[0]));
  EXPECT_GOOD(cuArrayDestroy(arrays[1]));
  EXPECT_GOOD(cuMemFree(memory));
  EXPECT_GOOD(cuStreamDestroy(stream));
}

TEST_F(Queries, RandomBoxesAreCopiedBetweenEachPairOfSides) {
  // Copies between host, device, unified and array sides are compared with a model of the bytes.
  constexpr std::size_t columns = 24, rows = 7, planes = 4, element = 2, row = columns * element,
                        size = row * rows * planes;
  CUarray array = nullptr;
  const CUDA_ARRAY3D_DESCRIPTOR cube{columns, rows, planes, CU_AD_FORMAT_UNSIGNED_INT16, 1, 0};
  ASSERT_GOOD(cuArray3DCreate(&array, &cube));
  CUdeviceptr device = 0;
  ASSERT_GOOD(cuMemAlloc(&device, size));
  std::vector<unsigned char> host = bytes(size);
  std::array<std::vector<unsigned char>, 3> model{host, bytes(size), bytes(size)};  // host, device, array
  ASSERT_GOOD(cuMemcpyHtoD(device, model[1].data(), size));
  const auto fill = [&](bool out) {
    CUDA_MEMCPY3D all{};
    std::vector<unsigned char> read(size);
    all.srcMemoryType = out ? CU_MEMORYTYPE_ARRAY : CU_MEMORYTYPE_HOST;
    all.dstMemoryType = out ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_ARRAY;
    all.srcArray = all.dstArray = array;
    all.srcHost = model[2].data();
    all.dstHost = read.data();
    all.srcPitch = all.dstPitch = row;
    all.srcHeight = all.dstHeight = rows;
    all.WidthInBytes = row;
    all.Height = rows;
    all.Depth = planes;
    EXPECT_GOOD(cuMemcpy3D(&all));
    return read;
  };
  fill(false);
  for (int step = 0; step < 150; ++step) {
    const std::size_t width = (1 + below(columns)) * element, height = 1 + below(rows), depth = 1 + below(planes);
    CUDA_MEMCPY3D what{};
    const std::size_t from = below(3), to = (from + 1 + below(2)) % 3;
    std::size_t begin[2];
    const auto side = [&](std::size_t which, int place, auto& x, auto& y, auto& z, auto& type, auto& pointer,
                          auto& address, auto& of, auto& pitch, auto& down) {
      x = below((row - width) / element + 1) * element;
      y = below(rows - height + 1);
      z = below(planes - depth + 1);
      begin[place] = z * row * rows + y * row + x;
      pitch = row;
      down = rows;
      if (which == 0) {
        type = below(2) == 0 ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_UNIFIED;
        if (type == CU_MEMORYTYPE_HOST)
          pointer = host.data();
        else
          address = reinterpret_cast<CUdeviceptr>(host.data());
      } else if (which == 1) {
        type = below(2) == 0 ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
        address = device;
      } else {
        type = CU_MEMORYTYPE_ARRAY;
        of = array;
      }
    };
    side(from, 0, what.srcXInBytes, what.srcY, what.srcZ, what.srcMemoryType, what.srcHost, what.srcDevice,
         what.srcArray, what.srcPitch, what.srcHeight);
    side(to, 1, what.dstXInBytes, what.dstY, what.dstZ, what.dstMemoryType, what.dstHost, what.dstDevice, what.dstArray,
         what.dstPitch, what.dstHeight);
    what.WidthInBytes = width;
    what.Height = height;
    what.Depth = depth;
    if (below(2) == 0) {
      ASSERT_GOOD(cuMemcpy3D(&what));
    } else {
      ASSERT_GOOD(cuMemcpy3DAsync(&what, nullptr));
      ASSERT_GOOD(cuCtxSynchronize());
    }
    for (std::size_t z = 0; z < depth; ++z)
      for (std::size_t y = 0; y < height; ++y)
        std::copy_n(&model[from][begin[0] + z * row * rows + y * row], width,
                    &model[to][begin[1] + z * row * rows + y * row]);
    ASSERT_EQ(host, model[0]);
    std::vector<unsigned char> out(size);
    ASSERT_GOOD(cuMemcpyDtoH(out.data(), device, size));
    ASSERT_EQ(out, model[1]);
    ASSERT_EQ(fill(true), model[2]);
  }
  CUDA_MEMCPY3D wrong{};
  wrong.srcMemoryType = CU_MEMORYTYPE_ARRAY;
  wrong.srcArray = array;
  wrong.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  wrong.dstDevice = device;
  wrong.dstPitch = row;
  wrong.dstHeight = rows;
  wrong.WidthInBytes = element;
  wrong.Height = wrong.Depth = 1;
  EXPECT_GOOD(cuMemcpy3D(&wrong));
  const auto refused = [&](const auto& change) {
    CUDA_MEMCPY3D it = wrong;
    change(it);
    EXPECT_INVALID(cuMemcpy3D(&it));
  };
  refused([](auto& w) { w.srcArray = nullptr; });
  refused([](auto& w) { w.dstDevice = 0; });
  refused([](auto& w) { w.WidthInBytes = 3; });
  refused([](auto& w) { w.srcXInBytes = 1; });
  refused([&](auto& w) { w.srcXInBytes = row; });
  refused([&](auto& w) { w.dstXInBytes = row; });
  refused([&](auto& w) { w.dstXInBytes = row + element; });
  refused([&](auto& w) { w.srcY = rows; });
  refused([&](auto& w) { w.srcZ = planes; });
  refused([](auto& w) { w.srcMemoryType = static_cast<CUmemorytype>(9); });
  EXPECT_INVALID(cuMemcpy3D(nullptr));
  EXPECT_GOOD(cuArrayDestroy(array));
  EXPECT_GOOD(cuMemFree(device));
}

TEST_F(Queries, OfMappedMemoryAreThoseOfAModel) {
  CUmemAllocationProp properties{};
  properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  std::size_t unit = 0;
  ASSERT_GOOD(cuMemGetAllocationGranularity(&unit, &properties, CU_MEM_ALLOC_GRANULARITY_RECOMMENDED));
  constexpr std::size_t places = 6;
  CUdeviceptr base = 0;
  ASSERT_GOOD(cuMemAddressReserve(&base, places * unit, 4 * unit, 0, 0));
  EXPECT_EQ(base % (4 * unit), 0U);
  // The mappings, of one or two units each. The key is the place at which a mapping begins.
  struct mapping {
    std::size_t units;
    unsigned devices;
  };
  std::map<std::size_t, mapping> model;
  const auto at = [&](std::size_t place) {
    return std::find_if(model.begin(), model.end(), [&](const auto& each) {
      return each.first <= place && place < each.first + each.second.units;
    });
  };
  for (int step = 0; step < 150; ++step) {
    const std::size_t place = below(places);
    const std::size_t units = 1 + below(2);
    const CUdeviceptr address = base + place * unit;
    const auto whole = [&] {  // whether [place, place + units) consists of whole mappings
      std::size_t n = place;
      for (; n < place + units && model.contains(n); n += model[n].units) {
      }
      return place + units <= places && n == place + units;
    };
    if (const auto kind = below(3); kind == 0) {
      CUmemGenericAllocationHandle memory = 0;
      ASSERT_GOOD(cuMemCreate(&memory, units * unit, &properties, 0));
      bool is_free = place + units <= places;
      for (std::size_t n = place; n < place + units; ++n) is_free = is_free && at(n) == model.end();
      ASSERT_EQ(cuMemMap(address, units * unit, 0, memory, 0), is_free ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
      if (is_free) model[place] = {units, 0};
      ASSERT_GOOD(cuMemRelease(memory));
    } else if (kind == 1) {
      const bool good = whole();
      ASSERT_EQ(cuMemUnmap(address, units * unit), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
      if (good)
        std::erase_if(model, [&](const auto& each) { return each.first >= place && each.first < place + units; });
    } else {
      const int device = static_cast<int>(below(2));
      const bool give = below(2) == 0;
      const CUmemAccessDesc access{{CU_MEM_LOCATION_TYPE_DEVICE, {device}},
                                   give ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE : CU_MEM_ACCESS_FLAGS_PROT_NONE};
      const bool good = whole();
      ASSERT_EQ(cuMemSetAccess(address, units * unit, &access, 1), good ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
      for (std::size_t n = place; good && n < place + units; n += model[n].units) {
        unsigned& devices = model[n].devices;
        devices = give ? devices | 1U << device : devices & ~(1U << device);
      }
    }
    for (std::size_t n = 0; n < places; ++n) {
      const auto found = at(n);
      for (int device = 0; device < 2; ++device) {
        unsigned long long flags = 99;
        const CUmemLocation where{CU_MEM_LOCATION_TYPE_DEVICE, {device}};
        for (const std::size_t inside : {std::size_t{0}, unit - 1}) {
          ASSERT_EQ(cuMemGetAccess(&flags, &where, base + n * unit + inside),
                    found != model.end() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
          if (found == model.end()) continue;
          ASSERT_EQ(flags, (found->second.devices >> device & 1U) != 0 ? CU_MEM_ACCESS_FLAGS_PROT_READWRITE
                                                                       : CU_MEM_ACCESS_FLAGS_PROT_NONE);
        }
      }
      // Neighbouring mappings that the same devices may use are one allocation.
      unsigned type = 0;
      const bool open = found != model.end() && found->second.devices != 0;
      ASSERT_EQ(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, base + n * unit),
                open ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
      if (!open) continue;
      std::size_t first = n;
      while (first > 0 && at(first - 1) != model.end() && at(first - 1)->second.devices == found->second.devices)
        --first;
      std::size_t end = n + 1;
      while (end < places && at(end) != model.end() && at(end)->second.devices == found->second.devices) ++end;
      CUdeviceptr start = 0;
      std::size_t size = 0;
      ASSERT_GOOD(cuMemGetAddressRange(&start, &size, base + n * unit));
      ASSERT_EQ(start, base + first * unit);
      ASSERT_EQ(size, (end - first) * unit);
    }
  }
  EXPECT_EQ(cuMemAddressFree(base, places * unit), model.empty() ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE);
  if (!model.empty()) {
    for (const auto& [place, what] : model) EXPECT_GOOD(cuMemUnmap(base + place * unit, what.units * unit));
    EXPECT_INVALID(cuMemAddressFree(base, unit));
    EXPECT_GOOD(cuMemAddressFree(base, places * unit));
  }
  CUmemGenericAllocationHandle memory = 0;
  EXPECT_INVALID(cuMemCreate(&memory, 0, &properties, 0));
  EXPECT_INVALID(cuMemCreate(&memory, unit + 1, &properties, 0));
  EXPECT_INVALID(cuMemCreate(&memory, unit, &properties, 1));
  EXPECT_INVALID(cuMemCreate(nullptr, unit, &properties, 0));
  EXPECT_INVALID(cuMemCreate(&memory, unit, nullptr, 0));
  EXPECT_INVALID(cuMemAddressReserve(&base, unit - 1, 0, 0, 0));
  EXPECT_INVALID(cuMemAddressReserve(&base, unit, 3 * unit, 0, 0));
  EXPECT_INVALID(cuMemAddressReserve(&base, unit, 0, 0, 1));
  EXPECT_INVALID(cuMemAddressReserve(nullptr, unit, 0, 0, 0));
  properties.location.id = 2;
  EXPECT_EQ(cuMemCreate(&memory, unit, &properties, 0), CUDA_ERROR_INVALID_DEVICE);
  properties.location.id = 1;
  ASSERT_GOOD(cuMemCreate(&memory, unit, &properties, 0));
  CUmemAllocationProp told{};
  EXPECT_GOOD(cuMemGetAllocationPropertiesFromHandle(&told, memory));
  EXPECT_EQ(told.location.id, 1);
  EXPECT_INVALID(cuMemGetAllocationPropertiesFromHandle(nullptr, memory));
  EXPECT_GOOD(cuMemRelease(memory));
  EXPECT_INVALID(cuMemGetAllocationPropertiesFromHandle(&told, memory));
  EXPECT_INVALID(cuMemGetAllocationGranularity(&unit, nullptr, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
  EXPECT_INVALID(cuMemGetAllocationGranularity(&unit, &properties, static_cast<CUmemAllocationGranularity_flags>(2)));
  EXPECT_INVALID(cuMemGetAllocationGranularity(nullptr, &properties, CU_MEM_ALLOC_GRANULARITY_MINIMUM));
}

}  // namespace
