#include <iostream>
#include <fstream>

enum Cell : unsigned char { DEAD = 0, ALIVE = 1 };
enum class Border { torus, walls };

__device__ __forceinline__ int wrap(int i, int n) { return (i + n) % n; }

template <Border border>
__device__ int neighbours(const Cell *grid, int w, int h, int x, int y)
{
    int sum = 0;
    for (int dy = -1; dy <= 1; ++dy)
        for (int dx = -1; dx <= 1; ++dx) {
            if (dx == 0 && dy == 0) continue;
            int u = x + dx, v = y + dy;
            if constexpr (border == Border::torus)
                sum += grid[wrap(v, h) * w + wrap(u, w)];
            else if (u >= 0 && u < w && v >= 0 && v < h)
                sum += grid[v * w + u];
        }
    return sum;
}

template <Border border>
__global__ void step(const Cell *now, Cell *next, int w, int h)
{
    auto x = threadIdx.x + blockIdx.x * blockDim.x, y = threadIdx.y + blockIdx.y * blockDim.y;
    if (x >= w || y >= h) return;
    switch (neighbours<border>(now, w, h, x, y)) {
    case 2: next[y * w + x] = now[y * w + x]; break;
    case 3: next[y * w + x] = ALIVE; break;
    default: next[y * w + x] = DEAD;
    }
}

class World {
    int w, h;
    Cell *now = nullptr, *next = nullptr;

public:
    World(int w, int h);
    ~World() noexcept { cudaFree(now), cudaFree(next); }
    void advance(int steps);
    friend std::ostream &operator<<(std::ostream &out, const World &world);
};

World::World(int w, int h) : w{w}, h{h} { cudaMallocManaged(&now, w * h); cudaMallocManaged(&next, w * h); }

void World::advance(int steps)
{
    while (steps-- > 0) {
        step<Border::torus><<<dim3((w + 15) / 16, (h + 15) / 16), dim3(16, 16)>>>(now, next, w, h);
        std::swap(now, next);
    }
}

std::ostream &operator<<(std::ostream &out, const World &world)
{
    for (int i = 0; i < world.w * world.h; i++) out << (world.now[i] == ALIVE ? '#' : '.');
    return out;
}

auto main(int, char **) -> int
{
    World world(64, 64);
    world.advance(10);
    std::ofstream("life.txt") << world;
}
