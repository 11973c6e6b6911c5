#include "interpose/mpi/groups.h"

#include "interpose/mpi/layout.h"

namespace hpe::interpose::mpi {

namespace {

bool is_inter(MPI_Comm comm) {
  if (is_null(comm, handles::get().comm_null)) throw left_to_mpi{};
  int flag = 0;
  HPE_REAL(Comm_test_inter)(comm, &flag);
  return flag != 0;
}

struct neighbours {
  int in = 0;
  int out = 0;
};

neighbours neighbours_of(MPI_Comm comm) {
  if (is_inter(comm)) throw left_to_mpi{};
  int kind = MPI_UNDEFINED;
  HPE_REAL(Topo_test)(comm, &kind);
  neighbours n;
  int weighted = 0;
  switch (kind) {
    case MPI_CART:
      HPE_REAL(Cartdim_get)(comm, &n.in);
      n.in *= 2;
      n.out = n.in;
      return n;
    case MPI_GRAPH:
      HPE_REAL(Graph_neighbors_count)(comm, rank_in(comm), &n.in);
      n.out = n.in;
      return n;
    case MPI_DIST_GRAPH: HPE_REAL(Dist_graph_neighbors_count)(comm, &n.in, &n.out, &weighted); return n;
    default: throw left_to_mpi{};
  }
}

}  // namespace

bool is_intra(MPI_Comm comm) { return !is_null(comm, handles::get().comm_null) && !is_inter(comm); }

int members(MPI_Comm comm) {
  if (!is_inter(comm)) return local_members(comm);
  int size = 0;
  HPE_REAL(Comm_remote_size)(comm, &size);
  return size;
}

int local_members(MPI_Comm comm) {
  (void)is_inter(comm);
  int size = 0;
  HPE_REAL(Comm_size)(comm, &size);
  return size;
}

int rank_in(MPI_Comm comm) {
  (void)is_inter(comm);
  int rank = 0;
  HPE_REAL(Comm_rank)(comm, &rank);
  return rank;
}

bool is_root(MPI_Comm comm, int root) { return is_inter(comm) ? root == MPI_ROOT : root == rank_in(comm); }

bool is_leaf(MPI_Comm comm, int root) { return !is_inter(comm) || root >= 0; }

int sources(MPI_Comm comm) { return neighbours_of(comm).in; }

int destinations(MPI_Comm comm) { return neighbours_of(comm).out; }

}  // namespace hpe::interpose::mpi
