// Tests of hpe's libcuda.so.1. tests/interpose/programs/driver_calls.cu tests the results that a program can print.
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "tests/interpose/soft/libcuda/driver_fixture.h"

namespace {

using namespace hpe::libcuda::test;

// Returns the function with this exported name, independently of the macros in cuda.h.
void* exported(const char* name) {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
  return ::dlsym(library, name);
}

void* found(const char* name, int version, cuuint64_t flags = 0) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result{};
  EXPECT_EQ(cuGetProcAddress(name, &function, version, flags, &result), CUDA_SUCCESS);
  EXPECT_EQ(result == CU_GET_PROC_ADDRESS_SUCCESS, function != nullptr);
  return function;
}

CUdriverProcAddressQueryResult answer(const char* name, int version) {
  void* function = nullptr;
  CUdriverProcAddressQueryResult result{};
  cuGetProcAddress(name, &function, version, 0, &result);
  return result;
}

CUcontext created(int device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxCreate(&context, nullptr, 0, device), CUDA_SUCCESS);
  return context;
}

bool is_known(CUdeviceptr address) {
  unsigned type = 0;
  return cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address) == CUDA_SUCCESS;
}

TEST_F(Driver, RefusesSizesBeyondTheAddressSpace) {
  ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
  CUdeviceptr memory = 0;
  ASSERT_EQ(cuMemAlloc(&memory, 1000), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(memory, 0, (std::size_t{1} << 62) + 1), CUDA_ERROR_INVALID_VALUE)
      << "the size in bytes would wrap around to 4";
  CUDA_MEMCPY2D c{};
  c.srcMemoryType = c.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  c.srcDevice = c.dstDevice = memory;
  c.srcPitch = c.dstPitch = 16;
  c.WidthInBytes = 16;
  c.Height = 1;
  c.srcY = std::size_t{1} << 60;  // the byte offset of this row wraps around to 0
  EXPECT_EQ(cuMemcpy2D(&c), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemFree(memory), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_SUCCESS);
}

constexpr const char* two_kernels =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry one() { ret; }\n.visible .entry two() { ret; }\n";

// out[global index] = value
constexpr const char* fill_kernel = R"(.version 7.0
.target sm_70
.address_size 64
.visible .entry fill(.param .u64 out, .param .u32 value) {
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [out];
  ld.param.u32 %r1, [value];
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mov.u32 %r4, %tid.x;
  mad.lo.u32 %r5, %r2, %r3, %r4;
  mul.wide.u32 %rd2, %r5, 4;
  add.u64 %rd3, %rd1, %rd2;
  st.global.u32 [%rd3], %r1;
  ret;
}
)";

TEST_F(Driver, ExportsTheFunctionsOfNvidiasDriver) {
#define HPE_DRIVER_ENTRY(name) EXPECT_NE(exported(#name), nullptr) << #name;
#include "interpose/gpu/shim/driver_entries.def"
#undef HPE_DRIVER_ENTRY
}

