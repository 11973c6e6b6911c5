// The ways in which a program can look up entries: by dlsym, by the driver's cuGetProcAddress, and in libraries that it
// opens.
#include <cuda.h>
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/interpose/gpu/driver_under_test.h"

namespace {

using resolver = CUresult(const char*, void**, int, cuuint64_t, CUdriverProcAddressQueryResult*);

void* shim() {
  static void* const library = ::dlopen("libcuda.so.1", RTLD_NOW);
  return library;
}

bool in_shim(void* function) {
  Dl_info about{};
  return ::dladdr(function, &about) != 0 && std::string(about.dli_fname).ends_with("/hpe/cuda/libcuda.so.1");
}

bool in_stand_in(void* function) {
  Dl_info about{};
  return ::dladdr(function, &about) != 0 && std::string(about.dli_fname) == stand_in::file();
}

TEST(Shim, LooksUpTheFunctionsOfTheDriver) {
  EXPECT_TRUE(in_stand_in(::dlsym(shim(), "cuDeviceGetCount")));
  EXPECT_EQ(::dlsym(shim(), "cuDeviceGetUuid"), nullptr) << "the shim has this entry, but the stand-in does not";
  EXPECT_NE(::dlerror(), nullptr);
  EXPECT_EQ(::dlsym(shim(), "cuNoneSuch"), nullptr);
}

TEST(Shim, LooksUpHooks) {
  void* const entry = ::dlsym(shim(), "cuMemcpyHtoD_v2");
  ASSERT_NE(entry, nullptr);
  EXPECT_FALSE(in_stand_in(entry));
  EXPECT_EQ(::dlvsym(shim(), "cuMemcpyHtoD_v2", "NONE_1.0"), nullptr);
}

TEST(Shim, NewerEntriesPassThrough) {
  void* const entry = ::dlsym(shim(), "cuNewerThanHpe");
  ASSERT_TRUE(in_stand_in(entry));
  EXPECT_EQ(reinterpret_cast<int (*)()>(entry)(), 4242);
  void* found = nullptr;
  auto* const get = reinterpret_cast<resolver*>(::dlsym(shim(), "cuGetProcAddress_v2"));
  EXPECT_EQ(get("cuNewerThanHpe", &found, 99000, 0, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(found, entry);
}

TEST(Shim, ResolverGivesHooksByTheEntryThatTheDriverChose) {
  auto* const get = reinterpret_cast<resolver*>(::dlsym(shim(), "cuGetProcAddress_v2"));
  ASSERT_NE(get, nullptr);
  EXPECT_TRUE(in_shim(reinterpret_cast<void*>(get)));
  void* entry = nullptr;
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
  EXPECT_EQ(get("cuMemcpyHtoD", &entry, 13000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT_EQ(entry, ::dlsym(shim(), "cuMemcpyHtoD_v2"));
  // Version 2000 is older than every entry, so hpe returns the driver's own error.
  entry = &entry;
  EXPECT_EQ(get("cuMemcpyHtoD", &entry, 2000, 0, &status), CUDA_ERROR_NOT_FOUND);
  EXPECT_EQ(entry, nullptr);
  // Looks up cuGetProcAddress itself, in both versions.
  EXPECT_EQ(get("cuGetProcAddress", &entry, 12000, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(entry, reinterpret_cast<void*>(get));
  EXPECT_EQ(get("cuGetProcAddress", &entry, 11030, 0, &status), CUDA_SUCCESS);
  EXPECT_EQ(entry, ::dlsym(shim(), "cuGetProcAddress"));
}

TEST(Shim, ResolverTakesNullAndEmptyArguments) {
  auto* const get = reinterpret_cast<resolver*>(::dlsym(shim(), "cuGetProcAddress_v2"));
  CUdriverProcAddressQueryResult status{};
  EXPECT_EQ(get("cuMemcpyHtoD", nullptr, 13000, 0, &status), CUDA_SUCCESS);
  void* entry = nullptr;
  EXPECT_EQ(get(nullptr, &entry, 13000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQ(get("", &entry, 13000, 0, nullptr), CUDA_ERROR_NOT_FOUND);
}

TEST(Shim, EveryWayToOpenTheDriverLeadsToTheShim) {
  const std::string path = stand_in::file();
  EXPECT_TRUE(in_shim(::dlsym(shim(), "cuGetProcAddress_v2")));
  void* const deep = ::dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  EXPECT_EQ(deep, shim());
  EXPECT_EQ(::dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), shim());
  // Opens the stand-in, whose file has the driver's name, by its path.
  EXPECT_EQ(::dlopen(path.c_str(), RTLD_NOW), shim());
  // dlopen of another path with the driver's file name does not open the shim.
  void* const other = ::dlopen("/no/such/place/libcuda.so.1", RTLD_NOW);
  EXPECT_EQ(other, nullptr);
}

TEST(Shim, NullHandlesAreTheProgramsOwn) {
  EXPECT_EQ(::dlsym(RTLD_DEFAULT, "cuDeviceGetCount"), reinterpret_cast<void*>(&cuDeviceGetCount));
  EXPECT_NE(::dlsym(RTLD_NEXT, "cuDeviceGetCount"), nullptr);
  EXPECT_EQ(::dlsym(RTLD_NEXT, "main"), nullptr) << "RTLD_NEXT searches only the objects after the caller";
}

TEST(Shim, ADeeplyBoundLibraryReachesHooks) {
  void* const plugin = ::dlopen(HPE_TEST_PLUGIN, RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  ASSERT_NE(plugin, nullptr) << ::dlerror();
  auto* const entry_of = reinterpret_cast<void* (*)(const char*)>(::dlsym(plugin, "entry_of"));
  ASSERT_NE(entry_of, nullptr);
  void* const direct = entry_of(nullptr);
  EXPECT_TRUE(in_shim(direct));
  EXPECT_FALSE(in_stand_in(entry_of("cuMemcpyHtoD_v2")));
}

}  // namespace
