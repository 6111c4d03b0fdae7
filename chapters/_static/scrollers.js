// The Tab key stops at boxes that scroll and passes those that do not. Every listing and table box starts as a stop
// (_ext/page_head.py) and is measured when it is near. The theme measures all boxes too, but only at load, when the window is
// resized and when nodes are added: a box that gets its width later, in a closed <details> or a hidden tab, needs this.
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
