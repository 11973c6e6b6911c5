// A library that lacks_a_library needs and that the dynamic linker does not find.
int absent() { return 0; }
