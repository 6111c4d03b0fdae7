// Runs once per figure. `shader` is the text of moon.wgsl; without WebGPU the still picture stays.
const figure = document.currentScript.closest("figure");
const [still, canvas] = [figure.querySelector("img"), figure.querySelector("canvas")];
const status = figure.querySelector(".status");
const say = (text) => { status.textContent = text; };
const stayStill = (why) => say(`Still picture, computed by the kernel above: ${why}.`);

async function start() {
  if (!navigator.gpu) return stayStill("this browser, or this address, offers no WebGPU");
  const adapter = await navigator.gpu.requestAdapter();
  if (!adapter) return stayStill("WebGPU is here, but it found no GPU");
  const device = await adapter.requestDevice();
  const format = navigator.gpu.getPreferredCanvasFormat();
  const module = device.createShaderModule({ code: shader });
  const pipeline = device.createRenderPipeline({
    layout: "auto",
    vertex: { module, entryPoint: "corners" },
    fragment: { module, entryPoint: "moon", targets: [{ format }] },
  });
  const uniform = device.createBuffer({ size: 16, usage: GPUBufferUsage.UNIFORM | GPUBufferUsage.COPY_DST });
  const group = device.createBindGroup({
    layout: pipeline.getBindGroupLayout(0),
    entries: [{ binding: 0, resource: { buffer: uniform } }],
  });
  const context = canvas.getContext("webgpu");
  context.configure({ device, format, alphaMode: "opaque" });
  const name = [adapter.info?.vendor, adapter.info?.architecture].filter(Boolean).join(" ") || "GPU of unknown name";
  const software = adapter.info?.isFallbackAdapter ? " (software, not a GPU)" : "";

  // Encodes `passes` pictures into `view`; the sun goes round once in ten seconds, as bright as in the kernel.
  function draw(view, width, height, seconds, passes = 1) {
    const angle = (seconds / 10) * 2 * Math.PI - 0.82;
    const reach = Math.hypot(0.64, 0.6);
    device.queue.writeBuffer(uniform, 0, new Float32Array([width, height, reach * Math.sin(angle), reach * Math.cos(angle)]));
    const encoder = device.createCommandEncoder();
    for (let i = 0; i < passes; i++) {
      const pass = encoder.beginRenderPass({ colorAttachments: [{ view, loadOp: "clear", storeOp: "store" }] });
      pass.setPipeline(pipeline);
      pass.setBindGroup(0, group);
      pass.draw(3);
      pass.end();
    }
    device.queue.submit([encoder.finish()]);
  }

  let [playing, visible, lost, clock, last, frames, since] = [true, true, false, 0, 0, 0, 0];
  function tick(now) {
    if (lost || !playing || !visible) return;
    clock += Math.min(now - last, 100) / 1000;
    last = now;
    draw(context.getCurrentTexture().createView(), canvas.width, canvas.height, clock);
    frames += 1;
    if (now - since >= 1000) {
      say(`${name}${software}: ${Math.round((frames * 1000) / (now - since))} frames of ${canvas.width} × ${canvas.height} a second.`);
      [frames, since] = [0, now];
    }
    requestAnimationFrame(tick);
  }
  function resume() {
    [last, since, frames] = [performance.now(), performance.now(), 0];
    requestAnimationFrame(tick);
  }

  // Time to finish n pictures of 3840 × 2160, n doubling until the whole takes a quarter of a second.
  async function measure() {
    const size = [3840, 2160];
    const texture = device.createTexture({ size, format, usage: GPUTextureUsage.RENDER_ATTACHMENT });
    const view = texture.createView();
    let [n, elapsed] = [1, 0];
    for (; n <= 8192; n *= 2) {
      const begin = performance.now();
      draw(view, ...size, 0, n);
      await device.queue.onSubmittedWorkDone();
      elapsed = (performance.now() - begin) / 1000;
      if (elapsed > 0.25) break;
    }
    texture.destroy();
    const rate = (n * size[0] * size[1]) / elapsed / 1e9;
    say(`${name}${software}: ${rate.toPrecision(3)} billion pixels a second, measured just now (${n} pictures of 3840 × 2160 `
      + `in ${elapsed.toPrecision(3)} s). A 4K screen at 120 Hz needs 0.995.`);
  }

  const [play, button] = [figure.querySelector(".play"), figure.querySelector(".measure")];
  const setPlaying = (value) => {
    playing = value;
    play.textContent = value ? "Pause" : "Play";
    if (value) resume();
  };
  play.addEventListener("click", () => setPlaying(!playing));
  button.addEventListener("click", async () => {
    button.disabled = true;
    setPlaying(false);
    say("Measuring ...");
    await measure().catch(() => say("The GPU did not finish the measurement."));
    button.disabled = false;
  });
  const show = (live) => {
    still.hidden = live;
    canvas.hidden = figure.querySelector(".controls").hidden = !live;
  };
  device.lost.then(() => {
    lost = true;
    show(false);
    stayStill("the browser took the GPU away");
  });
  new IntersectionObserver(([entry]) => {
    const before = visible;
    visible = entry.isIntersecting;
    if (visible && !before && playing) resume();
  }).observe(figure);

  draw(context.getCurrentTexture().createView(), canvas.width, canvas.height, 0);
  show(true);
  say(`${name}${software}.`);
  setPlaying(!matchMedia("(prefers-reduced-motion: reduce)").matches);
}

start().catch(() => stayStill("WebGPU did not start"));
