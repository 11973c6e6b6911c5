// Compares hpe's runtime library with the toolkit's library.

#include <dlfcn.h>

#include <fstream>
#include <set>
#include <string>

#include "check.h"

namespace {

std::set<std::string> lines(const char* path) {
  std::ifstream file(path);
  EXPECT_TRUE(file.good()) << path;
  std::set<std::string> found;
  for (std::string line; std::getline(file, line);) found.insert(line);
  return found;
}

TEST(Library, ExportsTheFunctionsOfTheToolkitsLibrary) {
  const auto ours = lines(HPE_TEST_NAMES "/cudart-names");
  const auto theirs = lines(HPE_TEST_NAMES "/toolkit-names");
  EXPECT_GT(theirs.size(), 400U);
  EXPECT_EQ(ours, theirs);  // the names include the versions of the symbols
}

TEST(Library, DescribesErrorsAsTheToolkitsLibraryDoes) {
  void* const toolkit = ::dlmopen(LM_ID_NEWLM, HPE_TEST_TOOLKIT_CUDART, RTLD_NOW);
  ASSERT_NE(toolkit, nullptr) << ::dlerror();
  using describe = const char* (*)(cudaError_t);
  const auto name = reinterpret_cast<describe>(::dlsym(toolkit, "cudaGetErrorName"));
  const auto sentence = reinterpret_cast<describe>(::dlsym(toolkit, "cudaGetErrorString"));
  for (int code = 0; code < 10100; ++code) {
    const auto error = static_cast<cudaError_t>(code);
    EXPECT_STREQ(cudaGetErrorName(error), name(error));
    EXPECT_STREQ(cudaGetErrorString(error), sentence(error));
  }
}

TEST(Library, TellsOfFunctionsThatAreNotThere) {
  EXPECT_FAILS(cudaDeviceGetNvSciSyncAttributes(nullptr, 0, 0), cudaErrorNotSupported);
}

TEST(Library, HasNoDriver) {
  int dummy = 0;
  void* entry = &dummy;
  cudaDriverEntryPointQueryResult result{};
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuInit", &entry, 13000, 0, &result));
  EXPECT_EQ(entry, nullptr);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
  EXPECT_FAILS(cudaGetDriverEntryPointByVersion(nullptr, &entry, 13000, 0, &result), cudaErrorInvalidValue);
  EXPECT_CUDA(cudaGetDriverEntryPointByVersion("cuInit", &entry, 13000, cudaEnablePerThreadDefaultStream, nullptr));
  EXPECT_FAILS(cudaGetDriverEntryPointByVersion("cuInit", &entry, 13000, cudaEnablePerThreadDefaultStream + 1, &result),
               cudaErrorInvalidValue);
  using without_version = cudaError_t(const char*, void**, unsigned long long, cudaDriverEntryPointQueryResult*);
  auto* const first = reinterpret_cast<without_version*>(::dlsym(RTLD_DEFAULT, "cudaGetDriverEntryPoint"));
  ASSERT_NE(first, nullptr);
  entry = &dummy;
  result = cudaDriverEntryPointSuccess;
  EXPECT_CUDA(first("cuInit", &entry, 0, &result));
  EXPECT_EQ(entry, nullptr);
  EXPECT_EQ(result, cudaDriverEntryPointSymbolNotFound);
  EXPECT_FAILS(first("cuInit", nullptr, 0, &result), cudaErrorInvalidValue);
}

TEST(Library, TellsItsVersion) {
  int version = 0;
  EXPECT_CUDA(cudaRuntimeGetVersion(&version));
  EXPECT_EQ(version, CUDART_VERSION);
  EXPECT_FAILS(cudaRuntimeGetVersion(nullptr), cudaErrorInvalidValue);
  version = 0;
  EXPECT_CUDA(cudaDriverGetVersion(&version));
  EXPECT_EQ(version, CUDART_VERSION);
}

}  // namespace
