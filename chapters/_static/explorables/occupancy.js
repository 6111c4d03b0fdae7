// Occupancy: which blocks an SM takes, and which of its four limits keeps the next one out. The limits are the registry's, the
// rule is warplab.simt.toolchain.ptxas.blocks_per_sm.
{
  const { made, words, picture, COLOURS, count } = explorables;
  const up = (value, unit) => Math.ceil(value / unit) * unit;
  const TURN = ["blue", "green", "purple", "gold"];

  function model({ registers, shared, threads, arch }, { limits }) {
    const limit = limits[arch];
    const warps = threads / 32;
    const perWarp = up(registers * 32, limit.register_unit);
    const perBlock = up(shared * 1024 + limit.reserved_shared, limit.shared_unit);
    const fits = {
      warps: Math.floor(limit.max_warps_per_sm / warps),
      blocks: limit.max_blocks_per_sm,
      registers: Math.floor((Math.floor(limit.registers_per_sm / 4 / perWarp) * 4) / warps),
      ...(perBlock && { "shared memory": Math.floor(limit.shared_per_sm / perBlock) }),
    };
    const blocks = Math.min(...Object.values(fits));
    const limitedBy = Object.keys(fits).find((name) => fits[name] === blocks);
    return {
      fits, blocks, limitedBy, warps, resident: blocks * warps, most: limit.max_warps_per_sm, occupancy: (blocks * warps) / limit.max_warps_per_sm,
      registers: { taken: perWarp * warps * blocks, of: limit.registers_per_sm, perWarp }, shared: { taken: perBlock * blocks, of: limit.shared_per_sm },
    };
  }

  // The SM's four quarters with a place for each warp; a block's warps go round the quarters and share a colour.
  function drawPlaces({ blocks, warps, most }, width) {
    const quarter = most / 4;
    const columns = width >= 560 ? quarter : Math.ceil(quarter / 2);
    const rows = Math.ceil(quarter / columns);
    const left = 76;
    const cell = Math.min(34, (width - left) / columns);
    const nodes = [];
    const filled = Array.from({ length: blocks * warps }, (_, i) => Math.floor(i / warps));
    for (let part = 0; part < 4; part++) {
      const top = part * (rows * cell + 10);
      nodes.push(words(left - 8, top + (rows * cell) / 2 + 4.5, `quarter ${part + 1}`, { "text-anchor": "end" }));
      for (let place = 0; place < quarter; place++) {
        const block = filled[place * 4 + part];
        const [x, y] = [left + (place % columns) * cell, top + Math.floor(place / columns) * cell];
        nodes.push(made("rect", { x: x + 1.5, y: y + 1.5, width: cell - 3, height: cell - 3, rx: 3, stroke: "currentColor", "stroke-opacity": 0.45, fill: block === undefined ? "none" : COLOURS[TURN[block % 4]] }));
        if (block !== undefined && cell >= 18) nodes.push(words(x + cell / 2, y + cell / 2 + 4.5, block + 1, { "text-anchor": "middle", fill: "#000", "font-size": 12, "font-weight": 600 }));
      }
    }
    return [nodes, 4 * (rows * cell + 10)];
  }

  function drawStores({ registers, shared, fits, blocks, limitedBy }, width, top) {
    const nodes = [];
    const stores = [["registers", registers, "purple", ""], ["shared memory", shared, "gold", " bytes"]];
    stores.forEach(([name, { taken, of }, colour, unit], i) => {
      const y = top + i * 56;
      nodes.push(words(0, y + 13, `${name}: ${count(taken)} of ${count(of)}${unit}`));
      nodes.push(made("rect", { x: 0.5, y: y + 20, width: width - 1, height: 20, fill: "none", stroke: "currentColor", "stroke-opacity": 0.5 }));
      const each = blocks ? (taken / of / blocks) * width : 0;
      for (let block = 0; block < blocks; block++) nodes.push(made("rect", { x: block * each + 1, y: y + 21, width: Math.max(0.5, each - 1.5), height: 18, fill: COLOURS[colour], "fill-opacity": 0.8 }));
    });
    const y = top + 118;
    nodes.push(words(0, y + 13, "blocks that each limit lets in"));
    Object.entries(fits).forEach(([name, number], i) => {
      const line = y + 22 + i * 24;
      const left = 126;
      nodes.push(words(left - 8, line + 14, name, { "text-anchor": "end", "font-weight": name === limitedBy ? 700 : 400 }));
      const long = (Math.min(number, 40) / 40) * (width - left - 70);
      nodes.push(made("rect", { x: left, y: line + 1, width: Math.max(1, long), height: 16, fill: COLOURS[name === limitedBy ? "orange" : "grey"], "fill-opacity": 0.8 }));
      nodes.push(words(left + long + 6, line + 14, name === limitedBy ? `${number} decides` : number, { "font-weight": name === limitedBy ? 700 : 400 }));
    });
    return [nodes, y + 22 + 24 * Object.keys(fits).length];
  }

  explorables.define({
    name: "occupancy",
    controls: [
      { name: "arch", label: "Architecture", kind: "select", value: "sm_90", options: [["sm_70", "Volta (7.0)"], ["sm_75", "Turing (7.5)"], ["sm_80", "Ampere (8.0)"], ["sm_86", "Ampere (8.6)"], ["sm_89", "Ada (8.9)"], ["sm_90", "Hopper (9.0)"], ["sm_100", "Blackwell (10.0)"], ["sm_103", "Blackwell Ultra (10.3)"], ["sm_120", "Blackwell (12.0)"]] },
      { name: "threads", label: "Threads a block", kind: "range", min: 32, max: 1024, step: 32, value: 256 },
      { name: "registers", label: "Registers a thread", kind: "range", min: 16, max: 255, value: 32 },
      { name: "shared", label: "Shared memory a block", kind: "range", min: 0, max: ({ arch }, { limits }) => limits[arch].max_shared_per_block / 1024, value: 0, show: (kib) => `${kib} KiB` },
    ],
    model,
    draw: (result, state, { width, sentence }) => {
      const [nodes, bottom] = drawPlaces(result, width);
      const [stores, end] = drawStores(result, width, bottom + 4);
      return picture(width, end + 4, sentence, ...nodes, ...stores);
    },
    say: ({ blocks, warps, resident, most, occupancy, limitedBy, fits }) => {
      if (!blocks) return `Not one block fits: ${limitedBy} ${limitedBy === "shared memory" ? "is" : "are"} too few for its ${warps} warps.`;
      const others = Object.values(fits).filter((number) => number === blocks).length > 1 ? " (not alone)" : "";
      return `${count(blocks)} ${blocks === 1 ? "block" : "blocks"} of ${warps} ${warps === 1 ? "warp" : "warps"}: ${resident} of ${most} warps, an occupancy of ${(100 * occupancy).toFixed(0)} %. `
        + (limitedBy === "warps" && occupancy === 1 ? "The SM is full." : `The next block is sent away by ${limitedBy === "blocks" ? "the limit on blocks" : limitedBy === "warps" ? "the limit on warps" : limitedBy}${others}.`);
    },
  });
}
