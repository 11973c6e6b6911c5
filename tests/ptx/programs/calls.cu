// Recursion, calls through pointers and virtual functions, local arrays, printf, assert, malloc and traps.
#include <cassert>
#include <cstdio>
__device__ __noinline__ unsigned fibonacci(unsigned n) { return n < 2 ? n : fibonacci(n - 1) + fibonacci(n - 2); }
extern "C" __global__ void recursion(unsigned* out) { out[threadIdx.x] = fibonacci(threadIdx.x % 20); }

struct shape { int a; __device__ virtual int area() const = 0; };
struct square : shape { __device__ int area() const override { return a * a; } };
struct line : shape { __device__ int area() const override { return 0 * a - 7; } };
using binary = int (*)(int, int);
__device__ __noinline__ int plus(int a, int b) { return a + b; }
__device__ __noinline__ int times(int a, int b) { return a * b; }
__device__ binary table[2] = {plus, times};
extern "C" __global__ void indirect(int* out, int which) {
  shape* s;
  if (threadIdx.x % 2) s = new square; else s = new line;
  s->a = threadIdx.x;
  out[threadIdx.x] = s->area() + table[(threadIdx.x + which) % 2](threadIdx.x, 5);
  delete s;
}
struct triple { double x; int y; char z; };
__device__ __noinline__ triple turn(triple t, int k) { return triple{t.x * k, t.y + k, static_cast<char>(t.z ^ k)}; }
extern "C" __global__ void structures(triple in, triple* out) { out[threadIdx.x] = turn(in, threadIdx.x); }
extern "C" __global__ void local_arrays(const int* index, int* out) {
  int squares[64];
  for (int i = 0; i < 64; ++i) squares[i] = i * i + threadIdx.x;
  squares[index[threadIdx.x] % 64] = -1;
  int sum = 0;
  for (int i = 0; i < 64; ++i) sum += squares[(i * index[threadIdx.x]) % 64];
  out[threadIdx.x] = sum;
}
extern "C" __global__ void printing(const char* name, double x) {
  if (threadIdx.x % 16 == 0) printf("%s %d %u %5.2f %c %llx %p%%\n", name, -int(threadIdx.x), threadIdx.x, x + threadIdx.x, 'a' + threadIdx.x / 16, 0x123456789abcULL + threadIdx.x, static_cast<void*>(nullptr));
}
extern "C" __global__ void asserting(int limit) { assert(threadIdx.x < limit && "too many"); }
extern "C" __global__ void trapping(int who) { if (threadIdx.x == who) __trap(); }
extern "C" __global__ void beyond(int* data, long offset) { if (threadIdx.x == 3 && blockIdx.x == 1) data[offset] = 1; }
extern "C" __global__ void heap(int** keep, int n) {
  int* p = static_cast<int*>(malloc(n * sizeof(int)));
  for (int i = 0; i < n; ++i) p[i] = i * threadIdx.x;
  int s = 0;
  for (int i = 0; i < n; ++i) s += p[i];
  free(p);
  keep[threadIdx.x] = reinterpret_cast<int*>(static_cast<long>(s));
}
