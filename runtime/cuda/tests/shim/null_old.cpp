// The null driver as it was before CUDA 12.8.
#define OLD
#include "null.cpp"
