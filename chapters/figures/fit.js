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
  const { parts, training, inference } = bytes(entered());
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
}

form.addEventListener("input", update);
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
update();
