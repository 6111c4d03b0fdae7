// Runs once per figure. `formats` is {name: {exponent, fraction, bias, special}}; an integer format has an exponent of 0 bits.
// Bits are kept as a number below 2**32, values as doubles, which hold every value of every format here exactly.
const figure = document.currentScript.closest("figure");

const width = (f) => 1 + f.exponent + f.fraction;
const isInteger = (f) => f.exponent === 0;

// The parts of a pattern as numbers: sign 0 or 1, biased exponent, fraction.
function parts(bits, f) {
  const unit = 2 ** f.fraction;
  const rest = Math.floor(bits / unit);
  return { sign: Math.floor(bits / 2 ** (width(f) - 1)), exponent: rest % 2 ** f.exponent, fraction: bits % unit };
}

function decode(bits, f) {
  if (isInteger(f)) return bits < 2 ** f.fraction ? bits : bits - 2 ** (f.fraction + 1); // two's complement
  const { sign, exponent, fraction } = parts(bits, f);
  const [s, top] = [sign ? -1 : 1, 2 ** f.exponent - 1];
  if (f.special === "one NaN" && exponent === top && fraction === 2 ** f.fraction - 1) return NaN;
  if (f.special === "IEEE" && exponent === top) return fraction ? NaN : s * Infinity;
  if (exponent === 0) return s * fraction * 2 ** (1 - f.bias - f.fraction);
  return s * (1 + fraction / 2 ** f.fraction) * 2 ** (exponent - f.bias);
}

function toEven(x) { // the nearest whole number, ties to even; x is not negative
  const low = Math.floor(x);
  return low + (x - low > 0.5 || (x - low === 0.5 && low % 2 === 1) ? 1 : 0);
}

// The pattern of the nearest value. Too large: infinity where there is one, else the largest value.
function encode(x, f) {
  if (isInteger(f)) {
    const largest = 2 ** f.fraction - 1;
    const whole = Number.isNaN(x) ? 0 : Math.max(-largest - 1, Math.min(largest, Math.sign(x) * toEven(Math.abs(x))));
    return whole < 0 ? whole + 2 ** width(f) : whole;
  }
  const sign = (x < 0 || Object.is(x, -0) ? 1 : 0) * 2 ** (width(f) - 1);
  const infinity = (2 ** f.exponent - 1) * 2 ** f.fraction;
  const finite = f.special === "IEEE" ? infinity - 1 : infinity + 2 ** f.fraction - 2;
  if (Number.isNaN(x)) return f.special === "IEEE" ? infinity + 2 ** (f.fraction - 1) : finite + 1;
  const size = Math.abs(x);
  if (size === 0) return sign;
  if (size === Infinity) return sign + (f.special === "IEEE" ? infinity : finite);
  let power = Math.floor(Math.log2(size));
  if (2 ** power > size) power -= 1;
  if (2 ** (power + 1) <= size) power += 1;
  power = Math.max(power, 1 - f.bias);
  const code = toEven(size / 2 ** (power - f.fraction)) + (power + f.bias - 1) * 2 ** f.fraction;
  return sign + (code <= finite ? code : f.special === "IEEE" ? infinity : finite);
}

// The pattern of the next larger or smaller value, or null at the end.
function neighbour(bits, f, up) {
  const value = decode(bits, f);
  const half = 2 ** (width(f) - 1);
  if (isInteger(f)) return value === (up ? half - 1 : -half) ? null : encode(value + (up ? 1 : -1), f);
  if (Number.isNaN(value)) return null;
  if (value === 0) return (up ? 0 : half) + 1;
  const next = bits + ((value > 0) === up ? 1 : -1);
  return Number.isNaN(decode(next, f)) || (Math.abs(value) === Infinity && (value > 0) === up) ? null : next;
}

figure.formats = { table: formats, encode, decode, neighbour, between };

const [select, input] = [figure.querySelector("select"), figure.querySelector("input")];
const [row, status, all] = [figure.querySelector(".bits"), figure.querySelector(".status"), figure.querySelector("tbody")];
const [down, up] = [figure.querySelector(".down"), figure.querySelector(".up")];
let bits = 0;

const format = () => formats[select.value];
const short = (x, digits) => text(Number.isFinite(x) ? Number(x.toPrecision(digits)) : x);
const text = (x) => (x === null ? "none" : Number.isNaN(x) ? "NaN" : Object.is(x, -0) ? "-0" : String(x).replace("e+", "e"));

