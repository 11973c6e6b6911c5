// A program that does not start, because the linker does not find a library (doctor_test.cpp).
int absent();
int main() { return absent(); }
