import { PLACE } from "../gpu.js";

const DIVERGENT = `${PLACE}
override PATHS: u32; override STEPS: u32;
@group(0) @binding(0) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(256) fn main(p: Place) {
  let mine = p.local % PATHS;
  var v = f32(place(p) % 7u);
  for (var path = 0u; path < PATHS; path++) {
    if (path == mine) {
      for (var s = 0u; s < STEPS; s++) { v = v * 0.999 + 0.001; }
    }
  }
  out[place(p)] = v;
}`;

const STEPS = 1000;

export default {
  title: "Neighbours that disagree",
  measured: "divergence",
  x: "paths among neighbouring threads",
  per: "flops",
  code: DIVERGENT,
  async cases(gpu, quick) {
    const threads = 256 * (quick ? 16 : 2048);
    const out = gpu.buffer(4 * threads);
    const one = (paths) => {
      const steps = [gpu.step(DIVERGENT, { PATHS: paths, STEPS }, [out], { threads })];
      return {
        series: "the same arithmetic", x: paths, flops: 2 * STEPS * threads, steps,
        async correct() {
          gpu.clear(out);
          gpu.submit(steps);
          const got = await gpu.numbers(out);
          const expected = (i) => 1 + ((i % 7) - 1) * 0.999 ** STEPS; // v - 1 shrinks by 0.999 a step
          return got.every((value, i) => Math.abs(value - expected(i)) < 1e-3);
        },
      };
    };
    return [1, 2, 4, 8, 16, 32, 64].map((paths) => () => one(paths));
  },
};
