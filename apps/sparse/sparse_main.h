#pragma once

/// The commands `hpe spmv`, `hpe bfs` and `hpe hash`; argv[0] is the command's name. They return the exit status.
int spmv_main(int argc, char** argv);
int bfs_main(int argc, char** argv);
int hash_main(int argc, char** argv);
