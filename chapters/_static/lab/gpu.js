// The reader's GPU by way of WebGPU: its name, buffers, kernels, and an end to what would hang.

/** There is no WebGPU to use here; the message says why, and what may help. */
export class Unavailable extends Error {}

const SPREAD = 32768; // workgroups along x: WebGPU promises 65,535 a dimension, larger grids fold into y

/**
 * A device of the browser's choice, with timestamps, subgroups and large buffers where the adapter has them.
 *
 * watchdog: milliseconds after which a GPU that does not answer is given up. Throws Unavailable.
 */
export async function open(watchdog) {
  if (!isSecureContext) {
    throw new Unavailable("Browsers offer WebGPU only to pages that come by https or from this machine (localhost).");
  }
  if (!navigator.gpu) {
    throw new Unavailable(
      "This browser offers no WebGPU. Chrome and Edge have it since version 113, Safari since 26, Firefox since 141; " +
        "on Linux and on older phones it may be missing or have to be switched on.",
    );
  }
  const adapter = await navigator.gpu.requestAdapter({ powerPreference: "high-performance" });
  if (!adapter) {
    throw new Unavailable("This browser offers WebGPU, but found no GPU that it would use; a newer driver may change that.");
  }
  const { maxBufferSize, maxStorageBufferBindingSize } = adapter.limits;
  const device = await adapter.requestDevice({
    requiredFeatures: ["timestamp-query", "subgroups"].filter((name) => adapter.features.has(name)),
    requiredLimits: { maxBufferSize, maxStorageBufferBindingSize },
  });
  return new Gpu(adapter, device, watchdog);
}

/** As much of an adapter's identity as the browser tells. */
function identity(adapter) {
  const info = adapter.info ?? {};
  const words = ["description", "device", "architecture", "vendor"].map((key) => info[key]).filter(Boolean);
  const software = Boolean(info.isFallbackAdapter ?? adapter.isFallbackAdapter) || /swiftshader|llvmpipe|lavapipe|basic render/i.test(words.join(" "));
  return {
    name: info.description || [info.vendor, info.architecture, info.device].filter(Boolean).join(" ") || "a GPU that the browser does not name",
    vendor: info.vendor ?? "",
    architecture: info.architecture ?? "",
    driver: info.driver ?? "",
    software,
  };
}

class Gpu {
  constructor(adapter, device, watchdog) {
    Object.assign(this, { adapter: identity(adapter), device, watchdog });
    this.timestamps = device.features.has("timestamp-query");
    this.subgroups = device.features.has("subgroups");
    this.pipelines = new Map();
    this.buffers = [];
    this.complaint = null;
    device.addEventListener("uncapturederror", (event) => (this.complaint ??= event.error.message));
    this.gone = new Promise((_, reject) => {
      device.lost.then(({ message }) => reject(new Error(`the browser lost the GPU${message ? `: ${message}` : ""}`)));
    });
    this.gone.catch(() => {});
    if (this.timestamps) {
      this.queries = device.createQuerySet({ type: "timestamp", count: 2 });
      this.ticks = this.buffer(16, GPUBufferUsage.QUERY_RESOLVE);
    }
  }

  /** A storage buffer of so many bytes, zero, or with the contents of a typed array. */
  buffer(source, usage = GPUBufferUsage.STORAGE) {
    const size = source.byteLength ?? source;
    const made = this.device.createBuffer({ size, usage: usage | GPUBufferUsage.COPY_SRC | GPUBufferUsage.COPY_DST });
    if (source.byteLength) this.device.queue.writeBuffer(made, 0, source);
    this.buffers.push(made);
    return made;
  }

  /** The largest power of two of bytes, `wanted` at most, of which two buffers fit. */
  async room(wanted) {
    let size = wanted;
    while (size > this.device.limits.maxStorageBufferBindingSize) size /= 2;
    for (; size > 1 << 16; size /= 2) {
      this.device.pushErrorScope("out-of-memory");
      const trial = [0, 1].map(() => this.device.createBuffer({ size, usage: GPUBufferUsage.STORAGE }));
      const short = await this.device.popErrorScope();
      for (const buffer of trial) buffer.destroy();
      if (!short) break;
    }
    return size;
  }

