import { PLACE } from "../gpu.js";

const COPY = `${PLACE}
override STRIDE: u32; override OFFSET: u32; override COUNT: u32;
@group(0) @binding(0) var<storage, read> x: array<f32>;
@group(0) @binding(1) var<storage, read_write> out: array<f32>;
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) { out[i * STRIDE + OFFSET] = x[i * STRIDE + OFFSET]; }
}`;

export const FILL = `${PLACE}
override COUNT: u32;
@group(0) @binding(0) var<storage, read_write> x: array<f32>;
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) { x[i] = f32(i % 65521u); }
}`;

const STRIP = 1 << 14; // numbers at either end that are compared

export default {
  title: "Copying by stride and by offset",
  measured: "copy_bandwidth",
  x: "stride, or offset, in numbers of 4 bytes",
  per: "bytes",
  code: COPY,
  async cases(gpu, quick) {
    const count = (await gpu.room(quick ? 1 << 20 : 1 << 27)) / 4;
    const [x, out] = [gpu.buffer(4 * count), gpu.buffer(4 * count)];
    gpu.submit([gpu.step(FILL, { COUNT: count }, [x], { threads: count })]);
    const one = (series, stride, offset) => {
      const copied = Math.floor((count - offset) / stride);
      const steps = [gpu.step(COPY, { STRIDE: stride, OFFSET: offset, COUNT: copied }, [x, out], { threads: copied })];
      return {
        series, x: stride === 1 && offset ? offset : stride, bytes: 8 * copied, steps,
        async correct() {
          gpu.clear(out);
          gpu.submit(steps);
          for (const begin of [0, count - STRIP]) {
            const got = await gpu.numbers(out, begin, STRIP);
            for (let i = 0; i < STRIP; i += 1) {
              const at = begin + i - offset;
              const asked = at >= 0 && at % stride === 0 && at / stride < copied;
              if (got[i] !== (asked ? (begin + i) % 65521 : 0)) return false;
            }
          }
          return true;
        },
      };
    };
    return [
      ...[1, 2, 4, 8, 16, 32].map((stride) => () => one("every stride-th number", stride, 0)),
      ...[1, 4, 16].map((offset) => () => one("neighbours, shifted", 1, offset)),
    ];
  },
};
