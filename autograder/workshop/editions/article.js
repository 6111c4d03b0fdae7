// One built page of the book as an edition shows it: its article, without what only a screen can do, every id under a name
// that no other page of the book has and every link inside the book by such a name. Returned as well-formed XHTML.
({ text, page, pages, address }) => {
  const article = new DOMParser().parseFromString(text, "text/html").querySelector("article.bd-article");
  const all = (what) => [...article.querySelectorAll(what)];
  const nameOf = (path, id) => `p-${path.split("/").pop()}${id ? `.${id}` : ""}`;
  const home = "http://book/";
  const make = (tag, words, ...classes) => {
    const made = article.ownerDocument.createElement(tag);
    made.append(words);
    made.classList.add(...classes);
    return made;
  };

  // What is changed by hand is so on its page alone.
  for (const figure of all("figure")) {
    const handled = figure.matches(".explorable, .lab, .warplab-step") || figure.querySelector("input, select, button, canvas");
    if (!handled) continue;
    const where = address ? make("a", "its page") : "its page of the book in a browser";
    if (address) where.href = new URL(`${page}.html#${figure.id}`, address).href;
    const told = make("p", figure.matches(".lab") ? "This experiment runs on your own GPU, on " : "To change this picture by hand, open ", "by-hand");
    told.append(where, ".");
    figure.querySelector(".lab-still")?.remove();
    (figure.querySelector("figcaption") ?? figure).append(told);
  }
  const styles = [...new Set(all("style").map((style) => style.textContent))].join("\n");
  const useless = "p.editions, script, style, noscript, template, button, input, select, label, canvas, [hidden], a.headerlink, .sd-summary-state-marker";
  for (const node of all(`${useless}, svg.narrow`)) node.remove();
  const comments = article.ownerDocument.createNodeIterator(article, NodeFilter.SHOW_COMMENT);
  for (let node; (node = comments.nextNode()); ) node.remove();

  // A summary says what it opens, in words that stand in a line.
  for (const summary of all("summary")) {
    if (summary.querySelector(".collapsed")) summary.replaceChildren(summary.querySelector(".collapsed").textContent.trim());
    for (const block of summary.querySelectorAll("p, div")) block.replaceWith(...block.childNodes);
    summary.parentElement.toggleAttribute("open", true);
  }

  // Where a figure is drawn twice, the style sheet chooses by the width of the screen.
  for (const drawing of all("svg.narrow")) drawing.parentElement.classList.add("two-drawings");

  // Chromium makes no place in a PDF of a footnote's number, so the note does not lead back to it.
  for (const back of all("a[role=doc-backlink]")) back.replaceWith(...back.childNodes);

  // Names.
  for (const image of all("img:not([src^='data:'])")) image.setAttribute("src", new URL(image.getAttribute("src"), `${home}${page}.html`).href);
  for (const link of all("a[href]")) {
    const target = new URL(link.getAttribute("href"), `${home}${page}.html`);
    link.removeAttribute("title");
    if (!target.href.startsWith(home)) continue;
    const path = target.pathname.slice(1).replace(/\.html$/, "");
    if (pages.includes(path)) link.setAttribute("href", `#${nameOf(path, decodeURIComponent(target.hash.slice(1)))}`);
    else if (address) link.href = new URL(target.href.slice(home.length), address).href;
    else link.replaceWith(...link.childNodes);
  }
  for (const node of all("*")) {
    for (const { name, value } of [...node.attributes]) {
      if (name === "id") node.id = nameOf(page, value);
      else if (/^aria-(labelledby|describedby)$/.test(name)) node.setAttribute(name, value.split(/\s+/).map((id) => nameOf(page, id)).join(" "));
      else if (value.includes("url(#")) node.setAttribute(name, value.replace(/url\(#/g, `url(#${nameOf(page)}.`));
      else if (node.localName === "use" && value.startsWith("#")) node.setAttribute(name, `#${nameOf(page, value.slice(1))}`);
      else if (/^(tabindex|border|align|valign|data-.*)$/.test(name)) node.removeAttribute(name);
      else if (name === "style" && node.localName === "section") node.removeAttribute(name);
    }
  }

  const written = new XMLSerializer();
  return {
    title: article.querySelector("h1").textContent.trim(),
    sections: all("section section > h2").map((heading) => [heading.parentElement.id, heading.textContent.trim()]),
    styles,
    body: [...article.childNodes].map((node) => written.serializeToString(node)).join("").trim(),
  };
}
