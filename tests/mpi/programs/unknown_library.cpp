// An MPI library with an ABI that hpe does not support. MPI_Sendrecv has so many arguments that the caller passes some
// in registers and some on the stack.
#include <cstdio>

extern "C" {

int PMPI_Init(int*, char***) { return 0; }
int MPI_Init(int*, char***) __attribute__((alias("PMPI_Init")));

int PMPI_Get_library_version(char* text, int* length) {
  *length = std::snprintf(text, 64, "An MPI of its own, version 1");
  return 0;
}
int MPI_Get_library_version(char*, int*) __attribute__((alias("PMPI_Get_library_version")));

int PMPI_Sendrecv(const void* sendbuf, int sendcount, long sendtype, int dest, int sendtag, void* recvbuf,
                  int recvcount, long recvtype, int source, int recvtag, long comm, void* status) {
  const bool same = sendbuf == recvbuf && sendcount == 2 && sendtype == 3L << 40 && dest == 4 && sendtag == 5 &&
                    recvcount == 7 && recvtype == 8L << 40 && source == 9 && recvtag == 10 && comm == 11L << 40 &&
                    status == nullptr;
  return same ? 17 : 1;
}
int MPI_Sendrecv(const void*, int, long, int, int, void*, int, long, int, int, long, void*)
    __attribute__((alias("PMPI_Sendrecv")));
}
