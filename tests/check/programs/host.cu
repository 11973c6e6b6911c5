// CPU code, also inside libc, that touches memory which queued work still uses.
#include <fcntl.h>
#include <malloc.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <thread>

#include "tests/check/programs/cuda_cases.h"

static volatile int seen;

CASE_WITH(pinned_copy, result_read_too_early) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = x[100];  // SECOND
}

CASE_WITH(pinned_copy, source_changed_too_early) {  // source-changed -
  CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  x[100] = 1;  // SECOND
}

CASE_WITH(pinned_copy, source_only_read) {  // source-changed -
  CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  seen = x[100];
  if (wrong) x[101] = 1;  // SECOND
}

CASE(registered_source_changed_too_early) {  // source-changed -
  ints p;
  int* from = static_cast<int*>(std::aligned_alloc(4096, 4096));
  stream a;
  CHECK(cudaHostRegister(from, 4096, cudaHostRegisterDefault));
  std::memset(from, 0, 4096);
  CHECK(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  from[1] = 1;  // SECOND
  wait_for_all();
  CHECK(cudaHostUnregister(from));
  std::free(from);
}

CASE(synchronised_with_the_wrong_stream) {  // host-touch -
  ints p;
  pinned_ints to;
  stream a, b;
  CHECK(cudaMemcpyAsync(to, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  CHECK(cudaStreamSynchronize(wrong ? b : a));
  seen = to[100];  // SECOND
}

CASE_WITH(pinned_copy, event_recorded_too_early) {  // host-touch -
  event e;
  if (wrong) CHECK(cudaEventRecord(e, a));
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaEventRecord(e, a));
  CHECK(cudaEventSynchronize(e));
  seen = x[100];  // SECOND
}

CASE(synchronised_with_the_wrong_device) {  // host-touch -
  if (!has_two_devices()) return;
  ints p;
  pinned_ints to;
  stream a;
  CHECK(cudaMemcpyAsync(to, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  CHECK(cudaSetDevice(wrong ? 1 : 0));
  CHECK(cudaDeviceSynchronize());
  seen = to[100];  // SECOND
}

CASE_WITH(pinned_copy, beside_on_the_same_page) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes / 2, cudaMemcpyDeviceToHost, a));  // FIRST
  x[count / 2] = 1;                                                    // beside the copied bytes
  seen = x[count / 2 - (wrong ? 1 : 0)];                               // SECOND
}

CASE(managed_read_too_early) {  // host-touch fill (not on GPUs)
  managed_ints p;
  fill<<<4, 256>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaDeviceSynchronize());
  seen = p[100];  // SECOND
}

CASE(managed_written_too_early) {  // host-touch twice (not on GPUs)
  managed_ints p;
  ints q;
  stream a;
  twice<<<4, 256, 0, a>>>(q, p, count);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  p[100] = 1;  // SECOND
}

CASE(managed_cleared_too_early) {  // host-touch add (not on GPUs)
  managed_ints p;
  stream a;
  add<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::memset(p, 0, bytes);  // SECOND
}

CASE(mapped_read_too_early) {  // host-touch fill
  pinned_ints p(cudaHostAllocMapped);
  stream a;
  int* mapped;
  CHECK(cudaHostGetDevicePointer(&mapped, p.p, 0));
  fill<<<4, 256, 0, a>>>(mapped, count, 1);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = p[100];  // SECOND
}

CASE(mapped_written_too_early) {  // host-touch twice
  pinned_ints p(cudaHostAllocMapped);
  ints q;
  stream a;
  twice<<<4, 256, 0, a>>>(q, p, count);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  p[count - 1] = 1;  // SECOND
}

__device__ int one_variable[32];
__device__ int next_variable[32];

__global__ void fill_next_variable(bool wrong) { (wrong ? one_variable + 32 : next_variable)[threadIdx.x] = 1; }

CASE_ALONE(behind_a_variable) {  // out-of-range fill_next_variable (not found)
  int one[32];
  CHECK(cudaMemcpyFromSymbol(one, one_variable, sizeof one));  // FIRST
  fill_next_variable<<<1, 32>>>(wrong);                        // SECOND
  CHECK(cudaDeviceSynchronize());
}

