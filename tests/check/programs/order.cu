// Work in different streams, threads and devices that uses the same memory with no order between.
#include <unistd.h>

#include <atomic>
#include <thread>

#include "tests/check/programs/cuda_cases.h"

CASE_WITH(two_streams, no_event) {  // stream-race fill
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, event_recorded_too_early) {  // stream-race fill
  event e;
  if (wrong) CHECK(cudaEventRecord(e, a));
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaEventRecord(e, a));
  CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, event_on_the_wrong_stream) {  // stream-race fill
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, wrong ? b : a));
  CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, wait_for_the_wrong_event) {  // stream-race add
  event before, after;
  fill<<<4, 256, 0, a>>>(p, count, 1);
  CHECK(cudaEventRecord(before, a));
  add<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(after, a));
  CHECK(cudaStreamWaitEvent(b, wrong ? before : after, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, wait_after_the_use) {  // stream-race fill
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
  if (wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
}

CASE_WITH(two_streams, event_never_recorded) {  // stream-race fill
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaEventRecord(e, a));
  CHECK(cudaStreamWaitEvent(b, e, 0));   // waits for nothing if the event was never recorded
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, event_recorded_again_after_the_wait) {  // stream-race add
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);
  CHECK(cudaEventRecord(e, a));
  if (wrong) CHECK(cudaStreamWaitEvent(b, e, 0));  // waits for the first record only
  add<<<4, 256, 0, a>>>(p, count, 1);              // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE(wait_in_a_third_stream) {  // stream-race fill
  ints p, q;
  stream a, b, c;
  event e, f;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  CHECK(cudaStreamWaitEvent(c, e, 0));
  if (!wrong) CHECK(cudaEventRecord(f, c));  // stream b waits for a by way of c
  if (!wrong) CHECK(cudaStreamWaitEvent(b, f, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, overwritten_while_read) {  // stream-race twice
  event e;
  twice<<<4, 256, 0, a>>>(q, p, count);  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  fill<<<4, 256, 0, b>>>(p, count, 1);  // SECOND
}

CASE(two_readers) {  // stream-race add
  ints p, q, r;
  stream a, b;
  twice<<<4, 256, 0, a>>>(q, p, count);  // FIRST
  if (wrong) {
    add<<<4, 256, 0, b>>>(p, count, 1);  // SECOND
  } else {
    twice<<<4, 256, 0, b>>>(r, p, count);  // two kernels that read are not in each other's way
  }
}

CASE(legacy_stream_and_nonblocking_stream) {  // stream-race fill
  ints p, q;
  stream b(wrong ? cudaStreamNonBlocking : cudaStreamDefault);
  fill<<<4, 256>>>(p, count, 1);         // FIRST
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE(nonblocking_stream_and_legacy_stream) {  // stream-race fill
  ints p, q;
  stream a(wrong ? cudaStreamNonBlocking : cudaStreamDefault);
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  twice<<<4, 256>>>(q, p, count);       // SECOND
}

CASE(two_blocking_streams) {  // stream-race fill
  ints p, q, r;
  stream a(cudaStreamDefault), b(cudaStreamDefault);
  fill<<<4, 256, 0, a>>>(p, count, 1);        // FIRST
  if (!wrong) fill<<<4, 256>>>(r, count, 1);  // the legacy default stream waits for a, and b waits for it
  twice<<<4, 256, 0, b>>>(q, p, count);       // SECOND
}

CASE(per_thread_stream) {  // stream-race fill
  ints p, q;
  stream a(cudaStreamDefault);
  fill<<<4, 256, 0, wrong ? static_cast<cudaStream_t>(a) : cudaStreamLegacy>>>(p, count, 1);  // FIRST
  twice<<<4, 256, 0, cudaStreamPerThread>>>(q, p, count);                                     // SECOND
}

CASE(per_thread_streams_of_two_threads) {  // stream-race fill
  ints p, q;
  std::thread([&] {
    fill<<<4, 256, 0, cudaStreamPerThread>>>(p, count, 1);  // FIRST
    if (!wrong) CHECK(cudaStreamSynchronize(cudaStreamPerThread));
  }).join();
  twice<<<4, 256, 0, cudaStreamPerThread>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, thread_that_waits_for_nothing) {  // stream-race fill
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  std::thread([&] { CHECK(cudaStreamSynchronize(wrong ? b : a)); }).join();
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE(copy_and_kernel) {  // stream-race twice
  ints p, q;
  pinned_ints from;
  stream a, b;
  event e;
  CHECK(cudaMemcpyAsync(p, from, bytes, cudaMemcpyHostToDevice, a));  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE(kernel_and_copy_back) {  // stream-race fill
  ints p;
  pinned_ints to;
  stream a, b;
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  CHECK(cudaMemcpyAsync(to, p, bytes, cudaMemcpyDeviceToHost, b));  // SECOND
}

CASE(memset_and_kernel) {  // stream-race add
  ints p;
  stream a, b;
  event e;
  CHECK(cudaMemsetAsync(p, 0, bytes, a));  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  add<<<4, 256, 0, b>>>(p, count, 1);  // SECOND
}

CASE(memset_does_not_wait) {  // stream-race add
  ints p;
  stream b(wrong ? cudaStreamNonBlocking : cudaStreamDefault);
  CHECK(cudaMemset(p, 0, bytes));      // FIRST
  add<<<4, 256, 0, b>>>(p, count, 1);  // SECOND
}

CASE(copy_on_the_device_does_not_wait) {  // stream-race add
  ints p, q;
  stream b(wrong ? cudaStreamNonBlocking : cudaStreamDefault);
  CHECK(cudaMemcpy(q, p, bytes, cudaMemcpyDeviceToDevice));  // FIRST
  add<<<4, 256, 0, b>>>(q, count, 1);                        // SECOND
}

CASE(copy_does_not_wait_for_nonblocking_streams) {  // stream-race fill
  ints p;
  std::vector<int> to(count);
  stream a;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  CHECK(cudaMemcpy(to.data(), p, bytes, cudaMemcpyDeviceToHost));  // SECOND
}

CASE_WITH(two_streams, copies_that_overlap) {  // stream-race -
  const int half = count / 2;
  const int first = wrong ? half - 1 : half;
  CHECK(cudaMemcpyAsync(p, q, half * sizeof(int), cudaMemcpyDeviceToDevice, a));          // FIRST
  CHECK(cudaMemcpyAsync(p + first, q, half * sizeof(int), cudaMemcpyDeviceToDevice, b));  // SECOND
}

CASE_WITH(two_streams, columns_that_overlap) {  // stream-race -
  const size_t row = 32 * sizeof(int), half = row / 2;
  CHECK(cudaMemcpy2DAsync(p, row, q, row, half, 32, cudaMemcpyDeviceToDevice, a));      // FIRST
  int* const right = p + (wrong ? 15 : 16);                                             // the other half of each row
  CHECK(cudaMemcpy2DAsync(right, row, q, row, half, 31, cudaMemcpyDeviceToDevice, b));  // SECOND
}

__global__ void fill_every_second(int* p, int first, int n) {
  const int i = 2 * (blockIdx.x * blockDim.x + threadIdx.x) + first;
  if (i < n) p[i] = first;
}

CASE(kernels_that_interleave) {  // stream-race fill_every_second
  ints p;
  stream a, b;
  fill_every_second<<<2, 256, 0, a>>>(p, 0, count);              // FIRST
  fill_every_second<<<2, 256, 0, b>>>(p, wrong ? 0 : 1, count);  // SECOND
}

__device__ int factor;

__global__ void scale(int* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] *= factor;
}

CASE(variable_of_a_module) {  // stream-race scale (not on GPUs)
  ints p;
  pinned_ints from;
  stream a, b;
  event e;
  CHECK(cudaMemcpyToSymbolAsync(factor, from, sizeof(int), 0, cudaMemcpyHostToDevice, a));  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  scale<<<4, 256, 0, b>>>(p, count);  // SECOND
}

CASE_WITH(two_streams, synchronised_with_the_wrong_stream) {  // stream-race fill
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaStreamSynchronize(wrong ? b : a));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, synchronised_with_the_wrong_event) {  // stream-race add
  event before, after;
  fill<<<4, 256, 0, a>>>(p, count, 1);
  CHECK(cudaEventRecord(before, a));
  add<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(after, a));
  CHECK(cudaEventSynchronize(wrong ? before : after));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, query_whose_result_is_ignored) {  // stream-race fill
  std::atomic<bool> go{false};
  const auto wait = [](void* go) {
    while (!*static_cast<std::atomic<bool>*>(go)) usleep(100);
  };
  CHECK(cudaLaunchHostFunc(a, wait, &go));  // the work of stream a cannot begin
  fill<<<4, 256, 0, a>>>(p, count, 1);      // FIRST
  (void)cudaStreamQuery(a);
  if (!wrong) go = true;
  while (!wrong && cudaStreamQuery(a) == cudaErrorNotReady) usleep(100);
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
  go = true;
  wait_for_all();
}

CASE(stream_destroyed) {  // stream-race fill
  ints p, q;
  stream b;
  cudaStream_t a;
  CHECK(cudaStreamCreateWithFlags(&a, cudaStreamNonBlocking));
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaStreamSynchronize(a));
  CHECK(cudaStreamDestroy(a));           // does not wait for the kernel
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, host_function_too_early) {  // stream-race add
  std::atomic<bool> done{false};
  const auto tell = [](void* done) { *static_cast<std::atomic<bool>*>(done) = true; };
  fill<<<4, 256, 0, a>>>(p, count, 1);
  if (wrong) CHECK(cudaLaunchHostFunc(a, tell, &done));
  add<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaLaunchHostFunc(a, tell, &done));
  while (!done) usleep(100);
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE_WITH(two_streams, callback_too_early) {  // stream-race add
  std::atomic<bool> done{false};
  const auto tell = [](cudaStream_t, cudaError_t, void* done) { *static_cast<std::atomic<bool>*>(done) = true; };
  fill<<<4, 256, 0, a>>>(p, count, 1);
  if (wrong) CHECK(cudaStreamAddCallback(a, tell, &done, 0));
  add<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaStreamAddCallback(a, tell, &done, 0));
  while (!done) usleep(100);
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
}

