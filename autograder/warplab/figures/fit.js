// Runs once per figure. `recipes` and `cards` come from warplab.models.vram and the registry; the formulas are those of warplab/models/vram.py.
const figure = document.currentScript.closest("figure");
const [form, body, status] = [figure.querySelector("form"), figure.querySelector("tbody"), figure.querySelector(".status")];

// {part: bytes} of training, and the bytes of inference; all in plain numbers.
function bytes({ parameters, layers, width, heads, tokens, batch, recipe, fused, checkpointed }) {
  const count = parameters * 1e9;
  const parts = Object.fromEntries(Object.entries(recipes[recipe]).map(([part, each]) => [part, each * count]));
  const number = recipe.startsWith("FP32") ? 4 : 2;
  const row = batch * tokens * width * number;
  const block = 16 * row + (fused ? 0 : batch * heads * tokens ** 2 * number);
  parts.activations = checkpointed ? layers * row + block : layers * block;
  const inference = 2 * count + 2 * layers * batch * tokens * width * 2;
  return { parts, training: Object.values(parts).reduce((a, b) => a + b), inference };
}

// The palette of warplab/plots/palette.py: of a part, and of the parts of inference.
const COLOURS = {
  weights: "#2a7fc4", gradients: "#d55e00", "FP32 weights": "#b5629a", "first moment": "#0f9471", "second moment": "#b08000",
  activations: "#7d8590", "KV cache": "#0f9471",
};
body.closest("table").insertAdjacentHTML("beforebegin", "<svg></svg>");
const picture = figure.querySelector("svg");

