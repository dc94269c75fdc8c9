// Typesets what MkDocs marked as a formula. KaTeX lies beside this file: no page needs the network.
document.addEventListener("DOMContentLoaded", () => {
  for (const formula of document.querySelectorAll(".arithmatex")) {
    const text = formula.textContent.trim();
    const isBlock = text.startsWith("\\[");
    katex.render(text.slice(2, -2), formula, { displayMode: isBlock, throwOnError: false });
  }
});
