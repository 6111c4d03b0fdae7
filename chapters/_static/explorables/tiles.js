// Three kernels multiply the same square matrices, step by step of the sum: what each has asked memory for, and where it
// stands under the roofs of L1, L2 and the device's memory.
{
  const { made, words, picture, count, COLOURS } = explorables;
  const SECTOR = 32; // bytes
  const WARP = 32;
  const PASS = 128; // bytes that L1 and shared memory hand out in a clock, however few a request wants

  /**
   * Loads of a launch after `steps` of the sum, in blocks of `block` x `block` threads. A warp is 32/block rows of block
   * threads. Without a tile each step is a load of A, a number for each of its rows, and one of B, `block` neighbours.
   * With one, every `block` steps each thread fetches `patch` numbers of A and as many of B, 4 sectors for a warp's load;
   * then each step reads `patch` numbers of A and of B from shared memory.
   */
  function loads({ side, steps, block, tiled, patch }) {
    const warps = (side * side) / (patch * patch) / WARP;
    const rows = WARP / block;
    const rounds = Math.ceil(steps / block);
    const requests = tiled ? warps * rounds * 2 * patch : warps * steps * 2;
    const sectors = tiled ? requests * 4 : warps * steps * (rows + Math.ceil((block * 4) / SECTOR));
    return { requests, sectors, bytes: sectors * SECTOR, shared: tiled ? warps * steps * 2 * patch : 0 };
  }

  /**
   * At the end of the sum, FLOP for each byte at L1 (a pass for each store to a tile and each read, conflicts left out; one for each row of a
   * warp in global memory, since rows begin in the same of 32 banks, and one for a load of B without a tile), at L2
   * (a block asks it for each of its numbers once in a round of `block` steps, whether a tile or L1 keeps them) and at the
   * device's memory (every number once).
   */
  function intensities(end, { side, block, tiled, patch, stored }) {
    const once = loads({ side, steps: side, block, tiled: true, patch });
    const flops = 2 * side ** 3;
    const rows = WARP / block;
    const passes = tiled ? end.requests * (rows + 1) + end.shared : (end.requests / 2) * (rows + 1);
    return { l1: flops / (PASS * passes + stored * rows), l2: flops / (once.bytes + stored), memory: flops / (3 * stored) };
  }

  function model({ block, patch, step }, { side, peak, l1, memory }) {
    const kernels = { naive: { tiled: false, patch: 1 }, tile: { tiled: true, patch: 1 }, patch: { tiled: true, patch } };
    const stored = side * side * 4;
    const result = {};
    for (const [name, kernel] of Object.entries(kernels)) {
      const [now, end] = [step, side].map((steps) => loads({ side, steps, block, ...kernel }));
      const places = intensities(end, { side, block, ...kernel, stored });
      const roof = Math.min(peak, places.l1 * l1, places.memory * memory);
      result[name] = { ...now, end: end.bytes, places, roof, reads: end.shared / (side ** 3 / WARP) };
    }
    return { kernels: result, flops: 2 * side * side * step };
  }

  const mib = (bytes) => `${(bytes / 2 ** 20).toLocaleString("en", { maximumSignificantDigits: 3 })} MiB`;
  const rate = (flops) => (flops >= 1e12 ? `${Number((flops / 1e12).toPrecision(3))} TFLOP/s` : `${Math.round(flops / 1e9)} GFLOP/s`);
  const NAMES = (block, patch) => ({ naive: "no tile", tile: `a tile of ${block}`, patch: `a tile of ${block * patch} and a patch of ${patch} × ${patch}` });
  const INKS = { naive: COLOURS.orange, tile: COLOURS.blue, patch: COLOURS.green };

  function matrices(x, y, size, { block, patch, step }, side) {
    const [gap, scale] = [8, size / 2.06 / side];
    const whole = side * scale;
    const tile = block * patch * scale;
    const at = 2 * Math.floor(side / (block * patch) / 4) * block * patch * scale; // a block somewhere in the middle
    const [left, top] = [x + whole + gap, y + whole + gap];
    const chunk = block * scale;
    const done = Math.min(side, step) * scale;
    const current = Math.min(whole - chunk, Math.max(0, Math.ceil(step / block) - 1) * chunk);
    const frame = (a, b, name) => [made("rect", { x: a, y: b, width: whole, height: whole, fill: "none", stroke: COLOURS.grey }), words(a + 5, b + 16, name)];
    const box = (a, b, w, h, fill, opacity) => made("rect", { x: a, y: b, width: w, height: h, fill, "fill-opacity": opacity });
    return [
      ...frame(x, top, "A"), ...frame(left, y, "B"), ...frame(left, top, "C"),
      box(x, top + at, done, tile, COLOURS.green, 0.3), box(left + at, y, tile, done, COLOURS.green, 0.3),
      ...(step ? [box(x + current, top + at, chunk, tile, COLOURS.green, 1), box(left + at, y + current, tile, chunk, COLOURS.green, 1)] : []),
      box(left + at, top + at, tile, tile, COLOURS.purple, step >= side ? 1 : 0.45),
    ];
  }

  function bars(x, y, width, kernels, names) {
    const most = kernels.naive.end;
    return Object.entries(kernels).flatMap(([name, { bytes, end }], i) => {
      const top = y + i * 52;
      return [
        words(x, top + 13, `${width < 340 ? names[name].replace(" and a patch of", ", patch") : names[name]}: ${mib(bytes)}`),
        made("rect", { x, y: top + 20, width: (width * end) / most, height: 18, fill: "none", stroke: INKS[name] }),
        made("rect", { x, y: top + 20, width: (width * bytes) / most, height: 18, fill: INKS[name] }),
      ];
    });
  }

  function roofline(x, y, width, height, { kernels }, { peak, l1, l2, memory }) {
    const [least, most] = [0.125, 128];
    const [low, high] = [Math.log(least), Math.log(most)];
    const across = (intensity) => x + (width * (Math.log(intensity) - low)) / (high - low);
    const [floor, top] = [Math.log(least * l1 * 0.7), Math.log(peak * 1.9)];
    const up = (flops) => y + height - (height * (Math.log(flops) - floor)) / (top - floor);
    const line = (x1, y1, x2, y2, more) => made("line", { x1, y1, x2, y2, stroke: "currentColor", ...more });
    const slope = (bandwidth, dashes) => {
      const start = Math.max(least, Math.exp(floor) / bandwidth);
      return line(across(start), up(start * bandwidth), across(peak / bandwidth), up(peak), { "stroke-width": 1.5, "stroke-dasharray": dashes });
    };
    const label = (text, bandwidth) => words(across(peak / bandwidth) - 2, up(peak) - 4, text, { "text-anchor": "end", "font-size": 12 });
    const nodes = [
      line(x, y + height, x + width, y + height), line(x, y, x, y + height),
      slope(l1, "6 4"), slope(l2, "1 3"), slope(memory, "6 4"), line(across(peak / l1), up(peak), x + width, up(peak), { "stroke-width": 2 }),
      label("L1", l1), label("L2", l2), words(across(peak / memory) + 3, up(peak) - 4, "HBM", { "font-size": 12 }),
      words(x + width, up(peak) - 4, width < 620 ? "FP32" : `FP32, ${rate(peak)}`, { "text-anchor": "end", "font-size": 12 }),
      words(x + width, y + height + 32, "FLOP for each byte at a level", { "text-anchor": "end", "font-size": 12 }),
    ];
    for (const tick of [0.125, 0.5, 2, 8, 32, 128]) {
      nodes.push(line(across(tick), y + height, across(tick), y + height + 4), words(across(tick), y + height + 17, tick < 1 ? { 0.125: "⅛", 0.5: "½" }[tick] : tick, { "text-anchor": "middle", "font-size": 12 }));
    }
    for (const [kernel, { places, roof }] of Object.entries(kernels)) {
      nodes.push(line(across(places.l1), up(roof), across(places.memory), up(roof), { stroke: INKS[kernel], "stroke-opacity": 0.5 }));
      for (const [level, intensity] of Object.entries(places)) {
        const fill = level === "l2" ? "var(--pst-color-background, Canvas)" : INKS[kernel];
        nodes.push(made("circle", { cx: across(intensity), cy: up(roof), r: 5, fill, stroke: INKS[kernel], "stroke-width": 1.5 }));
      }
    }
    return nodes;
  }

  function draw(result, state, { width, data, sentence }) {
    const narrow = width < 560;
    const square = narrow ? Math.min(width, 250) : 230;
    const right = narrow ? 0 : square + 30;
    const names = NAMES(state.block, state.patch);
    const race = narrow ? square + 22 : 30;
    const plot = narrow ? race + 160 : square + 30;
    return picture(width, plot + 170, sentence,
      ...matrices(0, 2, square, state, data.side),
      ...bars(right, race, width - right - 2, result.kernels, names),
      ...roofline(6, plot, width - 20, 128, result, data));
  }

  function say({ kernels }, { block, patch, step }, { side, name, l1 }) {
    const names = NAMES(block, patch);
    const asked = Object.entries(kernels).map(([kernel, { bytes }]) => `${mib(bytes)} with ${names[kernel]}`).join("; ");
    const { places, roof, reads } = kernels.patch;
    const read = Number(reads.toPrecision(3));
    const binds = places.l1 * l1 <= roof * 1.001 ? "L1 and shared memory" : "arithmetic";
    return `After ${count(step)} of ${count(side)} steps, asked for: ${asked}. At the end the last has read shared memory ${read === 1 ? "once" : `${read} times`} for each multiply-add `
      + `and has done ${places.l1.toFixed(2)} FLOP for each byte through L1: an ${name} full of such blocks does at most ${rate(roof)}, and ${binds} binds.`;
  }

  explorables.define({
    name: "tiles",
    controls: [
      { name: "block", label: "Threads on a side of the block", kind: "choice", value: 16, options: [[8, "8"], [16, "16"], [32, "32"]] },
      { name: "patch", label: "Answers on a side of a thread's patch", kind: "choice", value: 4, options: [[1, "1"], [2, "2"], [4, "4"]] },
      { name: "step", label: "Step of the sum", kind: "range", min: 0, max: (state, data) => data.side, step: 8, value: (state, data) => data.side / 2, play: 250 },
    ],
    model, draw, say,
  });
}
