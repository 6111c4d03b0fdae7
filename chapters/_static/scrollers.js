// What scrolls sideways can be scrolled with the keyboard, and what does not is no stop on the way. Every listing and every
// box of a table comes as a stop (_ext/page_head.py); once it is near, and so has a width, it stays one if it must. The
// theme would ask all of them at once, for which all of the page must be laid out, and again after every change.
(() => {
  const sized = new ResizeObserver((entries) => {
    for (const { target } of entries) target.tabIndex = target.scrollWidth > target.clientWidth || target.scrollHeight > target.clientHeight ? 0 : -1;
  });
  const near = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      if (!isIntersecting) continue;
      near.unobserve(target);
      sized.observe(target);
    }
  }, { rootMargin: "100%" });
  for (const box of document.querySelectorAll("pre[tabindex], .output[tabindex], .pst-scrollable-table-container")) near.observe(box);
})();
