// Paper is white and cannot be pressed: before printing the page takes its light colours and everything opens; after it,
// both are as the reader had them.
(() => {
  const root = document.documentElement;
  let theme = "", closed = [];

  addEventListener("beforeprint", () => {
    theme = root.dataset.theme;
    root.dataset.theme = "light";
    closed = [...document.querySelectorAll("details:not([open])")];
    for (const details of closed) details.open = true;
  });

  addEventListener("afterprint", () => {
    root.dataset.theme = theme;
    for (const details of closed) details.open = false;
  });
})();
