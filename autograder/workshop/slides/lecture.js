const stored = localStorage.getItem("mode");
const dark = matchMedia("(prefers-color-scheme: dark)");
const root = document.documentElement;
const show = (theme) => { root.dataset.theme = theme; };
show(stored === "light" || stored === "dark" ? stored : dark.matches ? "dark" : "light");
addEventListener("beforeprint", () => { root.dataset.screen = root.dataset.theme; show("light"); });
addEventListener("afterprint", () => show(root.dataset.screen));
addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const step = { ArrowRight: 1, PageDown: 1, " ": 1, ArrowLeft: -1, PageUp: -1 }[event.key];
  if (step) {
    const slides = [...document.querySelectorAll(".slide")];
    const tops = slides.map((slide) => Math.abs(slide.getBoundingClientRect().top));
    const next = slides[tops.indexOf(Math.min(...tops)) + step];
    next?.scrollIntoView();
    next?.focus({ preventScroll: true });
    event.preventDefault();
  } else if (event.key === "n") root.classList.toggle("with-notes");
  else if (event.key === "d") show(root.dataset.theme === "dark" ? "light" : "dark");
});
