// A chapter's lab is a button; the lab's own script comes when it is pressed.

for (const figure of document.querySelectorAll("figure.lab[data-small]")) {
  const button = document.createElement("button");
  button.type = "button";
  button.className = "lab-run";
  button.textContent = "Run on my GPU";
  figure.querySelector(".lab-still").replaceWith(button);
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const { live } = await import("./lab.js");
      button.remove();
      live(figure);
    } catch {
      button.disabled = false;
      button.textContent = "The experiment could not be loaded. Try again";
    }
  });
}
