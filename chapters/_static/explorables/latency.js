// Latency hiding: one warp scheduler, cycle by cycle. Who waits for a load, who computes, in which cycles an instruction is issued, and
// Little's law as the bound. The rules are those of chapter 2's share_of_busy_cycles.
{
  const { made, words, picture, COLOURS, count } = explorables;
  const TICKS = 20000; // to get going, and as many to count
  const SEEN = 1800; // of them in the picture

  // The share of cycles that issue, and the issues [cycle, warp, place in the warp's round] from cycle `from` to cycle `to`. A round:
  // `loads` loads, one a cycle, the wait for the last, then `arithmetic` instructions in a chain.
  function play({ warps, loads, arithmetic }, { load, alu }, from = 0, to = 0) {
    const [ready, places, seen] = [new Int32Array(warps), new Int32Array(warps), []];
    let issued = 0;
    for (let now = 0; now < 2 * TICKS; now++) {
      let warp = 0;
      while (warp < warps && ready[warp] > now) warp += 1;
      if (warp === warps) {
        now = Math.min(...ready) - 1; // nobody is ready before that
        continue;
      }
      const place = places[warp];
      ready[warp] = now + (place < loads - 1 ? 1 : place === loads - 1 ? load : alu);
      places[warp] = (place + 1) % (loads + arithmetic);
      if (now >= TICKS) issued += 1;
      if (now >= from && now < to) seen.push([now, warp, place]);
    }
    return { share: issued / TICKS, seen };
  }

  const shares = new Map(); // of each program, made once: for 1 to 16 warps
  function curve({ loads, arithmetic }, data) {
    const key = `${loads} ${arithmetic}`;
    if (!shares.has(key)) shares.set(key, Array.from({ length: 16 }, (_, i) => play({ warps: i + 1, loads, arithmetic }, data).share));
    return shares.get(key);
  }

  const law = ({ warps, loads, arithmetic }, { load, alu }) => Math.min(1, (warps * (loads + arithmetic)) / (loads - 1 + load + arithmetic * alu));

  function model(state, data) {
    return {
      ...play(state, data, TICKS - data.load, TICKS + SEEN), law: law(state, data),
      underWay: data.schedulers * state.warps * state.loads * 128, needed: data.needed,
    };
  }

  function drawTimeline({ seen }, { warps, loads }, { load, alu }, width, top) {
    const row = Math.min(18, Math.max(9, 150 / warps));
    const left = 62;
    const x = (tick) => left + (Math.min(SEEN, Math.max(0, tick - TICKS)) / SEEN) * (width - left);
    const nodes = [words(0, top + 12, `${count(SEEN)} clock cycles, a row for each warp`)];
    const y = (warp) => top + 20 + warp * row;
    for (let warp = 0; warp < warps; warp++) {
      if (warp % Math.ceil(12 / row) === 0) nodes.push(words(left - 6, y(warp) + row / 2 + 4.5, `warp ${warp}`, { "text-anchor": "end", "font-size": 12 }));
      const mine = seen.filter(([, who]) => who === warp);
      const runs = []; // neighbouring arithmetic, joined
      for (const [now, , place] of mine) {
        if (place === loads - 1) nodes.push(made("rect", { x: x(now), y: y(warp) + row / 2 - 1.5, width: Math.max(0, x(now + load) - x(now)), height: 3, fill: COLOURS.gold, "fill-opacity": 0.75 }));
        const kind = place < loads ? "load" : "arithmetic";
        const before = runs.at(-1);
        if (before?.kind === kind && now - before.end <= 2 * alu) before.end = now + (kind === "load" ? 1 : alu);
        else runs.push({ kind, start: now, end: now + (kind === "load" ? 1 : alu) });
      }
      for (const { kind, start, end } of runs) {
        if (end <= TICKS) continue;
        nodes.push(made("rect", { x: x(start), y: y(warp) + 1, width: Math.max(1.5, x(end) - x(start)), height: row - 2, fill: COLOURS[kind === "load" ? "orange" : "blue"] }));
      }
    }
    const base = y(warps) + 8;
    const bins = Math.floor((width - left) / 3);
    const filled = Array(bins).fill(0);
    for (const [now] of seen) if (now >= TICKS) filled[Math.min(bins - 1, Math.floor(((now - TICKS) / SEEN) * bins))] += bins / SEEN;
    nodes.push(words(left - 6, base + 26, "issues", { "text-anchor": "end", "font-size": 12 }));
    nodes.push(made("rect", { x: left, y: base, width: width - left, height: 34, fill: COLOURS.grey, "fill-opacity": 0.18 }));
    filled.forEach((part, i) => {
      const high = 34 * Math.min(1, part);
      if (high > 0) nodes.push(made("rect", { x: left + (i * (width - left)) / bins, y: base + 34 - high, width: (width - left) / bins, height: high, fill: COLOURS.green }));
    });
    [["orange", "load", 14], ["gold", "waiting for it", 3], ["blue", "arithmetic", 14], ["green", "cycles that issue", 14]].reduce(([at, line], [colour, text, thick]) => {
      const wide = 32 + 7 * text.length;
      if (at + wide > width) [at, line] = [0, line + 20];
      nodes.push(made("rect", { x: at, y: line + 7 - thick / 2, width: 14, height: thick, fill: COLOURS[colour] }), words(at + 20, line + 12, text));
      return [at + wide, line];
    }, [0, base + 44]);
    return [nodes, base + (width < 420 ? 90 : 70)];
  }

  function drawCurve(state, data, left, top, width, height) {
    const x = (warps) => left + 50 + ((warps - 1) / 15) * (width - 64);
    const y = (part) => top + 22 + (height - 62) * (1 - part);
    const nodes = [words(left, top + 12, "share of cycles that issue")];
    for (const part of [0, 0.25, 0.5, 0.75, 1]) {
      nodes.push(made("line", { x1: x(1), x2: x(16), y1: y(part), y2: y(part), stroke: "currentColor", "stroke-opacity": 0.13 }));
      nodes.push(words(left + 42, y(part) + 4.5, `${100 * part} %`, { "text-anchor": "end" }));
    }
    const all = Array.from({ length: 16 }, (_, i) => ({ ...state, warps: i + 1 }));
    nodes.push(made("polyline", { points: all.map((each) => `${x(each.warps)},${y(law(each, data))}`).join(" "), fill: "none", stroke: "currentColor", "stroke-dasharray": "6 4", "stroke-width": 1.5 }));
    curve(state, data).forEach((share, i) => nodes.push(made("circle", { cx: x(i + 1), cy: y(share), r: i + 1 === state.warps ? 7 : 3.5, fill: COLOURS.green })));
    for (const warps of [1, 4, 8, 12, 16]) nodes.push(words(x(warps), y(0) + 18, warps, { "text-anchor": "middle" }));
    nodes.push(words(left + width, y(0) + 36, "warps; dashed: Little's law", { "text-anchor": "end" }));
    return nodes;
  }

  // Bytes under way for a whole SM against what uses all of the memory's bandwidth.
  function drawUnderWay({ underWay, needed }, left, top, width) {
    const most = Math.max(1.25 * needed, underWay);
    const x = (bytes) => left + (bytes / most) * width;
    return [
      words(left, top + 12, `loads under way for an SM: ${count(underWay)} bytes`),
      made("rect", { x: left, y: top + 20, width, height: 22, fill: COLOURS.grey, "fill-opacity": 0.18 }),
      made("rect", { x: left, y: top + 20, width: x(underWay) - left, height: 22, fill: COLOURS.gold }),
      made("line", { x1: x(needed), x2: x(needed), y1: top + 15, y2: top + 47, stroke: "currentColor", "stroke-width": 2.5 }),
      words(Math.min(x(needed), left + width - 4), top + 62, `needed: ${count(Math.round(needed))}`, { "text-anchor": x(needed) > left + 0.5 * width ? "end" : "start" }),
    ];
  }

  explorables.define({
    name: "latency",
    controls: [
      { name: "warps", label: "Warps on the scheduler", kind: "range", min: 1, max: 16, value: 8 },
      { name: "loads", label: "Loads under way for each warp", kind: "range", min: 1, max: 8, value: 1 },
      { name: "arithmetic", label: "Arithmetic instructions in a round", kind: "range", min: 0, max: 100, value: 15 },
    ],
    model,
    draw: (result, state, { width, data, sentence }) => {
      const [nodes, bottom] = drawTimeline(result, state, data, width, 0);
      const beside = width >= 600;
      const half = beside ? width / 2 - 14 : width;
      nodes.push(...drawCurve(state, data, 0, bottom, half, 220));
      nodes.push(...(beside ? drawUnderWay(result, half + 28, bottom + 60, half) : drawUnderWay(result, 0, bottom + 228, width)));
      return picture(width, beside ? bottom + 224 : bottom + 300, sentence, ...nodes);
    },
    say: ({ share: busy, law: bound, underWay, needed }, { warps }) =>
      `${warps} ${warps === 1 ? "warp issues" : "warps issue"} in ${(100 * busy).toFixed(0)} % of the cycles; Little's law allows ${(100 * bound).toFixed(0)} %. `
      + `Four such schedulers have at most ${count(underWay)} bytes of loads under way, ${(100 * underWay / needed).toFixed(0)} % of what all of an H100's HBM bandwidth needs.`,
  });
}
