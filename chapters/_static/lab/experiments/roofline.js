import { PLACE, filled } from "../gpu.js";

const CHAIN = `${PLACE}
override LENGTH: u32; override COUNT: u32;
@group(0) @binding(0) var<storage, read> x: array<vec4f>;
@group(0) @binding(1) var<storage, read_write> out: array<vec4f>;
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) {
    let add = x[i];
    var v = add;
    for (var s = 0u; s < LENGTH; s++) { v = v * 0.5 + add; }
    out[i] = v;
  }
}`;

export default {
  title: "Your own roofline",
  measured: "rooflines",
  x: "FLOP for each byte that must travel",
  per: "flops",
  code: CHAIN,
  async cases(gpu, quick) {
    const count = (await gpu.room(quick ? 1 << 18 : 1 << 26)) / 16; // of four numbers each
    const numbers = filled(Float32Array, 4 * count, (i) => 1 + (i % 13) / 16);
    const [x, out] = [gpu.buffer(numbers), gpu.buffer(16 * count)];
    const one = (length) => {
      const steps = [gpu.step(CHAIN, { LENGTH: length, COUNT: count }, [x, out], { threads: count })];
      return {
        series: "multiply-adds in a chain", x: length / 4, flops: 8 * length * count, steps,
        async correct() {
          gpu.clear(out);
          gpu.submit(steps);
          const got = await gpu.numbers(out, 4 * count - 4096, 4096);
          const factor = 2 - 0.5 ** length; // x (1/2^length + 1 + 1/2 + ... ) = x (2 - 1/2^length)
          return got.every((value, i) => Math.abs(value - factor * numbers[4 * count - 4096 + i]) < 1e-5 * value);
        },
      };
    };
    return (quick ? [1, 16, 64] : [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024]).map((length) => () => one(length));
  },
};