CASE(pool_memory_used_in_another_stream) {  // stream-race fill
  int* p;
  stream a, b;
  event e;
  CHECK(cudaMallocAsync(&p, bytes, a));  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  fill<<<4, 256, 0, b>>>(p, count, 1);  // SECOND
  wait_for_all();
  CHECK(cudaFreeAsync(p, b));
}

CASE(pool_memory_freed_in_another_stream) {  // stream-race fill
  int* p;
  stream a, b;
  event e;
  CHECK(cudaMallocAsync(&p, bytes, a));
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  CHECK(cudaFreeAsync(p, b));  // SECOND
}

CASE(free_waits_for_work) {  // stream-race fill
  int* p;
  stream a, b;
  CHECK(cudaMalloc(&p, bytes));
  fill<<<4, 256, 0, a>>>(p, count, 1);             // FIRST
  if (wrong) fill<<<4, 256, 0, b>>>(p, count, 2);  // SECOND
  CHECK(cudaFree(p));                              // waits for the work of all streams
}

CASE(copy_between_devices) {  // stream-race fill
  if (!has_two_devices()) return;
  ints p;
  CHECK(cudaSetDevice(1));
  ints q;
  stream b;
  CHECK(cudaSetDevice(0));
  stream a;
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  CHECK(cudaMemcpyPeerAsync(q, 1, p, 0, bytes, b));  // SECOND
}

