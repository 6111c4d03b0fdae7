// The GPUs that the reader picks, side by side: the rows of the page's table, set beside each other. ?gpu=H100,A100 in the address.

import { all } from "../lab/kept.js";
import { UNITS, duration, made, short, value } from "../lab/plot.js";

const MOST = 3;
const YOURS = "Yours";
const PLACES = ["First GPU", "Second GPU", "Third GPU"];
const NONE = "No number is known.";

/** [{ title, cells, gpu, numbers, told }] of the static table: what a row says of which experiment and GPU. */
function rowsOf(table) {
  return [...table.tBodies[0].rows].map((row) => {
    const [experiment, gpu, numbers, told] = row.cells;
    return { key: experiment.textContent.trim(), experiment, gpu: gpu.querySelector("strong").textContent, device: gpu, numbers, told };
  });
}

/** What the reader's own GPU did in this browser, as rows of the experiments that the lab's ask again. */
function yours(rows) {
  const found = [];
  for (const result of all().filter(({ adapter, measured }) => !adapter.software && measured)) {
    const asked = rows.find(({ experiment }) => experiment.querySelector(`a[href$="#${result.measured.replaceAll("_", "-")}"]`));
    if (!asked) continue;
    const [unit] = UNITS[result.per];
    const said = (point) => (result.per === "seconds" ? duration(value(result, point)) : `${short(value(result, point))} ${unit}`);
    const numbers = made("td", {}, made("ul", {}, ...result.points.map((point) => made("li", {}, made("strong", {}, said(point)), ` ${point.series}, at ${point.x.toLocaleString("en")}`))));
    const told = made("td", {}, made("p", {}, made("strong", {}, "Yours"), `, ${result.taken}, WebGPU in this browser. `,
      made("em", {}, "What differs: "), "WGSL kernels of other sizes, timed through the browser's clock."));
    const device = made("td", {}, made("p", {}, made("strong", {}, YOURS), ` ${result.adapter.name}`));
    found.push({ key: asked.key, experiment: asked.experiment, gpu: YOURS, device, numbers, told });
  }
  return found;
}

function asked(known) {
  const names = (new URLSearchParams(location.search).get("gpu") ?? "").split(",").map((name) => name.trim().toLowerCase());
  const found = names.map((name) => known.find((one) => one.toLowerCase() === name)).filter(Boolean);
  return [...new Set(found)].slice(0, MOST);
}

function chooser(place, table) {
  const rows = rowsOf(table);
  rows.push(...yours(rows));
  const experiments = new Map(rows.map(({ key, experiment }) => [key, experiment]));
  const counted = new Map();
  for (const { gpu, key, experiment } of rows) {
    const asks = experiment.querySelector("a"); // a data sheet is no experiment
    counted.set(gpu, (counted.get(gpu) ?? new Set()));
    if (asks) counted.get(gpu).add(key);
  }
  const known = [...counted.keys()].sort((a, b) => (a === YOURS) - (b === YOURS) || a.localeCompare(b, "en", { numeric: true }));
  const most = [...known].filter((gpu) => gpu !== YOURS).sort((a, b) => counted.get(b).size - counted.get(a).size);
  let chosen = asked(known);
  if (!chosen.length) chosen = most.slice(0, 2);

  const panel = made("div", { class: "devices-controls", role: "group", "aria-label": "GPUs to compare" });
  const selects = PLACES.map((label, place_) => {
    const select = made("select", { id: `devices-${place_}` }, ...(place_ ? [made("option", { value: "" }, "none")] : []),
      ...known.map((gpu) => made("option", { value: gpu }, `${gpu} (${counted.get(gpu).size} of ${experiments.size - 1})`)));
    panel.append(made("label", { for: select.id }, label, " ", select));
    select.addEventListener("change", () => {
      chosen = [...new Set(selects.map(({ value: gpu }) => gpu).filter(Boolean))];
      show();
      const url = new URL(location.href);
      url.searchParams.set("gpu", chosen.join(","));
      history.replaceState(history.state, "", url);
    });
    return select;
  });
  const said = made("p", { class: "devices-said", role: "status" });
  const stage = made("div", { class: "devices-stage", tabindex: 0, role: "region", "aria-label": "The chosen GPUs side by side" });

  function show() {
    selects.forEach((select, i) => (select.value = chosen[i] ?? ""));
    const has = (key) => chosen.filter((gpu) => rows.some((row) => row.key === key && row.gpu === gpu)).length;
    const questions = [...experiments].filter(([, experiment]) => experiment.querySelector("a")).map(([key]) => key);
    const [every, none] = [questions.filter((key) => has(key) === chosen.length).length, questions.filter((key) => !has(key)).length];
    const names = chosen.length > 1 ? `${chosen.slice(0, -1).join(", ")} and ${chosen.at(-1)}` : chosen[0];
    said.textContent = `${names}: of ${questions.length} experiments ${every} have a number on ${chosen.length > 1 ? "each" : "it"}` +
      `${chosen.length > 1 ? `, ${none} on none of them` : ""}. Numbers of different people are seldom of the same task: read what differs.`;
    const head = made("tr", { role: "row" }, made("th", { scope: "col", role: "columnheader" }, "Experiment"),
      ...chosen.map((gpu) => made("th", { scope: "col", role: "columnheader" }, gpu)));
    const body = [...experiments].map(([key, experiment]) => {
      const question = made("th", { scope: "row", role: "rowheader" });
      question.append(...[...experiment.cloneNode(true).childNodes]);
      return made("tr", { role: "row" }, question, ...chosen.map((gpu) => cell(gpu, rows.filter((row) => row.key === key && row.gpu === gpu))));
    });
    stage.replaceChildren(made("table", { class: "devices-table", role: "table" }, made("thead", { role: "rowgroup" }, head), made("tbody", { role: "rowgroup" }, ...body)));
  }

  function cell(gpu, sources) {
    const inside = made("td", { role: "cell", "data-gpu": gpu });
    if (!sources.length) inside.append(made("p", { class: "devices-none" }, NONE));
    for (const { device, numbers, told } of sources) {
      const name = device.textContent.replace(gpu, "").trim();
      inside.append(made("div", { class: "devices-source" }, made("p", { class: "devices-name" }, name), ...copies(numbers), ...copies(told)));
    }
    return inside;
  }

  const whole = made("details", {}, made("summary", {}, "All of it in one table"));
  const frame = table.closest(".pst-scrollable-table-container") ?? table;
  frame.before(whole);
  whole.append(frame);
  place.append(panel, said, stage);
  show();
}

/** What stands in a cell, without the ids that only one place of the page may have. */
function copies(cell) {
  const copy = cell.cloneNode(true);
  for (const node of copy.querySelectorAll("[id]")) node.removeAttribute("id");
  return [...copy.childNodes];
}

const table = document.querySelector("table.devices-all");
const place = document.querySelector(".devices-chooser");
if (table && place) chooser(place, table);
