((start) => { // Runs once per figure; in the book, on whose pages there is much else, when the figure is less than a screen away.
  const figure = document.currentScript.closest(".warplab-step");
  const inTheBook = "content_root" in document.documentElement.dataset; // a notebook's address is not ours
  if (!inTheBook) return start(figure, inTheBook);
  const near = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    start(figure, inTheBook);
  }, { rootMargin: "100%" });
  near.observe(figure);
})((figure, inTheBook) => { // The trace stands in the element before the script.
  const trace = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
  const places = trace.places.flatMap(([first, many]) => Array.from({ length: many }, (_, i) => first + i));
  const last = places.length - 1;
  const figures = [...document.querySelectorAll(".warplab-step")];
  const key = figures.indexOf(figure) > 0 ? `step${figures.indexOf(figure) + 1}` : "step";

  const lanesOf = (mask) => Array.from({ length: 32 }, (_, lane) => lane).filter((lane) => Math.floor(mask / 2 ** lane) % 2 === 1);

  /** "[3, 16]": of the byte `offset` of a request the element, as Python writes it. */
  function elementOf({ shape, order, itemsize, start }, offset) {
    let element = Math.floor((offset - start) / itemsize);
    const sizes = order === "F" ? shape : [...shape].reverse();
    const index = [];
    for (const size of sizes.slice(0, -1)) {
      index.push(((element % size) + size) % size);
      element = Math.floor(element / size);
    }
    index.push(element);
    return `[${(order === "F" ? index : index.reverse()).join(", ")}]`;
  }

  function lanesMask(n) { // of the run that step n lies in
    let [low, high] = [0, trace.runs.length - 1];
    while (low < high) {
      const middle = Math.ceil((low + high) / 2);
      if (trace.runs[middle][0] <= n) low = middle;
      else high = middle - 1;
    }
    return trace.runs[low][1];
  }

  /** All there is to say of step n, counted from 0. */
  function at(n) {
    const [text, file, line, kind] = trace.listing[places[n]];
    const lanes = lanesOf(lanesMask(n));
    const jumps = n in trace.jumps ? lanesOf(trace.jumps[n]) : null;
    const accesses = (trace.accesses[n] ?? []).map(([number, mask, given, cost]) => {
      const [memory, mine] = [trace.memories[number], lanesOf(mask)];
      const offsets = Array.isArray(given) ? given : mine.map((_, i) => given.first + i * given.apart);
      return { ...memory, lanes: mine, offsets, cost, elements: offsets.map((offset) => elementOf(memory, offset)) };
    });
    return { n, text, file, line, kind, lanes, jumps, accesses };
  }

  const counted = (number, noun) => `${number.toLocaleString("en")} ${noun}${number === 1 ? "" : "s"}`;
  const VERBS = { read: "read", write: "write", atomic: "update" };

  function said(step) {
    const parts = [`Step ${(step.n + 1).toLocaleString("en")} of ${(last + 1).toLocaleString("en")}${step.line ? `, line ${step.line}` : ""}: ${step.text}.`];
    const waiting = trace.threads - step.lanes.length;
    parts.push(waiting ? `${counted(step.lanes.length, "lane")} take${step.lanes.length === 1 ? "s" : ""} part, ${waiting} do${waiting === 1 ? "es" : ""} not.` : `All ${trace.threads} lanes take part.`);
    if (step.jumps) {
      const go = step.lanes.length - step.jumps.length;
      parts.push(!go ? "All of them jump." : !step.jumps.length ? "None of them jumps." : `They part: ${step.jumps.length} jump, ${go} go on.`);
    }
    for (const { kind, space, name, elements, cost } of step.accesses) {
      const which = new Set(elements).size === 1 ? elements[0] : `${elements[0]} to ${name}${elements.at(-1)}`;
      const price = space === "local" ? "" : `: ${counted(cost[0], space === "shared" ? "wavefront" : "sector")}${cost[0] > cost[1] ? ` where ${cost[1]} would do` : ""}`;
      parts.push(`They ${VERBS[kind] ?? kind} ${name}${which}${price}.`);
    }
    if (step.kind === "barrier") parts.push("A barrier: the warp goes on when every warp of its block has come.");
    if (step.kind === "exit") parts.push("These lanes are done.");
    return parts.join(" ");
  }

  const made = (tag, attributes = {}, ...children) => {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    node.append(...children);
    return node;
  };
  const kernel = figure.querySelector("p code").textContent; // a page may hold several
  const range = made("input", { type: "range", min: 0, max: last, value: 0, "aria-label": `Step of ${kernel}` });
  const sources = made("div", { class: "code", tabindex: 0, role: "region", "aria-label": `Source of ${kernel}` });
  const listing = made("div", { class: "code", tabindex: 0, role: "region", "aria-label": `PTX of ${kernel}` });
  const lanes = made("div", { class: "lanes", "aria-hidden": "true" });
  const sentence = made("p", { class: "said" });
  const spoken = made("p", { class: "live-text", role: "status" });
  const mark = made("span", { "aria-hidden": "true" });
  const map = figure.querySelector(".map");
  const sourceLines = new Map();
  const listingLines = trace.listing.map(([text, , line]) => made("div", {}, made("i", {}, line || ""), text));
  const cells = Array.from({ length: 32 }, (_, lane) => made("div", {}, made("b", {}, lane), made("span", {})));
  let [now, later] = [0, null];

  /** The next step, from `now` on, that fits; -1 where there is none. */
  function next(fits) {
    for (let n = now + 1; n <= last; n += 1) if (fits(n)) return n;
    return -1;
  }
  const place = (n) => trace.listing[places[n]].slice(1, 3).join(":");
  const WAYS = [
    ["Back", () => now - 1],
    ["Forward", () => (now < last ? now + 1 : -1)],
    ["Next line", () => next((n) => place(n) !== place(now))],
    ["Next memory access", () => next((n) => n in trace.accesses)],
  ];
  if (trace.listing.some(([, , , kind]) => kind === "barrier")) WAYS.push(["Next barrier", () => next((n) => trace.listing[places[n]][3] === "barrier")]);
  const buttons = WAYS.map(([text, to]) => {
    const button = made("button", { type: "button" }, text);
    button.addEventListener("click", () => { if (to() >= 0) set(to()); });
    return button;
  });

  function into(box, line) { // scrolls the box, never the page
    if (!line) return;
    const [top, bottom] = [line.offsetTop, line.offsetTop + line.offsetHeight];
    if (top < box.scrollTop || bottom > box.scrollTop + box.clientHeight) box.scrollTop = top - box.clientHeight / 2;
  }

  function show() {
    const step = at(now);
    figure.querySelectorAll(".code .now").forEach((line) => { line.classList.remove("now"); line.removeAttribute("aria-current"); });
    const source = sourceLines.get(`${step.file}:${step.line}`);
    for (const [box, line] of [[sources, source], [listing, listingLines[places[now]]]]) {
      line?.classList.add("now");
      line?.setAttribute("aria-current", "true");
      into(box, line);
    }
    const access = step.accesses.at(-1);
    cells.forEach((cell, lane) => {
      cell.className = lane >= trace.threads ? "none" : step.lanes.includes(lane) ? "on" : "";
      const found = access ? access.lanes.indexOf(lane) : -1;
      cell.lastChild.className = found >= 0 ? "at" : "";
      cell.lastChild.textContent = found >= 0 ? access.elements[found].slice(1, -1) : step.jumps?.includes(lane) ? "jump" : "";
    });
    sentence.textContent = said(step);
    range.value = now;
    range.setAttribute("aria-valuetext", `step ${now + 1} of ${last + 1}, ${step.lanes.length} lanes`);
    mark.style.left = `${(100 * now) / (last + 1)}%`;
    mark.style.width = `${100 / (last + 1)}%`;
    WAYS.forEach(([, to], i) => { buttons[i].disabled = to() < 0 && buttons[i] !== document.activeElement; });
  }

  function set(n) {
    now = Math.min(last, Math.max(0, n));
    show();
    clearTimeout(later);
    later = setTimeout(() => {
      spoken.textContent = sentence.textContent;
      if (!inTheBook) return;
      const url = new URL(location.href);
      if (now) url.searchParams.set(key, now + 1);
      else url.searchParams.delete(key);
      try { history.replaceState(history.state, "", url); } catch { /* a page from a folder keeps its address */ }
    }, 400);
  }

  range.addEventListener("input", () => set(Number(range.value)));
  const pointed = (event) => {
    const box = map.getBoundingClientRect();
    set(Math.floor(((event.clientX - box.left) / box.width) * (last + 1)));
  };
  map.addEventListener("pointerdown", pointed);
  map.addEventListener("pointermove", (event) => { if (event.buttons) pointed(event); });

  const OURS = new Set(["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown", "Home", "End", "PageUp", "PageDown", "Enter", " "]);
  window.addEventListener("keydown", (event) => { // before JupyterLab, for which these are shortcuts of the notebook
    if (!inTheBook && OURS.has(event.key) && !event.shiftKey && figure.contains(event.target)) event.stopImmediatePropagation();
  }, true);

  for (const { file, first, lines } of trace.sources) {
    lines.forEach((text, i) => {
      const line = made("div", {}, made("i", {}, first + i), text);
      sourceLines.set(`${file}:${first + i}`, line);
      sources.append(line);
    });
  }
  trace.listing.forEach(([, , , , label], i) => listing.append(...(label ? [made("div", {}, made("i", {}, ""), `${label}:`)] : []), listingLines[i]));
  lanes.append(...cells);
  map.append(mark);
  const live = figure.querySelector(".live");
  live.append(made("div", { class: "controls" }, range, ...buttons), sentence, spoken, made("div", { class: "panes" }, sources, listing), lanes);
  live.hidden = false;
  figure.querySelector(".still").hidden = true;
  figure.stepper = { trace, at, said, set, get now() { return now; } };
  const asked = inTheBook ? Number(new URLSearchParams(location.search).get(key)) : 0;
  now = Number.isInteger(asked) && asked > 0 ? Math.min(asked - 1, last) : 0;
  show();
});
