import { filled } from "../gpu.js";

const TOGETHER = `
var<workgroup> scratch: array<f32, 256>;
fn greatest(mine: f32, local: u32) -> f32 {
  scratch[local] = mine;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (local < half) { scratch[local] = max(scratch[local], scratch[local + half]); }
    workgroupBarrier();
  }
  let all = scratch[0];
  workgroupBarrier();
  return all;
}
fn total(mine: f32, local: u32) -> f32 {
  scratch[local] = mine;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (local < half) { scratch[local] += scratch[local + half]; }
    workgroupBarrier();
  }
  let all = scratch[0];
  workgroupBarrier();
  return all;
}
`;

const HEAD = "@compute @workgroup_size(256) fn main(@builtin(workgroup_id) g: vec3u, @builtin(local_invocation_index) local: u32)";

const GREATEST = `${TOGETHER}
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> tops: array<f32>;
${HEAD} {
  var mine = x[g.x * COLUMNS + local];
  for (var i = local; i < COLUMNS; i += 256u) { mine = max(mine, x[g.x * COLUMNS + i]); }
  let top = greatest(mine, local);
  if (local == 0u) { tops[g.x] = top; }
}`;

const POWERS = `
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read> tops: array<f32>;
@group(0) @binding(2) var<storage, read_write> out: array<f32>;
${HEAD} {
  for (var i = local; i < COLUMNS; i += 256u) { out[g.x * COLUMNS + i] = exp(x[g.x * COLUMNS + i] - tops[g.x]); }
}`;

const SUMS = `${TOGETHER}
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> out: array<f32>;
@group(0) @binding(1) var<storage, read_write> sums: array<f32>;
${HEAD} {
  var mine = 0.0;
  for (var i = local; i < COLUMNS; i += 256u) { mine += out[g.x * COLUMNS + i]; }
  let all = total(mine, local);
  if (local == 0u) { sums[g.x] = all; }
}`;

const SHARES = `
override COLUMNS: u32;
@group(0) @binding(0) var<storage, read> sums: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
${HEAD} {
  for (var i = local; i < COLUMNS; i += 256u) { out[g.x * COLUMNS + i] /= sums[g.x]; }
}`;

// A row stays in the registers of its workgroup: `each` numbers a thread.
const fused = (each) => `${TOGETHER}
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
${HEAD} {
  let begin = g.x * ${each * 256}u + local;
  var row: array<f32, ${each}>;
  for (var i = 0u; i < ${each}u; i++) { row[i] = x[begin + 256u * i]; }
  var mine = row[0];
  for (var i = 1u; i < ${each}u; i++) { mine = max(mine, row[i]); }
  let top = greatest(mine, local);
  mine = 0.0;
  for (var i = 0u; i < ${each}u; i++) { row[i] = exp(row[i] - top); mine += row[i]; }
  let sum = total(mine, local);
  for (var i = 0u; i < ${each}u; i++) { out[begin + 256u * i] = row[i] / sum; }
}`;

export default {
  title: "A softmax in four kernels, and in one",
  measured: "softmax",
  x: "columns",
  per: "bytes",
  code: [GREATEST, POWERS, SUMS, SHARES, fused(4)].join("\n\n"),
  async cases(gpu, quick) {
    const count = (await gpu.room(quick ? 1 << 18 : 1 << 26)) / 4;
    const numbers = filled(Float32Array, count, () => 8 * Math.random());
    const [x, out, tops, sums] = [gpu.buffer(numbers), gpu.buffer(4 * count), gpu.buffer(count / 64), gpu.buffer(count / 64)];
    const one = (series, columns) => {
      const where = { grid: [count / columns, 1] };
      const steps = series === "one kernel"
        ? [gpu.step(fused(columns / 256), {}, [x, out], where)]
        : [[GREATEST, [x, tops]], [POWERS, [x, tops, out]], [SUMS, [out, sums]], [SHARES, [sums, out]]].map(
            ([code, buffers]) => gpu.step(code, { COLUMNS: columns }, buffers, where));
      return {
        series, x: columns, bytes: 8 * count, steps, // the fewest that any softmax moves: each number in once and out once
        async correct() {
          gpu.clear(out);
          gpu.submit(steps);
          for (const begin of [0, count - columns]) {
            const row = numbers.subarray(begin, begin + columns);
            const got = await gpu.numbers(out, begin, columns);
            const sum = row.reduce((all, value) => all + Math.exp(value), 0);
            if (!got.every((value, i) => Math.abs(value - Math.exp(row[i]) / sum) < 1e-4 * (Math.exp(row[i]) / sum))) return false;
          }
          return true;
        },
      };
    };
    const widths = quick ? [256, 1024] : [512, 1024, 2048, 4096];
    return widths.flatMap((columns) => ["four kernels", "one kernel"].map((series) => () => one(series, columns)));
  },
};
