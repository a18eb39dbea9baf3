// The comparisons of host_run.cpp on a GPU, where the kernels are those that nvcc compiled.
#include "host_run.cpp"
