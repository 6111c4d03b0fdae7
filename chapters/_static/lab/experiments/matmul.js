import { filled } from "../gpu.js";

const BUFFERS = `
override N: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
`;

const NAIVE = `${BUFFERS}
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
  var sum = 0.0;
  for (var k = 0u; k < N; k++) { sum += a[id.y * N + k] * b[k * N + id.x]; }
  c[id.y * N + id.x] = sum;
}`;

const TILED = `${BUFFERS}
var<workgroup> tile_a: array<f32, 256>;
var<workgroup> tile_b: array<f32, 256>;
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u, @builtin(local_invocation_id) t: vec3u) {
  var sum = 0.0;
  for (var begin = 0u; begin < N; begin += 16u) {
    tile_a[t.y * 16u + t.x] = a[id.y * N + begin + t.x];
    tile_b[t.y * 16u + t.x] = b[(begin + t.y) * N + id.x];
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) { sum += tile_a[t.y * 16u + k] * tile_b[k * 16u + t.x]; }
    workgroupBarrier();
  }
  c[id.y * N + id.x] = sum;
}`;

// A workgroup of 256 threads makes 64 x 64 numbers, each thread 4 x 4 of them, 16 apart.
const REGISTERS = `${BUFFERS}
var<workgroup> tile_a: array<f32, 1024>;
var<workgroup> tile_b: array<f32, 1024>;
@compute @workgroup_size(16, 16)
fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_id) t: vec3u, @builtin(local_invocation_index) local: u32) {
  var sums: array<vec4f, 4>;
  for (var begin = 0u; begin < N; begin += 16u) {
    for (var i = local; i < 1024u; i += 256u) {
      tile_a[i] = a[(g.y * 64u + i / 16u) * N + begin + i % 16u];
      tile_b[i] = b[(begin + i / 64u) * N + g.x * 64u + i % 64u];
    }
    workgroupBarrier();
    for (var k = 0u; k < 16u; k++) {
      let right = vec4f(tile_b[k * 64u + t.x], tile_b[k * 64u + t.x + 16u], tile_b[k * 64u + t.x + 32u], tile_b[k * 64u + t.x + 48u]);
      for (var r = 0u; r < 4u; r++) { sums[r] += tile_a[(t.y + 16u * r) * 16u + k] * right; }
    }
    workgroupBarrier();
  }
  for (var r = 0u; r < 4u; r++) {
    for (var q = 0u; q < 4u; q++) { c[(g.y * 64u + t.y + 16u * r) * N + g.x * 64u + t.x + 16u * q] = sums[r][q]; }
  }
}`;

const KERNELS = [["naive", NAIVE, 16], ["tile of 16 × 16", TILED, 16], ["tile of 64 × 64, 16 numbers a thread", REGISTERS, 64]];
const CHECKED = 64;

export default {
  title: "A matrix product, three ways",
  measured: "matmul_by_size",
  x: "side",
  per: "flops",
  code: [NAIVE, TILED, REGISTERS].join("\n\n"),
  async cases(gpu, quick) {
    const factors = (n) => {
      const [left, right] = [0, 1].map(() => filled(Float32Array, n * n, () => 2 * Math.random() - 1));
      return { left, right, buffers: [gpu.buffer(left), gpu.buffer(right), gpu.buffer(4 * n * n)] };
    };
    const product = (name, code, side, n, { left, right, buffers: [a, b, c] }) => {
      const steps = [gpu.step(code, { N: n }, [a, b, c], { grid: [n / side, n / side] })];
      return {
        series: name, x: n, flops: 2 * n ** 3, steps,
        async correct() {
          gpu.clear(c);
          gpu.submit(steps);
          const got = await gpu.numbers(c);
          for (let i = 0; i < CHECKED; i += 1) {
            const [row, column] = [Math.floor(n * Math.random()), Math.floor(n * Math.random())];
            let sum = 0;
            for (let k = 0; k < n; k += 1) sum += left[row * n + k] * right[k * n + column];
            if (!(Math.abs(got[row * n + column] - sum) < 1e-6 * n)) return false;
          }
          return true;
        },
        done: () => name === KERNELS.at(-1)[0] && [a, b, c].forEach((buffer) => buffer.destroy()),
      };
    };
    const sides = quick ? [64, 128] : [128, 256, 512, 1024, 2048];
    return sides.flatMap((n) => {
      let shared; // by the kernels of one side, made when the first is due
      return KERNELS.map(([name, code, side]) => () => product(name, code, side, n, (shared ??= factors(n))));
    });
  },
};
