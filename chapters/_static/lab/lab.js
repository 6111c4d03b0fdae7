// The lab: experiments on the reader's own GPU, in the page. Nothing runs until asked, nothing leaves the browser.
//
//   <figure class="lab" data-experiment="copy">      what the page brings; the words inside are what is read without this script
//     data-state      idle | running | done | unavailable | error
//     data-correct    true | false, of the result that is shown: whether every kernel agreed with the CPU
//     data-small      a chapter's: a button, and this script only when it is pressed (small.js)
//     data-watchdog   milliseconds after which a silent GPU is given up; data-quick: a few small sizes only (for tests)

import { time } from "./clock.js";
import { Unavailable, open } from "./gpu.js";
import { FORMAT, all, download, forget, keep, kept } from "./kept.js";
import { UNITS, duration, made, plot, short, value } from "./plot.js";
import { showYours } from "./yours.js";

const WATCHDOG = 10000;
const SLOW = 0.4; // seconds of one call, above which a series' larger sizes are left out

let turn = Promise.resolve(); // one experiment at a time: two would time each other

class Lab {
  constructor(figure) {
    this.figure = figure;
    this.experiment = figure.dataset.experiment;
    this.button = made("button", { type: "button", class: "lab-run" });
    this.status = made("p", { class: "lab-status", role: "status" });
    this.result = made("div", { class: "lab-result" });
    figure.querySelector(".lab-still")?.remove();
    const caption = figure.querySelector("figcaption");
    const parts = [this.button, this.status, this.result, kernels(this.experiment)];
    if (caption) caption.before(...parts);
    else figure.append(...parts);
    this.button.addEventListener("click", () => (this.figure.dataset.state === "running" ? this.stop() : this.start()));
    new ResizeObserver(() => this.draw()).observe(figure);
    this.show(kept(this.experiment));
  }

  state(state, words) {
    this.figure.dataset.state = state;
    this.button.textContent = state === "running" ? "Stop" : this.shown ? "Run again" : "Run on my GPU";
    this.status.textContent = words;
  }

  stop() {
    this.stopped = true;
    this.status.textContent = "Stopping after this measurement.";
  }

  async start() {
    this.stopped = false;
    this.state("running", "Waiting for the experiment that runs.");
    const before = turn;
    let release;
    turn = new Promise((resolve) => (release = resolve));
    await before;
    let gpu;
    try {
      if (this.stopped) throw new Stopped();
      this.status.textContent = "Asking the browser for a GPU.";
      gpu = await open(Number(this.figure.dataset.watchdog ?? WATCHDOG));
      const result = await this.run(gpu);
      if (!result.adapter.software) keep(result);
      this.show(result);
      showYours();
    } catch (error) {
      if (error instanceof Stopped) this.state(this.shown ? "done" : "idle", "Stopped; nothing of this run was kept.");
      else if (error instanceof Unavailable) this.state("unavailable", error.message);
      else this.state("error", `This did not work: ${error.message.replace(/\.?\s*$/, "")}. You can try again; nothing was kept.`);
    } finally {
      gpu?.close();
      release();
    }
  }

  /** Small sizes first: they warm up, and tell which of the others this GPU would not finish before the watchdog barks. */
  async run(gpu) {
    const { default: experiment } = await import(`./experiments/${this.experiment}.js`);
    const small = await this.pass(gpu, experiment, true, new Map());
    let kept = small;
    if (!("quick" in this.figure.dataset)) {
      const speeds = new Map();
      for (const point of small.points) {
        speeds.set(point.series, Math.max(speeds.get(point.series) ?? 0, amount(point) / point.seconds.median));
      }
      const whole = await this.pass(gpu, experiment, false, speeds);
      kept = { points: whole.points.length ? whole.points : small.points, left: whole.left, correct: small.correct && whole.correct };
    }
    if (!kept.points.length) throw new Error(kept.correct ? "the clock told no time above zero" : "no kernel gave the CPU's result");
    return {
      format: FORMAT, experiment: this.experiment, title: experiment.title, measured: experiment.measured,
      x: experiment.x, per: experiment.per, adapter: gpu.adapter, browser: navigator.userAgent,
      taken: new Date().toISOString().slice(0, 10), timestamp_step_ns: gpu.step_ns ? Number(gpu.step_ns) : null, ...kept,
    };
  }

  /** The experiment's cases, small or whole. A case of which `speeds` says that it would hang is left out. */
  async pass(gpu, experiment, quick, speeds) {
    const cases = await experiment.cases(gpu, quick);
    const points = [];
    const slow = new Set();
    const left = [];
    let correct = true;
    for (const [i, prepare] of cases.entries()) {
      if (this.stopped) throw new Stopped();
      const work = prepare();
      const foreseen = amount(work) / (speeds.get(work.series) ?? Infinity);
      if (slow.has(work.series) || foreseen > gpu.watchdog / 2000) {
        left.push(`${work.series} at ${work.x.toLocaleString("en")}`);
        work.done?.();
        continue;
      }
      const part = quick ? "trying small sizes, " : "";
      this.status.textContent = `${part}${i + 1} of ${cases.length}: ${work.series}, ${work.x.toLocaleString("en")}, on ${said(gpu.adapter)}`;
      if (!(await work.correct())) {
        correct = false;
        work.done?.();
        continue; // a wrong result has no time
      }
      const seconds = await time(gpu, work, { quick });
      if (seconds.median > SLOW) slow.add(work.series);
      if (seconds.median > 0) points.push({ series: work.series, x: work.x, bytes: work.bytes, flops: work.flops, seconds });
      work.done?.();
    }
    return { points, left, correct };
  }

