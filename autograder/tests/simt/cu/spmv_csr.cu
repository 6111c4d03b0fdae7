#include <vector>
#include <numeric>
#include <limits>
#include <type_traits>

// A sparse matrix times a vector, a row a thread or a row a warp.
template <typename IndexType, typename ValueType>
struct csr_view {
    static_assert(std::is_integral<IndexType>::value, "indices are whole numbers");
    IndexType rows;
    const IndexType *row_ptr;
    const IndexType *col;
    const ValueType *val;
};

template <typename IndexType, typename ValueType>
struct csr_host {
    std::vector<IndexType> row_ptr, col;
    std::vector<ValueType> val;
    csr_view<IndexType, ValueType> view() const { return {IndexType(row_ptr.size() - 1), row_ptr.data(), col.data(), val.data()}; }
};

using csr = csr_view<int, float>;

__global__ void spmv_scalar(csr A, const float *x, float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= A.rows) return;
    float sum = 0;
    for (int k = A.row_ptr[row]; k < A.row_ptr[row + 1]; ++k)
        sum += A.val[k] * x[A.col[k]];
    y[row] = sum;
}

__global__ void spmv_vector(csr A, const float *x, float *y)
{
    int lane = threadIdx.x & 31, row = (blockIdx.x * blockDim.x + threadIdx.x) >> 5;
    float sum = 0;
    if (row < A.rows)
        for (int k = A.row_ptr[row] + lane; k < A.row_ptr[row + 1]; k += 32)
            sum += A.val[k] * x[A.col[k]];
    for (int d = 16; d; d >>= 1)
        sum += __shfl_xor_sync(0xffffffffu, sum, d);
    if (lane == 0 && row < A.rows) y[row] = sum;
}

__global__ void row_max(csr A, float *y)
{
    int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= A.rows) return;
    float most = -std::numeric_limits<float>::infinity();
    for (int k = A.row_ptr[row]; k < A.row_ptr[row + 1]; ++k)
        most = std::max(most, A.val[k]);
    y[row] = most;
}

int main()
{
    csr_host<int, float> A;
    std::partial_sum(A.row_ptr.begin(), A.row_ptr.end(), A.row_ptr.begin());
    spmv_scalar<<<1, 128>>>(A.view(), nullptr, nullptr);
}