CASE(memcpy_too_early) {  // host-touch -
  ints p;
  pinned_ints to;
  std::vector<int> kept(count);
  stream a;
  CHECK(cudaMemcpyAsync(to, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::memcpy(kept.data(), to, bytes);  // SECOND
}

CASE(memcpy_into_a_source) {  // source-changed -
  ints p;
  pinned_ints from;
  std::vector<int> next(count);
  stream a;
  CHECK(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::memcpy(from, next.data(), bytes);  // SECOND
}

CASE_WITH(pinned_copy, fwrite_too_early) {  // host-touch -
  FILE* const file = std::fopen("/dev/null", "w");
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::fwrite(x, sizeof(int), count, file);  // SECOND
  std::fclose(file);
}

CASE_WITH(pinned_copy, write_too_early) {  // host-touch -
  const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  if (write(file, x, bytes) != bytes) std::abort();  // SECOND
  close(file);
}

CASE_WITH(pinned_copy, read_into_a_source) {  // source-changed -
  const int file = open("/dev/zero", O_RDONLY);
  CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  if (read(file, x, bytes) != bytes) std::abort();  // SECOND
  close(file);
}

CASE_WITH(pinned_copy, fread_into_a_source) {  // source-changed -
  FILE* const file = std::fopen("/dev/zero", "r");
  CHECK(cudaMemcpyAsync(p, x, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  if (std::fread(x, sizeof(int), count, file) != count) std::abort();  // SECOND
  std::fclose(file);
}

CASE_WITH(pinned_copy, string_read_too_early) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = std::strlen(reinterpret_cast<const char*>(x.p));  // SECOND
}

CASE_WITH(pinned_copy, other_thread_reads_too_early) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  std::thread([&] { seen = x[100]; }).join();  // SECOND
}

CASE(host_function_of_another_stream) {  // host-touch fill
  pinned_ints p;
  stream a, b;
  const auto look = [](void* p) {
    seen = static_cast<int*>(p)[100];  // SECOND
  };
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaLaunchHostFunc(wrong ? b : a, look, p.p));
}

CASE(changed_after_the_host_function_was_queued) {  // source-changed -
  pinned_ints p;
  stream a;
  const auto look = [](void* p) { seen = static_cast<int*>(p)[100]; };
  ints q;
  CHECK(cudaLaunchHostFunc(a, look, p.p));
  CHECK(cudaMemcpyAsync(q, p, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  p[100] = 2;  // SECOND
}

__device__ int total[count];

CASE(variable_read_too_early) {  // host-touch -
  pinned_ints to;
  stream a;
  const int zeros[count] = {};
  CHECK(cudaMemcpyToSymbol(total, zeros, bytes));
  CHECK(cudaMemcpyFromSymbolAsync(to, total, bytes, 0, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = to[100];  // SECOND
}

CASE(memset_of_pinned_memory) {  // host-touch -
  pinned_ints p;
  stream a;
  CHECK(cudaMemsetAsync(p, 1, bytes, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = p[100];  // SECOND
}

CASE(double_buffer_refilled_too_early) {  // source-changed -
  ints p;
  pinned_ints x, y;
  int* const buffers[2] = {x, y};
  stream a;
  event copied[2];
  for (int i = 0; i < 4; ++i) {
    const int slot = i % 2;
    if (i >= (wrong ? 3 : 2)) CHECK(cudaEventSynchronize(copied[slot]));
    for (int k = 0; k < count; ++k) buffers[slot][k] = i;                        // SECOND
    CHECK(cudaMemcpyAsync(p, buffers[slot], bytes, cudaMemcpyHostToDevice, a));  // FIRST
    CHECK(cudaEventRecord(copied[slot], a));
  }
}

CASE_WITH(pinned_copy, columns_of_pinned_memory) {  // host-touch -
  const size_t row = 32 * sizeof(int);
  CHECK(cudaMemcpy2DAsync(x, row, p, row, row / 2, 32, cudaMemcpyDeviceToHost, a));  // FIRST
  seen = x[3 * 32 + (wrong ? 15 : 16)];  // SECOND: the right half of a row is not copied
}

// `count` zeros in registered pages, with other bytes before and behind them.
struct registered_ints : int_memory {
  char* all = static_cast<char*>(std::aligned_alloc(4096, 8192));
  registered_ints() {
    p = reinterpret_cast<int*>(all + 64);
    std::memset(all, 0, 8192);
    CHECK(cudaHostRegister(all, 8192, cudaHostRegisterMapped));
  }
  ~registered_ints() {
    wait_for_all();
    CHECK(cudaHostUnregister(all));
    std::free(all);
  }
};

struct registered_copy {
  ints p;
  registered_ints x;
  stream a;
};

CASE_WITH(registered_copy, registered_result_read_too_early) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  x.all[63] = 1;                                                   // beside the copied bytes
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = x[0];  // SECOND
}

CASE(registered_memory_in_a_kernel) {  // host-touch fill
  registered_ints p;
  int* mapped;
  stream a;
  CHECK(cudaHostGetDevicePointer(&mapped, p.p, 0));
  fill<<<4, 256, 0, a>>>(mapped + 1, count - 1, 5);  // FIRST
  seen = p[0];                                       // beside the kernel's bytes
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  const int got = static_cast<volatile int*>(p.p)[1];  // SECOND
  if (got != 5 && !wrong) std::abort();
}

CASE(registered_memory_of_malloc) {  // source-changed -
  ints p;
  const size_t size = 1 << 20;
  mallopt(M_MMAP_THRESHOLD, size / 2);
  int* from = static_cast<int*>(std::malloc(size));  // in a mapping of its own
  stream a;
  CHECK(cudaHostRegister(from, size, cudaHostRegisterDefault));
  std::memset(from, 0, size);
  CHECK(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  from[1] = 1;  // SECOND
  wait_for_all();
  CHECK(cudaHostUnregister(from));
  std::free(from);
}

CASE_WITH(registered_copy, write_of_registered_memory) {  // host-touch -
  const int file = open("/tmp", O_TMPFILE | O_RDWR, 0600);
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  if (write(file, x, bytes) != bytes) std::abort();  // SECOND
  close(file);
}

CASE_WITH(registered_copy, rows_refilled_too_early) {  // source-changed -
  const size_t row = 32 * sizeof(int);
  CHECK(cudaMemcpy2DAsync(p, row, x, row, row / 2, 32, cudaMemcpyHostToDevice, a));  // FIRST
  seen = x[0];
  x[3 * 32 + (wrong ? 0 : 16)] = 1;  // SECOND: the right half of a row is not copied
}

CASE(managed_rows_copied) {  // host-touch - (not on GPUs)
  ints p;
  managed_ints to;
  stream a;
  const size_t row = 32 * sizeof(int);
  CHECK(cudaMemcpy2DAsync(to, row, p, row, row / 2, 32, cudaMemcpyDeviceToHost, a));  // FIRST
  to[16] = 1;
  seen = to[wrong ? 15 : 17];  // SECOND
}

__managed__ int total_of_managed[4];

static __global__ void count_up() { ++total_of_managed[1]; }

CASE(managed_variable_read_too_early) {  // host-touch count_up (not on GPUs)
  stream a;
  total_of_managed[0] = 1;
  count_up<<<1, 1, 0, a>>>();  // FIRST
  seen = total_of_managed[2];
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = total_of_managed[1];  // SECOND
}

CASE(process_vm_readv_into_a_source) {  // source-changed -
  ints p;
  pinned_ints from;
  std::vector<int> next(count);
  stream a;
  const iovec here{from.p, bytes}, there{next.data(), bytes};
  CHECK(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  if (process_vm_readv(getpid(), &here, 1, &there, 1, 0) != bytes) std::abort();  // SECOND
}

CASE_WITH(pinned_copy, half_of_the_bytes_read_from_a_file) {  // source-changed -
  int ends[2];
  if (pipe(ends) != 0 || write(ends[1], "1234", 4) != 4) std::abort();
  // The read ends before the copied bytes.
  CHECK(cudaMemcpyAsync(p, x + (wrong ? 0 : 1), bytes / 2, cudaMemcpyHostToDevice, a));  // FIRST
  if (read(ends[0], x, bytes) != 4) std::abort();                                        // SECOND
  close(ends[0]);
  close(ends[1]);
}

CASE_WITH(registered_copy, system_call_without_a_function) {  // source-changed -
  CHECK(cudaMemcpyAsync(p, x, bytes / 2, cudaMemcpyHostToDevice, a));
  // hpe does not know this system call, which writes beside the copied bytes.
  if (syscall(SYS_clock_gettime, CLOCK_MONOTONIC, x + count * 3 / 4) != 0) std::abort();
  CHECK(cudaMemcpyAsync(p, x, bytes / 2, cudaMemcpyHostToDevice, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  x[8] = 1;  // SECOND
}

CASE_WITH(pinned_copy, with_all_signals_blocked) {  // host-touch -
  sigset_t all, before, after;
  sigfillset(&all);
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = x[100];  // SECOND
  pthread_sigmask(SIG_SETMASK, &before, &after);
  if (sigismember(&after, SIGTRAP) != 1 || sigismember(&after, SIGUSR1) != 1) std::abort();
}

static volatile sig_atomic_t traps;

CASE_WITH(pinned_copy, with_a_handler_of_traps) {  // source-changed -
  struct sigaction count_traps {
  }, before{}, after{};
  count_traps.sa_handler = [](int) { traps = traps + 1; };
  traps = 0;
  CHECK(cudaMemcpyAsync(p, x, bytes / 2, cudaMemcpyHostToDevice, a));  // FIRST
  sigaction(SIGTRAP, &count_traps, &before);
  if (before.sa_handler != SIG_DFL) std::abort();
  x[count / 2] = 1;  // beside the copied bytes
  raise(SIGTRAP);
  x[count / 2 + 1] = 1;
  sigaction(SIGTRAP, &before, &after);
  if (traps != 1 || after.sa_handler != count_traps.sa_handler) std::abort();
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  x[8] = 1;  // SECOND
}

CASE_WITH(pinned_copy, atomic_operation_too_early) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes, cudaMemcpyDeviceToHost, a));  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  reinterpret_cast<std::atomic<int>*>(x.p)->fetch_add(1);  // SECOND
}

CASE(every_second_number_beside) {  // host-touch fill (not on GPUs)
  int* p;
  const int half = 4096;
  stream a;
  CHECK(cudaMallocManaged(&p, 2 * half * sizeof(int)));
  std::fill_n(p, 2 * half, 0);
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  for (int i = half; i < 2 * half; i += 2) p[i] = 1;
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = p[0];  // SECOND
  wait_for_all();
  CHECK(cudaFree(p));
}

CASE(written_over_two_pages) {  // host-touch -
  ints p;
  char* to;
  stream a;
  CHECK(cudaMallocHost(&to, 2 * 4096));
  CHECK(cudaMemcpyAsync(to + 4096, p, bytes / 2, cudaMemcpyDeviceToHost, a));  // FIRST
  to[4095] = 1;
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  *reinterpret_cast<volatile long long*>(to + 4092) = 1;  // SECOND
  wait_for_all();
  CHECK(cudaFreeHost(to));
}

static __global__ void fill_and_tell(int* p, int n, volatile int* ready) {
  for (int i = 0; i < n; ++i) p[i] = i;
  __threadfence_system();
  *ready = 1;
}

CASE(flag_in_mapped_memory) {  // host-touch fill_and_tell (not on GPUs)
  pinned_ints p(cudaHostAllocMapped), ready(cudaHostAllocMapped);
  stream a;
  fill_and_tell<<<1, 1, 0, a>>>(p, 100, ready);  // FIRST
  if (!wrong)
    while (reinterpret_cast<volatile int*>(ready.p)[0] == 0) usleep(100);
  seen = p[7];  // SECOND
}

CASE(end_of_a_large_result_read_too_early) {  // host-touch -
  const size_t size = 16 << 20;
  char *p, *to;
  stream a;
  CHECK(cudaMalloc(&p, size));
  CHECK(cudaMemset(p, 0, size));
  CHECK(cudaMallocHost(&to, size));
  for (int i = 0; i < 5; ++i) {
    CHECK(cudaDeviceSynchronize());
    CHECK(cudaMemcpyAsync(to, p, size, cudaMemcpyDeviceToHost, a));  // FIRST
  }
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = to[size - 1];  // SECOND
  wait_for_all();
  CHECK(cudaFreeHost(to));
  CHECK(cudaFree(p));
}

CASE_WITH(pinned_copy, two_threads_on_one_page) {  // host-touch -
  CHECK(cudaMemcpyAsync(x, p, bytes / 2, cudaMemcpyDeviceToHost, a));  // FIRST
  const auto count_beside = [&](int at) {
    for (int i = 0; i < 1000; ++i) ++*static_cast<volatile int*>(x + at);
  };
  std::thread other(count_beside, count / 2);
  count_beside(count - 1);
  other.join();
  if (x[count / 2] != 1000 || x[count - 1] != 1000) std::abort();
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  seen = x[0];  // SECOND
}

int main(int argc, char** argv) { return run_cases(argc, argv, wait_for_all); }
