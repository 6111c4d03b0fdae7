// A number says where it is from, a term what it means and a footnote's number what it says, beside the link: for a pointer
// that rests on it, a tap, and Enter or Space. The link's own target (the registry's row, the glossary, the note) is the
// link inside the box. Without this script they are links with a title.
(() => {
  const links = document.querySelectorAll("a.spec[title], a.term[title], a.footnote-reference[title]");
  const places = { term: "In the glossary", spec: "In the registry", "footnote-reference": "With the other notes" };
  if (!links.length || !HTMLElement.prototype.showPopover) return;

  const box = document.createElement("span");
  box.id = "preview";
  box.className = "preview";
  box.popover = "manual";
  box.setAttribute("role", "group");
  const said = box.appendChild(document.createElement("span"));
  said.setAttribute("role", "status");
  const more = box.appendChild(document.createElement("a"));
  let shown = null, pinned = false, timer = 0;

  function close() {
    clearTimeout(timer);
    if (!shown) return;
    shown.setAttribute("aria-expanded", "false");
    shown.removeAttribute("aria-controls");
    shown = null;
    pinned = false;
    if (box.matches(":popover-open")) box.hidePopover();
  }

  function open(link, pin) {
    if (shown !== link) {
      close();
      link.after(box); // so that Tab leads from the link into the box
      box.setAttribute("aria-label", `About ${link.textContent}`);
      said.textContent = link.dataset.preview;
      more.href = link.href;
      more.textContent = places[Object.keys(places).find(kind => link.classList.contains(kind))];
      box.showPopover();
      place(link);
      shown = link;
      link.setAttribute("aria-expanded", "true");
      link.setAttribute("aria-controls", box.id);
    }
    pinned = pinned || pin;
  }

  // Below the link or, where there is no room, above; inside the window on a phone too.
  function place(link) {
    const at = link.getClientRects()[0], { offsetWidth: width, offsetHeight: height } = box;
    const left = Math.max(8, Math.min(at.left, document.documentElement.clientWidth - width - 8));
    const top = at.bottom + height + 12 < innerHeight || at.top < height + 12 ? at.bottom + 6 : at.top - height - 6;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${top + scrollY}px`;
  }

  const soon = (act, wait) => { clearTimeout(timer); timer = setTimeout(act, wait); };
  for (const link of links) {
    link.dataset.preview = link.title;
    link.removeAttribute("title");
    link.setAttribute("role", "button");
    link.setAttribute("aria-expanded", "false");
    link.addEventListener("click", event => {
      if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey) return;
      event.preventDefault();
      clearTimeout(timer);
      if (shown === link && pinned) close(); else open(link, true);
    });
    link.addEventListener("keydown", event => {
      if (event.key !== " ") return;
      event.preventDefault();
      link.click();
    });
    link.addEventListener("pointerenter", event => event.pointerType === "mouse" && soon(() => open(link, false), 200));
    link.addEventListener("pointerleave", () => soon(() => pinned || close(), 250));
  }
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", () => soon(() => pinned || close(), 250));
  document.addEventListener("pointerdown", event => {
    if (!box.contains(event.target) && !(shown && shown.contains(event.target))) close();
  });
  document.addEventListener("keydown", event => {
    if (event.key !== "Escape" || !shown) return;
    if (box.contains(document.activeElement)) shown.focus();
    close();
  });
  document.addEventListener("focusin", event => {
    if (shown && pinned && event.target !== shown && !box.contains(event.target)) close();
  });
  document.addEventListener("scroll", event => event.target !== document && close(), true); // a table scrolled sideways
})();