function made(tag, attributes, text = "") {
  const node = document.createElementNS(picture.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}

// The cards, each as wide as its memory, once with training on it and once with inference. What goes beyond a rim is pale.
function draw(jobs, said) {
  const wide = Math.max(260, Math.min(picture.parentNode.clientWidth, 760));
  const largest = Math.max(...Object.values(cards)) * 1e9;
  const most = Math.max(largest, Math.min(1.6 * largest, Math.max(...jobs.map(([, , all]) => all))));
  const scale = (wide - 4) / most;
  const nodes = [];
  let y = 0;
  for (const [job, parts, all] of jobs) {
    nodes.push(made("text", { x: 0, y: y + 14, "font-weight": 600 }, `${job}: ${shown(all)}`));
    y += 22;
    for (const [card, size] of Object.entries(cards)) {
      const rim = size * 1e9 * scale;
      let x = 0;
      for (const [part, each] of Object.entries(parts)) {
        const [start, end] = [x, Math.min(wide - 4, x + each * scale)];
        for (const [from, to, opacity] of [[start, Math.min(end, rim), 0.85], [Math.max(start, rim), end, 0.3]]) {
          if (to > from) nodes.push(made("rect", { x: from + 2, y: y + 3, width: to - from, height: 20, fill: COLOURS[part], "fill-opacity": opacity }));
        }
        x = end;
      }
      nodes.push(made("rect", { x: 1, y, width: rim + 2, height: 26, rx: 4, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
      nodes.push(made("text", { x: 2, y: y + 41 }, `${card}, ${size} GB: ${all <= size * 1e9 ? "fits" : `${(all / size / 1e9).toFixed(1)} times as much as it holds`}`));
      y += 48;
    }
    let x = 0;
    for (const part of Object.keys(parts)) {
      const needs = 30 + 7.6 * part.length;
      if (x + needs > wide) [x, y] = [0, y + 20];
      nodes.push(made("rect", { x, y: y + 3, width: 13, height: 13, fill: COLOURS[part], "fill-opacity": 0.85 }), made("text", { x: x + 18, y: y + 14 }, part));
      x += needs;
    }
    y += 40;
  }
  for (const [name, value] of Object.entries({ width: wide, height: y - 14, viewBox: `0 0 ${wide} ${y - 14}`, role: "img", "aria-label": said, "font-size": 13, fill: "currentColor" })) picture.setAttribute(name, value);
  picture.style.cssText = "display: block; max-width: 100%; margin: 1rem 0 0; color: inherit";
  picture.replaceChildren(...nodes);
}

// In the book the setting stands in the address, so that it can be shared; a notebook's address is its own.
const inBook = document.documentElement.hasAttribute("data-content_root");
function remember(values) {
  if (!inBook) return;
  const url = new URL(location.href);
  for (const [name, value] of Object.entries(values)) url.searchParams.set(`fit.${name}`, value);
  try { history.replaceState(history.state, "", url); } catch { /* a page from a folder keeps its address */ }
}
function recall() {
  if (!inBook) return;
  const asked = new URLSearchParams(location.search);
  for (const box of form.elements) {
    const value = asked.get(`fit.${box.name}`);
    if (value === null) continue;
    if (box.type === "checkbox") box.checked = value === "true";
    else if (box.tagName !== "SELECT" || value in recipes) box.value = value;
  }
}

function entered() {
  const values = Object.fromEntries(new FormData(form));
  for (const box of form.querySelectorAll("input[type=number]")) values[box.name] = box.valueAsNumber;
  for (const box of form.querySelectorAll("input[type=checkbox]")) values[box.name] = box.checked;
  return values;
}

const shown = (size) => `${(size / 1e9).toLocaleString("en", { minimumFractionDigits: 1, maximumFractionDigits: 1 })} GB`;

function update() {
  const wrong = [...form.elements].find((box) => !box.checkValidity());
  if (wrong) {
    status.textContent = `${wrong.closest("label").innerText.trim()}: ${wrong.validationMessage}`;
    return;
  }
  const values = entered();
  const { parts, training, inference } = bytes(values);
  const rows = [...Object.entries(parts), ["training, together", training], ["inference: weights and KV cache", inference]];
  body.replaceChildren(...rows.map(([name, size]) => {
    const [line, head, cell] = ["tr", "th", "td"].map((tag) => document.createElement(tag));
    head.scope = "row";
    cell.style.whiteSpace = "nowrap";
    [head.textContent, cell.textContent] = [name, shown(size)];
    line.append(head, cell);
    return line;
  }));
  const smallest = (size) => Object.keys(cards).find((card) => cards[card] * 1e9 >= size);
  const say = (size) => smallest(size) ? `fits the ${smallest(size)}'s ${cards[smallest(size)]} GB` : `fits none of ${Object.keys(cards).join(", ")}`;
  status.textContent = `Training ${say(training)}; inference ${say(inference)}.`;
  const weights = 2e9 * values.parameters;
  draw([["Training", parts, training], ["Inference", { weights, "KV cache": inference - weights }, inference]], status.textContent);
}

form.addEventListener("input", () => { update(); remember(entered()); });
form.addEventListener("submit", (event) => event.preventDefault());
form.hidden = false;
form.style.display = "grid";
for (const label of form.querySelectorAll("label:not(.tick)")) {
  label.style.cssText = "display: flex; flex-direction: column; justify-content: space-between; gap: 0.2rem; font-size: 0.95rem";
}
for (const label of form.querySelectorAll(".tick")) label.style.cssText = "align-self: end; padding: 0.3rem 0; font-size: 0.95rem";
for (const box of form.querySelectorAll("input[type=number], select")) {
  box.style.cssText = "width: 100%; box-sizing: border-box; padding: 0.3rem; font: inherit; color: inherit; background: transparent; border: 1px solid var(--course-line, currentColor); border-radius: 0.25rem";
}
for (const option of form.querySelectorAll("option")) option.style.cssText = "color: CanvasText; background: Canvas";
recall();
update();
new ResizeObserver(() => { if (picture.parentNode.clientWidth !== Number(picture.dataset.width)) update(); picture.dataset.width = picture.parentNode.clientWidth; }).observe(figure);
