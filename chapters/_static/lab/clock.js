// How long something takes: warm, repeated, and asked until the answer holds still.

const SPAN = { timestamps: 4e6, host: 25e6 }; // nanoseconds that a sample lasts at least: far above either clock's step
const LEAST = 7, MOST = 60, PRECISION = 0.02, LONGEST = 2.5e9;
const MOST_REPEATS = 1 << 14;

/**
 * Times one call of `work`: { steps } on the device, or { call }, an async function that the host's clock is to be read around.
 *
 * Returns seconds { median, q1, q3 }, the number of samples, the calls in each, and which clock was read.
 */
export async function time(gpu, work, { quick = false } = {}) {
  const clock = work.steps && gpu.timestamps ? "timestamps" : "host";
  const sample = work.call ? aroundCalls(work.call) : clock === "timestamps" ? betweenStamps(gpu, work.steps) : aroundPasses(gpu, work.steps);
  const wanted = SPAN[clock] / (quick ? 10 : 1);
  const least = quick ? 3 : LEAST;
  const longest = quick ? 0 : LONGEST;
  await sample(1); // the warm-up: the first launch compiles, and touches its memory for the first time
  let repeat = 1;
  let samples = [];
  let begun = performance.now();
  const elapsed = () => 1e6 * (performance.now() - begun);
  for (;;) {
    samples.push(await sample(repeat));
    const took = quantile(samples, 0.5);
    if (took < wanted && repeat < MOST_REPEATS) {
      // Asked of the median, and again after every sample: one hiccup does not pass for a long call.
      repeat = Math.min(MOST_REPEATS, repeat * Math.max(2, Math.min(16, Math.ceil((1.2 * wanted) / Math.max(took, 1)))));
      samples = [];
      begun = performance.now();
    } else if (samples.length >= least && (samples.length >= MOST || halfWidth(samples) < PRECISION || elapsed() >= longest)) {
      break;
    } else if (samples.length >= 3 && elapsed() > 2 * LONGEST) {
      break;
    }
  }
  samples = samples.map((nanoseconds) => nanoseconds / repeat / 1e9);
  return { median: quantile(samples, 0.5), q1: quantile(samples, 0.25), q3: quantile(samples, 0.75), samples: samples.length, repeat, clock };
}

function betweenStamps(gpu, steps) {
  return async (repeat) => {
    gpu.submit(steps, repeat, true);
    const [begin, end] = await gpu.span();
    for (const tick of [begin, end]) gpu.step_ns = divisor(gpu.step_ns ?? 0n, tick);
    return end > begin ? Number(end - begin) : 0; // equal within a step of the clock; a device may also set it back
  };
}

function aroundPasses(gpu, steps) {
  return async (repeat) => {
    await gpu.finished();
    const begin = performance.now();
    gpu.submit(steps, repeat);
    await gpu.finished();
    return 1e6 * (performance.now() - begin);
  };
}

function aroundCalls(call) {
  return async (repeat) => {
    await new Promise((resume) => setTimeout(resume)); // let the page breathe
    const begin = performance.now();
    for (let i = 0; i < repeat; i += 1) await call();
    return 1e6 * (performance.now() - begin);
  };
}

/** The number by which all time stamps so far can be divided: the clock's step. */
function divisor(a, b) {
  while (b) [a, b] = [b, a % b];
  return a;
}

/** Half the 95 % confidence interval of the median, from order statistics, as a share of the median. */
export function halfWidth(samples) {
  const sorted = [...samples].sort((a, b) => a - b);
  const reach = (1.96 * Math.sqrt(sorted.length)) / 2;
  const low = Math.max(0, Math.floor(sorted.length / 2 - reach));
  const high = Math.min(sorted.length - 1, Math.ceil(sorted.length / 2 + reach));
  return (sorted[high] - sorted[low]) / 2 / quantile(sorted, 0.5);
}

/** The q-quantile, between its two neighbours. */
export function quantile(samples, q) {
  const sorted = [...samples].sort((a, b) => a - b);
  const at = q * (sorted.length - 1);
  const [low, high] = [sorted[Math.floor(at)], sorted[Math.ceil(at)]];
  return low + (high - low) * (at - Math.floor(at));
}
