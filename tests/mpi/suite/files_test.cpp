// Tests every function of MPI-IO that has a buffer argument. The tests write data and read it back. The file must be
// the same as with host memory.
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "tests/mpi/ranks.h"

namespace {

constexpr int n = 400;
const MPI_Comm world = MPI_COMM_WORLD;
const MPI_Datatype type = MPI_UINT32_T;

// A file that all ranks have opened. MPI removes the file when it is closed.
class shared_file {
 public:
  shared_file() {
    std::array<char, 64> name{"/tmp/hpe-mpi-XXXXXX"};
    if (rank() == 0) ::close(::mkstemp(name.data()));
    MPI_Bcast(name.data(), int(name.size()), MPI_CHAR, 0, world);
    MPI_File_open(world, name.data(), MPI_MODE_RDWR | MPI_MODE_CREATE | MPI_MODE_DELETE_ON_CLOSE, MPI_INFO_NULL,
                  &file_);
  }
  shared_file(const shared_file&) = delete;
  shared_file& operator=(const shared_file&) = delete;
  ~shared_file() { MPI_File_close(&file_); }
  operator MPI_File() const { return file_; }  // NOLINT(google-explicit-constructor): the object is used as the handle

 private:
  MPI_File file_ = MPI_FILE_NULL;
};

// Makes all written data visible to all ranks, and sets the file position to the beginning of the file.
void turn_round(MPI_File f, bool shared = false) {
  MPI_File_sync(f);
  MPI_Barrier(world);
  shared ? MPI_File_seek_shared(f, 0, MPI_SEEK_SET)
         : MPI_File_seek(f, rank() * n * MPI_Offset(sizeof(word)), MPI_SEEK_SET);
  MPI_Barrier(world);
}

MPI_Offset mine() { return rank() * n * MPI_Offset(sizeof(word)); }

int count_of(const MPI_Status& status) {
  int count = -1;
  MPI_Get_count(&status, type, &count);
  return count;
}

template <class Write, class Read>
void there_and_back(Write&& write, Read&& read, bool shared = false) {
  same_as_on_host(n, n + 10, [&](buffers b) {
    const shared_file f;
    turn_round(f, shared);
    write(f, b.send);
    turn_round(f, shared);
    read(f, b.receive);
  });
}

TEST(files, AtAnOffset) {
  there_and_back(
      [](MPI_File f, word* p) {
        MPI_Status status;
        EXPECT_EQ(MPI_File_write_at(f, mine(), p, n, type, &status), MPI_SUCCESS);
        EXPECT_EQ(count_of(status), n);
      },
      [](MPI_File f, word* p) {
        MPI_Status status;
        EXPECT_EQ(MPI_File_read_at(f, mine(), p, n, type, &status), MPI_SUCCESS);
        EXPECT_EQ(count_of(status), n);
      });
  there_and_back([](MPI_File f, word* p) { MPI_File_write_at_all(f, mine(), p, n, type, MPI_STATUS_IGNORE); },
                 [](MPI_File f, word* p) { MPI_File_read_at_all(f, mine(), p, n, type, MPI_STATUS_IGNORE); });
}

TEST(files, AtThePointer) {
  there_and_back([](MPI_File f, word* p) { MPI_File_write(f, p, n, type, MPI_STATUS_IGNORE); },
                 [](MPI_File f, word* p) { MPI_File_read(f, p, n, type, MPI_STATUS_IGNORE); });
  there_and_back([](MPI_File f, word* p) { MPI_File_write_all(f, p, n, type, MPI_STATUS_IGNORE); },
                 [](MPI_File f, word* p) { MPI_File_read_all(f, p, n, type, MPI_STATUS_IGNORE); });
}

TEST(files, NonBlocking) {
  const auto wait = [](MPI_Request r) { MPI_Wait(&r, MPI_STATUS_IGNORE); };
  const auto at = [&](const char* name, auto write, auto read) {
    SCOPED_TRACE(name);
    there_and_back(
        [&](MPI_File f, word* p) {
          MPI_Request r = MPI_REQUEST_NULL;
          write(f, mine(), p, n, type, &r);
          wait(r);
        },
        [&](MPI_File f, word* p) {
          MPI_Request r = MPI_REQUEST_NULL;
          read(f, mine(), p, n, type, &r);
          wait(r);
        });
  };
  at("at", MPI_File_iwrite_at, MPI_File_iread_at);
  at("at_all", MPI_File_iwrite_at_all, MPI_File_iread_at_all);
  const auto at_pointer = [&](const char* name, auto write, auto read) {
    SCOPED_TRACE(name);
    there_and_back(
        [&](MPI_File f, word* p) {
          MPI_Request r = MPI_REQUEST_NULL;
          write(f, p, n, type, &r);
          wait(r);
        },
        [&](MPI_File f, word* p) {
          MPI_Request r = MPI_REQUEST_NULL;
          read(f, p, n, type, &r);
          wait(r);
        });
  };
  at_pointer("pointer", MPI_File_iwrite, MPI_File_iread);
  at_pointer("all", MPI_File_iwrite_all, MPI_File_iread_all);
}

TEST(files, Split) {
  there_and_back(
      [](MPI_File f, word* p) {
        MPI_File_write_at_all_begin(f, mine(), p, n, type);
        MPI_File_write_at_all_end(f, p, MPI_STATUS_IGNORE);
      },
      [](MPI_File f, word* p) {
        MPI_File_read_at_all_begin(f, mine(), p, n, type);
        MPI_File_read_at_all_end(f, p, MPI_STATUS_IGNORE);
      });
  there_and_back(
      [](MPI_File f, word* p) {
        MPI_File_write_all_begin(f, p, n, type);
        MPI_File_write_all_end(f, p, MPI_STATUS_IGNORE);
      },
      [](MPI_File f, word* p) {
        MPI_File_read_all_begin(f, p, n, type);
        MPI_File_read_all_end(f, p, MPI_STATUS_IGNORE);
      });
}

TEST(files, SharedPointer) {
  // The order in which the ranks write is not defined, so all ranks write the same data.
  const auto same_everywhere = [](word* p) {
    for (int i = 0; i < n; ++i) p[i] = word(i);
  };
  const auto wait = [](MPI_Request r) { MPI_Wait(&r, MPI_STATUS_IGNORE); };
  there_and_back(
      [&](MPI_File f, word* p) {
        same_everywhere(p);
        MPI_File_write_shared(f, p, n, type, MPI_STATUS_IGNORE);
      },
      [](MPI_File f, word* p) { MPI_File_read_shared(f, p, n, type, MPI_STATUS_IGNORE); }, true);
  there_and_back(
      [&](MPI_File f, word* p) {
        same_everywhere(p);
        MPI_Request r = MPI_REQUEST_NULL;
        MPI_File_iwrite_shared(f, p, n, type, &r);
        wait(r);
      },
      [&](MPI_File f, word* p) {
        MPI_Request r = MPI_REQUEST_NULL;
        MPI_File_iread_shared(f, p, n, type, &r);
        wait(r);
      },
      true);
  there_and_back([](MPI_File f, word* p) { MPI_File_write_ordered(f, p, n, type, MPI_STATUS_IGNORE); },
                 [](MPI_File f, word* p) { MPI_File_read_ordered(f, p, n, type, MPI_STATUS_IGNORE); }, true);
  there_and_back(
      [](MPI_File f, word* p) {
        MPI_File_write_ordered_begin(f, p, n, type);
        MPI_File_write_ordered_end(f, p, MPI_STATUS_IGNORE);
      },
      [](MPI_File f, word* p) {
        MPI_File_read_ordered_begin(f, p, n, type);
        MPI_File_read_ordered_end(f, p, MPI_STATUS_IGNORE);
      },
      true);
}

TEST(files, AReadAtTheEndLeavesTheRest) {
  there_and_back(
      [](MPI_File f, word* p) {
        if (rank() == 0) MPI_File_write_at(f, 0, p, 50, type, MPI_STATUS_IGNORE);
      },
      [](MPI_File f, word* p) {
        MPI_Status status;
        MPI_File_read_at(f, 20 * sizeof(word), p, n, type, &status);
        EXPECT_EQ(count_of(status), 30);
        // Non-blocking reads are not tested here, because in Open MPI 4.1, a non-blocking read that reaches the end of
        // the file never completes.
        MPI_File_read_at_all(f, 10 * sizeof(word), p + 200, n - 200, type, MPI_STATUS_IGNORE);
      });
}

// The test does not compare the gaps in the file, because without MPI_THREAD_MULTIPLE, Open MPI 4.1 writes old contents
// of its own buffer there.
TEST(files, StridedInMemoryAndInTheFile) {
  const datatype every_third(strided(n / 3));
  there_and_back(
      [&](MPI_File f, word* p) {
        MPI_File_set_view(f, mine(), type, every_third, "native", MPI_INFO_NULL);
        MPI_File_write_all(f, p, 1, every_third, MPI_STATUS_IGNORE);
      },
      [&](MPI_File f, word* p) {
        MPI_File_set_view(f, mine(), type, every_third, "native", MPI_INFO_NULL);
        MPI_File_read_at(f, 0, p, 1, every_third, MPI_STATUS_IGNORE);
      });
}

}  // namespace
