// Kernels that clang compiles without CUDA's headers. clang.ptx is the output of:
//   clang++ -x cuda --cuda-gpu-arch=sm_70 --cuda-device-only -nocudainc -nocudalib -O2 -S -o clang.ptx clang.cu

#define KERNEL extern "C" __attribute__((global)) void
#define THREAD_X __nvvm_read_ptx_sreg_tid_x()
#define THREAD_Y __nvvm_read_ptx_sreg_tid_y()
#define BLOCK_X __nvvm_read_ptx_sreg_ctaid_x()
#define BLOCK_Y __nvvm_read_ptx_sreg_ctaid_y()
#define SIZE_X __nvvm_read_ptx_sreg_ntid_x()
#define SIZE_Y __nvvm_read_ptx_sreg_ntid_y()
#define GRID_X __nvvm_read_ptx_sreg_nctaid_x()

KERNEL saxpy(float* y, const float* x, float a, long n) {
  const long i = BLOCK_X * (long)SIZE_X + THREAD_X;
  if (i < n) y[i] = a * x[i] + y[i];
}

KERNEL grid_stride(float* y, const float* x, int n) {
  for (int i = BLOCK_X * SIZE_X + THREAD_X; i < n; i += GRID_X * SIZE_X) y[i] = 2 * x[i];
}

KERNEL stencil(float* out, const float* in, int nx, int ny) {
  const int x = BLOCK_X * SIZE_X + THREAD_X, y = BLOCK_Y * SIZE_Y + THREAD_Y;
  if (x < 1 || y < 1 || x >= nx - 1 || y >= ny - 1) return;
  const int i = y * nx + x;
  out[i] = 0.2f * (in[i] + in[i - 1] + in[i + 1] + in[i - nx] + in[i + nx]);
}

KERNEL product(float* c, const float* a, const float* b, int n) {
  const int row = BLOCK_Y * SIZE_Y + THREAD_Y, column = BLOCK_X * SIZE_X + THREAD_X;
  if (row >= n || column >= n) return;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}

KERNEL chain(volatile int* flags) {
  while (flags[BLOCK_X] == 0) {
  }
  flags[BLOCK_X + 1] = 1;
}
