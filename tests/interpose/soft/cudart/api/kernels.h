#pragma once

// Gives tests that g++ compiles access to kernels and variables that nvcc compiles: the addresses of the kernels' host
// functions, and the symbols of the variables.

#include <cstdint>

struct packet {
  std::int16_t small;
  double wide;
  char letters[5];
};

const void* kernel_add();            // (const float* a, const float* b, float* sum, int count)
const void* kernel_parameters();     // (char, double, packet, short, std::int64_t* out): writes them to out[0..8)
const void* kernel_shared();         // (int* out): reverses values through dynamic shared memory
const void* kernel_static_shared();  // (int* out): uses 1024 ints of static shared memory
const void* kernel_bounded();        // (): allows at most 128 threads in a block
const void* kernel_variables();  // (int* out): counter, coefficients[3], managed_value; adds 1 to counter and managed
const void* kernel_store();      // (int* where): stores 1
const void* kernel_trap();       // ()
const void* kernel_linked();     // (int* out): calls a function and reads a variable of another file

// Kernels of clusters.cu. (int* out): for block b, out[b] is 100 times the number of the next block in its cluster,
// plus the cluster's size.
const void* kernel_any_cluster();
const void* kernel_cluster_of_two();  // declares clusters of two blocks
const void* kernel_some_cluster();    // requires clusters
const void* kernel_small_clusters();  // allows clusters of at most four blocks

const void* symbol_counter();       // int, 5
const void* symbol_coefficients();  // float[4], {1, 2, 3, 4}
const void* symbol_linked();        // int, 40
const void* symbol_managed();       // int, 7

int read_managed_on_host();
void write_managed_on_host(int value);

// Launches kernel_add by <<<...>>>.
void launch_add(const float* a, const float* b, float* sum, int count, int blocks, int threads);
