// All-pairs gravity with float4 bodies: a tile of positions in shared memory.
#include <math.h>
#include <stdlib.h>
#include <GL/freeglut.h>

#define SOFTENING 1e-9f
#define BLOCK_SIZE 64

typedef struct { float4 *pos, *vel; } BodySystem;

__device__ float3 bodyBodyInteraction(float4 bi, float4 bj, float3 ai)
{
    float3 r;
    r.x = bj.x - bi.x;
    r.y = bj.y - bi.y;
    r.z = bj.z - bi.z;
    float distSqr = r.x * r.x + r.y * r.y + r.z * r.z + SOFTENING;
    float invDist = rsqrtf(distSqr);
    float s = bj.w * invDist * invDist * invDist;
    ai.x += r.x * s;
    ai.y += r.y * s;
    ai.z += r.z * s;
    return ai;
}

__global__ void bodyForce(float4 *p, float4 *v, float dt, int n)
{
    __shared__ float4 spos[BLOCK_SIZE];
    int i = blockDim.x * blockIdx.x + threadIdx.x;
    float4 mine = i < n ? p[i] : make_float4(0, 0, 0, 0);
    float3 F = {0.0f, 0.0f, 0.0f};
    for (int tile = 0; tile < gridDim.x; tile++) {
        int j = tile * blockDim.x + threadIdx.x;
        spos[threadIdx.x] = j < n ? p[j] : make_float4(0, 0, 0, 0);
        __syncthreads();
        for (int k = 0; k < BLOCK_SIZE; k++)
            F = bodyBodyInteraction(mine, spos[k], F);
        __syncthreads();
    }
    if (i < n) {
        v[i].x += dt * F.x;
        v[i].y += dt * F.y;
        v[i].z += dt * F.z;
    }
}

void randomizeBodies(float *data, int n)
{
    for (int i = 0; i < n; i++)
        data[i] = 2.0f * (rand() / (float)RAND_MAX) - 1.0f;
}

int main(const int argc, const char **argv)
{
    int nBodies = 30000;
    if (argc > 1) nBodies = atoi(argv[1]);
    float *buf = (float *)malloc(2 * nBodies * sizeof(float4));
    BodySystem p = { (float4 *)buf, ((float4 *)buf) + nBodies };
    randomizeBodies(buf, 8 * nBodies);
    bodyForce<<<(nBodies + BLOCK_SIZE - 1) / BLOCK_SIZE, BLOCK_SIZE>>>(p.pos, p.vel, 0.01f, nBodies);
    free(buf);
}
