import { PLACE } from "../gpu.js";

const ADD = `${PLACE}
override BEGIN: u32; override COUNT: u32;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) { x[BEGIN + i] += 1.0; }
}`;

const NUMBERS = 4096; // of one small launch
const PLACES = 16; // small launches take turns at so many places: as many pipelines as that are made

export default {
  title: "One large launch, or many small ones",
  measured: "launch_overhead",
  x: "launches",
  per: "seconds",
  code: ADD,
  async cases(gpu, quick) {
    const most = quick ? 16 : 1024;
    const x = gpu.buffer(4 * NUMBERS * most);
    const small = Array.from({ length: Math.min(PLACES, most) }, (_, i) =>
      gpu.step(ADD, { BEGIN: i * NUMBERS, COUNT: NUMBERS }, [x], { threads: NUMBERS }));
    const launches = (n) => Array.from({ length: n }, (_, i) => small[i % small.length]);
    const ways = {
      "one launch for all of it": (n) => {
        const step = gpu.step(ADD, { BEGIN: 0, COUNT: n * NUMBERS }, [x], { threads: n * NUMBERS });
        return () => gpu.submit([step]);
      },
      "launches in one pass": (n) => {
        const steps = launches(n);
        return () => gpu.submit(steps);
      },
      "launches submitted one by one": (n) => {
        const steps = launches(n);
        return () => steps.forEach((step) => gpu.submit([step]));
      },
    };
    const one = (name, n) => {
      const submit = ways[name](n);
      return {
        series: name, x: n,
        call: async () => {
          submit();
          await gpu.finished();
        },
        async correct() {
          gpu.clear(x);
          submit();
          const got = await gpu.numbers(x, 0, NUMBERS * n);
          const places = name.startsWith("one") ? n : small.length;
          return got.every((value, i) => {
            const at = Math.floor(i / NUMBERS);
            const times = name.startsWith("one") ? 1 : Math.floor(n / places) + (at < n % places ? 1 : 0);
            return value === (at < places ? times : 0);
          });
        },
      };
    };
    const counts = [1, 4, 16, 64, 256, 1024].filter((n) => n <= most);
    return Object.keys(ways).flatMap((name) => counts.map((n) => () => one(name, n)));
  },
};