CASE(kernel_on_another_device) {  // stream-race twice
  if (!has_two_devices()) return;
  ints p;
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceEnablePeerAccess(0, 0));
  ints q;
  stream b;
  CHECK(cudaSetDevice(0));
  stream a;
  event e;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaEventRecord(e, a));
  CHECK(cudaSetDevice(1));
  if (!wrong) CHECK(cudaStreamWaitEvent(b, e, 0));
  twice<<<4, 256, 0, b>>>(q, p, count);  // SECOND
  wait_for_all();
  CHECK(cudaSetDevice(1));
  CHECK(cudaDeviceDisablePeerAccess(0));
  CHECK(cudaSetDevice(0));
}

CASE(synchronised_with_the_wrong_device) {  // stream-race fill
  if (!has_two_devices()) return;
  ints p;
  CHECK(cudaSetDevice(1));
  ints q;
  stream b;
  CHECK(cudaSetDevice(0));
  stream a;
  fill<<<4, 256, 0, a>>>(p, count, 1);  // FIRST
  CHECK(cudaSetDevice(wrong ? 1 : 0));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaMemcpyPeerAsync(q, 1, p, 0, bytes, b));  // SECOND
}

CASE(default_streams_of_two_devices) {  // stream-race fill
  if (!has_two_devices()) return;
  ints p;
  fill<<<4, 256>>>(p, count, 1);  // FIRST
  if (!wrong) CHECK(cudaDeviceSynchronize());
  CHECK(cudaSetDevice(1));
  ints q;
  CHECK(cudaMemcpyPeerAsync(q, 1, p, 0, bytes, cudaStreamLegacy));  // SECOND
}

CASE(ring_of_two_buffers) {  // stream-race twice
  ints p, q, sum;
  pinned_ints from;
  stream copies, kernels;
  event copied[2], used[2];
  int* const buffers[2] = {p, q};
  for (int i = 0; i < 4; ++i) {
    const int slot = i % 2;
    if (i >= (wrong ? 3 : 2)) CHECK(cudaStreamWaitEvent(copies, used[slot], 0));
    CHECK(cudaMemcpyAsync(buffers[slot], from, bytes, cudaMemcpyHostToDevice, copies));  // SECOND
    CHECK(cudaEventRecord(copied[slot], copies));
    CHECK(cudaStreamWaitEvent(kernels, copied[slot], 0));
    twice<<<4, 256, 0, kernels>>>(sum, buffers[slot], count);  // FIRST
    CHECK(cudaEventRecord(used[slot], kernels));
  }
}

int main(int argc, char** argv) { return run_cases(argc, argv, wait_for_all); }
