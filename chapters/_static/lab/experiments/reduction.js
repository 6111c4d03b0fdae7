import { PLACE, filled } from "../gpu.js";

const BUFFERS = `${PLACE}
override COUNT: u32;
@group(0) @binding(0) var<storage, read> x: array<u32>;
@group(0) @binding(1) var<storage, read_write> total: atomic<u32>;
`;

const ATOMIC = `${BUFFERS}
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) { atomicAdd(&total, x[i]); }
}`;

const MINE = `
  var mine = 0u;
  for (var i = place(p); i < COUNT; i += p.groups.x * 256u) { mine += x[i]; }`;

const TREE = `${BUFFERS}
var<workgroup> sums: array<u32, 256>;
@compute @workgroup_size(256) fn main(p: Place) {${MINE}
  sums[p.local] = mine;
  workgroupBarrier();
  for (var half = 128u; half > 0u; half /= 2u) {
    if (p.local < half) { sums[p.local] += sums[p.local + half]; }
    workgroupBarrier();
  }
  if (p.local == 0u) { atomicAdd(&total, sums[0]); }
}`;

const SUBGROUPS = `enable subgroups;
${BUFFERS}
var<workgroup> sum: atomic<u32>;
@compute @workgroup_size(256) fn main(p: Place, @builtin(subgroup_invocation_id) lane: u32) {${MINE}
  let together = subgroupAdd(mine);
  if (lane == 0u) { atomicAdd(&sum, together); }
  workgroupBarrier();
  if (p.local == 0u) { atomicAdd(&total, atomicLoad(&sum)); }
}`;

const GROUPS = 1024;
const MOST_ATOMIC = 1 << 22; // one address for all: longer would only be slower

export default {
  title: "A sum by atomics, by a tree, by subgroups",
  measured: "reduction",
  x: "numbers",
  per: "bytes",
  code: [ATOMIC, TREE, SUBGROUPS].join("\n\n"),
  async cases(gpu, quick) {
    const ways = [["an atomic for each number", ATOMIC], ["a tree in workgroup memory", TREE]];
    if (gpu.subgroups) ways.push(["subgroups first", SUBGROUPS]);
    const sizes = (quick ? [1 << 12, 1 << 16] : [1 << 12, 1 << 16, 1 << 20, 1 << 22, 1 << 24, 1 << 26]);
    const most = (await gpu.room(4 * sizes.at(-1))) / 4;
    const numbers = filled(Uint32Array, most, (i) => (i * 2654435761) >>> 28);
    const [x, total] = [gpu.buffer(numbers), gpu.buffer(4)];
    const sum = (name, code, n) => {
      const threads = code === ATOMIC ? n : Math.min(n, 256 * GROUPS);
      const steps = [gpu.step(code, { COUNT: n }, [x, total], { threads })];
      return {
        series: name, x: n, bytes: 4 * n, steps,
        async correct() {
          gpu.clear(total);
          gpu.submit(steps);
          const [got] = await gpu.numbers(total, 0, 1, Uint32Array);
          return got === numbers.subarray(0, n).reduce((all, one) => (all + one) >>> 0, 0);
        },
      };
    };
    return sizes.filter((n) => n <= most).flatMap((n) =>
      ways.filter(([, code]) => code !== ATOMIC || n <= MOST_ATOMIC).map(([name, code]) => () => sum(name, code, n)));
  },
};
