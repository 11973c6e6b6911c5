// hpe's libcuda.so.1: what programs do not print (tests/interpose/programs/driver_calls.cu has the rest).
#include <cuda.h>
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

namespace {

// The functions by their exported names, whatever the macros of cuda.h make of them.
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

class Driver : public testing::Test {
 protected:
  void SetUp() override { ASSERT_EQ(cuInit(0), CUDA_SUCCESS); }
};

CUcontext retained(int device) {
  CUcontext context = nullptr;
  EXPECT_EQ(cuDevicePrimaryCtxRetain(&context, device), CUDA_SUCCESS);
  return context;
}

CUcontext current() {
  CUcontext context = nullptr;
  EXPECT_EQ(cuCtxGetCurrent(&context), CUDA_SUCCESS);
  return context;
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

constexpr const char* two_kernels =
    ".version 7.0\n.target sm_70\n.address_size 64\n.visible .entry one() { ret; }\n.visible .entry two() { ret; }\n";

TEST_F(Driver, ExportsWhatNvidiasExports) {
#define HPE_DRIVER_ENTRY(name) EXPECT_NE(exported(#name), nullptr) << #name;
#include "interpose/cuda/shim/driver_entries.def"
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
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
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
    ASSERT_EQ(cuMemGetAllocationGranularity(&piece_, &properties_, CU_MEM_ALLOC_GRANULARITY_MINIMUM), CUDA_SUCCESS);
    ASSERT_EQ(cuMemAddressReserve(&base_, 2 * piece_, 0, 0, 0), CUDA_SUCCESS);
    ASSERT_EQ(cuMemCreate(&memory_, piece_, &properties_, 0), CUDA_SUCCESS);
  }

  void open(CUdeviceptr address) {
    const CUmemAccessDesc access{properties_.location, CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    EXPECT_EQ(cuMemSetAccess(address, piece_, &access, 1), CUDA_SUCCESS);
  }

  CUmemAllocationProp properties_{};
  std::size_t piece_ = 0;
  CUdeviceptr base_ = 0;
  CUmemGenericAllocationHandle memory_ = 0;
};

TEST_F(Mapped, BytesMoveWithTheirMemory) {
  EXPECT_EQ(cuMemMap(base_, piece_, 0, memory_, 0), CUDA_SUCCESS);
  CUpointer_attribute kind = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
  unsigned type = 9;
  void* told = &type;
  EXPECT_EQ(cuPointerGetAttributes(1, &kind, &told, base_), CUDA_SUCCESS);
  EXPECT_EQ(type, 0U);  // nobody may use it yet
  open(base_);
  EXPECT_EQ(cuPointerGetAttributes(1, &kind, &told, base_), CUDA_SUCCESS);
  EXPECT_EQ(type, CU_MEMORYTYPE_DEVICE);
  EXPECT_EQ(cuMemsetD8(base_, 77, piece_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(base_, piece_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base_ + piece_, piece_, 0, memory_, 0), CUDA_SUCCESS);
  open(base_ + piece_);
  std::vector<unsigned char> bytes(piece_);
  EXPECT_EQ(cuMemcpyDtoH(bytes.data(), base_ + piece_, piece_), CUDA_SUCCESS);
  EXPECT_EQ(bytes, std::vector<unsigned char>(piece_, 77));
}

TEST_F(Mapped, MemoryHasOneAddressAtATime) {
  EXPECT_EQ(cuMemMap(base_, piece_, 0, memory_, 0), CUDA_SUCCESS);
  EXPECT_EQ(cuMemMap(base_ + piece_, piece_, 0, memory_, 0), CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(cuMemMap(base_, piece_, 0, memory_, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemAddressFree(base_, 2 * piece_), CUDA_ERROR_INVALID_VALUE);
  CUmemGenericAllocationHandle again = 0;
  EXPECT_EQ(cuMemRetainAllocationHandle(&again, reinterpret_cast<void*>(base_ + 5)), CUDA_SUCCESS);
  EXPECT_EQ(again, memory_);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemRelease(memory_), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(cuMemUnmap(base_, piece_), CUDA_SUCCESS);
  EXPECT_EQ(cuMemAddressFree(base_, 2 * piece_), CUDA_SUCCESS);
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
  EXPECT_EQ(cuLinkAddFile(state, CU_JIT_INPUT_PTX, "/no/such/file", 0, nullptr, nullptr), CUDA_ERROR_FILE_NOT_FOUND);
  void* image = nullptr;
  EXPECT_EQ(cuLinkComplete(state, &image, nullptr), CUDA_SUCCESS);  // of the functions that synchronize grids
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