function kindOf(place, f) {
  if (place === 0) return isInteger(f) ? `worth -${2 ** f.fraction}` : "sign";
  if (isInteger(f)) return `worth ${2 ** (f.fraction - place)}`;
  return place <= f.exponent ? `exponent, worth ${2 ** (f.exponent - place)}` : `fraction, worth 1/${2 ** (place - f.exponent)}`;
}

function drawBits() {
  const f = format();
  row.replaceChildren(...Array.from({ length: width(f) }, (_, place) => {
    const box = document.createElement("button");
    const on = Math.floor(bits / 2 ** (width(f) - 1 - place)) % 2 === 1;
    Object.assign(box, { type: "button", textContent: on ? "1" : "0" });
    box.className = place === 0 && !isInteger(f) ? "sign" : place <= f.exponent ? "exponent" : "fraction";
    box.setAttribute("role", "switch");
    box.setAttribute("aria-checked", String(on));
    box.setAttribute("aria-label", `bit ${width(f) - 1 - place}: ${kindOf(place, f)}`);
    box.addEventListener("click", () => {
      bits += (on ? -1 : 1) * 2 ** (width(f) - 1 - place);
      input.value = text(decode(bits, f));
      update();
      row.children[place].focus();
    });
    return box;
  }));
}

all.closest("table").insertAdjacentHTML("beforebegin", "<svg></svg>");
const picture = figure.querySelector("svg");

function made(tag, attributes, text = "") {
  const node = document.createElementNS(picture.namespaceURI, tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.textContent = text;
  return node;
}

// The values of a format from low to high, and null if there are more than can be drawn.
function between(low, high, f, most) {
  let at = encode(low, f);
  for (let lower = at; lower !== null && decode(lower, f) >= low;) [at, lower] = [lower, neighbour(lower, f, false)];
  const found = [];
  for (; at !== null && decode(at, f) <= high; at = neighbour(at, f, true)) {
    if (decode(at, f) >= low && Number.isFinite(decode(at, f))) found.push(decode(at, f));
    if (found.length > most) return null;
  }
  return found;
}

// A line for each format around the number: its values as ticks, the number, what is stored of it, and the way there, the error.
function drawLines(typed, value, below, above) {
  const [wide, left, row] = [Math.max(280, Math.min(figure.clientWidth, 760)), 84, 32];
  const steps = [below, above].filter((bits) => bits !== null).map((bits) => Math.abs(decode(bits, format()) - value)).filter(Number.isFinite);
  const reach = 4.4 * Math.max(...steps);
  if (!Number.isFinite(typed) || !Number.isFinite(reach)) return picture.replaceChildren();
  const names = Object.keys(formats);
  const [low, high] = [typed - reach, typed + reach];
  const x = (number) => left + ((number - low) / (high - low)) * (wide - left - 8);
  const nodes = [made("line", { x1: x(typed), x2: x(typed), y1: 18, y2: 22 + names.length * row, stroke: "currentColor", "stroke-dasharray": "3 3" })];
  nodes.push(made("text", { x: x(typed), y: 12, "text-anchor": "middle" }, short(typed, 6)));
  names.forEach((name, i) => {
    const [f, y] = [formats[name], 22 + (i + 0.5) * row];
    const values = between(low, high, f, 70);
    const stored = decode(encode(typed, f), f);
    nodes.push(made("text", { x: left - 8, y: y + 4.5, "text-anchor": "end", "font-weight": name === select.value ? 700 : 400 }, name));
    const inside = stored >= low && stored <= high;
    if (inside) nodes.push(made("line", { x1: left, x2: wide - 8, y1: y, y2: y, stroke: "currentColor", "stroke-opacity": 0.3 }));
    if (values) for (const tick of values) nodes.push(made("line", { x1: x(tick), x2: x(tick), y1: y - 7, y2: y + 7, stroke: "currentColor", "stroke-width": 1.5 }));
    else nodes.push(made("rect", { x: left, y: y - 7, width: wide - 8 - left, height: 14, fill: "currentColor", "fill-opacity": 0.25 }));
    if (inside) {
      nodes.push(made("line", { x1: x(typed), x2: x(stored), y1: y, y2: y, stroke: "#d55e00", "stroke-width": 4 }));
      nodes.push(made("circle", { cx: x(stored), cy: y, r: 5.5, fill: "#d55e00" }));
    } else {
      const right = stored > high;
      nodes.push(made("text", { x: right ? wide - 8 : left, y: y + 4.5, "text-anchor": right ? "end" : "start", fill: "currentColor" }, right ? `${short(stored, 4)} →` : `← ${short(stored, 4)}`));
    }
  });
  const tall = 26 + names.length * row;
  const said = `Number lines around ${short(typed, 6)}: the values of each format as ticks, what it stores as a dot.`;
  for (const [name, given] of Object.entries({ width: wide, height: tall, viewBox: `0 0 ${wide} ${tall}`, role: "img", "aria-label": said, "font-size": 13, fill: "currentColor" })) picture.setAttribute(name, given);
  picture.style.cssText = "display: block; max-width: 100%; margin: 0.8rem 0 0; color: inherit";
  picture.replaceChildren(...nodes);
}

// In the book the setting stands in the address, so that it can be shared; a notebook's address is its own.
const inBook = document.documentElement.hasAttribute("data-content_root");
function remember() {
  if (!inBook) return;
  const url = new URL(location.href);
  url.searchParams.set("formats.format", select.value);
  url.searchParams.set("formats.number", input.value);
  try { history.replaceState(history.state, "", url); } catch { /* a page from a folder keeps its address */ }
}
if (inBook) {
  const asked = new URLSearchParams(location.search);
  if (asked.get("formats.format") in formats) select.value = asked.get("formats.format");
  input.value = asked.get("formats.number") ?? input.value;
}

function written(f) { // the value as the pattern spells it
  if (isInteger(f)) return "a whole number in two's complement, to be multiplied by a scale that is kept elsewhere";
  const { sign, exponent, fraction } = parts(bits, f);
  if (!Number.isFinite(decode(bits, f))) return "a pattern set aside: all exponent bits are 1";
  const power = exponent === 0 ? 1 - f.bias : exponent - f.bias;
  const kind = exponent === 0 ? ", subnormal: no leading 1" : "";
  const raised = String(power).replace(/./g, (c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c]));
  return `${sign ? "−" : "+"} (${exponent === 0 ? 0 : 1} + ${fraction}/${2 ** f.fraction}) × 2${raised}${kind}`;
}

