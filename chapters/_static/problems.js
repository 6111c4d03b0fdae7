// A reader commits to an answer before the solution opens: a number, a choice or a line of words, which is kept on the
// reader's machine and shown beside the solution. A solution may also be opened without an answer. The answers of the
// quiz ask the same way. On paper the solutions stand at the end of the page. Without this script they are folded.
(() => {
  const made = (tag, attributes = {}, ...children) => {
    const node = Object.assign(document.createElement(tag), attributes);
    node.append(...children);
    return node;
  };
  // An answer is kept under how its question begins: where a later edition asks something else, nothing is shown.
  const keyOf = (question) => `problem:${location.pathname}#${question.replace(/\s+/g, " ").trim().slice(0, 120)}`;
  const kept = (key) => { try { return localStorage.getItem(key); } catch { return null; } };
  const keep = (key, said) => {
    try { said === null ? localStorage.removeItem(key) : localStorage.setItem(key, said); } catch { /* no storage */ }
  };
  const number = (text) => {
    const plain = text.replaceAll("−", "-").replace(/[\s_%]/g, "").replace(/(?<!^-?0),(?=\d{3})/g, "").replace(",", ".");
    return plain === "" ? NaN : Number(plain);
  };

  /** What is said of an answer beside the solution. */
  function verdict(asked, said) {
    const { answer, within, unit = "", options, right } = asked;
    if (said === "") return "Opened without an answer.";
    if (options) return said === options[right] ? `You chose “${said}”: right.` : `You chose “${said}”; right is “${options[right]}”.`;
    if (!answer) return `You wrote: ${said}`;
    const wanted = number(answer), off = Math.abs(number(said) - wanted);
    const near = Number(within) ? `within ${+(within * 100).toPrecision(3)} %` : "exactly";
    const close = off <= Math.abs(wanted) * within + 1e-12;
    return `You said ${said}${unit && ` ${unit}`}, the solution says ${answer}: ${close ? near : `not ${near}`}.`;
  }

  /** The form in front of a solution. `asked` holds the data of the problem, `question` its words. */
  function ask(name, asked, solution, label, question) {
    const key = keyOf(question);
    const form = made("form", { className: "commit" });
    const told = made("p", { className: "commit-said" });
    told.setAttribute("role", "status");
    let field;
    if (asked.options) {
      const options = asked.options.map((text) => made("label", {},
        made("input", { type: "radio", name, value: text, required: true }), ` ${text}`));
      field = made("fieldset", {}, made("legend", { textContent: label }), ...options);
    } else {
      const input = made("input", { type: "text", name, required: true, autocomplete: "off", maxLength: 500 });
      if (asked.answer) input.inputMode = "decimal";
      else input.className = "commit-words";
      field = made("label", {}, `${label} `, input, asked.unit ? ` ${asked.unit}` : "");
    }
    const open = made("button", { type: "submit", textContent: "Compare" });
    const skip = made("button", { type: "button", textContent: "Show without answering" });
    form.append(field, made("span", { className: "commit-buttons" }, open, skip));
    const again = made("button", { type: "button", textContent: "Answer again" });

    function show(said) {
      form.hidden = said !== null;
      solution.hidden = said === null;
      told.replaceChildren();
      if (said !== null) told.append(`${verdict(asked, said)} `, again);
    }

    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const said = String(new FormData(form).get(name)).trim();
      const input = form.querySelector("input[type=text]");
      const wrong = asked.answer && Number.isNaN(number(said)) ? "A number, for example 12.5 or 3e6" : said ? "" : "An answer first";
      if (input) input.setCustomValidity(wrong);
      if (wrong) { input.reportValidity(); return; }
      keep(key, said);
      solution.open = true;
      show(said);
    });
    form.addEventListener("input", () => form.querySelector("input[type=text]")?.setCustomValidity(""));
    skip.addEventListener("click", () => { keep(key, ""); solution.open = true; show(""); });
    again.addEventListener("click", () => {
      keep(key, null);
      solution.open = false;
      show(null);
      form.querySelector("input").focus();
    });
    show(kept(key));
    return [form, told];
  }

  const problems = document.querySelectorAll("div.problem");
  for (const problem of problems) {
    const solution = problem.nextElementSibling;
    if (!solution?.matches("details.solution")) continue;
    const choices = problem.querySelector("ul.choices");
    const options = choices && [...choices.children].map((item) => item.textContent.trim());
    if (choices) choices.hidden = true; // the form shows them
    problem.append(...ask(problem.id, { ...problem.dataset, options }, solution, "Your answer:", problem.textContent));
  }
  document.querySelectorAll("section#quiz details").forEach((solution, place) =>
    solution.before(...ask(`quiz-${place + 1}`, {}, solution, "Your answer, in a line:", solution.previousElementSibling.textContent)));

  // On paper: all solutions under one heading at the end of the page, each behind the number of its problem.
  let moved = [];
  addEventListener("beforeprint", () => {
    const article = document.querySelector("article.bd-article > section");
    const end = made("section", { className: "solutions" }, made("h2", { textContent: "Solutions" }));
    moved = [...problems].flatMap((problem) => {
      const solution = problem.nextElementSibling;
      if (!solution?.matches("details.solution")) return [];
      const place = document.createComment(""), title = problem.querySelector(".problem-title").cloneNode(true);
      title.removeAttribute("id");
      solution.before(place);
      end.append(title, solution);
      return [[place, solution]];
    });
    if (moved.length) article.append(end);
  });
  addEventListener("afterprint", () => {
    for (const [place, solution] of moved) place.replaceWith(solution);
    document.querySelector("section.solutions")?.remove();
  });
})();
