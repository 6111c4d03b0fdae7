// The theme's menus and its words beside buttons (Bootstrap, the longest script of a page) are loaded when a reader first
// reaches for one, with a pointer, a finger or the keyboard.
{
  const { menus } = document.currentScript.dataset;
  let coming = null;
  const load = () => coming ??= new Promise((done) => {
    const script = document.createElement("script");
    script.src = menus;
    script.onload = done;
    document.head.append(script);
  });
  const reached = (event, what) => event.target.closest?.(what);
  for (const kind of ["pointerover", "focusin"]) {
    addEventListener(kind, (event) => { if (reached(event, "[data-bs-toggle]")) load(); });
  }
  addEventListener("click", (event) => {
    const button = reached(event, '[data-bs-toggle="dropdown"]');
    if (!button || window.bootstrap) return;
    event.stopPropagation();
    load().then(() => button.click());
  }, true);
}