function update() {
  const [f, typed] = [format(), number()];
  const value = decode(bits, f);
  const [below, above] = [false, true].map((way) => neighbour(bits, f, way));
  drawBits();
  drawLines(typed, value, below, above);
  const hex = bits.toString(16).toUpperCase().padStart(Math.ceil(width(f) / 4), "0");
  const error = Number.isFinite(typed) && Number.isFinite(value) ? `rounding error ${short(value - typed, 4)}` : "no finite rounding error";
  status.textContent = `${select.value} 0x${hex} is ${text(value)}: ${written(f)}. Next below ${text(below === null ? null : decode(below, f))}, `
    + `next above ${text(above === null ? null : decode(above, f))}; ${error}.`;
  [down.disabled, up.disabled] = [below === null, above === null];
  all.replaceChildren(...Object.entries(formats).map(([name, each]) => {
    const line = document.createElement("tr");
    const stored = decode(encode(typed, each), each);
    const cells = [name, short(stored, 9), Number.isFinite(stored - typed) ? short(stored - typed, 3) : "-"];
    cells.forEach((cell, i) => {
      const box = line.appendChild(document.createElement(i ? "td" : "th"));
      box.textContent = cell;
      if (!i) box.scope = "row";
    });
    return line;
  }));
}

function number() {
  const word = input.value.trim().toLowerCase().replace("−", "-");
  const known = { inf: Infinity, infinity: Infinity, "-inf": -Infinity, "-infinity": -Infinity, nan: NaN };
  return word in known ? known[word] : word === "" ? NaN : Number(word);
}

function read() {
  const wrong = Number.isNaN(number()) && input.value.trim().toLowerCase() !== "nan";
  input.setAttribute("aria-invalid", String(wrong));
  if (wrong) {
    status.textContent = `"${input.value}" is not a number: type one such as 0.1, 6e-8, -inf or nan.`;
    return;
  }
  bits = encode(number(), format());
  update();
}
figure.addEventListener("input", remember);
figure.addEventListener("click", remember);

function step(way) {
  bits = neighbour(bits, format(), way) ?? bits;
  input.value = text(decode(bits, format()));
  update();
}

select.addEventListener("change", read);
input.addEventListener("input", read);
down.addEventListener("click", () => step(false));
up.addEventListener("click", () => step(true));
row.addEventListener("keydown", (event) => {
  const at = [...row.children].indexOf(document.activeElement);
  const to = { ArrowLeft: at - 1, ArrowRight: at + 1, Home: 0, End: row.children.length - 1 }[event.key];
  if (to === undefined) return;
  event.preventDefault();
  row.children[Math.max(0, Math.min(row.children.length - 1, to))].focus();
});

figure.querySelector(".explorer").hidden = false;
read();
new ResizeObserver(() => { if (figure.clientWidth !== Number(picture.dataset.width)) update(); picture.dataset.width = figure.clientWidth; }).observe(figure);
