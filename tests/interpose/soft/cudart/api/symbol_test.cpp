#include "check.h"
#include "kernels.h"

namespace {

struct seen {
  int counter;
  int coefficient;
  int managed;
};

seen run_variables() {
  const on_device<int> out(3);
  int* argument = out.data();
  void* arguments[] = {&argument};
  EXPECT_CUDA(cudaLaunchKernel(kernel_variables(), 1, 1, arguments, 0, nullptr));
  seen what{};
  EXPECT_CUDA(cudaMemcpy(&what, out.data(), sizeof what, cudaMemcpyDeviceToHost));
  return what;
}

TEST(Symbols, HoldTheirFirstValues) {
  const seen first = run_variables();
  EXPECT_EQ(first.counter, 5);
  EXPECT_EQ(first.coefficient, 4);
  EXPECT_EQ(first.managed, 7);
  const seen second = run_variables();
  EXPECT_EQ(second.counter, 6);
  EXPECT_EQ(second.managed, 8);
}

TEST(Symbols, AreWrittenAndReadByCopies) {
  const int value = 123;
  const float last = 9;
  EXPECT_CUDA(cudaMemcpyToSymbol(symbol_counter(), &value, sizeof value, 0, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaMemcpyToSymbolAsync(symbol_coefficients(), &last, sizeof last, 12, cudaMemcpyHostToDevice, nullptr));
  const seen what = run_variables();
  EXPECT_EQ(what.counter, 123);
  EXPECT_EQ(what.coefficient, 9);
  int counter = 0;
  EXPECT_CUDA(cudaMemcpyFromSymbol(&counter, symbol_counter(), sizeof counter, 0, cudaMemcpyDeviceToHost));
  EXPECT_EQ(counter, 124);
  float all[4] = {};
  EXPECT_CUDA(cudaMemcpyFromSymbol(all, symbol_coefficients(), sizeof all, 0, cudaMemcpyDefault));
  EXPECT_EQ(all[0], 1);
  EXPECT_EQ(all[3], 9);
}

TEST(Symbols, AreVariablesOfEachDevice) {
  const int here = 100;
  const int there = 200;
  EXPECT_CUDA(cudaMemcpyToSymbol(symbol_counter(), &here, sizeof here, 0, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(run_variables().counter, 5);
  EXPECT_CUDA(cudaMemcpyToSymbol(symbol_counter(), &there, sizeof there, 0, cudaMemcpyHostToDevice));
  EXPECT_CUDA(cudaSetDevice(0));
  EXPECT_EQ(run_variables().counter, 100);
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(run_variables().counter, 200);
}

TEST(Symbols, ThatAreManagedAreOneForTheHostAndAllDevices) {
  EXPECT_EQ(read_managed_on_host(), 7);
  write_managed_on_host(50);
  EXPECT_EQ(run_variables().managed, 50);
  EXPECT_EQ(read_managed_on_host(), 51);
  EXPECT_EQ(run_variables().managed, 51);
  EXPECT_EQ(read_managed_on_host(), 52);
  EXPECT_CUDA(cudaSetDevice(1));
  EXPECT_EQ(run_variables().managed, 52);
  EXPECT_EQ(read_managed_on_host(), 53);
}

TEST(Symbols, ThatAreManagedAreFreedByTheirModuleOnly) {
  run_variables();
  void* address = nullptr;
  ASSERT_CUDA(cudaGetSymbolAddress(&address, symbol_managed()));
  cudaPointerAttributes attributes{};
  ASSERT_CUDA(cudaPointerGetAttributes(&attributes, address));
  EXPECT_EQ(attributes.type, cudaMemoryTypeManaged);
  EXPECT_FAILS(cudaFree(address), cudaErrorInvalidValue);
  testing::internal::CaptureStderr();
  EXPECT_CUDA(cudaDeviceReset());
  EXPECT_EQ(run_variables().managed, 7);
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

TEST(Symbols, HaveAddressesAndSizes) {
  void* address = nullptr;
  std::size_t size = 0;
  EXPECT_CUDA(cudaGetSymbolAddress(&address, symbol_coefficients()));
  EXPECT_CUDA(cudaGetSymbolSize(&size, symbol_coefficients()));
  EXPECT_EQ(size, 16U);
  float value = 0;
  EXPECT_CUDA(cudaMemcpy(&value, static_cast<float*>(address) + 2, sizeof value, cudaMemcpyDeviceToHost));
  EXPECT_EQ(value, 3);
  EXPECT_EQ(static_cast<float*>(address)[1], 2);  // CPU code reads the variable
}

TEST(Symbols, ThatCannotBeMeantAreRefused) {
  char bytes[32] = {};
  int none = 0;
  void* address = nullptr;
  EXPECT_FAILS(cudaGetSymbolAddress(&address, &none), cudaErrorInvalidSymbol);
  EXPECT_FAILS(cudaMemcpyToSymbol(&none, bytes, 4, 0, cudaMemcpyHostToDevice), cudaErrorInvalidSymbol);
  EXPECT_FAILS(cudaMemcpyToSymbol(symbol_coefficients(), bytes, 17, 0, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpyToSymbol(symbol_coefficients(), bytes, 8, 9, cudaMemcpyHostToDevice), cudaErrorInvalidValue);
  EXPECT_FAILS(cudaMemcpyToSymbol(symbol_coefficients(), bytes, 8, 0, cudaMemcpyDeviceToHost),
               cudaErrorInvalidMemcpyDirection);
  EXPECT_FAILS(cudaMemcpyFromSymbol(bytes, symbol_coefficients(), 8, 0, cudaMemcpyHostToDevice),
               cudaErrorInvalidMemcpyDirection);
}

TEST(Symbols, BeginAnewAfterAReset) {
  run_variables();
  EXPECT_CUDA(cudaDeviceReset());
  const seen what = run_variables();
  EXPECT_EQ(what.counter, 5);
  EXPECT_EQ(what.managed, 7);
  EXPECT_EQ(read_managed_on_host(), 8);
}

TEST(Symbols, AreFoundAcrossFilesThatAreLinked) {
  const on_device<int> out(1);
  int* argument = out.data();
  void* arguments[] = {&argument};
  ASSERT_CUDA(cudaLaunchKernel(kernel_linked(), 1, 1, arguments, 0, nullptr));
  int result = 0;
  EXPECT_CUDA(cudaMemcpy(&result, out.data(), sizeof result, cudaMemcpyDeviceToHost));
  EXPECT_EQ(result, 2040);
  const int value = 7;
  EXPECT_CUDA(cudaMemcpyToSymbol(symbol_linked(), &value, sizeof value, 0, cudaMemcpyHostToDevice));
  ASSERT_CUDA(cudaLaunchKernel(kernel_linked(), 1, 1, arguments, 0, nullptr));
  EXPECT_CUDA(cudaMemcpy(&result, out.data(), sizeof result, cudaMemcpyDeviceToHost));
  EXPECT_EQ(result, 2007);
}

}  // namespace
