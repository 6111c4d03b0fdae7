import { FILL } from "./copy.js";

const BUFFERS = `
override N: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
`;

const COPY = `${BUFFERS}
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
  out[id.y * N + id.x] = x[id.y * N + id.x];
}`;

const NAIVE = `${BUFFERS}
@compute @workgroup_size(16, 16) fn main(@builtin(global_invocation_id) id: vec3u) {
  out[id.x * N + id.y] = x[id.y * N + id.x];
}`;

// Rows of 17, so that a column of the tile lies in 16 different banks.
const TILED = `${BUFFERS}
var<workgroup> tile: array<f32, 272>;
@compute @workgroup_size(16, 16) fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_id) t: vec3u) {
  tile[t.y * 17u + t.x] = x[(g.y * 16u + t.y) * N + g.x * 16u + t.x];
  workgroupBarrier();
  out[(g.x * 16u + t.y) * N + g.y * 16u + t.x] = tile[t.x * 17u + t.y];
}`;

const WAYS = [["plain copy, not turned", COPY], ["naive", NAIVE], ["through a tile", TILED]];

export default {
  title: "Turning a matrix over",
  measured: "transpose",
  x: "side",
  per: "bytes",
  code: [COPY, NAIVE, TILED].join("\n\n"),
  async cases(gpu, quick) {
    const turned = (name, code, n) => {
      const [x, out] = [gpu.buffer(4 * n * n), gpu.buffer(4 * n * n)];
      gpu.submit([gpu.step(FILL, { COUNT: n * n }, [x], { threads: n * n })]);
      const steps = [gpu.step(code, { N: n }, [x, out], { grid: [n / 16, n / 16] })];
      return {
        series: name, x: n, bytes: 8 * n * n, steps,
        async correct() {
          gpu.submit(steps);
          for (const row of [0, Math.floor(n / 3), n - 1]) {
            const got = await gpu.numbers(out, row * n, n);
            const expected = (column) => (code === COPY ? row * n + column : column * n + row) % 65521;
            if (!got.every((value, column) => value === expected(column))) return false;
          }
          return true;
        },
        done: () => [x, out].forEach((buffer) => buffer.destroy()),
      };
    };
    const most = Math.sqrt((await gpu.room(quick ? 1 << 18 : 1 << 26)) / 4);
    const sides = (quick ? [128, 256] : [256, 512, 1024, 2048, 4096]).filter((n) => n <= most);
    return sides.flatMap((n) => WAYS.map(([name, code]) => () => turned(name, code, n)));
  },
};
