import { PLACE, filled } from "../gpu.js";

const ADD = `${PLACE}
override COUNT: u32;
@group(0) @binding(0) var<storage, read> a: array<f32>;
@group(0) @binding(1) var<storage, read> b: array<f32>;
@group(0) @binding(2) var<storage, read_write> c: array<f32>;
@compute @workgroup_size(256) fn main(p: Place) {
  let i = place(p);
  if (i < COUNT) { c[i] = a[i] + b[i]; }
}`;

export default {
  title: "From which size on is the GPU faster?",
  measured: "crossover",
  x: "additions a call",
  per: "seconds",
  code: ADD,
  async cases(gpu, quick) {
    const all = (n) => {
      const [left, right] = [1, 3].map((factor) => filled(Float32Array, n, (i) => factor * (i % 1000)));
      const sum = new Float32Array(n);
      const [a, b, c] = [gpu.buffer(left), gpu.buffer(right), gpu.buffer(4 * n)];
      const steps = [gpu.step(ADD, { COUNT: n }, [a, b, c], { threads: n })];
      const whole = (got) => got.every((value, i) => value === 4 * (i % 1000));
      const there = async () => {
        gpu.submit(steps);
        await gpu.finished();
      };
      const sentAndFetched = async () => {
        gpu.device.queue.writeBuffer(a, 0, left);
        gpu.device.queue.writeBuffer(b, 0, right);
        gpu.submit(steps);
        return gpu.numbers(c);
      };
      const here = () => {
        for (let i = 0; i < n; i += 1) sum[i] = left[i] + right[i];
      };
      return [
        { series: "CPU: addition, one thread of JavaScript", call: async () => here(), correct: async () => (here(), whole(sum)) },
        { series: "GPU: addition, the numbers lie there", call: there, correct: async () => (await there(), whole(await gpu.numbers(c))) },
        { series: "GPU: addition, numbers sent and fetched", call: sentAndFetched, correct: async () => whole(await sentAndFetched()) },
      ].map((way, i) => ({ ...way, x: n, done: i === 2 ? () => [a, b, c].forEach((buffer) => buffer.destroy()) : undefined }));
    };
    const sizes = quick ? [1 << 8, 1 << 14] : [1 << 8, 1 << 11, 1 << 14, 1 << 17, 1 << 20, 1 << 23];
    return sizes.flatMap((n) => {
      let ways;
      return [0, 1, 2].map((i) => () => (ways ??= all(n))[i]);
    });
  },
};
