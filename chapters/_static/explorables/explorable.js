// What all explorables share: controls with a visible value, the setting in the address, a picture drawn anew at the
// width that there is, and one sentence that says what it shows. Each explorable is one call of explorables.define().
window.explorables ??= {};

explorables.COLOURS = { // the course's palette (warplab/plots/palette.py)
  blue: "#2a7fc4", orange: "#d55e00", green: "#0f9471", purple: "#b5629a", gold: "#b08000", grey: "#7d8590",
};

/** An element, SVG or HTML, with attributes and children; false and undefined attributes are left out. */
explorables.made = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "g", "path", "line", "text", "tspan", "circle", "rect", "title", "polyline", "polygon"].includes(tag);
  const node = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, given] of Object.entries(attributes)) {
    if (given !== undefined && given !== false) node.setAttribute(name, given === true ? "" : given);
  }
  node.append(...children);
  return node;
};

/** A picture `width` CSS pixels wide. `label` is read aloud in its place. */
explorables.picture = (width, height, label, ...children) => explorables.made(
  "svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label }, ...children);

explorables.words = (x, y, text, more = {}) =>
  explorables.made("text", { x, y, fill: "currentColor", "font-size": 13, ...more }, String(text));

explorables.count = (number) => number.toLocaleString("en");

explorables.reduced = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/** Of a control, what may depend on the rest of the setting. */
explorables.limit = (control, edge, state, data) =>
  typeof control[edge] === "function" ? control[edge](state, data) : control[edge];

/** `wanted` (names to text or values) made a setting that every control allows; what is missing is its default. */
explorables.settled = (controls, wanted, data) => {
  const state = {};
  for (const control of controls) {
    const given = wanted[control.name];
    const fallback = typeof control.value === "function" ? control.value(state, data) : control.value;
    if (control.kind === "range") {
      const [low, high] = ["min", "max"].map((edge) => explorables.limit(control, edge, state, data));
      const number = given === undefined || given === "" || !Number.isFinite(Number(given)) ? fallback : Number(given);
      const step = control.step ?? 1;
      state[control.name] = Math.min(high, Math.max(low, low + Math.round((number - low) / step) * step));
    } else {
      const found = control.options.find(([value]) => String(value) === String(given));
      state[control.name] = found ? found[0] : fallback;
    }
  }
  return state;
};

/** Calls `act` once, when `figure` is less than a screen away: until then its still picture stands, and costs nothing. */
explorables.whenNear = (figure, act) => {
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    figure.dataset.near = "";
    act();
  }, { rootMargin: "100%" });
  near.observe(figure);
};

/**
 * name: of the directive and in the address. controls: [{ name, label, kind: "range" | "select" | "choice", value, ... }];
 * a range has min, max, step, show(value) and may have play (milliseconds a step); the others have options [[value, text]].
 * model(state, data): plain data, no page. draw(result, state, page): nodes. say(result, state, data): a sentence.
 */
explorables.define = ({ name, controls, model, draw, say }) => {
  explorables[name] = { controls, model, say, figures: [] };
  const start = () => document.querySelectorAll(`figure.explorable[data-explorable="${name}"]`).forEach((figure) => {
    explorables.whenNear(figure, () => explorables[name].figures.push(explorables.live(figure, { name, controls, model, draw, say })));
  });
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
};

