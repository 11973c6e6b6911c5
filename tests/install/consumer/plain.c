/* The C interface from C. */
#include <hpe/hpe.h>
#include <stdio.h>

int main(void) {
  int* numbers = NULL;
  int count = 0;
  if (hpeGetDeviceCount(&count) != HPE_SUCCESS || hpeMalloc((void**)&numbers, 4096) != HPE_SUCCESS) {
    fprintf(stderr, "%s\n", hpeGetLastErrorMessage());
    return 1;
  }
  numbers[7] = 42;
  if (hpeMemset(numbers, 0, 16) != HPE_SUCCESS || numbers[0] != 0 || numbers[7] != 42) return 1;
  hpePointerInfo info;
  info.struct_size = sizeof info;
  if (hpeGetPointerInfo(numbers, &info) != HPE_SUCCESS || info.size != 4096) return 1;
  printf("%d devices\n", count);
  return hpeFree(numbers) == HPE_SUCCESS ? 0 : 1;
}
