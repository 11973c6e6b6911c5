#pragma once

// Kernels that nvcc compiles, for tests that g++ compiles: the addresses of their host functions, and variables'
// symbols.

#include <cstdint>

struct packet {
  std::int16_t small;
  double wide;
  char letters[5];
};

const void* kernel_add();            // (const float* a, const float* b, float* sum, int count)
const void* kernel_parameters();     // (char, double, packet, short, std::int64_t* out): writes them to out[0..8)
const void* kernel_shared();         // (int* out): dynamic shared memory, reversed through it
const void* kernel_static_shared();  // (int* out): 1024 ints of static shared memory
const void* kernel_bounded();        // (): at most 128 threads
const void* kernel_variables();  // (int* out): counter, coefficients[3], managed_value; adds 1 to counter and managed
const void* kernel_store();      // (int* where): stores 1
const void* kernel_trap();       // ()
const void* kernel_linked();     // (int* out): calls a function of another file, and reads a variable of it

// Kernels of clusters.cu. (int* out): for block b, out[b] is 100 times the number of the next block in its cluster,
// plus the cluster's size.
const void* kernel_any_cluster();
const void* kernel_cluster_of_two();  // declares clusters of two blocks
const void* kernel_some_cluster();    // in clusters only
const void* kernel_small_clusters();  // of four blocks at most

const void* symbol_counter();       // int, 5
const void* symbol_coefficients();  // float[4], {1, 2, 3, 4}
const void* symbol_linked();        // int, 40
const void* symbol_managed();       // int, 7

int read_managed_on_host();
void write_managed_on_host(int value);

// Launches kernel_add by <<<...>>>.
void launch_add(const float* a, const float* b, float* sum, int count, int blocks, int threads);
