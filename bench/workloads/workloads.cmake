# hpe-bench-workloads compares workloads with hand-written programs and with the libraries of the other benchmarks.
set(workload_peers libraries/scan_tbb.cpp libraries/fft_fftw_absent.cpp)
set(workload_libraries "")
if(TARGET hpe-fft-fftw)
  set(workload_peers libraries/scan_tbb.cpp libraries/fft_fftw.cpp)
  set(workload_libraries ${fft_libraries})
endif()
hpe_bench(workloads
  SOURCES libraries/fft_soft.cpp libraries/scan_soft.cpp libraries/soft_bars.cpp libraries/sort_methods.cpp libraries/sort_soft.cpp
    workloads/comparison.cpp workloads/fft.cpp workloads/rtm.cpp workloads/scan.cpp workloads/sort.cpp workloads/team.cpp
    workloads/wave.cpp workloads/workloads.cpp ${workload_peers}
  LIBRARIES hpe-app-fdtd hpe-app-fft hpe-app-rtm hpe-app-scan hpe-app-sort hpe-memory hpe-device Boost::headers TBB::tbb
    ${workload_libraries})
if(TARGET hpe-fft-fftw)
  target_include_directories(hpe-bench-workloads SYSTEM PRIVATE ${HPE_FFTW_HEADER_FOLDER})
endif()
add_dependencies(hpe-bench-workloads hpe-fft-kernels hpe-kernels hpe-scan-kernels hpe-sort-kernels)