  show(result) {
    this.shown = result;
    if (!result) {
      delete this.figure.dataset.correct;
      this.result.replaceChildren();
      this.state(this.figure.dataset.state === "unavailable" ? "unavailable" : "idle", "Nothing runs until you ask for it.");
      return;
    }
    this.figure.dataset.correct = String(result.correct);
    const wrong = result.correct ? "Every kernel gave the CPU's result." : "Some kernels did not give the CPU's result; those have no time here.";
    const out = result.left.length ? ` Left out as too slow here: ${result.left.join("; ")}.` : "";
    this.state("done", `${said(result.adapter)}, ${result.taken}. ${wrong}${out}`);
    this.canvas = made("div", { class: "lab-plot" });
    this.result.replaceChildren(this.canvas, table(result), ...this.buttons(result));
    this.draw();
  }

  draw() {
    const width = Math.min(680, Math.floor(this.canvas?.clientWidth ?? 0));
    if (!this.shown || width < 200 || this.canvas.dataset.width === String(width)) return;
    this.canvas.dataset.width = width;
    this.canvas.replaceChildren(...plot(this.shown, width));
  }

  buttons(result) {
    const save = made("button", { type: "button" }, "Download");
    save.addEventListener("click", () => download(result, `my-gpu-${this.experiment}.json`));
    const drop = made("button", { type: "button", class: "lab-forget" }, "Forget");
    drop.addEventListener("click", () => {
      forget(this.experiment);
      this.figure.dataset.state = "idle";
      this.show(null);
      showYours();
      this.button.focus();
    });
    return [made("p", { class: "lab-buttons" }, save, drop)];
  }
}

class Stopped extends Error {}

/** How much a case does, in the unit of its series. */
function amount({ flops, bytes, x }) {
  return flops ?? bytes ?? x;
}

/** The experiment's WGSL, fetched when it is unfolded. */
function kernels(experiment) {
  const code = made("code");
  const folded = made("details", { class: "lab-kernels" }, made("summary", {}, "The kernels, in WGSL"),
    made("pre", { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": "The kernels" }, code));
  folded.addEventListener("toggle", async () => {
    code.textContent ||= (await import(`./experiments/${experiment}.js`)).default.code.trim();
  });
  return folded;
}

/** The adapter in words; one of software is never taken for a GPU. */
function said({ name, software, driver }) {
  return software ? `${name}, a software adapter: the CPU at work, no GPU's times` : `${name}${driver ? `, driver ${driver}` : ""}`;
}

function table(result) {
  const [unit] = UNITS[result.per];
  const head = ["series", result.x, ...(result.per === "seconds" ? [] : [unit]), "median", "quartiles", "samples"];
  const rows = result.points.map((point) => {
    const { median, q1, q3, samples, repeat, clock } = point.seconds;
    return [
      point.series, point.x.toLocaleString("en"), ...(result.per === "seconds" ? [] : [short(value(result, point))]),
      duration(median), `${duration(q1)} to ${duration(q3)}`, `${samples} of ${repeat} ${clock === "host" ? "by the host's clock" : "by time stamps"}`,
    ];
  });
  const cells = (tag, row) => made("tr", {}, ...row.map((cell) => made(tag, tag === "th" ? { scope: "col" } : {}, cell)));
  const step = result.timestamp_step_ns ? `The device's time stamps go in steps of ${duration(result.timestamp_step_ns / 1e9)}; a sample is long enough to hold many. ` : "";
  return made("details", { class: "lab-table" },
    made("summary", {}, "The numbers, and how they were taken"),
    made("p", {}, `${step}A sample is a run of the call so many times over, after a warm-up; samples are taken until the median is known to 2 %, or time is up. Browser: ${result.browser}`),
    made("div", { class: "lab-scroll", tabindex: 0, role: "region", "aria-label": `${result.title}: the numbers` },
      made("table", {}, made("thead", {}, cells("th", head)), made("tbody", {}, ...rows.map((row) => cells("td", row))))));
}

/** On the lab's own page: everything at once. */
function everything(place, labs) {
  const button = (words, act) => {
    const made_ = made("button", { type: "button" }, words);
    made_.addEventListener("click", act);
    return made_;
  };
  place.replaceChildren(
    button("Run all", () => labs.forEach((lab) => lab.figure.dataset.state !== "running" && lab.start())),
    button("Download all results", () => download(all(), "my-gpu.json")),
    button("Forget all results", () => {
      for (const result of all()) forget(result.experiment);
      for (const lab of labs) lab.figure.dataset.state !== "running" && lab.show(null);
      showYours();
    }),
  );
}

/** A chapter's small figure (small.js), pressed: the lab in its place, and running. */
export function live(figure) {
  const lab = new Lab(figure);
  lab.button.focus();
  return lab.start();
}

const labs = [...document.querySelectorAll("figure.lab:not([data-small])")].map((figure) => new Lab(figure));
for (const place of document.querySelectorAll(".lab-everything")) everything(place, labs);
