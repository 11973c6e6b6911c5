// fread reads numbers from a file into device memory, a kernel doubles them, and fwrite
// writes them to another file. The program needs no buffer in between.

#include <cstdio>
#include <hpe/hpe.hpp>
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace {

struct file {
  file(const char* name, const char* mode) : stream(std::fopen(name, mode)) {
    if (stream == nullptr)
      throw std::runtime_error(std::string(name) + " cannot be opened");
  }
  ~file() { std::fclose(stream); }
  file(const file&) = delete;
  file& operator=(const file&) = delete;

  std::FILE* stream;
};

}  // namespace

int main(int argc, char** argv) try {
  if (argc != 3)
    throw std::runtime_error("two files are needed: the input and the output, float32");
  const file input(argv[1], "rb");
  const file output(argv[2], "wb");
  std::fseek(input.stream, 0, SEEK_END);
  const std::size_t count = std::ftell(input.stream) / sizeof(float);
  std::rewind(input.stream);

  const hpe::kernel<saxpy_parameters> saxpy(hpe::module("./libkernels.so"), "saxpy");
  hpe::array<float> data(count);
  if (std::fread(data.data(), sizeof(float), count, input.stream) != count)
    throw std::runtime_error(std::string(argv[1]) + " cannot be read");
  // saxpy computes y += 1 * x. Here x and y are the same array, so it doubles each number.
  hpe::launch(saxpy, hpe::grid(64), {data.data(), data.data(), count, 1}, hpe::inout(data));
  // fwrite waits for the kernel.
  if (std::fwrite(data.data(), sizeof(float), count, output.stream) != count)
    throw std::runtime_error(std::string(argv[2]) + " cannot be written");
  std::printf("%zu numbers doubled\n", count);
  return 0;
} catch (const std::exception& failure) {
  std::fprintf(stderr, "%s\n", failure.what());
  return 1;
}