explorables.live = (figure, { name, controls, model, draw, say }) => {
  const { made } = explorables;
  const json = figure.querySelector("script.explorable-data");
  const data = json ? JSON.parse(json.textContent) : undefined;
  const defaults = explorables.settled(controls, {}, data);
  const asked = new URLSearchParams(location.search);
  let state = explorables.settled(controls, Object.fromEntries(controls.map((control) => [control.name, asked.get(`${name}.${control.name}`) ?? undefined])), data);
  let [playing, spoken, kept] = [null, null, null];

  const panel = made("div", { class: "explorable-controls", role: "group", "aria-label": "Settings" });
  const stage = made("div", { class: "explorable-stage" });
  const said = made("p", { class: "explorable-said" });
  const live = made("p", { class: "explorable-live", role: "status" });
  const copy = made("button", { type: "button", class: "explorable-share" }, "Copy a link to this setting");
  const reset = made("button", { type: "button", class: "explorable-share" }, "Start again");
  const tools = made("p", { class: "explorable-tools" }, copy, " ", reset);
  const parts = controls.map((control) => explorables.part(control, name, (value) => set(control.name, value), (on) => play(control, on)));
  panel.append(...parts.map((part) => part.node));

  function address() {
    const url = new URL(location.href);
    for (const control of controls) {
      const value = state[control.name];
      if (value === defaults[control.name]) url.searchParams.delete(`${name}.${control.name}`);
      else url.searchParams.set(`${name}.${control.name}`, value);
    }
    return url;
  }
  function set(which, value) {
    state = explorables.settled(controls, { ...state, [which]: value }, data);
    show();
    clearTimeout(kept);
    clearTimeout(spoken);
    kept = setTimeout(() => { try { history.replaceState(history.state, "", address()); } catch { /* a page from a folder keeps its address */ } }, 250);
    if (!playing) spoken = setTimeout(() => { live.textContent = said.textContent; }, 600);
  }
  function play(control, on) {
    clearInterval(playing);
    playing = null;
    const step = () => {
      const high = explorables.limit(control, "max", state, data);
      if (state[control.name] >= high) play(control, false);
      else set(control.name, state[control.name] + (control.step ?? 1));
    };
    if (on) {
      if (state[control.name] >= explorables.limit(control, "max", state, data)) set(control.name, explorables.limit(control, "min", state, data));
      playing = setInterval(step, control.play);
    } else live.textContent = said.textContent;
    parts.forEach((part) => part.playing?.(part.control === control && on));
  }
  function show() {
    const width = Math.floor(stage.clientWidth || figure.clientWidth || 640);
    const result = model(state, data);
    const focused = stage.contains(document.activeElement) ? document.activeElement.dataset.key : undefined;
    said.textContent = say(result, state, data);
    stage.replaceChildren(...[draw(result, state, { width, data, set, sentence: said.textContent })].flat());
    if (focused) stage.querySelector(`[data-key="${focused}"]`)?.focus();
    parts.forEach((part) => part.update(state, data));
  }
  copy.addEventListener("click", async () => {
    const url = address();
    url.hash = figure.id;
    try {
      await navigator.clipboard.writeText(url.href);
      live.textContent = copy.textContent = "Copied";
      setTimeout(() => { copy.textContent = "Copy a link to this setting"; }, 2000);
    } catch {
      const field = made("input", { type: "text", readonly: true, value: url.href, "aria-label": "Link to this setting" });
      copy.replaceWith(field);
      field.select();
    }
  });
  reset.addEventListener("click", () => {
    if (playing) parts.forEach((part) => part.control.play && play(part.control, false));
    state = { ...defaults };
    set(controls[0].name, defaults[controls[0].name]);
  });

  const still = figure.querySelector(".explorable-still");
  still.before(panel, stage, said, live);
  const caption = figure.querySelector("figcaption");
  (caption ?? figure.lastElementChild).after(tools);
  try {
    show();
  } catch (problem) {
    [panel, stage, said, live, tools].forEach((node) => node.remove());
    throw problem; // the still picture stays
  }
  figure.dataset.live = "";
  let drawn = stage.clientWidth;
  new ResizeObserver(() => {
    if (stage.clientWidth && stage.clientWidth !== drawn) {
      drawn = stage.clientWidth;
      show();
    }
  }).observe(stage);
  return { set, get state() { return { ...state }; } };
};

/** A control: its node, and update(state, data) that makes it say what is set. */
explorables.part = (control, owner, set, play) => {
  const { made } = explorables;
  const id = `${owner}-${control.name}`;
  if (control.kind === "range") {
    const output = made("output", { for: id });
    const input = made("input", { id, type: "range", step: control.step ?? 1 });
    const node = made("div", { class: "explorable-control" }, made("label", { for: id }, control.label, " ", output), input);
    input.addEventListener("input", () => { play(false); set(Number(input.value)); });
    const part = { control, node };
    if (control.play) {
      const button = (text, act) => {
        const made_ = made("button", { type: "button" }, text);
        made_.addEventListener("click", act);
        return made_;
      };
      const [back, on] = [-1, 1].map((way) => button(way < 0 ? "Back" : "Forward", () => { play(false); set(Number(input.value) + way * (control.step ?? 1)); }));
      const run = button("Play", () => play(run.textContent === "Play"));
      part.playing = (going) => { run.textContent = going ? "Pause" : "Play"; };
      node.append(made("span", { class: "explorable-steps" }, back, ...(explorables.reduced() ? [] : [run]), on));
    } else play = () => {};
    part.update = (state, data) => {
      for (const edge of ["min", "max"]) input[edge] = explorables.limit(control, edge, state, data);
      input.value = state[control.name];
      output.textContent = control.show ? control.show(state[control.name], state, data) : explorables.count(state[control.name]);
      input.setAttribute("aria-valuetext", output.textContent);
    };
    return part;
  }
  if (control.kind === "select") {
    const select = made("select", { id }, ...control.options.map(([value, text]) => made("option", { value }, text)));
    select.addEventListener("change", () => set(select.value));
    return {
      control, node: made("div", { class: "explorable-control" }, made("label", { for: id }, control.label), select),
      update: (state) => { select.value = state[control.name]; },
    };
  }
  const inputs = control.options.map(([value, text]) => {
    const input = made("input", { type: "radio", name: id, value });
    input.addEventListener("change", () => set(value));
    return [value, input, made("label", {}, input, made("span", {}, text))];
  });
  return {
    control,
    node: made("fieldset", { class: "explorable-control" }, made("legend", {}, control.label), ...inputs.map(([, , label]) => label)),
    update: (state) => inputs.forEach(([value, input]) => { input.checked = value === state[control.name]; }),
  };
};
