// The comparisons of host_run.cpp on a GPU, with the kernels compiled by nvcc.
#include "host_run.cpp"
