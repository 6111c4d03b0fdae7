#include <cuda_fp16.h>
#include <mma.h>
#include <iostream>
#include <curand.h>
#include <cublas_v2.h>

#define cudaErrCheck(stat) { cudaErrCheck_((stat), __FILE__, __LINE__); }
void cudaErrCheck_(cudaError_t stat, const char *file, int line) {
   if (stat != cudaSuccess) {
      fprintf(stderr, "CUDA Error: %s %s %d\n", cudaGetErrorString(stat), file, line);
   }
}

using namespace nvcuda;

// Must be multiples of 16 for wmma code to work
const int WMMA_M = 16;
const int WMMA_N = 16;
const int WMMA_K = 16;

__global__ void wmma_example(half *a, half *b, float *c, int M, int N, int K, float alpha, float beta) {
   int lda = M, ldb = K, ldc = M;
   int warpM = (blockIdx.x * blockDim.x + threadIdx.x) / warpSize;
   int warpN = (blockIdx.y * blockDim.y + threadIdx.y);

   wmma::fragment<wmma::matrix_a, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> a_frag;
   wmma::fragment<wmma::matrix_b, WMMA_M, WMMA_N, WMMA_K, half, wmma::col_major> b_frag;
   wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> acc_frag;
   wmma::fragment<wmma::accumulator, WMMA_M, WMMA_N, WMMA_K, float> c_frag;
   wmma::fill_fragment(acc_frag, 0.0f);

   for (int i = 0; i < K; i += WMMA_K) {
      int aRow = warpM * WMMA_M, aCol = i, bRow = i, bCol = warpN * WMMA_N;
      if (aRow < M && aCol < K && bRow < K && bCol < N) {
         wmma::load_matrix_sync(a_frag, a + aRow + aCol * lda, lda);
         wmma::load_matrix_sync(b_frag, b + bRow + bCol * ldb, ldb);
         wmma::mma_sync(acc_frag, a_frag, b_frag, acc_frag);
      }
   }

   int cRow = warpM * WMMA_M, cCol = warpN * WMMA_N;
   if (cRow < M && cCol < N) {
      wmma::load_matrix_sync(c_frag, c + cRow + cCol * ldc, ldc, wmma::mem_col_major);
      for (int i = 0; i < c_frag.num_elements; i++)
         c_frag.x[i] = alpha * acc_frag.x[i] + beta * c_frag.x[i];
      wmma::store_matrix_sync(c + cRow + cCol * ldc, c_frag, ldc, wmma::mem_col_major);
   }
}

int main(int argc, char* argv[]) {
   curandGenerator_t gen;
   cublasHandle_t cublasHandle;
   dim3 gridDim, blockDim;
   blockDim.x = 128; blockDim.y = 4;
   gridDim.x = (16384 + (WMMA_M * blockDim.x / 32 - 1)) / (WMMA_M * blockDim.x / 32);
   wmma_example <<< gridDim, blockDim >>> (nullptr, nullptr, nullptr, 16384, 16384, 16384, 2.0f, 2.0f);
   cudaErrCheck(cudaDeviceReset());
   return 0;
}
