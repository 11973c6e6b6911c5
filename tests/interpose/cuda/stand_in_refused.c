// What hpe looks for in a driver and the stand-in has no use for. Without cuda.h, because one type serves all of them.
#define REFUSED(name)                                    \
  __attribute__((visibility("default"))) int name(void); \
  int name(void) { return 801; } /* CUDA_ERROR_NOT_SUPPORTED */

REFUSED(cuDeviceCanAccessPeer)
REFUSED(cuDeviceGetAttribute)
REFUSED(cuDeviceGetName)
REFUSED(cuFuncSetAttribute)
REFUSED(cuMemAddressFree)
REFUSED(cuMemAddressReserve)
REFUSED(cuMemCreate)
REFUSED(cuMemGetInfo_v2)
REFUSED(cuMemHostRegister_v2)
REFUSED(cuMemHostUnregister)
REFUSED(cuMemMap)
REFUSED(cuMemRelease)
REFUSED(cuMemSetAccess)
REFUSED(cuMemUnmap)
REFUSED(cuModuleGetFunction)
REFUSED(cuModuleGetGlobal_v2)
REFUSED(cuModuleLoadData)
REFUSED(cuModuleUnload)
