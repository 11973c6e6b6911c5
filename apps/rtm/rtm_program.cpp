// The program of scripts/demo: `hpe rtm` without the other commands of hpe, so that fewer files must be compiled.

#include "apps/command_line/program.h"
#include "apps/rtm/rtm_main.h"

int main(int argc, char** argv) { return hpe::command_line::with_output_written("hpe-rtm", rtm_main(argc, argv)); }
