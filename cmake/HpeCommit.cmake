# Writes the header OUTPUT, which defines HPE_COMMIT: the commit of the folder SOURCE, followed by "+" if files differ
# from the commit.
execute_process(COMMAND git -C ${SOURCE} describe --always --abbrev=10 --exclude=* --dirty=+
  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
if(NOT commit)
  set(commit "unknown")
endif()
file(CONFIGURE OUTPUT ${OUTPUT} CONTENT "#pragma once\n#define HPE_COMMIT \"${commit}\"\n")
