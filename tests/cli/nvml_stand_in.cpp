// A stand-in for NVIDIA's management library: three GPUs. Links 0 to 5 of GPUs 0 and 1 lead to each other, link 6 is
// not enabled, links 7 and 8 lead to switches. GPU 2 has no NVLinks, and is on another NUMA node.
#include <cstdint>
#include <cstdio>

namespace {

struct pci {
  char bus_id_legacy[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

struct memory {
  unsigned long long total, free, used;
};

constexpr unsigned buses[] = {0x17, 0xb7, 0xc1};
constexpr int not_supported = 3, remote_gpu = 0, remote_switch = 2, one_bridge = 30, system_wide = 50;

std::uintptr_t number_of(void* gpu) { return reinterpret_cast<std::uintptr_t>(gpu) - 1; }

int place_of(std::uintptr_t gpu, pci* place) {
  *place = {};
  place->bus = buses[gpu];
  return 0;
}

}  // namespace

extern "C" {

int nvmlInit_v2() { return 0; }
int nvmlShutdown() { return 0; }
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 3;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** gpu) {
  *gpu = reinterpret_cast<void*>(std::uintptr_t{index} + 1);  // NOLINT(performance-no-int-to-ptr)
  return 0;
}
int nvmlDeviceGetPciInfo_v3(void* gpu, pci* place) { return place_of(number_of(gpu), place); }
int nvmlDeviceGetNvLinkState(void* gpu, unsigned link, int* enabled) {
  *enabled = link == 6 ? 0 : 1;
  return number_of(gpu) < 2 && link < 9 ? 0 : not_supported;
}
int nvmlDeviceGetNvLinkVersion(void* /*gpu*/, unsigned /*link*/, unsigned* version) {
  *version = 4;
  return 0;
}
int nvmlDeviceGetNvLinkRemoteDeviceType(void* /*gpu*/, unsigned link, int* type) {
  *type = link < 6 ? remote_gpu : remote_switch;
  return 0;
}
int nvmlDeviceGetNvLinkRemotePciInfo_v2(void* gpu, unsigned /*link*/, pci* place) {
  return place_of(1 - number_of(gpu), place);
}
int nvmlDeviceGetCudaComputeCapability(void* gpu, int* major, int* minor) {
  *major = 9;
  *minor = 0;
  return number_of(gpu) < 2 ? 0 : not_supported;
}
int nvmlDeviceGetMemoryInfo(void* gpu, memory* found) {
  constexpr unsigned long long gibi = 1ULL << 30;
  *found = {80 * gibi, 79 * gibi, gibi};
  return number_of(gpu) < 2 ? 0 : not_supported;
}
int nvmlDeviceGetTopologyCommonAncestor(void* a, void* b, int* level) {
  *level = number_of(a) < 2 && number_of(b) < 2 ? one_bridge : system_wide;
  return 0;
}
}
