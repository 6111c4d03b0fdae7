// What the search shows of a page: Sphinx's own, with words of neighbouring cells, list items and paragraphs kept apart,
// without drawings and buttons. A page that was opened as a file cannot read the others, so it shows their titles alone.
(() => {
  if (location.protocol === "file:") DOCUMENTATION_OPTIONS.SHOW_SEARCH_SUMMARY = false;
  const unread = ".headerlink, .ask, script, style, svg, button, math annotation, #jb-print-docs-body, .bd-header-article, .prev-next-footer, "
    + ".bd-sidebar-secondary, footer";
  Search.htmlToText = (text, anchor) => {
    const page = new DOMParser().parseFromString(text, "text/html");
    for (const element of page.querySelectorAll(unread)) element.remove();
    for (const element of page.querySelectorAll("article *")) {
      if (!/^(A|ABBR|B|CODE|EM|I|SPAN|STRONG|SUB|SUP|MI|MN|MO|MROW|MATH)$/i.test(element.tagName)) element.append(" ");
    }
    const place = anchor && page.getElementById(anchor.slice(1));
    if (place && place.tagName === "DT" && place.nextElementSibling) return place.textContent + place.nextElementSibling.textContent;
    return ((place && place.closest("section, dd, div")) || page.querySelector("article") || page.body).textContent;
  };
})();