TEST_F(Driver, FindsTheFormOfAVersion) {
  EXPECT_EQ(found("cuMemAlloc", 2000), exported("cuMemAlloc"));
  EXPECT_EQ(found("cuMemAlloc", 13000), exported("cuMemAlloc_v2"));
  EXPECT_EQ(found("cuCtxCreate", 11080), exported("cuCtxCreate_v3"));
  EXPECT_EQ(found("cuCtxCreate", 13000), exported("cuCtxCreate_v4"));
  EXPECT_EQ(found("cuMemcpyHtoD", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            exported("cuMemcpyHtoD_v2_ptds"));
  EXPECT_EQ(found("cuLaunchKernel", 13000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM),
            exported("cuLaunchKernel_ptsz"));
  EXPECT_EQ(answer("cuLaunchKernelEx", 11000), CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
  EXPECT_EQ(answer("cuMemAlloc_v2", 13000), CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  void* none = nullptr;
  using first_form = CUresult(const char*, void**, int, cuuint64_t);
  EXPECT_EQ(reinterpret_cast<first_form*>(exported("cuGetProcAddress"))("cuNone", &none, 13000, 0),
            CUDA_ERROR_NOT_FOUND);
}

TEST_F(Driver, SaysOnceWhichFunctionItLacks) {
  testing::internal::CaptureStderr();
  EXPECT_EQ(cuCtxFromGreenCtx(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuCtxFromGreenCtx(nullptr, nullptr), CUDA_ERROR_NOT_SUPPORTED);
  const std::string told = testing::internal::GetCapturedStderr();
  EXPECT_NE(told.find("cuCtxFromGreenCtx"), std::string::npos) << told;
  EXPECT_EQ(told.find("cuCtxFromGreenCtx"), told.rfind("cuCtxFromGreenCtx")) << told;
  EXPECT_NE(told.find("soft devices have no green contexts"), std::string::npos) << told;
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
}

TEST_F(Driver, NamesTheFeaturesThatSoftDevicesLack) {
  const auto told_by = [](const auto& call) {
    testing::internal::CaptureStderr();
    EXPECT_EQ(call(), CUDA_ERROR_NOT_SUPPORTED);
    return testing::internal::GetCapturedStderr();
  };
  int file = 0;
  CUmemGenericAllocationHandle memory = 0;
  CUmemAllocationProp of_fabric{};
  of_fabric.type = CU_MEM_ALLOCATION_TYPE_PINNED;
  of_fabric.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  of_fabric.requestedHandleTypes = CU_MEM_HANDLE_TYPE_FABRIC;
  const std::string of_create = told_by([&] { return cuMemCreate(&memory, std::size_t{2} << 20, &of_fabric, 0); });
  EXPECT_NE(of_create.find("export mapped memory only as file descriptors"), std::string::npos) << of_create;
  const std::string of_range = told_by([&] {
    return cuMemGetHandleForAddressRange(&file, 0, std::size_t{2} << 20, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
  });
  EXPECT_NE(of_range.find("no dma-buf handles"), std::string::npos) << of_range;
  const std::string of_map = told_by([] { return cuTensorMapReplaceAddress(nullptr, nullptr); });
  EXPECT_NE(of_map.find("no tensor maps"), std::string::npos) << of_map;
}

TEST(DriverBeforeInit, RefusesCalls) {
  int count = 0;
  EXPECT_EQ(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  int version = 0;
  EXPECT_EQ(cuDriverGetVersion(&version), CUDA_SUCCESS);
  EXPECT_EQ(version, CUDA_VERSION);
}

TEST_F(Driver, HasOneDeviceWithTheRuntime) {
  EXPECT_EQ(current(), nullptr);
  EXPECT_EQ(cuCtxSetCurrent(retained(1)), CUDA_SUCCESS);
  int device = -1;
  EXPECT_EQ(cudaGetDevice(&device), cudaSuccess);
  EXPECT_EQ(device, 1);
  EXPECT_EQ(cudaSetDevice(0), cudaSuccess);
  CUdevice of_driver = -1;
  EXPECT_EQ(cuCtxGetDevice(&of_driver), CUDA_SUCCESS);
  EXPECT_EQ(of_driver, 0);
  EXPECT_EQ(current(), retained(0));
  std::thread([] { EXPECT_EQ(current(), nullptr); }).join();
}

TEST_F(Driver, AContextThatIsCreatedStaysWhenTheRuntimeUsesItsDevice) {
  CUcontext own = created(1);
  EXPECT_EQ(cudaFree(nullptr), cudaSuccess);
  EXPECT_EQ(current(), own);
  EXPECT_EQ(cuCtxDestroy(own), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(own), CUDA_ERROR_INVALID_CONTEXT);
}

TEST_F(Driver, MemoryEndsWithTheLastContextOfItsDevice) {
  CUcontext first = created(1), second = created(1);
  CUdeviceptr data = 0;
  EXPECT_EQ(cuMemAlloc(&data, 4096), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxDestroy(second), CUDA_SUCCESS);
  EXPECT_TRUE(is_known(data));
  EXPECT_EQ(cuCtxDestroy(first), CUDA_SUCCESS);
  EXPECT_FALSE(is_known(data));
}

TEST_F(Driver, APrimaryContextThatIsReleasedIsNoLongerOfUse) {
  CUcontext primary = retained(1);
  EXPECT_EQ(cuCtxPushCurrent(primary), CUDA_SUCCESS);
  CUstream stream = nullptr;
  EXPECT_EQ(cuStreamCreate(&stream, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(1), CUDA_SUCCESS);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_CONTEXT_IS_DESTROYED);
  EXPECT_EQ(retained(1), primary);
  EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(stream), CUDA_ERROR_INVALID_HANDLE);
  EXPECT_EQ(cuDevicePrimaryCtxRelease(0), CUDA_ERROR_INVALID_CONTEXT);
}

class Mapped : public Driver {
 protected:
  void SetUp() override {
    Driver::SetUp();
    ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
    properties_.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties_.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    ASSERT_EQ(cuMemGetAllocationGranularity(&unit_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAddressReserve(&base_, 2 * unit_, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemCreate(&memory_, unit_, &properties_, 0), CUDA_SUCCESS);
  }

  void open(CUdeviceptr address) {
    const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemSetAccess(address, unit_, &access, 1), CUDA_SUCCESS);
  }

  CUmemAllocationProp properties_{};
  std::size_t unit_ = 0;
  CUdeviceptr base_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
};

TEST_F(Mapped, BytesMoveWithTheirMemory) {
  EXPECT_EQ(cuMemMap(base_, unit_, 0, memory_, 0), CUDA_SUCCESS);
  CUpointer_attribute kind = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  unsigned type = 9;
  void* told = &type;
  EXPECT_EQ(cuPointerGetAttributes(1, &kind, &told, base_), CUDA_SUCCESS);
  EXPECT_EQ(type, 0U);  // no device may use the mapping yet
  open(base_);
  EXPECT_EQ(cuPointerGetAttributes(1, &kind, &told, base_), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  CUpointer_attribute of_mapping[] = {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, CU_POINTER_ATTRIBUTE_MAPPING_SIZE};
  CUdeviceptr begin = 0;
  std::size_t size = 0;
  void* values[] = {&begin, &size};
  EXPECT_EQ(cuPointerGetAttributes(2, of_mapping, values, base_ + 5), CUDA_SUCCESS);
  EXPECT_EQ(begin, base_);
  EXPECT_EQ(size, unit_);
  for (const CUdeviceptr at : {base_, CUdeviceptr{0}}) {
    of_mapping[1] = static_cast<CUpointer_attribute>(999);
    EXPECT_EQ(cuPointerGetAttributes(2, of_mapping, values, at), CUDA_ERROR_INVALID_VALUE) << "not known";
  }
  EXPECT_EQ(cuMemsetD8(base_, 77, unit_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, unit_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base_ + unit_, unit_, 0, memory_, 0), CUDA_SUCCESS);
  open(base_ + unit_);
  std::vector<unsigned char> bytes(unit_);
  EXPECT_EQ(cuMemcpyDtoH(bytes.data(), base_ + unit_, unit_), CUDA_SUCCESS);
  EXPECT_EQ(bytes, std::vector<unsigned char>(unit_, 77));
}

TEST_F(Mapped, MemoryMayHaveSeveralAddresses) {
  EXPECT_EQ(cuMemMap(base_, unit_, 0, memory_, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base_ + unit_, unit_, 0, memory_, 0), CUDA_SUCCESS);
  open(base_);
  open(base_ + unit_);
  EXPECT_EQ(cuMemsetD8(base_, 55, unit_), CUDA_SUCCESS);
  unsigned char last = 0;
  EXPECT_EQ(cuMemcpyDtoH(&last, base_ + 2 * unit_ - 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(last, 55);
  EXPECT_EQ(cuMemUnmap(base_ + unit_, unit_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base_, unit_, 0, memory_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(base_, 2 * unit_), CUDA_ERROR_INVALID_VALUE);
  CUmemGenericAllocationHandle again = 0;
  EXPECT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base_ + 5)), CUDA_SUCCESS);
  EXPECT_EQ(again, memory_);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base_, unit_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base_, 2 * unit_), CUDA_SUCCESS);
}

TEST_F(Driver, LaunchesAsBeforeCuda4) {
  ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, fill_kernel), CUDA_SUCCESS);
  CUfunction fill = nullptr;
  ASSERT_EQ(cuModuleGetFunction(&fill, module, "fill"), CUDA_SUCCESS);
  CUdeviceptr data = 0;
  ASSERT_EQ(cuMemAlloc(&data, 64 * sizeof(unsigned)), CUDA_SUCCESS);
  EXPECT_EQ(cuMemsetD32(data, 0, 64), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncSetBlockShape(fill, 8, 1, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuParamSetv(fill, 0, &data, sizeof data), CUDA_SUCCESS);
  EXPECT_EQ(cuLaunchGrid(fill, 4, 1), CUDA_ERROR_INVALID_VALUE);  // the second parameter is missing
  EXPECT_EQ(cuParamSeti(fill, 8, 7), CUDA_SUCCESS);
  EXPECT_EQ(cuParamSeti(fill, 4094, 7), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLaunchGrid(fill, 4, 1), CUDA_SUCCESS);
  std::vector<unsigned> read(64);
  EXPECT_EQ(cuMemcpyDtoH(read.data(), data, 64 * sizeof(unsigned)), CUDA_SUCCESS);
  std::vector<unsigned> wanted(64);
  std::fill_n(wanted.begin(), 32, 7U);
  EXPECT_EQ(read, wanted);
  EXPECT_EQ(cuMemFree(data), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
}

TEST_F(Driver, ALevelOfAMipmappedArrayIsAnArray) {
  ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
  const CUDA_ARRAY3D_DESCRIPTOR shape{8, 4, 0, CU_AD_FORMAT_UNSIGNED_INT8, 1, 0};
  CUmipmappedArray levels = nullptr;
  ASSERT_EQ(cuMipmappedArrayCreate(&levels, &shape, 3), CUDA_SUCCESS);
  CUarray second = nullptr, none = nullptr;
  ASSERT_EQ(cuMipmappedArrayGetLevel(&second, levels, 1), CUDA_SUCCESS);
  EXPECT_EQ(cuMipmappedArrayGetLevel(&none, levels, 3), CUDA_ERROR_INVALID_VALUE);
  CUDA_ARRAY_DESCRIPTOR told{};
  EXPECT_EQ(cuArrayGetDescriptor(&told, second), CUDA_SUCCESS);
  EXPECT_EQ(told.Width, 4U);
  EXPECT_EQ(told.Height, 2U);
  CUDA_RESOURCE_DESC resource{};
  resource.resType = CU_RESOURCE_TYPE_MIPMAPPED_ARRAY;
  resource.res.mipmap.hMipmappedArray = levels;
  const CUDA_TEXTURE_DESC normalized{};
  CUDA_TEXTURE_DESC as_made{};
  CUtexObject texture = 0;
  ASSERT_EQ(cuTexObjectCreate(&texture, &resource, &normalized, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuTexObjectGetTextureDesc(&as_made, texture), CUDA_SUCCESS);
  EXPECT_EQ(as_made.flags & CU_TRSF_READ_AS_INTEGER, 0U);
  EXPECT_EQ(cuTexObjectDestroy(texture), CUDA_SUCCESS);
  EXPECT_EQ(cuMipmappedArrayDestroy(levels), CUDA_SUCCESS);
}

TEST_F(Driver, LaunchesOneGridOnEachDevice) {
  std::array<CUdeviceptr, 2> data{};
  std::array<CUDA_LAUNCH_PARAMS, 2> list{};
  std::array<unsigned, 2> values{4, 6};
  std::array<std::array<void*, 2>, 2> arguments{};
  for (int device = 0; device < 2; ++device) {
    ASSERT_EQ(cuCtxSetCurrent(retained(device)), CUDA_SUCCESS);
    CUmodule module = nullptr;
    ASSERT_EQ(cuModuleLoadData(&module, fill_kernel), CUDA_SUCCESS);
    list[device] = {nullptr, 1, 1, 1, 8, 1, 1, 0, nullptr, arguments[device].data()};
    ASSERT_EQ(cuModuleGetFunction(&list[device].function, module, "fill"), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAlloc(&data[device], 32), CUDA_SUCCESS);
    ASSERT_EQ(cuStreamCreate(&list[device].hStream, 0), CUDA_SUCCESS);
    arguments[device] = {&data[device], &values[device]};
  }
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(list.data(), 2, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuStreamSynchronize(list[0].hStream), CUDA_SUCCESS);  // waits for both grids
  for (int device = 0; device < 2; ++device) {
    unsigned last = 0;
    EXPECT_EQ(cuMemcpyDtoH(&last, data[device] + 28, sizeof last), CUDA_SUCCESS);
    EXPECT_EQ(last, values[device]);
  }
  EXPECT_EQ(cuLaunchCooperativeKernelMultiDevice(list.data(), 0, 0), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(Driver, TellsTheKernelsOfAFile) {
  ASSERT_EQ(cuCtxSetCurrent(retained(0)), CUDA_SUCCESS);
  const std::string path = testing::TempDir() + "two_kernels.ptx";
  std::ofstream(path) << two_kernels;
  CUmodule module = nullptr;
  ASSERT_EQ(cuModuleLoad(&module, path.c_str()), CUDA_SUCCESS);
  unsigned count = 0;
  EXPECT_EQ(cuModuleGetFunctionCount(&count, module), CUDA_SUCCESS);
  ASSERT_EQ(count, 2U);
  std::array<CUfunction, 2> kernels{};
  EXPECT_EQ(cuModuleEnumerateFunctions(kernels.data(), 2, module), CUDA_SUCCESS);
  const char* name = nullptr;
  EXPECT_EQ(cuFuncGetName(&name, kernels[1]), CUDA_SUCCESS);
  EXPECT_STREQ(name, "two");
  CUfunction same = nullptr;
  EXPECT_EQ(cuModuleGetFunction(&same, module, "two"), CUDA_SUCCESS);
  EXPECT_EQ(same, kernels[1]);
  EXPECT_EQ(cuModuleUnload(module), CUDA_SUCCESS);
  EXPECT_EQ(cuFuncGetName(&name, kernels[1]), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Driver, LinksPtxOnly) {
  std::array<char, 300> log{};
  std::array<CUjit_option, 2> options{CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  std::array<void*, 2> values{log.data(), reinterpret_cast<void*>(log.size())};
  CUlinkState state = nullptr;
  ASSERT_EQ(cuLinkCreate(2, options.data(), values.data(), &state), CUDA_SUCCESS);
  std::string bytes(100, 'x');
  EXPECT_EQ(
      cuLinkAddData(state, CU_JIT_INPUT_LIBRARY, bytes.data(), bytes.size(), "libcudadevrt.a", 0, nullptr, nullptr),
      CUDA_SUCCESS);
  values[1] = reinterpret_cast<void*>(log.size());
  EXPECT_EQ(cuLinkAddData(state, CU_JIT_INPUT_OBJECT, bytes.data(), bytes.size(), "host.o", 0, nullptr, nullptr),
            CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_NE(std::strstr(log.data(), "PTX"), nullptr) << log.data();
  const auto add = [&](unsigned type) {
    return cuLinkAddData(state, static_cast<CUjitInputType>(type), bytes.data(), bytes.size(), "x", 0, nullptr,
                         nullptr);
  };
  for (const unsigned type : {CU_JIT_INPUT_OBJECT, CU_JIT_INPUT_LIBRARY, CU_JIT_INPUT_NVVM})
    EXPECT_EQ(add(type), CUDA_ERROR_NOT_SUPPORTED) << type;
  for (const unsigned type : {unsigned{CU_JIT_NUM_INPUT_TYPES}, 99U}) EXPECT_EQ(add(type), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_SUCCESS);  // has the functions that synchronize grids
  EXPECT_EQ(cuLinkDestroy(state), CUDA_SUCCESS);
  EXPECT_EQ(cuLinkDestroy(state), CUDA_ERROR_INVALID_HANDLE);
}

TEST_F(Driver, ProgramsThatOpenNvJitLinkFindNoFunctionsInIt) {
  void* const opened = ::dlopen("/no/such/folder/libnvJitLink.so.13", RTLD_NOW);
  ASSERT_NE(opened, nullptr);
  EXPECT_EQ(::dlsym(opened, "__nvJitLinkVersion"), nullptr);
  EXPECT_EQ(::dlopen("libnoSuchLibrary.so", RTLD_NOW), nullptr);
}

}  // namespace