  /**
   * One launch, ready to be recorded: WGSL whose `main` is started by `threads` / `block` workgroups (or by the grid [x, y]),
   * with its override constants and its storage buffers in the order of their bindings.
   */
  step(code, constants, buffers, { threads, block = 256, grid = fold(Math.ceil(threads / block)) }) {
    const key = JSON.stringify([code, constants]);
    if (!this.pipelines.has(key)) {
      const module = this.device.createShaderModule({ code });
      this.pipelines.set(key, this.device.createComputePipeline({ layout: "auto", compute: { module, entryPoint: "main", constants } }));
    }
    const pipeline = this.pipelines.get(key);
    const entries = buffers.map((buffer, binding) => ({ binding, resource: { buffer } }));
    const group = this.device.createBindGroup({ layout: pipeline.getBindGroupLayout(0), entries });
    return { pipeline, group, grid };
  }

  /** Records the steps, `repeat` times over, as one pass and submits it. */
  submit(steps, repeat = 1, timed = false) {
    const encoder = this.device.createCommandEncoder();
    const writes = timed && { querySet: this.queries, beginningOfPassWriteIndex: 0, endOfPassWriteIndex: 1 };
    const pass = encoder.beginComputePass(writes ? { timestampWrites: writes } : {});
    for (let i = 0; i < repeat; i += 1) {
      for (const { pipeline, group, grid } of steps) {
        pass.setPipeline(pipeline);
        pass.setBindGroup(0, group);
        pass.dispatchWorkgroups(...grid);
      }
    }
    pass.end();
    if (timed) encoder.resolveQuerySet(this.queries, 0, 2, this.ticks, 0);
    this.device.queue.submit([encoder.finish()]);
  }

  /** Waits until the GPU has done what it was given. */
  async finished() {
    await this.within(this.device.queue.onSubmittedWorkDone());
    if (this.complaint) throw new Error(this.complaint);
  }

  /** Nanoseconds [begin, end] of the last timed pass, as the device's clock gives them. */
  async span() {
    return new BigUint64Array((await this.read(this.ticks, 0, 16)).buffer);
  }

  /** Bytes of a buffer, copied to the host. */
  async read(buffer, offset = 0, size = buffer.size - offset) {
    const copy = this.device.createBuffer({ size, usage: GPUBufferUsage.MAP_READ | GPUBufferUsage.COPY_DST });
    const encoder = this.device.createCommandEncoder();
    encoder.copyBufferToBuffer(buffer, offset, copy, 0, size);
    this.device.queue.submit([encoder.finish()]);
    await this.within(copy.mapAsync(GPUMapMode.READ));
    const bytes = new Uint8Array(copy.getMappedRange()).slice();
    copy.destroy();
    if (this.complaint) throw new Error(this.complaint);
    return bytes;
  }

  /** As `read`, as numbers: float32 unless told otherwise. */
  async numbers(buffer, offset = 0, count = buffer.size / 4 - offset, Type = Float32Array) {
    return new Type((await this.read(buffer, 4 * offset, 4 * count)).buffer);
  }

  clear(buffer) {
    const encoder = this.device.createCommandEncoder();
    encoder.clearBuffer(buffer);
    this.device.queue.submit([encoder.finish()]);
  }

  /** The promise, or an error when the device is lost or silent for too long; then it is given back. */
  async within(promise) {
    let alarm;
    const silence = new Promise((_, reject) => {
      alarm = setTimeout(() => {
        this.gone = silence; // what follows from it is not news
        reject(new Error(`the GPU had not answered after ${this.watchdog / 1000} s, so its work was ended`));
        this.device.destroy();
      }, this.watchdog);
    });
    try {
      return await Promise.race([promise, this.gone, silence]);
    } catch (error) {
      await Promise.race([this.gone, new Promise((resume) => setTimeout(resume, 1000))]); // a loss explains whatever else failed
      throw error;
    } finally {
      clearTimeout(alarm);
    }
  }

  close() {
    for (const buffer of this.buffers) buffer.destroy();
    this.device.destroy();
  }
}

/** n numbers, the i-th being make(i); typed arrays' own `from` takes seconds for as many as a GPU wants. */
export function filled(Type, n, make) {
  const all = new Type(n);
  for (let i = 0; i < n; i += 1) all[i] = make(i);
  return all;
}

/** So many workgroups as a grid [x, y]. */
function fold(groups) {
  return groups <= SPREAD ? [groups, 1] : [SPREAD, Math.ceil(groups / SPREAD)];
}

/** WGSL: where in a folded grid of workgroups of 256 a thread stands. */
export const PLACE = `
struct Place {
  @builtin(workgroup_id) group: vec3u,
  @builtin(num_workgroups) groups: vec3u,
  @builtin(local_invocation_index) local: u32,
}
fn place(p: Place) -> u32 { return (p.group.y * p.groups.x + p.group.x) * 256u + p.local; }
`;
