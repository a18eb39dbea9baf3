// The comparisons of gpu_math.cu on the CPU: the kernels are compiled for the host (cuda_on_host.h).
#include "gpu_math.cu"
