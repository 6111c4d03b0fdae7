#include <iostream>
#include <vector>
#include <thrust/device_vector.h>
#include <cublas_v2.h>
using namespace std;

int N = 1 << 20;  // a global of the host
cublasHandle_t handle;

__global__
void saxpy(uint n, float a, float *x, float *y)
{
  uint i = blockIdx.x*blockDim.x + threadIdx.x;
  uint stride = gridDim.x*blockDim.x;
  for (; i < n; i += stride) y[i] = a*x[i] + y[i];
}

int main(void)
{
  vector<float> x(N, 1.0f), y(N, 2.0f);
  thrust::device_vector<float> d_x = x, d_y = y;
  cublasCreate(&handle);

  saxpy<<<(N+255)/256, 256>>>(N, 2.0f, thrust::raw_pointer_cast(d_x.data()), thrust::raw_pointer_cast(d_y.data()));

  float maxError = 0.0f;
  for (int i = 0; i < N; i++)
    maxError = max(maxError, abs(y[i]-4.0f));
  cout << "Max error: " << maxError << endl;
}
