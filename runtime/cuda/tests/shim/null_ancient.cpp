// The null driver as it was before all functions that are called.
#define OLD
#define ANCIENT
#include "null.cpp"
