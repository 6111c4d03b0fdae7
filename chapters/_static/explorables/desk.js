// The desk: what training keeps on each card, by part, model, recipe and ZeRO stage. Bytes by the formulas of
// warplab/models/vram.py, with its table of recipes; cards from the registry.
{
  const { made, words, picture, COLOURS } = explorables;
  const PARTS = {
    weights: "blue", gradients: "orange", "FP32 weights": "purple", "first moment": "green", "second moment": "gold",
    activations: "grey",
  };
  const RECIPES = ["mixed, Adam", "FP32, Adam", "mixed, SGD with momentum", "mixed, 8-bit Adam", "BF16 throughout, Adam"];
  const GB = (bytes, digits = 1) => `${(bytes / 1e9).toLocaleString("en", { minimumFractionDigits: digits, maximumFractionDigits: digits })} GB`;

  function onDesk({ parameters, layers, width }, { recipe, tokens, kept, ranks, stage }, recipes) {
    const whole = stage ? ["weights", "gradients"].slice(0, 3 - stage) : Object.keys(recipes[recipe]);
    const parts = Object.fromEntries(Object.entries(recipes[recipe]).map(
      ([part, each]) => [part, (each * parameters) / (whole.includes(part) ? 1 : ranks)]));
    const sheet = tokens * width * (recipe.startsWith("FP32") ? 4 : 2);
    parts.activations = kept === "all" ? layers * 16 * sheet : layers * sheet + 16 * sheet;
    return { parts, sharded: Object.keys(recipes[recipe]).filter((part) => !whole.includes(part)) };
  }

  function model(state, { recipes, models, cards }) {
    const stage = Number(state.stage);
    const { parts, sharded } = onDesk(models[state.model], { ...state, stage, tokens: 2 ** state.tokens }, recipes);
    const total = Object.values(parts).reduce((sum, size) => sum + size);
    return {
      parts, sharded, total, size: cards[state.card].size, card: cards[state.card].name,
      sent: ((stage === 3 ? 3 : 2) * (state.ranks - 1)) / state.ranks, // in buffers of all parameters
    };
  }

  // One card: its rim, what lies on it, and what does not fit standing above the rim.
  function drawCard({ parts, size, total }, x, bottom, wide, scale, top) {
    const nodes = [];
    let y = bottom;
    for (const [part, bytes] of Object.entries(parts)) {
      const end = Math.max(top, y - bytes * scale);
      if (y - end > 0.2) nodes.push(made("rect", { x: x + 3, y: end, width: wide - 6, height: y - end, fill: COLOURS[PARTS[part]], "fill-opacity": 0.85 }));
      y = end;
    }
    const rim = bottom - size * scale;
    if (total > size) {
      nodes.push(made("rect", { x: x + 3, y, width: wide - 6, height: rim - y, fill: "var(--pst-color-background, Canvas)", "fill-opacity": 0.6 }));
      nodes.push(made("rect", { x: x + 3, y, width: wide - 6, height: rim - y, fill: "none", stroke: "currentColor", "stroke-dasharray": "5 4" }));
    }
    nodes.push(made("rect", { x, y: rim, width: wide, height: bottom - rim, rx: 4, fill: "none", stroke: "currentColor", "stroke-width": 2 }));
    return nodes;
  }

  function draw(result, state, { width, sentence }) {
    const { parts, size, total, sharded } = result;
    const row = width >= 560 ? Math.min(state.ranks, 8) : Math.min(state.ranks, 4);
    const rows = Math.ceil(state.ranks / row);
    const [tall, gap, label] = [width >= 560 ? 210 : 170, 8, 20];
    const wide = Math.min(130, (width - gap * (row - 1)) / row);
    const scale = tall / Math.min(Math.max(size, total), 3 * size);
    const left = Math.max(0, (width - row * wide - (row - 1) * gap) / 2);
    const nodes = [];
    for (let rank = 0; rank < state.ranks; rank++) {
      const [line, place] = [Math.floor(rank / row), rank % row];
      const [x, top] = [left + place * (wide + gap), line * (tall + label + 14) + 10];
      nodes.push(...drawCard(result, x, top + tall, wide, scale, top));
      nodes.push(words(x + wide / 2, top + tall + 15, `rank ${rank}`, { "text-anchor": "middle" }));
    }
    const bottom = rows * (tall + label + 14) + 8;
    const columns = width >= 560 ? 2 : 1;
    const listed = Object.entries(parts);
    const deep = Math.ceil(listed.length / columns);
    listed.forEach(([part, bytes], i) => {
      const [x, y] = [Math.floor(i / deep) * (width / columns), bottom + (i % deep) * 24];
      const share = sharded.includes(part) && state.ranks > 1 ? `, 1/${state.ranks} each` : "";
      nodes.push(made("rect", { x, y, width: 15, height: 15, fill: COLOURS[PARTS[part]], "fill-opacity": 0.85 }));
      nodes.push(words(x + 22, y + 13, `${part}: ${GB(bytes)}${share}`, { "font-size": columns === 1 ? 13 : 14 }));
    });
    return picture(width, bottom + deep * 24 + 4, sentence, ...nodes);
  }

  explorables.define({
    name: "desk",
    controls: [
      { name: "model", label: "Model", kind: "select", value: "llama-7b", options: [["gpt-1b", "1.3 billion parameters"], ["llama-7b", "7 billion"], ["llama-13b", "13 billion"], ["llama-70b", "70 billion"]] },
      { name: "recipe", label: "Recipe", kind: "select", value: RECIPES[0], options: RECIPES.map((name) => [name, name]) },
      { name: "card", label: "Card", kind: "select", value: "h100-sxm", options: [["rtx-4090", "RTX 4090"], ["a100-sxm", "A100 SXM"], ["h100-sxm", "H100 SXM"], ["h200-sxm", "H200 SXM"], ["b200", "B200"]] },
      { name: "ranks", label: "Cards that share the training", kind: "range", min: 1, max: 8, value: 4 },
      { name: "tokens", label: "Tokens in each card's batch", kind: "range", min: 9, max: 17, value: 11, show: (power) => (2 ** power).toLocaleString("en") },
      { name: "stage", label: "ZeRO", kind: "choice", value: "0", options: [["0", "full copies"], ["1", "stage 1"], ["2", "stage 2"], ["3", "stage 3"]] },
      { name: "kept", label: "Activations", kind: "choice", value: "all", options: [["all", "keep all"], ["inputs", "checkpoint every layer"]] },
    ],
    model,
    draw,
    say: ({ total, size, card, sent }, { ranks, stage }) => {
      const fits = total <= size ? `and ${GB(size - total)} of its ${GB(size, 0)} stay free` : `${GB(total - size)} more than its ${GB(size, 0)}: it does not fit`;
      const cost = ranks > 1 ? ` In each step a rank sends ${sent.toFixed(2)} numbers for each parameter${stage === "3" ? ", half as many again as without stage 3" : ""}.` : "";
      return `Each ${card} holds ${GB(total)}, ${fits}.${cost}`;
    },
  });
}
